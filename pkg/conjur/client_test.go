package conjur_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
)

func TestNewChecksTheConfiguration(t *testing.T) {
	_, err := conjur.New(conjur.Config{
		ApplianceURL: "conjur.example.com", Account: "a:b", HTTPTimeout: -1,
	})
	for _, want := range []string{
		`appliance URL: "conjur.example.com" does not start with https://`, `account "a:b"`,
		"authenticator is missing", "HTTP timeout",
	} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("no word of %q in: %v", want, err)
		}
	}
	_, err = conjur.New(conjur.Config{
		ApplianceURL: "https://h", Account: "dev", CA: "no certificate",
		Authenticator: authn.JWT{URL: "https://h/authn-jwt/x", TokenPath: "/t"},
	})
	if err == nil || !strings.Contains(err.Error(), "CA certificate") {
		t.Errorf("unusable CA text: %v", err)
	}
}
