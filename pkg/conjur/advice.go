package conjur

import (
	"errors"
	"slices"

	"github.com/secretsync/syncer/internal/advice"
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
	{403, 403, policies, "the identity may not load into this branch; grant it create, or update to replace and delete"},
	{404, 404, policies, "there is no such branch, or this identity may not see it; check the name, such as root"},
	{409, 409, policies, "another policy is being loaded; repeat the command"},
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

	policies = []Kind{KindPolicy}
)

func (e *StatusError) advice() string {
	for _, a := range statusAdvice {
		if a.from <= e.Status && e.Status <= a.to && (a.kinds == nil || slices.Contains(a.kinds, e.Kind)) {
			return a.text
		}
	}
	return ""
}

// advise adds to an error of a connection what to do about it, if that is known.
func advise(err error) error {
	switch {
	case errors.Is(err, errTimeout):
		return advice.Add(err, "check Conjur's load and the NetworkPolicy; Syncer retries")
	case errors.Is(err, errBrokenAnswer):
		return advice.Add(err, "a gateway may have answered; check the address, and see the gateway's log")
	case errors.Is(err, errNoTLS):
		return advice.Add(err, "check the port and the scheme of the address")
	}
	return advice.Connection(err, "set CONJUR_SSL_CERTIFICATE or CONJUR_CERT_FILE to the CA certificate of Conjur")
}
