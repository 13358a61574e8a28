package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// bareClientFlag, as the only argument, runs this program as the bare client: the
// least that a Go program can do to watch the variables.
const bareClientFlag = "-bare-client"

// bareJob is the bare client's input on standard input.
type bareJob struct {
	URL, AuthnURL, Account string
	CA                     []byte // PEM
	TokenFile              string // of the JWT
	Variables              []string
}

// bareRequestLine bounds the bare client's request lines.
const bareRequestLine = 8000

// runBareClient requests the variables at each interval, conditionally and with its
// access token, and discards the answers.
func runBareClient(ctx context.Context, in io.Reader) error {
	var job bareJob
	if err := json.NewDecoder(in).Decode(&job); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(job.CA)
	c := &bare{job: job, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, DisableCompression: true,
	}}}
	defer c.client.CloseIdleConnections()
	if err := c.authenticate(ctx); err != nil {
		return err
	}
	chunks := job.chunks()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		for _, ch := range chunks {
			if err := c.get(ctx, ch); err != nil && ctx.Err() == nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// chunk is one request.
type chunk struct{ url, etag string }

// chunks packs the variables into as few request lines as possible.
func (j bareJob) chunks() (chunks []*chunk) {
	base := j.URL + "/secrets?variable_ids="
	var ids []string
	size := len(base)
	flush := func() {
		if len(ids) > 0 {
			chunks = append(chunks, &chunk{url: base + strings.Join(ids, ",")})
		}
		ids, size = nil, len(base)
	}
	for _, v := range j.Variables {
		id := j.Account + ":variable:" + v // needs no escapes
		if size+len(id) > bareRequestLine {
			flush()
		}
		ids, size = append(ids, id), size+len(id)+1
	}
	flush()
	return chunks
}

// bare is the bare client.
type bare struct {
	job           bareJob
	client        *http.Client
	authorization string
}

func (b *bare) authenticate(ctx context.Context) error {
	token, err := os.ReadFile(b.job.TokenFile)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		b.job.AuthnURL+"/"+b.job.Account+"/authenticate", strings.NewReader("jwt="+string(token)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("authenticate: %s", resp.Status)
	}
	b.authorization = `Token token="` + base64.StdEncoding.EncodeToString(body) + `"`
	return err
}

// get requests a chunk. After a 401 it tries once more with a new token.
func (b *bare) get(ctx context.Context, ch *chunk) error {
	status, err := b.ask(ctx, ch)
	if err == nil && status == http.StatusUnauthorized {
		if err = b.authenticate(ctx); err == nil {
			status, err = b.ask(ctx, ch)
		}
	}
	if err == nil && status != http.StatusOK && status != http.StatusNotModified {
		err = fmt.Errorf("status %d", status)
	}
	return err
}

func (b *bare) ask(ctx context.Context, ch *chunk) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, ch.url, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", b.authorization)
	req.Header.Set("Accept-Encoding", "base64")
	if ch.etag != "" {
		req.Header.Set("If-None-Match", ch.etag)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		ch.etag = resp.Header.Get("ETag")
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}
