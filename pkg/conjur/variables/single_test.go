package variables_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

func TestGoneNeedsProofTwice(t *testing.T) {
	for reason, spoil := range map[variables.Reason]func(*conjurtest.Variable){
		variables.Missing:   func(v *conjurtest.Variable) { v.Missing = true },
		variables.Forbidden: func(v *conjurtest.Variable) { v.Forbidden = true },
	} {
		t.Run(string(reason), func(t *testing.T) {
			d, ids := conjurtest.Filled(10)
			d.Change(ids[3], spoil)
			c := start(t, d, nil)
			for round := range 3 {
				answers := c.Fetch(t.Context(), ids)
				for i, id := range ids {
					switch {
					case i != 3:
						wantFound(t, answers[id], "value of "+id)
					case round == 0:
						wantSuspect(t, answers[id])
					default:
						wantGone(t, answers[id], reason)
					}
				}
			}
		})
	}
}

// An invisible variable is 403 in a batch and 404 alone.
func TestInvisibleIsMissing(t *testing.T) {
	d := conjurtest.New()
	d.Fill([]string{"app/a", "app/b"})
	d.Change("app/b", func(v *conjurtest.Variable) { v.Invisible = true })
	c := start(t, d, nil)
	wantSuspect(t, fetch(t, c, "app/b"))
	wantGone(t, fetch(t, c, "app/b"), variables.Missing)
	wantFound(t, fetch(t, c, "app/a"), "value of app/a")
}

func TestForbiddenWithASpace(t *testing.T) {
	d := conjurtest.New()
	d.Change("app/sp ace+", func(v *conjurtest.Variable) { v.Forbidden = true })
	c := start(t, d, nil)
	wantSuspect(t, fetch(t, c, "app/sp ace+"))
	wantGone(t, fetch(t, c, "app/sp ace+"), variables.Forbidden)
}

func TestMissingAndForbiddenTogether(t *testing.T) {
	d, ids := conjurtest.Filled(60)
	for _, i := range []int{5, 40} {
		d.Change(ids[i], func(v *conjurtest.Variable) { v.Missing = true })
		d.Change(ids[i+1], func(v *conjurtest.Variable) { v.Forbidden = true })
	}
	c := start(t, d, func(c *setup) { c.RequestBudget = 100 })
	c.Fetch(t.Context(), ids)
	answers := c.Fetch(t.Context(), ids)
	for i, id := range ids {
		switch i {
		case 5, 40:
			wantGone(t, answers[id], variables.Missing)
		case 6, 41:
			wantGone(t, answers[id], variables.Forbidden)
		default:
			wantFound(t, answers[id], "value of "+id)
		}
	}
}

func TestPollReportsGoneOnceAndReturnOnce(t *testing.T) {
	d, ids := conjurtest.Filled(100)
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	poll(t, c, ids)
	d.Change(ids[7], func(v *conjurtest.Variable) { v.Missing = true })
	poll(t, c, ids) // suspected
	poll(t, c, ids, ids[7])
	poll(t, c, ids)
	wantGone(t, fetch(t, c, ids[7]), variables.Missing)
	poll(t, c, ids)
	d.Set(ids[7], "value of "+ids[7])
	poll(t, c, ids, ids[7])
	poll(t, c, ids)
	wantFound(t, fetch(t, c, ids[7]), "value of "+ids[7])
}

// What a fetch finds out about one target, the next poll tells the others.
func TestFetchThatFindsGoneOrReturnedMakesNews(t *testing.T) {
	d := conjurtest.New()
	ids := []string{"app/a", "app/b"}
	d.Fill(ids)
	c := start(t, d, nil)
	c.Fetch(t.Context(), ids)
	poll(t, c, ids)
	d.Change("app/a", func(v *conjurtest.Variable) { v.Missing = true })
	wantSuspect(t, fetch(t, c, "app/a"))
	wantGone(t, fetch(t, c, "app/a"), variables.Missing)
	poll(t, c, ids, "app/a")
	poll(t, c, ids)
	d.Set("app/a", "value of app/a")
	wantFound(t, fetch(t, c, "app/a"), "value of app/a")
	poll(t, c, ids, "app/a")
	poll(t, c, ids)
}

func TestFoundInBetweenStartsTheProofAnew(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/a", "v")
	c := start(t, d, nil)
	miss := func(m bool) { d.Change("app/a", func(v *conjurtest.Variable) { v.Missing = m }) }
	for range 3 {
		miss(true)
		wantSuspect(t, fetch(t, c, "app/a"))
		miss(false)
		wantFound(t, fetch(t, c, "app/a"), "v")
	}
}

func TestOutageInBetweenNeitherCountsNorResets(t *testing.T) {
	d := conjurtest.New()
	c := start(t, d, nil)
	wantSuspect(t, fetch(t, c, "app/a"))
	d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, _ conjur.Kind) bool {
		conjurtest.Bare(w, http.StatusServiceUnavailable)
		return true
	})
	for range 3 {
		wantUnknown(t, fetch(t, c, "app/a"))
	}
	d.SetIntercept(nil)
	wantGone(t, fetch(t, c, "app/a"), variables.Missing)
}

func TestConfirmationsAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		c := serve(t, d, func(c *setup) { c.ConfirmAfter, c.Confirmations = 10*time.Second, 3 })
		for _, wait := range []time.Duration{0, 9 * time.Second, time.Second, 5 * time.Second} {
			time.Sleep(wait)
			wantSuspect(t, fetch(t, c, "app/a"))
		}
		time.Sleep(5 * time.Second)
		a := fetch(t, c, "app/a")
		wantGone(t, a, variables.Missing)
		if gone, ok := errors.AsType[*variables.GoneError](a.Err); ok && (gone.Observations != 3 || gone.Variable != "app/a") {
			t.Errorf("%+v", gone)
		}
	})
}

// Each of these answers looks like "gone" to a careless reader.
func TestFalseProofIsUnknown(t *testing.T) {
	type answer = func(w http.ResponseWriter)
	text := func(status int, contentType, body string) answer {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const gone = `{"error":{"code":"not_found","message":"CONJ00076E Variable dev:variable:app/a is empty or not found."}}`
	const json, html = "application/json", "text/html"
	cases := map[string]map[conjur.Kind]answer{
		"page 404":                {conjur.KindVariable: text(404, html, "<html>Not Found</html>")},
		"page with the text":      {conjur.KindVariable: text(404, html, gone)},
		"empty 404":               {conjur.KindVariable: text(404, html, "")},
		"JSON 404":                {conjur.KindVariable: text(404, json, `{"code":404,"message":"no route"}`)},
		"other variable":          {conjur.KindVariable: text(404, json, strings.ReplaceAll(gone, "app/a", "app/ab"))},
		"prefix":                  {conjur.KindVariable: text(404, json, strings.ReplaceAll(gone, "app/a", "app"))},
		"other account":           {conjur.KindVariable: text(404, json, strings.ReplaceAll(gone, "dev:", "prod:"))},
		"other resource":          {conjur.KindVariable: text(404, json, strings.ReplaceAll(gone, "CONJ00076E Variable", "Policy"))},
		"503 that says 404":       {conjur.KindVariable: text(503, json, strings.Replace(gone, `"not_found"`, `"404"`, 1))},
		"503 with the body":       {conjur.KindVariable: text(503, json, gone)},
		"200 with the body":       {conjur.KindVariable: text(200, html, gone)},
		"410":                     {conjur.KindVariable: text(410, json, gone)},
		"302":                     {conjur.KindVariable: text(302, html, "")},
		"page 403":                {conjur.KindVariable: text(403, html, "<html>Forbidden</html>")},
		"page 403, and empty 404": {conjur.KindVariable: text(403, html, "<html>Forbidden</html>"), conjur.KindCheck: text(404, html, "")},
		"IP rejected":             {conjur.KindVariable: text(403, "text/plain", "IP address rejected")},
		"403, yet allowed":        {conjur.KindVariable: text(403, html, ""), conjur.KindCheck: text(204, html, "")},
		"403, but invisible": {conjur.KindVariable: text(403, html, ""),
			conjur.KindCheck: text(404, json, `{"error":{"code":"not_found","target":"variable"}}`)},
		"403 for both":           {conjur.KindVariable: text(403, html, ""), conjur.KindCheck: text(403, html, "")},
		"403, check a page":      {conjur.KindVariable: text(403, html, ""), conjur.KindCheck: text(404, html, "<html>no</html>")},
		"whoami 401":             {conjur.KindVariable: text(404, json, gone), conjur.KindWhoami: text(401, "text/plain", "no")},
		"whoami a page":          {conjur.KindVariable: text(404, json, gone), conjur.KindWhoami: text(200, html, "<html>hello</html>")},
		"whoami other account":   {conjur.KindVariable: text(404, json, gone), conjur.KindWhoami: text(200, json, `{"account":"prod","username":"x"}`)},
		"whoami of nobody":       {conjur.KindVariable: text(404, json, gone), conjur.KindWhoami: text(200, json, `{"account":"dev"}`)},
		"refused by the WAF":     {conjur.KindBatch: text(403, html, ""), conjur.KindVariable: text(403, html, ""), conjur.KindCheck: text(403, html, ""), conjur.KindWhoami: text(403, html, "")},
		"batch names a stranger": {conjur.KindBatch: text(404, json, strings.ReplaceAll(gone, "app/a", "app/zzz"))},
	}
	for name, answers := range cases {
		t.Run(name, func(t *testing.T) {
			d := conjurtest.New()
			d.Set("app/b", "v")
			d.Change("app/a", func(v *conjurtest.Variable) { v.Missing = true })
			d.Intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
				f := answers[kind]
				if f != nil {
					f(w)
				}
				return f != nil
			}
			c := start(t, d, nil)
			for range 3 {
				a := fetch(t, c, "app/a")
				wantUnknown(t, a)
				if _, suspect := errors.AsType[*variables.SuspectError](a.Err); suspect {
					t.Errorf("counted as an observation: %v", a.Err)
				}
				changed, _ := c.Changed(t.Context(), []string{"app/a", "app/b"})
				if slices.Contains(changed, "app/a") {
					t.Error("reported as changed")
				}
			}
		})
	}
}

// The same id in a batch may mean another path alone: the server folds double
// slashes there. Such a variable must not spoil the batch at every poll.
func TestVariableThatOnlyAnswersAlone(t *testing.T) {
	d := conjurtest.New()
	ids := append(conjurtest.Names(20), "app//odd")
	d.Fill(ids)
	d.Intercept = func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindBatch && strings.Contains(r.RequestURI, "//odd") {
			conjurtest.NotFound(w, "app//odd")
			return true
		}
		return false
	}
	c := start(t, d, nil)
	wantFound(t, c.Fetch(t.Context(), ids)["app//odd"], "value of app//odd")
	poll(t, c, ids)
	d.Log()
	poll(t, c, ids)
	log := d.Log()
	for _, a := range log {
		if a.Status != http.StatusNotModified {
			t.Errorf("%s: %d", a.Kind, a.Status)
		}
	}
	if len(log) != 2 {
		t.Errorf("%d requests, want the batch and the odd one", len(log))
	}
	d.Set("app//odd", "new")
	poll(t, c, ids, "app//odd")
}

// A single answer without Conjur's form is believed if its ETag is that of its
// body, or else if a batch of one, which names the variable, has a value.
func TestValueWithoutTheFormOfOne(t *testing.T) {
	d := conjurtest.New()
	ids := []string{"app/a", "app/com,ma"}
	d.Fill(ids)
	d.With(func(d *conjurtest.Double) { d.Formless = true })
	c := start(t, d, nil)
	wantFound(t, fetch(t, c, "app/com,ma"), "value of app/com,ma") // by its ETag

	page := func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindVariable {
			_, _ = io.WriteString(w, "please sign in")
		}
		return kind == conjur.KindVariable
	}
	d.SetIntercept(page)
	wantUnknown(t, fetch(t, c, "app/com,ma"))
	changed, err := c.Changed(t.Context(), ids)
	if len(changed) > 0 || err == nil || strings.Contains(err.Error(), "sign in") {
		t.Errorf("changed %q, %v", changed, err)
	}

	missing := func(missing bool) { d.Change("app/a", func(v *conjurtest.Variable) { v.Missing = missing }) }
	d.SetIntercept(nil)
	missing(true)
	wantSuspect(t, fetch(t, c, "app/a")) // it is asked for by itself from now on
	missing(false)
	d.SetIntercept(page)
	wantFound(t, fetch(t, c, "app/a"), "value of app/a")
}

// TestServerThatFailsInABatchOfOneIsAskedNoMore: not for the other variables
// that are to be read by themselves.
func TestServerThatFailsInABatchOfOneIsAskedNoMore(t *testing.T) {
	d := conjurtest.New()
	ids := []string{"app/a", "app/b", "app/c"}
	d.Fill(ids)
	missing := func(missing bool) {
		for _, id := range ids {
			d.Change(id, func(v *conjurtest.Variable) { v.Missing = missing })
		}
	}
	c := start(t, d, nil)
	missing(true)
	c.Fetch(t.Context(), ids) // each is asked for by itself from now on
	missing(false)
	d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		switch kind {
		case conjur.KindVariable:
			_, _ = io.WriteString(w, "please sign in")
		case conjur.KindBatch:
			conjurtest.Bare(w, http.StatusServiceUnavailable)
		}
		return kind == conjur.KindVariable || kind == conjur.KindBatch
	})
	d.Log()
	for id, a := range c.Fetch(t.Context(), ids) {
		if a.Verdict != variables.Unknown {
			t.Errorf("%s: got %v", id, a.Verdict)
		}
	}
	if log := d.Log(); len(log) != 2 {
		t.Errorf("%d requests, want the one value and its batch", len(log))
	}
}

// A value that is too long to be read is that variable's matter alone.
func TestOneValueThatIsTooLongStopsNoOther(t *testing.T) {
	d := conjurtest.New()
	ids := []string{"app/a,1", "app/a,2", "app/a,3"} // no batch can ask for them
	d.Fill(ids)
	d.Set(ids[0], strings.Repeat("v", tooLarge))
	c := start(t, d, nil)
	answers := c.Fetch(t.Context(), ids)
	wantUnknown(t, answers[ids[0]])
	for _, id := range ids[1:] {
		wantFound(t, answers[id], "value of "+id)
	}
}
