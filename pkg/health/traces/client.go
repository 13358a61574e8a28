package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v4"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// client is an otlptrace.Client. The library's HTTP client would link gRPC.
type client struct {
	*settings
	http   *http.Client
	ending context.Context // its end cancels the sending
	report func(error)
}

// client returns a client that contacts only the collector.
func (s *settings) client() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.tls, IdleConnTimeout: 90 * time.Second},
		Timeout:       s.timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (c *client) Start(context.Context) error { return nil }

func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans and reports the result. While the collector is busy, it
// pauses and retries. It returns no error, because callers could not react to one.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ending, cancel)()
	body, err := c.encode(&tracepb.TracesData{ResourceSpans: spans}) // the format of the request
	if err == nil {
		err = backoff.Retry(func() error { return c.post(ctx, body) }, backoff.WithContext(backoff.NewExponentialBackOff(), ctx))
	}
	if err != nil && c.ending.Err() != nil {
		err = errors.New("the last spans were not sent before the exit")
	}
	c.report(err)
	return nil
}

func (c *client) encode(message proto.Message) ([]byte, error) {
	body, err := proto.Marshal(message)
	if err != nil || !c.gzip {
		return body, err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err = w.Write(body)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// post sends a body once. Its errors omit the address and the text of the answer,
// which may contain a credential.
func (c *client) post(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	r.Header = c.header.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := c.http.Do(r)
	if unanswered, ok := errors.AsType[*url.Error](err); ok {
		return backoff.Permanent(fmt.Errorf("the collector cannot be reached: %w", unanswered.Err))
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<16) // allows reuse of the connection
	switch err := fmt.Errorf("the collector answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode)); answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return err
	default:
		if answer.StatusCode/100 == 2 {
			return nil
		}
		return backoff.Permanent(err)
	}
}
