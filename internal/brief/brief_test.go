package brief_test

import (
	"fmt"
	"slices"
	"testing"

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
