package suggest_test

import (
	"testing"

	"github.com/secretsync/syncer/internal/suggest"
)

func TestNearest(t *testing.T) {
	names := []string{"values", "output", "watch", "annotations", "all"}
	for word, want := range map[string]string{
		"vlaues": "values", "outptu": "output", "wath": "watch", "watchh": "watch", "annotation": "annotations", "al": "", "nonsense": "", "": "",
	} {
		if got := suggest.Nearest(word, names); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"int", "init", 1}, {"int", "env", 2}, {"abcd", "badc", 2}} {
		if got := suggest.Distance(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
