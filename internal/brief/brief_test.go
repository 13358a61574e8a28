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

func TestListNamesTwenty(t *testing.T) {
	var names []string
	for i := range 22 {
		names = append(names, fmt.Sprint(i))
	}
	const want = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 2 more"
	if got := brief.List(names); got != want {
		t.Errorf("got %q", got)
	}
}

func TestClip_cutsAtACharacter(t *testing.T) {
	const most = 1024
	for _, text := range []string{strings.Repeat("x", 3000), strings.Repeat("ü", 1000), "x" + strings.Repeat("ü", 1000), strings.Repeat("€", 1000)} {
		got := brief.Clip(text, most)
		if len(got) > most || len(got) < most-4 || !utf8.ValidString(got) || !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
			t.Errorf("%.9s… is cut to %d bytes, ending in %q", text, len(got), got[len(got)-9:])
		}
	}
	if got := brief.Clip(strings.Repeat("x", most), most); len(got) != most || strings.HasSuffix(got, "…") {
		t.Errorf("a message that fits is cut")
	}
}

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"5m0s": 5 * time.Minute, "24h0m0s": 24 * time.Hour, "2d": 48 * time.Hour, "30d": 720 * time.Hour, "27d13h7m0s": 27*24*time.Hour + 13*time.Hour + 7*time.Minute,
	} {
		if got := brief.Duration(d); got != want {
			t.Errorf("%v is %s, not %s", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	if one, two := brief.Count(1, "value"), brief.Count(2, "value"); one != "1 value" || two != "2 values" {
		t.Errorf("%s, %s", one, two)
	}
}
