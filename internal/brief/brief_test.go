package brief_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/secretsync/syncer/internal/brief"
)

func TestSome(t *testing.T) {
	for _, c := range []struct{ texts, want []string }{
		{nil, []string{}},
		{[]string{"a", "b", "c"}, []string{"a", "b", "c"}},
		{[]string{"a", "b", "c", "d", "e"}, []string{"a", "b", "c", "and 2 more"}},
		{[]string{"a", "a", "b"}, []string{"a", "b"}},
		{[]string{"a", "a", "a", "a"}, []string{"a", "and 1 more"}},
	} {
		given := slices.Clone(c.texts)
		if got := brief.Some(c.texts, 3); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("of %q: %q, want %q", c.texts, got, c.want)
		}
		if !slices.Equal(given, c.texts) {
			t.Errorf("%q became %q", given, c.texts)
		}
	}
}

func TestBounds(t *testing.T) {
	var names []string
	for i := range brief.Names + 1 {
		names = append(names, fmt.Sprint(i))
	}
	const nineteen = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18"
	for less, want := range []string{nineteen + ", 19 and 1 more", nineteen + ", 19", nineteen} {
		if got := brief.List(names[:len(names)-less]); got != want {
			t.Errorf("%d names are %q", len(names)-less, got)
		}
	}
	for text, want := range map[string]string{"12345": "12345", "123456": "123456", "1234567": "123…", "\n12345\n6\n": "123…"} {
		if got := brief.OneLine(text, 6); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
	for n, want := range map[int]string{199: "199", 200: "200", 201: "200"} {
		if got := fmt.Sprint(len(brief.Input(strings.Repeat("x", n)))); got != want {
			t.Errorf("of an input of %d bytes, %s are shown, want %s", n, got, want)
		}
		if got := fmt.Sprint(len(brief.Address(strings.Repeat("x", n))) - len(`""`)); got != want {
			t.Errorf("of an address of %d bytes, %s are shown, want %s", n, got, want)
		}
	}
	if got := strings.Count(brief.ListError("what", names).Error(), "\n"); got != brief.Names+1 {
		t.Errorf("%d lines tell the reasons", got)
	}
}

func TestTruncate_cutsAtACharacter(t *testing.T) {
	const most = 1024
	for _, text := range []string{strings.Repeat("x", 3000), strings.Repeat("ü", 1000), "x" + strings.Repeat("ü", 1000), strings.Repeat("€", 1000)} {
		got := brief.Truncate(text, most)
		if len(got) > most || len(got) < most-4 || !utf8.ValidString(got) || !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
			t.Errorf("%.9s… is cut to %d bytes, ending in %q", text, len(got), got[len(got)-9:])
		}
	}
}

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"5m0s": 5 * time.Minute, "47h59m59s": 48*time.Hour - time.Second, "2d1s": 48*time.Hour + time.Second, "2d": 48 * time.Hour, "30d": 720 * time.Hour, "27d13h7m0s": 27*24*time.Hour + 13*time.Hour + 7*time.Minute,
	} {
		if got := brief.Duration(d); got != want {
			t.Errorf("%v is %s, not %s", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	if got := brief.Count(0, "value") + brief.Count(1, "value") + brief.Count(2, "value"); got != "0 values1 value2 values" {
		t.Error(got)
	}
}
