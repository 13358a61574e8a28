package variables_test

import (
	"bytes"
	"testing"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
)

func TestFetchReadsManyInOneRequest(t *testing.T) {
	d, ids := conjurtest.Filled(100)
	c := start(t, d, nil)
	answers := c.Fetch(t.Context(), append(ids, ids...)) // repeated ids would make the server answer 500
	if len(answers) != len(ids) {
		t.Fatalf("%d answers, want %d", len(answers), len(ids))
	}
	for id, a := range answers {
		wantFound(t, a, "value of "+id)
	}
	d.WantAsked(t, map[conjur.Kind]int{conjur.KindAuthenticate: 1, conjur.KindBatch: 1})
}

func TestEveryValueArrivesExactly(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	values := map[string]string{
		"app/bin": string(every), "app/long": string(bytes.Repeat(every, 40)), "app/nl": "line\n",
		"app/json": `{"a":"<&>"}`, "app/utf8": "pässwörd €", "app/nul": "\x00", "app/base64": "b25l",
	}
	for _, odd := range []string{
		"sp ace", "comma,one", "uni/ñandú/日本", "a/b/c", "plus+x", "pct%41x", "colon:x", "q?x", "hash#x", "amp&x=1",
		"variable:x", "dev:variable:x", "tilde~x", "dot.txt", "back\\slash", `quo"te`, "st*ar", "semi;x", "back,sp ace",
	} {
		values["app/"+odd] = "value of " + odd
		values[odd] = "other value of " + odd
	}
	d := conjurtest.New()
	var ids []string
	for id, v := range values {
		d.Set(id, v)
		ids = append(ids, id)
	}
	c := start(t, d, func(c *setup) { c.RequestBudget = 1000 })
	for round := range 2 {
		answers := c.Fetch(t.Context(), ids)
		for id, v := range values {
			wantFound(t, answers[id], v)
		}
		if round == 0 { // by itself: the second round reads all singly
			d.SetIntercept(refuseBatches)
		}
	}
}

func TestBadIDsAreNotAskedFor(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/ok", "v")
	c := start(t, d, nil)
	bad := []string{"", ".", "..", "a\x00b", "a\nb", "\xff"}
	answers := c.Fetch(t.Context(), append(bad, "app/ok"))
	wantFound(t, answers["app/ok"], "v")
	for _, id := range bad {
		wantUnknown(t, answers[id])
	}
	changed, err := c.Changed(t.Context(), append(bad, "app/ok"))
	if len(changed) != 0 || err == nil {
		t.Errorf("poll: %q, %v", changed, err)
	}
	d.WantAsked(t, map[conjur.Kind]int{conjur.KindAuthenticate: 1, conjur.KindBatch: 2})
}

func TestNothingAsked(t *testing.T) {
	d := conjurtest.New()
	c := start(t, d, nil)
	if a := c.Fetch(t.Context(), nil); len(a) != 0 {
		t.Errorf("answers to nothing: %v", a)
	}
	poll(t, c, nil)
	d.WantAsked(t, map[conjur.Kind]int{})
}
