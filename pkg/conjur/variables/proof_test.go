package variables_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/secret"
)

// A host that was deleted sees every variable gone while its token lasts, as
// the server still knows the token: only a new one is refused.
func TestDeletedIdentityIsNoProof(t *testing.T) {
	for reason, spoil := range map[variables.Reason]func(*conjurtest.Variable){
		variables.Missing:   func(v *conjurtest.Variable) { v.Missing = true },
		variables.Forbidden: func(v *conjurtest.Variable) { v.Forbidden = true },
	} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, ids := conjurtest.Filled(2)
				c := serve(t, d, nil)
				poll(t, c, ids)
				for _, id := range ids {
					d.Change(id, spoil)
				}
				d.SetIntercept(refuseLogins)
				for range 20 {
					time.Sleep(30 * time.Second)
					changed, _ := c.Changed(t.Context(), ids)
					if len(changed) > 0 {
						t.Errorf("%q reported", changed)
					}
					for _, id := range ids {
						wantUnknown(t, fetch(t, c, id))
					}
				}
				d.With(func(d *conjurtest.Double) { d.Intercept = nil }) // it is back, without its rights
				time.Sleep(time.Minute)
				poll(t, c, ids, ids...)
			})
		})
	}
}

func refuseLogins(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
	if kind == conjur.KindAuthenticate {
		conjurtest.Bare(w, http.StatusUnauthorized)
	}
	return kind == conjur.KindAuthenticate
}

// The attempts to get a newer token neither cost the old one nor hold up what
// it still serves.
func TestDeletedIdentityKeepsItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(3)
		c := serve(t, d, nil)
		poll(t, c, ids)
		d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
		d.SetIntercept(refuseLogins)
		poll(t, c, ids)
		d.Set(ids[1], "new")
		d.Log()
		for i := range 5 {
			changed, err := c.Changed(t.Context(), ids)
			if i == 0 && (len(changed) != 1 || changed[0] != ids[1]) {
				t.Errorf("changed: %q", changed)
			}
			if err == nil || !strings.Contains(err.Error(), "no newer access token") {
				t.Errorf("the refused login is not told: %v", err)
			}
		}
		if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n != 1 {
			t.Errorf("%d logins in a moment, want 1", n)
		}
		wantFound(t, fetch(t, c, ids[1]), "new")
	})
}

// Two observations by one token, and a third by a newer one.
func TestProofEndsWithANewerToken(t *testing.T) {
	d, ids := conjurtest.Filled(3)
	c := start(t, d, nil)
	poll(t, c, ids)
	d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
	poll(t, c, ids)
	d.Log()
	poll(t, c, ids, ids[0])
	d.WantAsked(t, map[conjur.Kind]int{
		conjur.KindAuthenticate: 1, conjur.KindBatch: 1, conjur.KindVariable: 2, conjur.KindWhoami: 1,
	})
	d.Change(ids[1], func(v *conjurtest.Variable) { v.Missing = true })
	poll(t, c, ids)
	poll(t, c, ids, ids[1])
	if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n != 1 {
		t.Errorf("%d logins for the second proof, want 1", n)
	}
}

// A login that was under way when the variable was first seen gone may have
// been granted before that.
func TestLoginUnderWayIsNoNewerToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(3)
		c := serve(t, d, nil)
		poll(t, c, ids)
		time.Sleep(7 * time.Minute) // the token is due for renewal
		d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
		d.SetIntercept(func(_ http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
			if kind == conjur.KindAuthenticate {
				time.Sleep(10 * time.Second)
			}
			return false
		})
		d.Log()
		done := make(chan struct{})
		go func() { defer close(done); c.Fetch(t.Context(), ids[1:]) }()
		synctest.Wait()
		poll(t, c, ids) // by the old token
		<-done
		poll(t, c, ids, ids[0])
		if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n != 2 {
			t.Errorf("%d logins, want the one under way and another", n)
		}
	})
}

// Where a login leads to another host than the one that logged in, or than the
// first one where the authenticator finds out which it is, it is that one's
// variables that are missing.
func TestProofIsOfOneIdentity(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprint(named), func(t *testing.T) {
			d, ids := conjurtest.Filled(3)
			c := start(t, d, func(c *setup) {
				if !named {
					c.Authenticator = unnamed{c.ApplianceURL + "/authn-jwt/k8s"}
				}
				c.TokenTimeout = time.Nanosecond // so that each poll logs in anew
			})
			poll(t, c, ids)
			d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
			ours := d.Name
			d.With(func(d *conjurtest.Double) { d.Name = "host/other" })
			for range 4 {
				_, err := c.Changed(t.Context(), ids)
				if err == nil || !strings.Contains(err.Error(), `for "host/other" instead of "host/apps/my app"`) {
					t.Errorf("the other identity is not told: %v", err)
				}
				a := fetch(t, c, ids[0])
				wantUnknown(t, a)
				if _, suspect := errors.AsType[*variables.SuspectError](a.Err); suspect {
					t.Errorf("counted as an observation: %v", a.Err)
				}
			}
			d.With(func(d *conjurtest.Double) { d.Name = ours })
			poll(t, c, ids)
			poll(t, c, ids, ids[0])
			gone, _ := errors.AsType[*variables.GoneError](fetch(t, c, ids[0]).Err)
			if gone == nil || gone.Identity != ours || gone.Observations != 2 {
				t.Errorf("%+v", gone)
			}
		})
	}
}

// Where logins take turns, it is the variables of the one whose turn it is.
func TestProofFollowsLoginsThatTakeTurns(t *testing.T) {
	d, ids := conjurtest.Filled(3)
	login := d.Name
	c := start(t, d, func(c *setup) {
		c.Authenticator = turns{&login}
		c.TokenTimeout = time.Nanosecond // so that each poll logs in anew
	})
	poll(t, c, ids)
	login = "host/other"
	d.With(func(d *conjurtest.Double) { d.Name = login })
	poll(t, c, ids)
	d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
	poll(t, c, ids)
	poll(t, c, ids, ids[0])
	gone, _ := errors.AsType[*variables.GoneError](fetch(t, c, ids[0]).Err)
	if gone == nil || gone.Identity != login || gone.Observations != 2 {
		t.Errorf("%+v", gone)
	}
}

// turns logs in as the one whose turn it is.
type turns struct{ login *string }

func (l turns) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	return conjur.Credential{Login: *l.login, Alternates: true, ContentType: "text/plain", Body: secret.New([]byte(conjurtest.APIKey))}, nil
}

// unnamed leaves it to the server who logs in.
type unnamed struct{ url string }

func (u unnamed) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	return conjur.Credential{URL: u.url, ContentType: "text/plain", Body: secret.New([]byte("jwt="))}, nil
}

func TestGraceIsTheLeastTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(3)
		c := serve(t, d, func(c *setup) { c.Grace = 5 * time.Minute })
		poll(t, c, ids)
		d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
		for range 10 {
			poll(t, c, ids)
			wantSuspect(t, fetch(t, c, ids[0]))
			time.Sleep(30*time.Second - time.Nanosecond)
		}
		if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n != 1 {
			t.Errorf("%d logins before the grace is over, want that of the start", n)
		}
		poll(t, c, ids)
		time.Sleep(30 * time.Second)
		poll(t, c, ids, ids[0])
	})
}

// The proof can be read after the fact.
func TestProofTellsItsStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Set("app/b", "v")
		ids := []string{"app/a", "app/b"}
		c := serve(t, d, func(c *setup) { c.Confirmations = 3 })
		for range 2 {
			poll(t, c, ids)
			time.Sleep(30 * time.Second)
		}
		poll(t, c, ids, "app/a")
		text := fetch(t, c, "app/a").Err.Error()
		const want = `variable "app/a" is missing: the server confirmed it 3 times since 2000-01-01T00:00:00Z to "host/apps/my app" (at 00:00:00, 00:00:30, 00:01:00)`
		if text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	})
}

// An answer that is spoilt in the middle of a proof changes nothing about it.
func TestSpoiltAnswerDuringAProof(t *testing.T) {
	d, ids := conjurtest.Filled(3)
	c := start(t, d, nil)
	poll(t, c, ids)
	d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
	poll(t, c, ids)
	d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindVariable {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<html>")
		}
		return kind == conjur.KindVariable
	})
	for range 3 {
		if changed, err := c.Changed(t.Context(), ids); err == nil || len(changed) > 0 {
			t.Errorf("%q, %v", changed, err)
		}
	}
	d.SetIntercept(nil)
	poll(t, c, ids, ids[0])
}

// replay is a cache that ignores no-cache: it repeats its first answer to each request
// for the values, the rights and the identity. after changes the headers.
type replay struct {
	d     *conjurtest.Double
	after func(first, now http.Header)
	n     int // of the answers from the server

	mu    sync.Mutex
	first map[string]*httptest.ResponseRecorder
}

func (c *replay) answer(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
	if kind == conjur.KindAuthenticate {
		w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		return false
	}
	if kind == conjur.KindBatch || kind == conjur.KindList {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known, repeated := c.first[r.RequestURI]
	if !repeated {
		known = httptest.NewRecorder()
		c.n++
		known.Header().Set("X-Request-Id", fmt.Sprint(c.n))
		known.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
		c.d.Answer(known, r, kind)
		c.first[r.RequestURI] = known
	}
	maps.Copy(w.Header(), known.Header())
	if c.after != nil && repeated {
		c.after(known.Header(), w.Header())
	}
	w.WriteHeader(known.Code)
	_, _ = w.Write(known.Body.Bytes())
	return true
}

// What a cache repeats proves nothing, however the repetition shows.
func TestAnAnswerFromACacheProvesNothing(t *testing.T) {
	fresh := func(h http.Header) {
		h.Set("X-Request-Id", rand.Text())
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	for name, after := range map[string]func(first, now http.Header){
		"same request id": func(_, now http.Header) { now.Del("Date") },
		"only its date":   func(_, now http.Header) { now.Del("X-Request-Id") },
		"age":             func(_, now http.Header) { fresh(now); now.Set("Age", "0") },
		"warning":         func(_, now http.Header) { fresh(now); now.Set("Warning", `110 - "Response is Stale"`) },
		"a cache's hit":   func(_, now http.Header) { fresh(now); now.Set("X-Cache-Status", "HIT") },
		"cache status":    func(_, now http.Header) { fresh(now); now.Set("Cache-Status", `edge; hit; ttl=30`) },
	} {
		for reason, spoil := range map[variables.Reason]func(*conjurtest.Variable){
			variables.Missing:   func(v *conjurtest.Variable) { v.Missing = true },
			variables.Forbidden: func(v *conjurtest.Variable) { v.Forbidden = true },
		} {
			t.Run(fmt.Sprintf("%s, %s", name, reason), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, ids := conjurtest.Filled(3)
					c := serve(t, d, func(s *setup) { s.Grace = 10 * time.Second })
					poll(t, c, ids)
					cache := &replay{d: d, after: after, first: map[string]*httptest.ResponseRecorder{}}
					d.SetIntercept(cache.answer)
					d.Change(ids[0], spoil)
					_, _ = c.Changed(t.Context(), ids)
					d.Set(ids[0], "back")
					for range 10 {
						time.Sleep(9 * time.Second)
						if changed, _ := c.Changed(t.Context(), ids); len(changed) > 0 {
							t.Errorf("%q reported", changed)
						}
						wantUnknown(t, fetch(t, c, ids[0]))
					}
					if _, err := c.Changed(t.Context(), ids); err == nil || !strings.Contains(err.Error(), "a cache seems to have answered") {
						t.Errorf("the poll says %v", err)
					}
					for _, r := range d.Log() {
						if r.Header.Get("Cache-Control") != "no-cache" {
							t.Fatalf("%s does not say that no cache may answer", r.Target)
						}
					}
					d.SetIntercept(nil)
					poll(t, c, ids, ids[0])
					wantFound(t, fetch(t, c, ids[0]), "back")
				})
			})
		}
	}
}

// A cache that passes each request on prevents no proof.
func TestACacheThatPassesRequestsPreventsNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ids := conjurtest.Filled(3)
		c := serve(t, d, nil)
		poll(t, c, ids)
		d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, _ conjur.Kind) bool {
			w.Header().Set("X-Cache", "MISS from proxy")
			w.Header().Set("Cache-Status", "edge; fwd=miss")
			w.Header().Set("X-Request-Id", rand.Text())
			w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
			return false
		})
		d.Change(ids[0], func(v *conjurtest.Variable) { v.Missing = true })
		for range 3 {
			_, _ = c.Changed(t.Context(), ids)
			time.Sleep(30 * time.Second)
		}
		wantGone(t, fetch(t, c, ids[0]), variables.Missing)
	})
}
