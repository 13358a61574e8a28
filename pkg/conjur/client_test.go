package conjur_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
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

// TestLineLengthIsThatOfTheRequest with each character that an id may have.
func TestLineLengthIsThatOfTheRequest(t *testing.T) {
	d := conjurtest.New()
	c := start(t, d, nil)
	var ids []string
	for r := rune(' '); r < 0x200; r++ {
		if id := "app/" + string(r); conjur.CheckID(id) == nil && conjur.Batchable(id) {
			ids = append(ids, id)
		}
	}
	c.Batch(t.Context(), &conjur.Batch{IDs: ids}, "")
	for _, a := range d.Log() {
		if got, bare := c.LineLength(ids...)-c.LineLength(), len("/secrets?variable_ids="); a.Kind == conjur.KindBatch && got != len(a.Target)-bare+len(",") {
			t.Errorf("%d bytes for the ids of %s", got, a.Target)
		}
	}
}
