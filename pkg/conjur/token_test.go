package conjur_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/secret"
)

func TestTokenIsRenewedAtThreeQuartersOfItsLife(t *testing.T) {
	for name, life := range map[string]time.Duration{"8m": 8 * time.Minute, "without exp": 0, "1h": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := conjurtest.New()
				d.Set("app/a", "v")
				d.Life = life
				if life == 0 {
					life = 8 * time.Minute
				}
				c := serve(t, d, nil)
				wantFound(t, fetch(t, c, "app/a"), "v")
				time.Sleep(life/4*3 - time.Second)
				wantFound(t, fetch(t, c, "app/a"), "v")
				if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n != 1 {
					t.Errorf("%d authentications before the time, want 1", n)
				}
				time.Sleep(time.Second)
				wantFound(t, fetch(t, c, "app/a"), "v")
				d.WantAsked(t, map[conjur.Kind]int{conjur.KindAuthenticate: 1, conjur.KindBatch: 1})
			})
		})
	}
}

// The server's clock may be hours off.
func TestServerClockDoesNotMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Set("app/a", "v")
		d.Intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
			if kind != conjur.KindAuthenticate {
				return false
			}
			const old = `{"protected":"p","payload":"eyJpYXQiOjE1MDAwMDAwMDAsImV4cCI6MTUwMDAwMDQ4MH0=","signature":"s"}`
			d.With(func(d *conjurtest.Double) { d.Tokens[header(old)] = time.Now().Add(time.Hour) })
			conjurtest.JSON(w, 200, old)
			return true
		}
		c := serve(t, d, nil)
		for range 3 {
			wantFound(t, fetch(t, c, "app/a"), "v")
			time.Sleep(time.Minute)
		}
		if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n != 1 {
			t.Errorf("%d authentications, want 1", n)
		}
	})
}

func TestRefusedTokenIsReplacedOnce(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/a", "v")
	c := start(t, d, nil)
	wantFound(t, fetch(t, c, "app/a"), "v")
	d.With(func(d *conjurtest.Double) { clear(d.Tokens) }) // a restored server has another key
	d.Log()
	wantFound(t, fetch(t, c, "app/a"), "v")
	d.WantAsked(t, map[conjur.Kind]int{conjur.KindAuthenticate: 1, conjur.KindBatch: 2})

	d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindAuthenticate {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	a := fetch(t, c, "app/a")
	wantUnknown(t, a)
	if status, ok := errors.AsType[*conjur.StatusError](a.Err); !ok || status.Status != 401 || status.Kind != conjur.KindBatch {
		t.Errorf("got %v", a.Err)
	}
	d.WantAsked(t, map[conjur.Kind]int{conjur.KindAuthenticate: 1, conjur.KindBatch: 2})
}

func TestRenewalThatFailsLeavesTheOldToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Set("app/a", "v")
		core, logs := observer.New(zap.InfoLevel)
		c := serve(t, d, func(c *conjur.Config) { c.Remarker = health.NewTroubles(zap.New(core)) })
		wantFound(t, fetch(t, c, "app/a"), "v")
		d.SetIntercept(authenticationFails)
		time.Sleep(6 * time.Minute)
		d.Log()
		for range 20 {
			wantFound(t, fetch(t, c, "app/a"), "v")
			time.Sleep(time.Second)
		}
		if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n != 2 {
			t.Errorf("%d attempts in 20 s, want 2", n)
		}
		if n := logs.FilterMessage("Limited").FilterField(zap.String("subject", "access token of "+conjurtest.Login)).Len(); n != 1 {
			t.Errorf("%d lines say so, want 1", n)
		}
		time.Sleep(2 * time.Minute)
		wantUnknown(t, fetch(t, c, "app/a"))
		d.SetIntercept(nil)
		time.Sleep(time.Minute) // the longest rest
		wantFound(t, fetch(t, c, "app/a"), "v")
		if n := logs.FilterMessage("Recovered").Len(); n != 1 {
			t.Errorf("%d lines of the recovery, want 1", n)
		}
	})
}

// A server that refuses logins and wants a pause gets one request for each pause, and the
// log one line.
func TestAPauseIsHonoredAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Set("app/a", "v")
		core, logs := observer.New(zap.InfoLevel)
		c := serve(t, d, func(c *conjur.Config) {
			c.Logger = zap.New(core)
			c.Remarker = health.NewTroubles(zap.New(core))
		})
		wantFound(t, fetch(t, c, "app/a"), "v")
		d.SetIntercept(func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
			if kind == conjur.KindAuthenticate {
				w.Header().Set("Retry-After", "5")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return kind == conjur.KindAuthenticate
		})
		time.Sleep(6 * time.Minute)
		d.Log()
		for range 200 {
			fetch(t, c, "app/a")
			time.Sleep(500 * time.Millisecond)
		}
		if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n > 20 {
			t.Errorf("%d logins in 100 s, although the server wants 5 s between two", n)
		}
		if n := logs.Len(); n != 1 {
			t.Errorf("%d lines, want one: %v", n, logs.All())
		}
	})
}

func authenticationFails(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
	if kind == conjur.KindAuthenticate {
		w.WriteHeader(http.StatusBadGateway)
	}
	return kind == conjur.KindAuthenticate
}

func TestOneRenewalForPollAndFetch(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/a", "v")
	begun, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	d.Intercept = func(_ http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindAuthenticate {
			once.Do(func() { close(begun) })
			<-goOn
		}
		return false
	}
	c := start(t, d, nil)
	var wg sync.WaitGroup
	wg.Go(func() { wantFound(t, fetch(t, c, "app/a"), "v") })
	<-begun
	wg.Go(func() { wantFound(t, fetch(t, c, "app/a"), "v") })
	ended, cancel := context.WithCancel(t.Context())
	wg.Go(func() { // one that gives up does not take the others with it
		if v := c.Batch(ended, &conjur.Batch{IDs: []string{"app/a"}}, ""); !errors.Is(v.Err, context.Canceled) {
			t.Errorf("who gave up: %v", v.Err)
		}
	})
	cancel()
	close(goOn)
	wg.Wait()
	if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n != 1 {
		t.Errorf("%d authentications", n)
	}
}

// Whoever waits for a renewal does it when the one who began gives up.
func TestRenewalOutlivesTheOneWhoBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Set("app/a", "v")
		goOn := make(chan struct{})
		d.Intercept = func(_ http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
			if kind == conjur.KindAuthenticate {
				select {
				case <-goOn:
				case <-r.Context().Done():
				}
			}
			return false
		}
		c := serve(t, d, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if v := c.Batch(ctx, &conjur.Batch{IDs: []string{"app/a"}}, ""); !errors.Is(v.Err, context.Canceled) {
				t.Errorf("who gave up: %v", v.Err)
			}
		})
		synctest.Wait()
		wg.Go(func() { wantFound(t, fetch(t, c, "app/a"), "v") })
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(goOn)
		wg.Wait()
	})
}

func TestJWTFileIsReadEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "token")
		write := func(s string) {
			if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d := conjurtest.New()
		d.Set("app/a", "v")
		c := serve(t, d, func(c *conjur.Config) {
			c.Authenticator = authn.JWT{URL: "http://conjur.test/authn-jwt/k8s/", TokenPath: path}
		})
		for _, jwt := range []string{"first.jwt.x", "second.jwt.x"} {
			d.With(func(d *conjurtest.Double) { d.JWT = jwt })
			write(jwt + "\n")
			wantFound(t, fetch(t, c, "app/a"), "v")
			time.Sleep(7 * time.Minute)
		}
		if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n != 2 {
			t.Errorf("%d authentications, want 2", n)
		}
		time.Sleep(time.Hour)
		write(" \n")
		a := fetch(t, c, "app/a")
		wantUnknown(t, a)
		write("third.jwt.x")
		time.Sleep(time.Minute)
		wantUnknown(t, fetch(t, c, "app/a")) // refused
		time.Sleep(time.Minute)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		a = fetch(t, c, "app/a")
		if wantUnknown(t, a); !errors.Is(a.Err, os.ErrNotExist) {
			t.Errorf("got %v", a.Err)
		}
	})
}

func TestAPIKeyFileIsTrimmed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(conjurtest.APIKey+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := conjurtest.New()
	d.Set("app/a", "v")
	c := start(t, d, func(c *conjur.Config) { c.Authenticator = authn.APIKey{Login: conjurtest.Login, KeyFile: path} })
	wantFound(t, fetch(t, c, "app/a"), "v")
}

func TestAuthenticationThatIsNone(t *testing.T) {
	bodies := map[string]func(w http.ResponseWriter){
		"page 200":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>sign in</html>") },
		"page 403":  func(w http.ResponseWriter) { w.WriteHeader(403); _, _ = io.WriteString(w, "<html>no</html>") },
		"page 404":  func(w http.ResponseWriter) { w.WriteHeader(404); _, _ = io.WriteString(w, "<html>no</html>") },
		"empty 200": func(http.ResponseWriter) {},
		"expired": func(w http.ResponseWriter) {
			conjurtest.JSON(w, 401, `{"error":{"message":"CONJ00016E Token expired"}}`)
		},
		"no payload": func(w http.ResponseWriter) {
			conjurtest.JSON(w, 200, `{"protected":"p","payload":"!","signature":"s"}`)
		},
		"odd claims": func(w http.ResponseWriter) {
			conjurtest.JSON(w, 200, `{"protected":"p","payload":"eyJpYXQiOiJ4In0=","signature":"s"}`)
		},
		"redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "/whoami")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
	}
	for name, answer := range bodies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := conjurtest.New()
				d.Set("app/a", "v")
				d.Intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
					if kind == conjur.KindAuthenticate {
						answer(w)
					}
					return kind == conjur.KindAuthenticate
				}
				c := serve(t, d, nil)
				for range 3 {
					a := fetch(t, c, "app/a")
					wantUnknown(t, a)
					if status, ok := errors.AsType[*conjur.StatusError](a.Err); !ok || status.Kind != conjur.KindAuthenticate {
						t.Errorf("got %v", a.Err)
					} else if name == "expired" && status.Code != "CONJ00016E" {
						t.Errorf("code %q", status.Code)
					}
				}
				d.SetIntercept(nil)
				time.Sleep(time.Minute)
				wantFound(t, fetch(t, c, "app/a"), "v")
			})
		})
	}
}

func TestCredentialIsWipedAfterUse(t *testing.T) {
	d := conjurtest.New()
	d.Set("app/a", "v")
	k := &keeper{}
	c := start(t, d, func(c *conjur.Config) { c.Authenticator = k })
	wantFound(t, fetch(t, c, "app/a"), "v")
	if k.given.Len() != 0 {
		t.Error("the request's body still holds the API key")
	}
}

// keeper keeps what it gave.
type keeper struct{ given secret.Value }

func (k *keeper) Credential(context.Context, conjur.Send) (conjur.Credential, error) {
	k.given = secret.New([]byte(conjurtest.APIKey))
	return conjur.Credential{Login: conjurtest.Login, ContentType: "text/plain", Body: k.given}, nil
}

func header(token string) string {
	b, _ := json.Marshal([]byte(token))
	return `Token token=` + string(b)
}

// A login that was under way at the moment may have been granted before it.
func TestTokenIsAsOldAsItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		d.Set("app/a", "v")
		d.Intercept = func(_ http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
			if kind == conjur.KindAuthenticate {
				time.Sleep(time.Minute / 2)
			}
			return false
		}
		c := serve(t, d, nil)
		var wg sync.WaitGroup
		wg.Go(func() { fetch(t, c, "app/a") })
		time.Sleep(time.Second)
		moment := time.Now()
		time.Sleep(time.Second)
		for range 3 {
			wg.Go(func() {
				if err := c.Renew(t.Context(), moment); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		v := fetch(t, c, "app/a")
		if n := conjurtest.Count(d.Log(), conjur.KindAuthenticate); n != 2 || !v.Token.Issued().After(moment) {
			t.Errorf("%d logins, want the one under way and another", n)
		}
	})
}
