package advice

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Each failure that an operator meets names the likely cause and the next step.
func TestConnection(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	call := func(err error) error { return dial(&os.SyscallError{Syscall: "connect", Err: err}) }
	untrusted := func(err error) error { return &tls.CertificateVerificationError{Err: err} }
	for says, err := range map[string]error{
		"check the host name and the Pod's DNS":        dial(&net.DNSError{Err: "no such host", Name: "db", IsNotFound: true}),
		"check the Pod's DNS and the NetworkPolicy":    dial(&net.DNSError{Err: "i/o timeout", Name: "db", IsTimeout: true}),
		"check the port and whether the server runs":   call(syscall.ECONNREFUSED),
		"check the address and the NetworkPolicy":      call(syscall.EHOSTUNREACH),
		"a gateway may limit connections":              call(syscall.ECONNRESET),
		"the server does not answer in TLS":            tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
		"set the CA":                                   untrusted(x509.UnknownAuthorityError{}),
		"use a name of the certificate as the address": untrusted(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "db"}),
		"renew the server's certificate":               untrusted(x509.CertificateInvalidError{Reason: x509.Expired}),
		`the CA certificate "CN=old": renew it`:        untrusted(x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{IsCA: true, Subject: pkix.Name{CommonName: "old"}}}),
		"check the server's load":                      context.DeadlineExceeded,
	} {
		got := Connection(err, "set the CA")
		if !errors.Is(got, err) || !strings.HasPrefix(got.Error(), err.Error()+"; ") || !strings.Contains(got.Error(), says) {
			t.Errorf("%v: it should say %q", got, says)
		}
	}
	for _, err := range []error{nil, errors.New("another"), x509.CertificateInvalidError{Reason: x509.TooManyIntermediates, Cert: &x509.Certificate{IsCA: true}}, &net.OpError{Op: "dial", Err: errors.New("no")}} {
		if got := Connection(err, "set the CA"); fmt.Sprint(got) != fmt.Sprint(err) {
			t.Errorf("an error without a known cause has got one: %v", got)
		}
	}
	if err := Add(errors.New("another"), ""); err.Error() != "another" || Add(nil, "step") != nil {
		t.Error("a step is added to nothing, or nothing to an error")
	}
}
