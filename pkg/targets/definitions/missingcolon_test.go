package definitions_test

import (
	"strings"
	"testing"

	"github.com/secretsync/syncer/pkg/targets/definitions"
)

// An id that is not in quotes may be an alias and an id with something missing
// between them. The warning shows what was read.
func TestWhatLooksLikeAMissingColonIsAWarning(t *testing.T) {
	for text, want := range map[string]string{
		"- user:a/b":             `line 1: the alias "b" is read as the one variable "user:a/b"; if the space after a colon is missing, write "alias: id"; put quotes around an id that has a colon`,
		"- user:b":               `the alias "user:b" is read as the one variable "user:b"`,
		"- acct:variable:u:a/b":  "",
		"- apps/user pass":       `the alias "user pass" is read as the one variable "apps/user pass"; if a colon is missing, write "alias: id"; put quotes around an id that has spaces`,
		"- k: apps/user pass":    `the alias "k" is read as the one variable "apps/user pass"; if a colon is missing`,
		"- 'user:a/b'":           "",
		"- \"apps/user pass\"":   "",
		"- acct:variable:a/b":    "",
		"- a/user:b":             "",
		"- k: user:a/b":          "",
		"- k: 'apps/user pass'":  "",
		"- k: acct:variable:a/b": "",
	} {
		_, warnings, err := definitions.ParseEntries(text, "acct")
		said := strings.Join(warnings, "\n")
		if err != nil || len(warnings) > 1 || (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%q: warnings %q, error %v; want %q", text, warnings, err, want)
		}
	}
}
