package traces

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/secretsync/syncer/internal/certs"
)

// settings are the collector settings from the environment. The library reads the
// settings of spans: sampling, limits and batches.
type settings struct {
	url     string
	header  http.Header
	timeout time.Duration
	gzip    bool
	tls     *tls.Config
}

// readSettings returns nil if no traces are requested. Its error lists all faults.
func readSettings() (*settings, error) {
	name, endpoint := either("ENDPOINT")
	exporter := env("OTEL_TRACES_EXPORTER")
	if endpoint == "" || exporter == "none" || strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	s := &settings{header: http.Header{}, timeout: 10 * time.Second, tls: &tls.Config{}}
	var errs []error
	if exporter != "" && exporter != "otlp" {
		errs = append(errs, fmt.Errorf("OTEL_TRACES_EXPORTER=%s is not supported; use otlp or none", exporter))
	}
	if name, protocol := either("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		errs = append(errs, fmt.Errorf("%s=%s is not supported; use http/protobuf, and the collector's port for it, such as 4318", name, protocol))
	}
	return s, errors.Join(append(errs, s.setURL(name, endpoint), s.setHeaders(), s.setTimeout(), s.setCompression(), s.setTLS())...)
}

// setURL uses the endpoint for traces unchanged. It appends the traces path to a
// general endpoint.
func (s *settings) setURL(name, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%s is not a URL such as http://collector:4318", name)
	}
	if u.User != nil {
		return fmt.Errorf("%s has a user or password in it; put them into OTEL_EXPORTER_OTLP_HEADERS", name)
	}
	if !strings.Contains(name, "_TRACES_") {
		u = u.JoinPath("v1/traces")
	}
	s.url = u.String()
	return nil
}

func (s *settings) setHeaders() error {
	name, list := either("HEADERS")
	if list == "" {
		return nil
	}
	for i, pair := range strings.Split(list, ",") {
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || strings.TrimSpace(key) == "" {
			return fmt.Errorf("item %d of %s is not of the form NAME=VALUE, with the value escaped as in a URL", i+1, name)
		}
		s.header.Set(strings.TrimSpace(key), value)
	}
	return nil
}

func (s *settings) setTimeout() error {
	name, text := either("TIMEOUT")
	if text == "" {
		return nil
	}
	ms, err := strconv.Atoi(text)
	if err != nil || ms < 1 {
		return fmt.Errorf("%s=%s is not a number of milliseconds", name, text)
	}
	s.timeout = time.Duration(ms) * time.Millisecond
	return nil
}

func (s *settings) setCompression() error {
	name, text := either("COMPRESSION")
	if s.gzip = text == "gzip"; text != "" && text != "gzip" && text != "none" {
		return fmt.Errorf("%s=%s is not supported; use gzip or none", name, text)
	}
	return nil
}

func (s *settings) setTLS() error {
	var errs []error
	if name, file := either("CERTIFICATE"); file != "" {
		var err error
		if s.tls.RootCAs, err = certs.ReadRoots(file); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if name, file := either("CLIENT_CERTIFICATE"); file != "" {
		_, key := either("CLIENT_KEY")
		pair, err := certs.ReadPair(file, key)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s with its CLIENT_KEY: %w", name, err))
		}
		s.tls.Certificates = []tls.Certificate{pair}
	}
	return errors.Join(errs...)
}

// either returns the variable that is set. A variable for traces takes precedence
// over the general one.
func either(suffix string) (name, value string) {
	name = "OTEL_EXPORTER_OTLP_TRACES_" + suffix
	if value = env(name); value == "" {
		name = "OTEL_EXPORTER_OTLP_" + suffix
		value = env(name)
	}
	return name, value
}

func env(name string) string { return strings.TrimSpace(os.Getenv(name)) }
