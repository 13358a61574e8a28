package definitions

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets"
)

func TestParseConfigMapRef(t *testing.T) {
	for text, want := range map[string]string{
		"tpl/app.conf":   "tpl/app.conf",
		"tpl":            "tpl/cfg.tpl",
		"a.b-c/_X-1":     "a.b-c/_X-1",
		"tpl/conjur-map": "tpl/conjur-map",
	} {
		name, key, _ := strings.Cut(want, "/")
		if got, err := ParseConfigMapRef(text, "cfg", "ns"); err != nil || got != (targets.ConfigMapKey{Namespace: "ns", Name: name, Key: key}) {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                `the name "" is not one of`,
		"/key":                            `the name "" is not one of`,
		"tpl/":                            `the data key "" is empty`,
		"ns/tpl/key":                      "more than one slash",
		"Upper/key":                       `the name "Upper" is not one of`,
		"-a/key":                          "begins and ends in a letter",
		"a-/key":                          "begins and ends in a letter",
		"a..b/key":                        "is not one of",
		"tpl/a b":                         "has characters other than",
		"tpl/..data":                      "begins with ..",
		strings.Repeat("a", 254) + "/k":   "longer than 253 characters",
		"tpl/" + strings.Repeat("k", 254): "longer than 253 bytes",
	} {
		if got, err := ParseConfigMapRef(text, "cfg", "ns"); err == nil || !strings.Contains(err.Error(), want) || got != (targets.ConfigMapKey{}) {
			t.Errorf("%q: %v, %v; want an error with %q", text, got, err, want)
		}
	}
}
