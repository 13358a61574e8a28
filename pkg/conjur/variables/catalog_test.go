package variables_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/authn"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/conjurd/conjurdtest"
	"github.com/secretsync/syncer/pkg/secret"
)

// library is a real server with variables that the host "app" can see, and a
// catalog of its client.
type library struct {
	*conjurdtest.Server
	*variables.Catalog
	t *testing.T

	mu    sync.Mutex
	asked []string // lists: offset, length and status, since the last look
}

// lister notes a request for a list before its answer is on the way.
type lister struct {
	http.ResponseWriter
	l     *library
	query string
}

func (w *lister) WriteHeader(status int) {
	w.l.mu.Lock()
	w.l.asked = append(w.l.asked, fmt.Sprintf("%s:%d", w.query, status))
	w.l.mu.Unlock()
	w.ResponseWriter.WriteHeader(status)
}

func newLibrary(t *testing.T, ids ...string) *library {
	t.Helper()
	l := &library{Server: conjurdtest.Start(t), t: t}
	l.Server.Policy("- !host app\n- !variable unseen\n")
	if len(ids) > 0 {
		l.add(ids...)
	}
	c := newClient(t, conjur.Config{
		ApplianceURL: l.URL, Account: l.Account, CA: string(l.CA),
		Authenticator: authn.APIKey{Login: "host/app", Key: secret.New([]byte(l.HostKey("app")))},
		RateLimit:     1e6,
	}, nil)
	l.Catalog = c.NewCatalog()
	l.through(nil)
	return l
}

func (l *library) add(ids ...string) {
	l.t.Helper()
	var policy strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&policy, "- !variable %q\n- !permit { role: !host app, privileges: [read], resource: !variable %q }\n", id, id)
	}
	l.Server.Policy(policy.String())
}

// through notes the requests for lists, and lets answer handle those for
// which it is not nil and says so.
func (l *library) through(answer func(http.ResponseWriter, *http.Request) bool) {
	l.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/resources/") {
				next.ServeHTTP(w, r)
				return
			}
			query := r.URL.Query()
			w = &lister{w, l, query.Get("offset") + "+" + query.Get("limit")}
			if answer == nil || !answer(w, r) {
				next.ServeHTTP(w, r)
			}
		})
	})
}

// look takes what was asked since the last look.
func (l *library) look() (asked []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked, l.asked = l.asked, nil
	return asked
}

func (l *library) wantAsked(want ...string) {
	l.t.Helper()
	if asked := l.look(); !slices.Equal(asked, want) {
		l.t.Errorf("lists asked for: %q, want %q", asked, want)
	}
}

func (l *library) refresh(changed bool) {
	l.t.Helper()
	if got, err := l.Refresh(l.t.Context()); err != nil || got != changed {
		l.t.Errorf("Refresh: changed %t (%v), want %t", got, err, changed)
	}
}

// refuse checks that a Refresh fails, and that the list stays as it is.
func (l *library) refuse(text string) error {
	l.t.Helper()
	before := l.IDs()
	_, err := l.Refresh(l.t.Context())
	if err == nil || !strings.Contains(err.Error(), text) {
		l.t.Errorf("Refresh: %v, want an error with %q", err, text)
	}
	if !slices.Equal(l.IDs(), before) {
		l.t.Errorf("the list is now %q", l.IDs())
	}
	return err
}

func (l *library) wantIDs(want ...string) {
	l.t.Helper()
	if got := l.IDs(); !slices.Equal(got, want) {
		l.t.Errorf("%d ids %.200q, want %d %.200q", len(got), got, len(want), want)
	}
}

func TestCatalogReadsAllPages(t *testing.T) {
	ids := conjurtest.Names(2500)
	l := newLibrary(t, ids...)
	l.wantIDs()
	l.refresh(true)
	l.wantIDs(ids...)
	l.wantAsked("+1000:200", "1000+1000:200", "2000+1000:200")

	l.refresh(false)
	l.wantAsked("+1000:304", "1000+1000:304", "2000+1000:304")

	l.add("zz/new", "with,comma", "ünï/日本")
	l.refresh(true)
	want := slices.Sorted(slices.Values(append(ids, "zz/new", "with,comma", "ünï/日本")))
	l.wantIDs(want...)
	l.wantAsked("+1000:304", "1000+1000:304", "2000+1000:200")
}

func TestCatalogEndsWithAFullPage(t *testing.T) {
	ids := conjurtest.Names(1000)
	l := newLibrary(t, ids...)
	l.refresh(true)
	l.wantIDs(ids...)
	l.wantAsked("+1000:200", "1000+1000:200")
}

// A new version of a value is in the list, but does not change the ids; the first
// one says that there is a value.
func TestCatalogLooksAtIDsAndFirstValues(t *testing.T) {
	l := newLibrary(t, "app/a", "app/b")
	l.refresh(true)
	if unset := l.Unset(); !maps.Equal(unset, map[string]bool{"app/a": true, "app/b": true}) {
		t.Errorf("without a value: %v", unset)
	}
	l.Set("app/a", "v1")
	l.refresh(true)
	if unset := l.Unset(); !maps.Equal(unset, map[string]bool{"app/b": true}) {
		t.Errorf("without a value: %v", unset)
	}
	l.wantIDs("app/a", "app/b")
	l.Set("app/a", "v2")
	l.look()
	l.refresh(false)
	l.wantAsked("+1000:200")
}

func TestEmptyListIsNoAnswer(t *testing.T) {
	l := newLibrary(t)
	if err := l.refuse("the list of variables is empty"); !errors.Is(err, variables.ErrNoVariables) {
		t.Errorf("%v is not ErrNoVariables", err)
	}
	l.add("app/a")
	l.refresh(true)
	l.Policy("- !deny { role: !host app, privileges: [read], resource: !variable app/a }\n")
	l.refuse("the list of variables is empty")
	l.wantIDs("app/a")
}

func TestOneBadPageFailsTheList(t *testing.T) {
	ids := conjurtest.Names(1000) // with the one before, two pages
	list := func(body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { conjurtest.JSON(w, http.StatusOK, body) }
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		"a server in trouble":    {func(w http.ResponseWriter) { conjurtest.Bare(w, http.StatusBadGateway) }, "list from offset 1000: the server answered 502"},
		"not found":              {func(w http.ResponseWriter) { conjurtest.Bare(w, http.StatusNotFound) }, "the server answered 404"},
		"a page of a proxy":      {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>[]</html>") }, "not a JSON list"},
		"a list of another type": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, `[{"id":"dev:variable:a"}]`) }, "not a JSON list"},
		"a part of it": {func(w http.ResponseWriter) {
			conjurtest.JSON(w, http.StatusPartialContent, `[{"id":"dev:variable:a"}]`)
		}, "the server answered 206"},
		"JSON of another form":     {list(`{"resources":[]}`), "not a JSON list"},
		"null":                     {list(`null`), "not a JSON list"},
		"half a list":              {list(`[{"id":"dev:variable:a"},`), "not a JSON list"},
		"an id of another account": {list(`[{"id":"dev:variable:a"},{"id":"prod:variable:b"}]`), `"prod:variable:b"`},
		"another kind":             {list(`[{"id":"dev:policy:a"}]`), `"dev:policy:a"`},
		"no id":                    {list(`[{}]`), "not a variable of our account"},
		"too long":                 {func(w http.ResponseWriter) { w.Header().Set("Content-Length", "999999999999") }, "longer than the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t, "before")
			l.refresh(true)
			l.add(ids...)
			l.through(func(w http.ResponseWriter, r *http.Request) bool {
				offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
				if offset > 0 {
					c.answer(w)
				}
				return offset > 0
			})
			l.refuse(c.want)
			l.wantIDs("before")
			l.through(nil)
			l.refresh(true)
			if n := len(l.IDs()); n != 1001 {
				t.Errorf("%d ids after the trouble, want 1001", n)
			}
		})
	}
}

// A server may be set up to give shorter pages, and says 422 to longer ones.
func TestPagesGetAsShortAsTheServerWants(t *testing.T) {
	ids := conjurtest.Names(600)
	l := newLibrary(t, ids...)
	var most atomic.Int64
	most.Store(300)
	l.through(func(w http.ResponseWriter, r *http.Request) bool {
		limit, _ := strconv.ParseInt(r.URL.Query().Get("limit"), 10, 64)
		if limit > most.Load() {
			conjurtest.JSON(w, http.StatusUnprocessableEntity, `{"error":{"code":"unprocessable_entity"}}`)
		}
		return limit > most.Load()
	})
	l.refresh(true)
	l.wantIDs(ids...)
	l.wantAsked("+1000:422", "+500:422", "+250:200", "250+250:200", "500+250:200")
	l.refresh(false)
	l.wantAsked("+250:304", "250+250:304", "500+250:304")
	most.Store(0)
	l.refuse("the server answered 422")
	l.look()
	most.Store(1000)
	l.refresh(false)
	l.wantAsked("+1000:200")
}

// Variables with long annotations make long pages.
func TestPageThatIsTooLongIsAskedForInParts(t *testing.T) {
	ids := conjurtest.Names(1200)
	l := newLibrary(t, ids...)
	l.through(func(w http.ResponseWriter, r *http.Request) bool {
		long := r.URL.Query().Get("limit") == "1000" && r.URL.Query().Get("offset") != ""
		if long {
			w.Header().Set("Content-Length", "999999999999")
			w.WriteHeader(http.StatusOK)
		}
		return long
	})
	l.refresh(true)
	l.wantIDs(ids...)
	l.wantAsked("+1000:200", "1000+1000:200", "+500:200", "500+500:200", "1000+500:200")
}

// Between two pages variables may come and go: what moves is listed twice.
func TestListThatMovesBetweenPages(t *testing.T) {
	ids := conjurtest.Names(1500)
	l := newLibrary(t, ids...)
	l.through(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("offset") != "" {
			l.add("app/first")
		}
		return false
	})
	l.refresh(true)
	l.wantIDs(ids...) // "app/first" moved "app/v0999" to the second page too
	l.through(nil)
	l.refresh(true)
	l.wantIDs(append([]string{"app/first"}, ids...)...)
}

func TestServerThatIgnoresTheOffset(t *testing.T) {
	l := newLibrary(t, conjurtest.Names(1000)...)
	l.through(func(_ http.ResponseWriter, r *http.Request) bool {
		r.URL.RawQuery = "limit=1000&kind=variable"
		return false
	})
	l.refuse("the same page for every offset")
}

func TestUnaskableVariablesAreLeftOutOnce(t *testing.T) {
	logger, logs := observer.New(zap.WarnLevel)
	d := conjurtest.New()
	c := start(t, d, func(config *setup) { config.Logger = zap.New(logger) })
	body := `[{"id":"dev:variable:a\tb"},{"id":"dev:variable:c"}]`
	d.Intercept = func(w http.ResponseWriter, _ *http.Request, kind conjur.Kind) bool {
		if kind == conjur.KindList {
			conjurtest.JSON(w, http.StatusOK, body)
		}
		return kind == conjur.KindList
	}
	catalog := c.NewCatalog()
	for range 3 {
		if _, err := catalog.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := catalog.IDs(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("ids %q", got)
	}
	if n := logs.FilterField(zap.String("first", "a\tb")).Len(); n != 1 || logs.Len() != 1 {
		t.Errorf("%d of %d warnings name the variable, want one", n, logs.Len())
	}
}
