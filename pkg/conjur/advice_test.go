package conjur

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// Each failure that an operator meets names the likely cause and the next step.
func TestAFailureSaysWhatToDo(t *testing.T) {
	for says, err := range map[string]error{
		"a gateway may have answered":                    errBrokenAnswer,
		"set CONJUR_SSL_CERTIFICATE or CONJUR_CERT_FILE": &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"check the port and whether the server runs":     &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"check the port and the scheme of the address":   errNoTLS,
		"check Conjur's load and the NetworkPolicy":      fmt.Errorf("%w 10s", errTimeout),
	} {
		got := advise(err)
		if !errors.Is(got, err) || !strings.HasPrefix(got.Error(), err.Error()+"; ") || !strings.Contains(got.Error(), says) {
			t.Errorf("%v: it should say %q", got, says)
		}
	}
	if err := errors.New("another"); advise(err) != err {
		t.Error("an error without a known cause has got one")
	}
}

func TestAStatusSaysWhatToDo(t *testing.T) {
	for says, e := range map[string]StatusError{
		"check the login, the key or token":       {Kind: KindAuthenticate, Status: http.StatusUnauthorized},
		"grant it the privilege authenticate":     {Kind: KindLogin, Status: http.StatusForbidden},
		"check the account and the authenticator": {Kind: KindAuthenticate, Status: http.StatusNotFound},
		"check Conjur's clock":                    {Kind: KindBatch, Status: http.StatusUnauthorized},
		"grant it read and execute":               {Kind: KindVariable, Status: http.StatusForbidden},
		"grant it update":                         {Kind: KindSet, Status: http.StatusForbidden},
		"check that the identity exists":          {Kind: KindList, Status: http.StatusForbidden},
		"check the id, the privilege read":        {Kind: KindSetAll, Status: http.StatusNotFound},
		"raise the limit":                         {Kind: KindValues, Status: http.StatusTooManyRequests},
		"see Conjur's log":                        {Kind: KindVariable, Status: http.StatusInternalServerError},
		"check their health":                      {Kind: KindAuthenticate, Status: http.StatusServiceUnavailable},
		"set the address to which it redirects":   {Kind: KindWhoami, Status: http.StatusFound},
		"check HTTPS_PROXY":                       {Kind: KindBatch, Status: http.StatusProxyAuthRequired},
	} {
		if !strings.Contains(e.Error(), says) {
			t.Errorf("%v: it should say %q", &e, says)
		}
	}
	if e := (&StatusError{Kind: KindWhoami, Status: http.StatusOK, Detail: "strange"}); e.Error() != "whoami: the server answered 200: strange" {
		t.Errorf("%v", e)
	}
}
