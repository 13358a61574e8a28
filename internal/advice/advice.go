// Package advice says what to do about a connection that fails.
package advice

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
)

// Add returns the error with the next step. Without a step it returns err.
func Add(err error, step string) error {
	if err == nil || step == "" {
		return err
	}
	return &advised{err, step}
}

type advised struct {
	error
	step string
}

func (e *advised) Error() string { return e.error.Error() + "; " + e.step }
func (e *advised) Unwrap() error { return e.error }

// causes are the known causes. The first one that fits counts.
var causes = []struct {
	is   func(error) bool
	step string // "": what the caller says about CA certificates
}{
	{func(err error) bool { e, ok := errors.AsType[*net.DNSError](err); return ok && e.IsNotFound }, "check the host name and the Pod's DNS"},
	{as[*net.DNSError], "the DNS server does not answer; check the Pod's DNS and the NetworkPolicy"},
	{is(syscall.ECONNREFUSED), "nothing listens there; check the port and whether the server runs"},
	{is(syscall.EHOSTUNREACH, syscall.ENETUNREACH), "there is no route; check the address and the NetworkPolicy"},
	{as[tls.RecordHeaderError], "the server does not answer in TLS; check the port, and whether the server has TLS"},
	{is(syscall.ECONNRESET, syscall.EPIPE), "a gateway may limit connections; see its log and the server's"},
	{as[x509.UnknownAuthorityError], ""},
	{as[x509.HostnameError], "use a name of the certificate as the address, or renew the certificate"},
	{func(err error) bool {
		e, ok := errors.AsType[x509.CertificateInvalidError](err)
		return ok && e.Reason == x509.Expired
	}, "renew the server's certificate, or correct the node's clock"},
	{func(err error) bool { e, ok := errors.AsType[net.Error](err); return ok && e.Timeout() }, "check the server's load and the NetworkPolicy; Syncer retries"},
}

func is(known ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) })
	}
}

func as[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Connection returns the error of a connection with the next step, if its cause is known.
// authority is the step if the server's CA is not trusted.
func Connection(err error, authority string) error {
	// An expired root is reported like an expired certificate of the server.
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired && e.Cert != nil && e.Cert.IsCA {
		return Add(err, fmt.Sprintf("this is the CA certificate %q: renew it, also where Syncer reads CA certificates, or correct the node's clock", e.Cert.Subject))
	}
	for _, c := range causes {
		if err != nil && c.is(err) {
			if c.step == "" {
				return Add(err, authority)
			}
			return Add(err, c.step)
		}
	}
	return err
}
