package clouds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/secretsync/syncer/pkg/rotation/actuators"
	"github.com/secretsync/syncer/pkg/rotation/actuators/cloud"
	"github.com/secretsync/syncer/pkg/rotation/versions"
	"github.com/secretsync/syncer/test/proctest"
)

// TestAnAnswerThatIsNotTheCloudsProvesNothing: a proxy or a portal answers. No key counts
// as refused or deleted.
func TestAnAnswerThatIsNotTheCloudsProvesNothing(t *testing.T) {
	write := func(status int, header, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Location", header)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}
	}
	answers := map[string]http.HandlerFunc{
		"a page":          write(http.StatusOK, "", "<html><body>log in</body></html>"),
		"nothing":         write(http.StatusOK, "", ""),
		"no content":      write(http.StatusNoContent, "", ""),
		"null":            write(http.StatusOK, "", "null"),
		"more than 1 MB":  write(http.StatusOK, "", "{"+strings.Repeat(" ", 1<<20)+"}"),
		"a redirection":   write(http.StatusFound, "/elsewhere", ""),
		"a page, missing": write(http.StatusNotFound, "", "<html><body>not here</body></html>"),
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		},
	}
	for name, start := range doubles {
		for kind, answers := range answers {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := newSite(t)
				var odd atomic.Bool
				d := start(t, func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if odd.Load() {
							answers(w, r)
							return
						}
						next.ServeHTTP(w, r)
					})
				})
				keys := d.keys(brisk(s.reader))
				stop := run(t, s.engine(s.reader, keys, nil, nil))
				s.Idle("")
				stop()
				doc, err := s.Look(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				odd.Store(true)
				v := doc.Versions[0]
				v.Set, v.State = doc, versions.Revoking
				fresh := d.keys(brisk(s.reader))
				for range 2 { // the second time, its waits are over
					if err := fresh.Revoke(t.Context(), v); err == nil || errors.Is(err, actuators.ErrRefused) {
						t.Errorf("Revoke says %v", err)
					}
					time.Sleep(2 * lag)
				}
				if err := fresh.Verify(t.Context(), v); err == nil || errors.Is(err, actuators.ErrRefused) {
					t.Errorf("Verify says %v", err)
				}
				if _, err := fresh.Prepare(t.Context(), doc); err == nil {
					t.Error("Prepare found something")
				}
				if problems := fresh.Check(t.Context(), doc); len(problems) == 0 {
					t.Error("Check found no problem")
				}
			})
		}
	}
}

// body returns the body of a request, and leaves it.
func body(r *http.Request) string {
	text, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	return string(text)
}

// TestAnOddAnswerToADeletionProvesNothing: the key stays in the set until it is deleted.
func TestAnOddAnswerToADeletionProvesNothing(t *testing.T) {
	for name, deletes := range map[string]func(*http.Request) bool{
		"aws":   func(r *http.Request) bool { return strings.Contains(body(r), "Action=DeleteAccessKey") },
		"gcp":   func(r *http.Request) bool { return r.Method == http.MethodDelete },
		"azure": func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/removePassword") },
	} {
		for _, status := range []int{http.StatusOK, http.StatusNotFound} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				s := newSite(t)
				var odd atomic.Int64
				d := doubles[name](t, func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if deletes(r) && odd.Add(1) <= 2 {
							w.WriteHeader(status)
							_, _ = w.Write([]byte("<html><body>log in</body></html>"))
							return
						}
						next.ServeHTTP(w, r)
					})
				})
				run(t, s.engine(s.reader, d.keys(brisk(s.reader)), nil, nil))
				first := s.Idle("")
				if err := s.Begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.Idle(first.ID)
				if keys := d.Keys(); len(keys) != 1 {
					t.Errorf("there are %d keys", len(keys))
				}
			})
		}
	}
}

// TestTheHolderOfASetChanges to another user, or to a user of the same name in another
// account: its old key counts as deleted only when it is.
func TestTheHolderOfASetChanges(t *testing.T) {
	for user, says := range map[string]string{
		"new": "belongs to the user old instead of the IAM user new",
		"old": "is valid, but it is not at the IAM user old: give Syncer the right account of the cloud",
	} {
		t.Run(user, func(t *testing.T) {
			s := newSite(t)
			old, next := NewAWS(t, "old", nil), NewAWS(t, user, nil)
			stop := run(t, s.engine(s.reader, old.keys(brisk(s.reader)), nil, nil))
			first := s.Idle("")
			id := part("accessKeyId")(first)
			stop()
			// STS knows the keys of both.
			both := NewAWS(t, user, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.Contains(r.Header.Get("Authorization"), "="+id+"/") {
						old.Config.Handler.ServeHTTP(w, r)
						return
					}
					next.Config.Handler.ServeHTTP(w, r)
				})
			})
			h := &heard{}
			keys := cloud.NewAWS(brisk(s.reader), cloud.AWS{User: user, Endpoint: both.URL, Client: client, Admin: value(next.AdminJSON())})
			run(t, s.engine(s.reader, keys, nil, h))
			if err := s.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			proctest.Eventually(t, "the old key is named", func() bool {
				return strings.Contains(h.all(), "RotationWaiting revoke: the key "+id+" "+says)
			})
			if doc := s.Doc(); len(doc.Versions) != 2 || len(old.Keys()) != 1 {
				t.Error("the old key was forgotten")
			}
			old.Remove(id) // its owner does
			s.Idle(first.ID)
		})
	}
}

// TestAnUploadedKeyIsNotOurs: Syncer never uploads a public key to Google Cloud.
func TestAnUploadedKeyIsNotOurs(t *testing.T) {
	s, g := newSite(t), NewGCP(t, shop, nil)
	ctx, kill := context.WithCancel(t.Context())
	s.engine(s.reader, killed{g.keys(brisk(s.reader)), kill}, nil, nil).Run(ctx)
	lost := g.Keys()[0]
	g.Add("uploaded", time.Now())
	g.edit("uploaded", func(k *Key) { k.Mark = "USER_PROVIDED" })
	run(t, s.engine(s.reader, g.keys(brisk(s.reader)), nil, nil))
	s.Idle("")
	if ended := g.Ended(); !slices.Equal(ended, []string{lost.ID}) {
		t.Errorf("deleted %q instead of %q", ended, lost.ID)
	}
}

// TestARetryAfterThatIsADate counts by the clock of the cloud.
func TestARetryAfterThatIsADate(t *testing.T) {
	s := newSite(t)
	var a *AWS
	a = NewAWS(t, "shop", func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", a.Now().UTC().Format(http.TimeFormat))
			w.Header().Set("Retry-After", a.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))
			fail(w, http.StatusServiceUnavailable, "ServiceUnavailable")
		})
	})
	a.Ahead = -time.Hour
	_, err := a.keys(brisk(s.reader)).Prepare(t.Context(), versions.New("us"))
	if err == nil || !strings.Contains(err.Error(), "Syncer waits 1m30s") && !strings.Contains(err.Error(), "Syncer waits 1m29s") {
		t.Errorf("said %v", err)
	}
}

// TestAWaitForAnEarlierRequestIsNoFailure, so that no alert fires after a restart.
func TestAWaitForAnEarlierRequestIsNoFailure(t *testing.T) {
	s, a := newSite(t), NewAWS(t, "shop", nil)
	doc := versions.New("us")
	config := brisk(s.reader)
	config.Consistent = time.Hour
	parts, err := a.keys(config).Prepare(t.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	v := versions.Version{ID: "20261122t013907", State: versions.Pending, Parts: parts, Set: doc}
	_, err = a.keys(config).Apply(t.Context(), v) // as another process
	if later, ok := errors.AsType[*actuators.LaterError](err); !ok || !strings.Contains(later.Why, "an earlier request may still take effect") {
		t.Errorf("said %v", err)
	}
}

// TestAccountsOfOtherForms are found in the project that they are in.
func TestAccountsOfOtherForms(t *testing.T) {
	for account, project := range map[string]string{
		"shop@acme.iam.gserviceaccount.com":               "acme",
		"acme@appspot.gserviceaccount.com":                "-",
		"123-compute@developer.gserviceaccount.com":       "-",
		"shop@acme.example.com.iam.gserviceaccount.com":   "-",
		"service-1@gcp-sa-x.iam.gserviceaccount.com":      "gcp-sa-x",
		"shop@acme.iam.gserviceaccount.com.attacker.test": "-",
	} {
		s := newSite(t)
		var asked atomic.Pointer[string]
		g := NewGCP(t, account, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Store(&r.URL.Path)
				next.ServeHTTP(w, r)
			})
		})
		_, _ = g.keys(brisk(s.reader)).Prepare(t.Context(), versions.New("us"))
		if path := *asked.Load(); path != "/v1/projects/"+project+"/serviceAccounts/"+account+"/keys" {
			t.Errorf("%s: asked %s", account, path)
		}
	}
}
