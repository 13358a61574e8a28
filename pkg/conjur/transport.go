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

// wire owns the HTTP client and replaces it when the CA file changes.
type wire struct {
	config *Config
	log    *zap.Logger

	mu      sync.Mutex
	client  *http.Client
	stat    fs.FileInfo       // of the CA file at the last check
	sum     [sha256.Size]byte // of the last content read from the CA file
	current [sha256.Size]byte // of the content in use
}

func newWire(config *Config, log *zap.Logger) (*wire, error) {
	w := &wire{config: config, log: log}
	if config.CA != "" || config.CAFile == "" {
		roots, err := parseRoots("CA certificate", []byte(config.CA))
		if config.CA == "" {
			roots, err = nil, nil // use the system's authorities
		}
		w.client = w.newClient(roots)
		return w, err
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
	w.client, w.stat, w.sum = w.newClient(roots), info, sha256.Sum256(pem)
	w.current = w.sum
	return w, nil
}

func parseRoots(what string, pem []byte) (*x509.CertPool, error) {
	roots, err := certs.Roots(pem)
	if err != nil {
		return nil, fmt.Errorf("%s %w", what, err)
	}
	return roots, nil
}

func (w *wire) newClient(roots *x509.CertPool) *http.Client {
	dial := w.config.Dial
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
func (w *wire) do(req *http.Request, certificate *tls.Certificate) (*http.Response, error) {
	w.refresh(false)
	client := w.now()
	resp, err := showing(client, certificate).Do(req)
	var untrusted *tls.CertificateVerificationError
	if !errors.As(err, &untrusted) {
		return resp, err
	}
	w.refresh(true)
	if w.now() == client {
		return resp, err
	}
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return showing(w.now(), certificate).Do(again)
}

func (w *wire) now() *http.Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.client
}

// refresh checks whether the CA file changed: by metadata or, if thorough, by
// content. After a change it creates a client that trusts the new content.
func (w *wire) refresh(thorough bool) {
	if w.config.CA != "" || w.config.CAFile == "" {
		return
	}
	info, err := os.Stat(w.config.CAFile)
	if err != nil || !thorough && !w.touched(info) {
		return // a file is briefly absent during its replacement
	}
	pem, err := safefile.Read(w.config.CAFile, safefile.MaxInput)
	if err != nil {
		return
	}
	sum := sha256.Sum256(pem)
	if !w.noteContent(info, sum) {
		return
	}
	roots, err := parseRoots("CA certificate: file "+w.config.CAFile, pem)
	if err != nil {
		w.log.Warn("The changed CA certificate file is not usable; the earlier certificates stay in use", zap.Error(err))
		return
	}
	w.replace(w.newClient(roots), sum)
}

func (w *wire) touched(info fs.FileInfo) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !os.SameFile(info, w.stat) || !info.ModTime().Equal(w.stat.ModTime()) || info.Size() != w.stat.Size()
}

// noteContent reports whether the content differs from the last read content.
func (w *wire) noteContent(info fs.FileInfo, sum [sha256.Size]byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := sum != w.sum
	w.stat, w.sum = info, sum
	return changed
}

// replace does nothing if the content is already in use. That happens when a broken
// file is restored.
func (w *wire) replace(client *http.Client, sum [sha256.Size]byte) {
	w.mu.Lock()
	old := w.client
	changed := sum != w.current
	if changed {
		w.client, w.current = client, sum
	}
	w.mu.Unlock()
	if changed {
		old.CloseIdleConnections()
		w.log.Info("The changed CA certificate file is in use", zap.String("file", w.config.CAFile))
	}
}

func (w *wire) close() { w.now().CloseIdleConnections() }

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
