package conjur

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/certs"
	"github.com/secretsync/syncer/internal/safefile"
)

const (
	dialTimeout = 10 * time.Second
	// idleTimeout is shorter than the 80 s after which the genuine server closes an
	// idle connection. No request uses a connection that is closing.
	idleTimeout = 75 * time.Second
	// connections is one for the poll and one for fetching.
	connections = 2
)

// transport owns the HTTP client and replaces it when the CA file changes.
type transport struct {
	config *Config
	log    *zap.Logger

	mu      sync.Mutex
	client  *http.Client
	stat    fs.FileInfo       // of the CA file at the last check
	sum     [sha256.Size]byte // of the last content read from the CA file
	current [sha256.Size]byte // of the content in use
}

func newTransport(config *Config, log *zap.Logger) (*transport, error) {
	t := &transport{config: config, log: log}
	if config.CA != "" || config.CAFile == "" {
		roots, err := parseRoots("CA certificate", []byte(config.CA))
		if config.CA == "" {
			roots, err = nil, nil // use the system's authorities
		}
		t.client = t.newClient(roots)
		return t, err
	}
	info, err := os.Stat(config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("CA certificate: %w", err)
	}
	pem, err := safefile.Read(config.CAFile, safefile.MaxInput)
	if err != nil {
		return nil, fmt.Errorf("CA certificate: %w", err)
	}
	roots, err := parseRoots("CA certificate: file "+config.CAFile, pem)
	if err != nil {
		return nil, err
	}
	t.client, t.stat, t.sum = t.newClient(roots), info, sha256.Sum256(pem)
	t.current = t.sum
	return t, nil
}

func parseRoots(what string, pem []byte) (*x509.CertPool, error) {
	roots, err := certs.Roots(pem)
	if err != nil {
		return nil, fmt.Errorf("%s %w", what, err)
	}
	return roots, nil
}

func (t *transport) newClient(roots *x509.CertPool) *http.Client {
	dial := t.config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            dial,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    dialTimeout,
			MaxConnsPerHost:        connections,
			MaxIdleConnsPerHost:    connections,
			IdleConnTimeout:        idleTimeout,
			DisableCompression:     true, // Accept-Encoding carries Conjur's own "base64"
			OnProxyConnectResponse: connected,
			MaxResponseHeaderBytes: 256 << 10,
		},
		// A redirect could send the token elsewhere, and Conjur sends no redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// connected returns an error unless a proxy opened the connection.
func connected(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return &proxyError{answer.StatusCode}
}

// proxyError means that a proxy opens no connection to Conjur.
type proxyError struct{ status int }

func (e *proxyError) Error() string {
	if e.status == http.StatusProxyAuthRequired {
		return fmt.Sprintf("the proxy answered %d; %s", e.status, proxyLogin)
	}
	return fmt.Sprintf("the proxy answered %d; let it pass Conjur, or list Conjur in NO_PROXY", e.status)
}

// showing returns a client that presents the certificate, whatever the server
// requests. It keeps no connections: existing ones were made without the
// certificate, and new ones serve only one request.
func showing(client *http.Client, certificate *tls.Certificate) *http.Client {
	if certificate == nil {
		return client
	}
	transport := client.Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return certificate, nil
	}
	return &http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}
}

// do sends a request. It trusts the current content of the CA file, and presents
// the certificate, if any.
func (t *transport) do(req *http.Request, certificate *tls.Certificate) (*http.Response, error) {
	t.refresh(false)
	client := t.now()
	resp, err := showing(client, certificate).Do(req)
	var untrusted *tls.CertificateVerificationError
	if !errors.As(err, &untrusted) {
		return resp, err
	}
	t.refresh(true)
	if t.now() == client {
		return resp, err
	}
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return showing(t.now(), certificate).Do(again)
}

func (t *transport) now() *http.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.client
}

// refresh checks whether the CA file changed: by metadata or, if thorough, by
// content. After a change it creates a client that trusts the new content.
func (t *transport) refresh(thorough bool) {
	if t.config.CA != "" || t.config.CAFile == "" {
		return
	}
	info, err := os.Stat(t.config.CAFile)
	if err != nil || !thorough && !t.touched(info) {
		return // a file is briefly absent during its replacement
	}
	pem, err := safefile.Read(t.config.CAFile, safefile.MaxInput)
	if err != nil {
		return
	}
	sum := sha256.Sum256(pem)
	if !t.noteContent(info, sum) {
		return
	}
	roots, err := parseRoots("CA certificate: file "+t.config.CAFile, pem)
	if err != nil {
		t.log.Warn("The changed CA certificate file is not usable; the earlier certificates stay in use", zap.Error(err))
		return
	}
	t.replace(t.newClient(roots), sum)
}

func (t *transport) touched(info fs.FileInfo) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !os.SameFile(info, t.stat) || !info.ModTime().Equal(t.stat.ModTime()) || info.Size() != t.stat.Size()
}

// noteContent reports whether the content differs from the last read content.
func (t *transport) noteContent(info fs.FileInfo, sum [sha256.Size]byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := sum != t.sum
	t.stat, t.sum = info, sum
	return changed
}

// replace does nothing if the content is already in use. That happens when a broken
// file is restored.
func (t *transport) replace(client *http.Client, sum [sha256.Size]byte) {
	t.mu.Lock()
	old := t.client
	changed := sum != t.current
	if changed {
		t.client, t.current = client, sum
	}
	t.mu.Unlock()
	if changed {
		old.CloseIdleConnections()
		t.log.Info("The changed CA certificate file is in use", zap.String("file", t.config.CAFile))
	}
}

func (t *transport) close() { t.now().CloseIdleConnections() }

// plainError converts a connection error into one that is safe to show. net/http
// repeats the URL and quotes text that it cannot parse, which may be part of a
// secret.
func plainError(err error) error {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	var (
		proxy     *proxyError
		op        *net.OpError
		untrusted *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	switch {
	case errors.As(err, &proxy):
		return proxy
	case strings.Contains(err.Error(), beginOfHTTP2):
		return errOnlyHTTP2
	case errors.As(err, &untrusted):
		return untrusted
	case errors.As(err, &record):
		return errNoTLS
	case errors.As(err, &alert) && alert == noProtocol:
		return errOnlyHTTP2
	case errors.As(err, &alert):
		return alert
	case errors.As(err, &op) && !errors.Is(err, net.ErrClosed):
		return op
	case errors.Is(err, http.ErrSchemeMismatch):
		return http.ErrSchemeMismatch
	}
	return errBrokenAnswer
}

const (
	// beginOfHTTP2 is how net/http quotes the first frame of an HTTP/2 server, which
	// begins with its length.
	beginOfHTTP2 = `malformed HTTP response "\x00\x00`
	// noProtocol is the alert no_application_protocol (RFC 7301).
	noProtocol = tls.AlertError(120)
)

var (
	errOnlyHTTP2    = errors.New("the server speaks only HTTP/2")
	errNoTLS        = errors.New("the server does not speak TLS")
	errBrokenAnswer = errors.New("the connection was closed before the answer ended, or the answer is not HTTP")
)
