package variables_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/test/length"
)

var rounds = length.Flag("rounds", 40, 10, "how often a poll and a fetch meet a gateway that refuses")

// gateways refuse what they should let through, without a word, and let all
// else pass. Each of them may do so for as long as it likes.
var gateways = map[string]func(r *http.Request) (status int){
	"all values and resources": func(r *http.Request) int {
		return firstOf(r, "/secrets", 403, "/resources", 404)
	},
	"the path of a variable, values and resources": func(r *http.Request) int {
		return firstOf(r, "/secrets/", 403, "/secrets?", 403, "/resources/dev/variable/", 404)
	},
	"values and checks": func(r *http.Request) int {
		if r.URL.Query().Has("check") {
			return 404
		}
		return firstOf(r, "/secrets", 403)
	},
	"values, and everything else about one variable": func(r *http.Request) int {
		if strings.Contains(r.URL.Path, "app/v0000") {
			return firstOf(r, "/secrets", 403, "/resources", 404)
		}
		return firstOf(r, "/secrets?", 403)
	},
	"one value and the check of it": func(r *http.Request) int {
		if r.URL.Query().Has("check") && strings.Contains(r.URL.Path, "app/v0000") {
			return 404
		}
		return firstOf(r, "/secrets?", 403, "/secrets/dev/variable/app%2Fv0000", 403)
	},
	"one value, and the word execute": func(r *http.Request) int {
		if strings.Contains(r.URL.RawQuery, "execute") {
			return 404
		}
		return firstOf(r, "/secrets?", 403, "/secrets/dev/variable/app%2Fv0000", 403)
	},
}

func firstOf(r *http.Request, pairs ...any) (status int) {
	for i := 0; i < len(pairs); i += 2 {
		if strings.HasPrefix(r.RequestURI, pairs[i].(string)) {
			return pairs[i+1].(int)
		}
	}
	return 0
}

// What a gateway may say too is no proof, however often it says so.
func TestBareStatusesAreNoProof(t *testing.T) {
	for name, gateway := range gateways {
		for _, n := range []int{2, 20} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, ids := conjurtest.Filled(n)
					c := serve(t, d, nil)
					poll(t, c, ids)
					d.SetIntercept(func(w http.ResponseWriter, r *http.Request, _ conjur.Kind) bool {
						status := gateway(r)
						if status != 0 {
							conjurtest.Bare(w, status)
						}
						return status != 0
					})
					said := false
					for range rounds() {
						time.Sleep(time.Minute) // longer than the brake holds
						changed, err := c.Changed(t.Context(), ids)
						if len(changed) > 0 {
							t.Fatalf("reported: %q", changed)
						}
						said = said || err != nil && strings.Contains(err.Error(), "404: ")
						if a := c.Fetch(t.Context(), ids)[ids[0]]; a.Verdict == variables.Gone {
							t.Fatal(a.Err)
						}
					}
					if !said {
						t.Error("it is not told what was seen")
					}
				})
			})
		}
	}
}

// Where no variable is found that a check could be tried with, another
// privilege is.
func TestForbiddenWhereNothingIsFound(t *testing.T) {
	for _, left := range []string{"read", "update", "x y&z"} {
		d := conjurtest.New()
		ids := conjurtest.Names(2)
		for _, id := range ids {
			d.Change(id, func(v *conjurtest.Variable) { v.Forbidden, v.Privileges = true, []string{"execute", "other", left} })
		}
		d.With(func(d *conjurtest.Double) { d.Allowed = left })
		c := start(t, d, nil)
		wantSuspect(t, fetch(t, c, ids[0]))
		wantGone(t, fetch(t, c, ids[0]), variables.Forbidden)
	}
}

// Conjur's own list of who may read it says that we may.
func TestForbiddenThoughPermittedIsNoProof(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/b", "v")
	d.Change("app/a", func(v *conjurtest.Variable) { v.Forbidden, v.Permitted = true, "dev:host:x" })
	d.With(func(d *conjurtest.Double) { d.Name = "host/x" })
	c := start(t, d, nil)
	for range 3 {
		wantUnknown(t, fetch(t, c, "app/a"))
	}
}
