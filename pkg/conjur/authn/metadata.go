package authn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	// metadataTimeout bounds a request to a cloud's metadata service. Such a
	// service answers within milliseconds if it exists.
	metadataTimeout = 10 * time.Second
	// maxMetadata bounds the answer. A token has about two kilobytes.
	maxMetadata = 64 << 10
)

// askMetadata returns the answer of a cloud's metadata service. It contacts the
// service directly: it uses no proxy, follows no redirect, and closes the
// connection. The error names the service and contains nothing that was received.
func askMetadata(ctx context.Context, service, address string, header http.Header) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: the address is malformed", service)
	}
	req.Header = header
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	var body []byte
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxMetadata+1))
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s at %s: no complete answer yet: %w", service, req.URL.Host, ctx.Err())
	case limited.Err() != nil:
		return nil, fmt.Errorf("%s at %s: no complete answer within %v", service, req.URL.Host, metadataTimeout)
	case err != nil:
		return nil, fmt.Errorf("%s at %s: %w", service, req.URL.Host, plain(err))
	case resp.StatusCode != http.StatusOK:
		clear(body)
		return nil, fmt.Errorf("%s at %s: it answered %d", service, req.URL.Host, resp.StatusCode)
	case len(body) > maxMetadata:
		clear(body)
		return nil, fmt.Errorf("%s at %s: the answer is longer than %d bytes", service, req.URL.Host, maxMetadata)
	}
	return body, nil
}

// plain converts a connection error into one that is safe to show, because net/http
// quotes text that it cannot parse.
func plain(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	return errors.New("the connection was closed before the answer ended, or the answer is not HTTP")
}

// checkToken returns an error for an answer that cannot be a token. A portal's page
// must not reach Conjur, and its text must not be shown.
func checkToken(service string, token []byte) error {
	isToken := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' || r == '='
	}
	if bytes.Count(token, []byte(".")) != 2 || bytes.ContainsFunc(token, func(r rune) bool { return !isToken(r) }) {
		return fmt.Errorf("%s: the answer is not a token", service)
	}
	return nil
}

// at returns a URL of the metadata service, with a query.
func at(base, path string, query url.Values) string { return base + path + "?" + query.Encode() }
