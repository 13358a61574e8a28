package variables_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
)

// deleteHost has the double answer as the genuine server does when the identity
// was deleted while its token lives.
func deleteHost(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
	switch kind {
	case conjur.KindAuthenticate:
		conjurtest.Bare(w, http.StatusUnauthorized)
	case conjur.KindWhoami:
		return false
	default:
		conjurtest.Bare(w, http.StatusForbidden)
	}
	return true
}

// watch polls and fetches once a second, and counts the requests that it takes.
func watch(t *testing.T, d *conjurtest.Double, c client, ids []string, seconds int) (requests int, last error) {
	t.Helper()
	d.Log()
	for range seconds {
		time.Sleep(time.Second)
		var changed []string
		if changed, last = c.Changed(t.Context(), ids); len(changed) > 0 {
			t.Errorf("changed: %q", changed)
		}
		wantUnknown(t, fetch(t, c, ids[0]))
	}
	return len(d.Log()), last
}

// A deleted identity costs few requests, is named as the reason, and is tried
// again.
func TestDeletedIdentityIsToldAndLeftInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(20)
		c := serve(t, d, nil)
		c.Fetch(t.Context(), ids)
		poll(t, c, ids)
		d.SetIntercept(deleteHost)
		n, err := watch(t, d, c, ids, 460)
		if n > 40 {
			t.Errorf("%d requests in 460 s, want a few and the growing delays of a login", n)
		}
		if _, ok := errors.AsType[*conjur.IdentityError](err); !ok || strings.Contains(err.Error(), ids[0]) {
			t.Errorf("the poll says %q, want that the identity is gone, and no variable", err)
		}
		d.SetIntercept(nil)
		time.Sleep(time.Minute)
		poll(t, c, ids)
		wantFound(t, fetch(t, c, ids[0]), "value of "+ids[0])
	})
}

// A gateway that refuses what no identity is refused, while logins pass, is no
// deleted identity: what can be read is read, and logins stay few.
func TestGatewayBeforeChecksIsNoDeletedIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(20)
		c := serve(t, d, nil)
		c.Fetch(t.Context(), ids)
		poll(t, c, ids)
		d.Change(ids[0], func(v *conjurtest.Variable) { v.Forbidden = true })
		d.SetIntercept(func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
			if kind == conjur.KindCheck || strings.HasPrefix(r.URL.Path, "/resources/") {
				conjurtest.Bare(w, http.StatusForbidden)
				return true
			}
			return false
		})
		d.Log()
		for i := range 300 {
			time.Sleep(time.Second)
			if i%10 == 0 {
				d.Set(ids[7], time.Now().String())
			}
			_, err := c.Changed(t.Context(), ids)
			if _, ok := errors.AsType[*conjur.IdentityError](err); ok || err == nil {
				t.Fatalf("the poll says %v", err)
			}
			wantUnknown(t, fetch(t, c, ids[0]))
			if a := fetch(t, c, ids[7]); a.Verdict != variables.Found {
				t.Fatalf("a variable that can be read: %v", a.Err)
			}
		}
		if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n > 20 {
			t.Errorf("%d logins in 300 s", n)
		}
	})
}

func TestRefusedLoginsAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(20)
		c := serve(t, d, nil)
		poll(t, c, ids)
		d.SetIntercept(refuseLogins)
		time.Sleep(8 * time.Minute) // the token's life
		n, err := watch(t, d, c, ids, 929)
		if n > 35 {
			t.Errorf("%d requests in 929 s, want a login a minute in the end", n)
		}
		if status, ok := errors.AsType[*conjur.StatusError](err); !ok || status.Kind != conjur.KindAuthenticate {
			t.Errorf("the poll says %v", err)
		}
	})
}

// A server that refuses each token that it gave out is asked with growing
// delays too.
func TestTokensThatAreNeverAcceptedAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(20)
		c := serve(t, d, nil)
		d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
			if kind != conjur.KindAuthenticate {
				conjurtest.Bare(w, http.StatusUnauthorized)
			}
			return kind != conjur.KindAuthenticate
		})
		if n, _ := watch(t, d, c, ids, 900); n > 4*40 {
			t.Errorf("%d requests in 900 s", n)
		}
	})
}

// While the server's database is down, which it answers by 500 without a body,
// a poll is one request, and so is a fetch.
func TestServerInTroubleIsAskedOnceAPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		ids := conjurtest.Names(400) // two chunks
		d.Fill(append(ids, "app/com,ma"))
		ids = append(ids, "app/com,ma")
		c := serve(t, d, nil)
		c.Fetch(t.Context(), ids)
		poll(t, c, ids)
		d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
			conjurtest.Bare(w, http.StatusInternalServerError)
			return true
		})
		d.Log()
		for i := range 50 {
			time.Sleep(time.Second)
			if _, err := c.Changed(t.Context(), ids); err == nil {
				t.Error("no error")
			}
			if n := len(d.Log()); n > 1 && i > 0 || n > 2 {
				t.Errorf("poll %d: %d requests to a server in trouble", i, n)
			}
		}
		for id, answer := range c.Fetch(t.Context(), ids) {
			if answer.Err == nil {
				t.Errorf("%s has an answer", id)
			}
		}
		if n := len(d.Log()); n > 1 {
			t.Errorf("a fetch: %d requests to a server in trouble", n)
		}
		d.SetIntercept(nil)
		d.Set(ids[0], "new")
		poll(t, c, ids, ids[0])
	})
}
