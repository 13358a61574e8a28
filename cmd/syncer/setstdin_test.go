package main

import (
	"strings"
	"testing"
)

// A file called - is standard input, as for every other command.
func TestSetReadsValuesFromStandardInput(t *testing.T) {
	server := setFixture(t)
	if _, _, err := told(t, "a: one\nb: {base64: AP8=}\n", "set", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	assertValue(t, server, "a", "one")
	assertValue(t, server, "b", "\x00\xff")
	for input, want := range map[string]string{"": "the file - contains no values; write ID: VALUE, one a line", "- canary": "standard input: not a mapping"} {
		if _, _, err := told(t, input, "set", "-f", "-"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", input, err, want)
		}
	}
}
