package conjurd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

type setAnswer struct {
	Secrets []setJSON
	Error   struct {
		Code    string
		Details struct{ Variables []culprit }
	}
}

func multi(t testing.TB, s *Server, as, body string) (int, setAnswer) {
	t.Helper()
	w := send(t, s, request{method: "PUT", path: "/secrets/dev/values", as: as, body: body})
	return w.Code, decode[setAnswer](t, w)
}

// values reads what variables have, "" for those that have nothing.
func values(t testing.TB, s *Server, ids ...string) []string {
	t.Helper()
	var out []string
	for _, id := range ids {
		w := send(t, s, request{method: "GET", path: "/secrets/dev/variable/" + id, as: "admin"})
		if w.Code != http.StatusOK {
			w.Body.Reset()
		}
		out = append(out, w.Body.String())
	}
	return out
}

func TestMultiSetSetsAll(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy)
	set(t, s, "app/a", "old")
	status, got := multi(t, s, "host/app/web", `{"secrets":[{"id":"app/a","value":"A"},{"id":"app/b","value":"AAE=","encoding":"base64","version":0}]}`)
	if status != 200 || !slices.Equal(got.Secrets, []setJSON{{"app/a", 2}, {"app/b", 1}}) {
		t.Errorf("status %d, %+v", status, got)
	}
	if v := values(t, s, "app/a", "app/b"); !slices.Equal(v, []string{"A", "\x00\x01"}) {
		t.Errorf("values %q", v)
	}
}

func TestMultiSetNamesAllCulpritsAndSetsNothing(t *testing.T) {
	s := open(t, Options{MaxValue: 10})
	loadRoot(t, s, appPolicy)
	set(t, s, "app/a", "old")
	status, got := multi(t, s, "host/app/web", `{"secrets":[
		{"id":"app/a","value":"new"}, {"id":"app/a","value":"again"}, {"id":"app/b","value":" "}, {"id":"app/nope","value":"x"},
		{"id":"app/hidden","value":"x"}, {"id":"app/readonly","value":"x"}, {"id":"app/unset","value":"x"}]}`)
	want := map[string]string{
		"app/a": "duplicate", "app/b": "empty", "app/nope": "not_found", "app/hidden": "not_found",
		"app/readonly": "forbidden", "app/unset": "forbidden",
	}
	if status != http.StatusForbidden || len(got.Error.Details.Variables) != len(want) {
		t.Errorf("status %d, %+v", status, got)
	}
	for _, c := range got.Error.Details.Variables {
		if want[c.ID] != c.Code || c.Message == "" {
			t.Errorf("%+v instead of %s", c, want[c.ID])
		}
	}
	for _, c := range []struct {
		secret, code string
		status       int
	}{
		{`"value":"01234567890"`, "too_large", 413},
		{`"value":""`, "empty", 422},
		{`"value":"!","encoding":"base64"`, "bad_encoding", 422},
		{`"value":"x","encoding":"rot13"`, "bad_encoding", 422},
		{`"value":"x","version":0`, "version_conflict", 409},
		{`"value":"x","version":2`, "version_conflict", 409},
	} {
		status, got := multi(t, s, "admin", `{"secrets":[{"id":"app/b","value":"B"},{"id":"app/a",`+c.secret+`}]}`)
		if status != c.status || len(got.Error.Details.Variables) != 1 || got.Error.Details.Variables[0].Code != c.code {
			t.Errorf("%s: status %d, %+v", c.secret, status, got)
		}
	}
	if v := values(t, s, "app/a", "app/b"); !slices.Equal(v, []string{"old", ""}) {
		t.Errorf("values %q", v)
	}
}

func TestMultiSetRefusesOtherBodies(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy)
	for _, body := range []string{"", "x", "[]", "{}", `{"secrets":[]}`, `{"secrets":[{"id":1}]}`} {
		if status, got := multi(t, s, "admin", body); status != 422 || got.Error.Code != "argument_error" {
			t.Errorf("%q: status %d, %+v", body, status, got)
		}
	}
}

func TestCompareAndSet(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy)
	var wins sync.Map
	var wg sync.WaitGroup
	auth := tokenFor(t, s, "admin")
	for i := range 8 {
		wg.Go(func() {
			body := fmt.Sprintf(`{"secrets":[{"id":"app/a","value":"w%d","version":0}]}`, i)
			w := send(t, s, request{method: "PUT", path: "/secrets/dev/values", body: body, header: map[string]string{"Authorization": auth}})
			if w.Code == 200 {
				wins.Store(i, true)
			} else if w.Code != 409 {
				t.Errorf("status %d", w.Code)
			}
		})
	}
	wg.Wait()
	n := 0
	wins.Range(func(i, _ any) bool {
		n++
		if v := values(t, s, "app/a"); v[0] != fmt.Sprintf("w%d", i) {
			t.Errorf("%v won, but the value is %q", i, v[0])
		}
		return true
	})
	if n != 1 {
		t.Errorf("%d writers won", n)
	}
}

// A failure at any step, the commit included, leaves everything as it was.
func TestMultiSetUndoesFailures(t *testing.T) {
	const n = 5
	failAt, step := 0, 0
	s := open(t, Options{fault: func(string) error {
		if step++; failAt > 0 && step == failAt {
			return errors.New("injected")
		}
		return nil
	}})
	var policy, body strings.Builder
	var ids, old []string
	for i := range n {
		id := fmt.Sprintf("v%d", i)
		ids, old = append(ids, id), append(old, "old"+id)
		fmt.Fprintf(&policy, "- !variable %s\n", id)
		fmt.Fprintf(&body, `,{"id":%q,"value":"new"}`, id)
	}
	loadRoot(t, s, policy.String())
	for i, id := range ids {
		set(t, s, id, old[i])
	}
	request := request{method: "PUT", path: "/secrets/dev/values", as: "admin", body: `{"secrets":[` + body.String()[1:] + `]}`}
	for failAt = 1; failAt <= n+1; failAt++ {
		step = 0
		if w := send(t, s, request); w.Code != http.StatusInternalServerError {
			t.Errorf("failing at step %d: status %d, %q", failAt, w.Code, w.Body)
		}
		if v := values(t, s, ids...); !slices.Equal(v, old) {
			t.Errorf("failing at step %d: values %q", failAt, v)
		}
	}
	step = 0
	if w := send(t, s, request); w.Code != http.StatusOK || step != n+1 {
		t.Errorf("without a failure: status %d after %d steps", w.Code, step)
	}
}

// A batch read while sets go on sees all of one set or all of another.
func TestBatchReadsAreSnapshots(t *testing.T) {
	s := open(t, Options{})
	loadRoot(t, s, appPolicy)
	auth := map[string]string{"Authorization": tokenFor(t, s, "admin")}
	write := func(v int) int {
		body := fmt.Sprintf(`{"secrets":[{"id":"app/a","value":"%d"},{"id":"app/b","value":"%d"}]}`, v, v)
		return send(t, s, request{method: "PUT", path: "/secrets/dev/values", body: body, header: auth}).Code
	}
	if status := write(0); status != 200 {
		t.Fatalf("status %d", status)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; ctx.Err() == nil; i++ {
			if status := write(i); status != 200 {
				t.Errorf("status %d", status)
				return
			}
		}
	})
	seen := map[string]bool{}
	for i := 0; i < 2000 || len(seen) < 3; i++ {
		w := send(t, s, request{method: "GET", path: "/secrets?variable_ids=dev:variable:app/a,dev:variable:app/b", header: auth})
		var got map[string]string
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Errorf("body %q: %v", w.Body, err)
			break
		}
		if got["dev:variable:app/a"] != got["dev:variable:app/b"] {
			t.Errorf("a mixed answer: %v", got)
			break
		}
		seen[got["dev:variable:app/a"]] = true
	}
	stop()
	wg.Wait()
}
