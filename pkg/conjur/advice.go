package conjur

import (
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"syscall"
)

// statusAdvice says what to do about a status. The first line that fits counts.
var statusAdvice = []struct {
	from, to int    // statuses
	kinds    []Kind // nil: all
	text     string
}{
	{300, 399, nil, "set the address to which it redirects"},
	{401, 401, logins, "check the login, the key or token, and that the authenticator is enabled; Conjur's log has the reason"},
	{401, 401, nil, "Conjur refuses a new access token; check Conjur's clock, and that the identity exists"},
	{403, 403, logins, "the identity may not use this authenticator; grant it the privilege authenticate on the authenticator's webservice"},
	{403, 403, reads, "the identity may lack privileges, or a gateway answered; grant it read and execute"},
	{403, 403, writes, "the identity may lack a privilege, or a gateway answered; grant it update"},
	{403, 403, nil, "check that the identity exists, and whether a gateway answered"},
	{404, 404, logins, "check the account and the authenticator in the address"},
	{404, 404, nil, "check the id, the privilege read, and whether the address is Conjur's"},
	{407, 407, nil, "a proxy requires a login; check HTTPS_PROXY and NO_PROXY"},
	{429, 429, nil, "Syncer retries; raise the limit of the server or the refresh interval"},
	{500, 500, nil, "see Conjur's log; Syncer retries"},
	{501, 599, nil, "Conjur, or a gateway before it, is down or overloaded; check their health; Syncer retries"},
}

var (
	logins = []Kind{KindAuthenticate, KindLogin}
	reads  = []Kind{KindBatch, KindVariable, KindValues}
	writes = []Kind{KindSet, KindSetAll, KindRotateKey}
)

func (e *StatusError) advice() string {
	for _, a := range statusAdvice {
		if a.from <= e.Status && e.Status <= a.to && (a.kinds == nil || slices.Contains(a.kinds, e.Kind)) {
			return a.text
		}
	}
	return ""
}

// causeAdvice says what to do if there is no answer. The first line that fits counts.
var causeAdvice = []struct {
	is   func(error) bool
	text string
}{
	{func(err error) bool { e, ok := errors.AsType[*net.DNSError](err); return ok && e.IsNotFound }, "check the address and the Pod's DNS"},
	{as[*net.DNSError], "the DNS server does not answer; check the Pod's DNS and the NetworkPolicy"},
	{is(syscall.ECONNREFUSED), "nothing listens there; check the port and whether Conjur runs"},
	{is(syscall.EHOSTUNREACH, syscall.ENETUNREACH), "there is no route; check the address and the NetworkPolicy"},
	{is(syscall.ECONNRESET, syscall.EPIPE), "a gateway may limit connections; see its log and Conjur's"},
	{is(errBrokenAnswer), "a gateway may have answered; check the address, and see the gateway's log"},
	{as[x509.UnknownAuthorityError], "set CONJUR_SSL_CERTIFICATE or CONJUR_CERT_FILE to the CA certificate of Conjur"},
	{as[x509.HostnameError], "use a name of the certificate as the address, or renew the certificate"},
	{func(err error) bool {
		e, ok := errors.AsType[x509.CertificateInvalidError](err)
		return ok && e.Reason == x509.Expired
	}, "renew Conjur's certificate, or correct the node's clock"},
	{is(errNoTLS), "check the port and the scheme of the address"},
	{func(err error) bool {
		e, ok := errors.AsType[net.Error](err)
		return ok && e.Timeout() || errors.Is(err, errTimeout)
	}, "check Conjur's load and the NetworkPolicy; Syncer retries"},
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

// advisedError is an error with its likely cause and the next step.
type advisedError struct {
	error
	advice string
}

func (e *advisedError) Error() string { return e.error.Error() + "; " + e.advice }
func (e *advisedError) Unwrap() error { return e.error }

// advise adds to an error of a connection what to do about it, if that is known.
func advise(err error) error {
	for _, a := range causeAdvice {
		if a.is(err) {
			return &advisedError{err, a.text}
		}
	}
	return err
}
