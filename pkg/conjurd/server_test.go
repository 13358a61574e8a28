package conjurd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestTemporaryDataIsRemoved(t *testing.T) {
	s, err := Open(Options{Account: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.temp, "data")); err != nil {
		t.Errorf("while open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.temp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

func TestDataOutlivesTheServer(t *testing.T) {
	o := Options{Account: "dev", Data: filepath.Join(t.TempDir(), "data"), DataKey: bytes.Repeat([]byte{9}, 32), Create: true}
	var keys []string
	for i := range 2 {
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			loadRoot(t, s, appPolicy)
			set(t, s, "app/a", "kept")
		}
		key, err := s.APIKey(context.Background(), "host/app/web")
		if err != nil {
			t.Error(err)
		}
		keys = append(keys, key)
		if got := values(t, s, "app/a"); got[0] != "kept" {
			t.Errorf("round %d: %q", i, got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		o.Create = false
	}
	if keys[0] != keys[1] {
		t.Error("the host has another API key")
	}
	o.DataKey = bytes.Repeat([]byte{8}, 32)
	if _, err := Open(o); !errors.Is(err, ErrWrongKey) {
		t.Errorf("with another key: %v", err)
	}
	o.Data += "2"
	if _, err := Open(o); !errors.Is(err, ErrNoData) {
		t.Errorf("without a file: %v", err)
	}
}

func TestWithoutANameTheDatasOnlyAccountIsServed(t *testing.T) {
	o := Options{Data: filepath.Join(t.TempDir(), "data"), DataKey: bytes.Repeat([]byte{9}, 32), Create: true}
	open := func(account string) (served string, err error) {
		o.Account = account
		s, err := Open(o)
		if err != nil {
			return "", err
		}
		return s.Account(), s.Close()
	}
	for _, step := range []struct{ account, served, err string }{
		{"", "", "0 accounts"}, {"dev", "dev", ""}, {"", "dev", ""}, {"test", "test", ""}, {"", "", "2 accounts (dev, test)"},
	} {
		served, err := open(step.account)
		if served != step.served || (err != nil) != (step.err != "") || err != nil && !strings.Contains(err.Error(), step.err) {
			t.Errorf("with the name %q: %q (%v), want %q and an error with %q", step.account, served, err, step.served, step.err)
		}
	}
}

func TestSecondAccountIsApart(t *testing.T) {
	o := Options{Account: "dev", Data: filepath.Join(t.TempDir(), "data"), DataKey: bytes.Repeat([]byte{9}, 32), Create: true}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	loadRoot(t, s, "- !variable v\n")
	set(t, s, "v", "dev's")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o.Account, o.Strict = "other", true
	s = open(t, o)
	key, err := s.APIKey(context.Background(), "admin")
	if err != nil {
		t.Fatal(err)
	}
	w := send(t, s, request{method: "POST", path: "/authn/other/admin/authenticate", body: key, header: map[string]string{"Accept-Encoding": "base64"}})
	auth := map[string]string{"Authorization": `Token token="` + w.Body.String() + `"`}
	for _, c := range []struct {
		path   string
		status int
		body   string
	}{
		{"/secrets/dev/variable/v", 404, notReadableBody("dev:variable:v")},
		{"/secrets?variable_ids=dev:variable:v", 403, ""},
		{"/resources/dev?count=true", 200, `{"count":0}`},
		{"/resources?count=true", 200, `{"count":2}`},
	} {
		if w := send(t, s, request{method: "GET", path: c.path, header: auth}); w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%s: status %d, body %s", c.path, w.Code, w.Body)
		}
	}
}

func notReadableBody(id string) string {
	return `{"error":{"code":"not_found","message":"` + notReadable(id) + `"}}`
}

func TestGoInterfaceErrors(t *testing.T) {
	s := open(t, Options{MaxValue: 5})
	loadRoot(t, s, appPolicy)
	ctx := context.Background()
	err := s.SetMany(ctx, map[string][]byte{"app/a": []byte("fine"), "app/b": []byte("too long"), "app/unset": {}, "nope": []byte("x")})
	for _, want := range []string{"app/b: 'value' is too large", "app/unset: 'value' may not be empty", "nope: there is no such variable"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	if strings.Contains(fmt.Sprint(err), "too long") {
		t.Error("the error shows a value")
	}
	if v := values(t, s, "app/a"); v[0] != "" {
		t.Errorf("one was set: %q", v)
	}
	if _, err := s.APIKey(ctx, "nobody"); err == nil {
		t.Error("nobody has an API key")
	}
	if _, err := s.LoadPolicy(ctx, Add, "root", strings.NewReader("- !nosuch x\n")); err == nil || !strings.Contains(err.Error(), "line 1, column 0") {
		t.Errorf("a bad policy: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Set(gone, "app/a", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// The genuine server fails about half of these with 500.
func TestConcurrentSetsOfOneVariable(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy)
	auth := map[string]string{"Authorization": tokenFor(t, s, "admin")}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			w := send(t, s, request{method: "POST", path: "/secrets/dev/variable/app/a", body: fmt.Sprint("v", i), header: auth})
			if w.Code != http.StatusCreated {
				t.Errorf("status %d", w.Code)
			}
		})
	}
	wg.Wait()
	w := send(t, s, request{method: "GET", path: "/resources/dev/variable/app/a", header: auth})
	if got := decode[struct{ Secrets []versionJSON }](t, w); len(got.Secrets) != 20 {
		t.Errorf("%d versions", len(got.Secrets))
	}
}

func TestConcurrentPolicyLoadIsRefused(t *testing.T) {
	s := open(t, Options{})
	s.loading <- struct{}{} // as if a load were under way
	q := request{method: "POST", path: "/policies/dev/policy/root", as: "admin", body: "- !variable v\n"}
	w := send(t, s, q)
	if w.Code != http.StatusConflict || w.Header().Get("Retry-After") == "" ||
		w.Body.String() != `{"error":{"code":"policy_conflict","message":"Concurrent policy load in progress, please retry"}}` {
		t.Errorf("status %d, body %s", w.Code, w.Body)
	}
	<-s.loading
	if w := send(t, s, q); w.Code != http.StatusCreated {
		t.Errorf("afterwards: status %d", w.Code)
	}
}

// Regression: the genuine server stops a listing at 1,000 and does not say so.
func TestListingIsWhole(t *testing.T) {
	s := open(t, Options{})
	var b strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&b, "- !variable v%d\n", i)
	}
	loadRoot(t, s, b.String())
	w := send(t, s, request{method: "GET", path: "/resources/dev/variable", as: "admin"})
	if got := decode[[]resourceID](t, w); len(got) != 1500 {
		t.Errorf("%d variables", len(got))
	}
}

type resourceID struct{ ID string }

// A panic costs one request: the writer's lock is free again, nothing of its
// transaction stays, and the audit tells.
func TestPanicIsSurvived(t *testing.T) {
	var log bytes.Buffer
	panics := false
	s := open(t, Options{Audit: &log, fault: func(step string) error {
		if panics && step == "commit" {
			panic("boom")
		}
		return nil
	}})
	loadRoot(t, s, appPolicy)
	set(t, s, "app/a", "old")
	q := request{method: "POST", path: "/secrets/dev/variable/app/a", as: "admin", body: "new"}
	panics = true
	if w := send(t, s, q); w.Code != http.StatusInternalServerError {
		t.Errorf("status %d", w.Code)
	}
	if v := values(t, s, "app/a"); v[0] != "old" || !strings.Contains(log.String(), "panic: boom") {
		t.Errorf("value %q, audit %s", v, &log)
	}
	panics = false
	if w := send(t, s, q); w.Code != http.StatusCreated {
		t.Errorf("afterwards: status %d", w.Code)
	}
}

func TestHealth(t *testing.T) {
	s := open(t, Options{})
	if w := send(t, s, request{method: "GET", path: "/health"}); w.Code != 200 || !strings.Contains(w.Body.String(), `"ok":true`) {
		t.Errorf("status %d, body %s", w.Code, w.Body)
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if w := send(t, s, request{method: "GET", path: "/health"}); w.Code != 503 || strings.Contains(w.Body.String(), "true") {
		t.Errorf("without data: status %d, body %s", w.Code, w.Body)
	}
}
