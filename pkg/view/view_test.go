package view

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/health/status"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/rotation/consumers"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// laneOf returns a lane with targets that no sync has tried.
func laneOf(all ...*targets.Target) Lane {
	l := Lane{Name: "default", Targets: (&records.Set{}).Lane("")}
	for _, t := range all {
		l.Targets.Put(t)
	}
	return l
}

// settle records the end of a sync.
func (l Lane) settle(key targets.Key, done func(*records.Status)) {
	r, _ := l.Targets.Begin(key)
	done(&r.Status)
	l.Targets.Settle(r)
}

func delivered(*records.Status) {}

func failed(err error) func(*records.Status) { return func(s *records.Status) { s.Err = err } }

// TestBoundsOfFreshness: a target and the process are fresh until a poll is older than the
// setting says, unless it is 0 or nothing is followed.
func TestBoundsOfFreshness(t *testing.T) {
	const most = time.Hour
	for _, c := range []struct {
		age   time.Duration
		rules Rules
		fresh bool
	}{
		{most - 1, Rules{Refreshes: true, Freshness: most}, true},
		{most, Rules{Refreshes: true, Freshness: most}, true},
		{most + 1, Rules{Refreshes: true, Freshness: most}, false},
		{most + 1, Rules{Refreshes: true}, true},
		{most + 1, Rules{Freshness: most}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := laneOf(&targets.Target{Key: "file/a", File: targets.File{Path: "a"}})
			l.settle("file/a", delivered)
			time.Sleep(time.Minute)
			l.Targets.Polled()
			time.Sleep(c.age)
			if _, err := Ready([]Lane{l}, c.rules); (err == nil) != c.fresh {
				t.Errorf("%v after a poll, with %+v: %v", c.age, c.rules, err)
			}
			proven := time.Now().Add(-c.age - time.Minute)
			state := l.state(c.rules, l.Targets.Records()[0].Status, &proven, false)
			if (state == status.Fresh) != c.fresh || time.Since(proven) != c.age {
				t.Errorf("%v after a poll, with %+v: %s since %v", c.age, c.rules, state, time.Since(proven))
			}
		})
	}
}

func TestReadyCountsTargets(t *testing.T) {
	fault := errors.New("refused")
	const identity = " of the identity default have not been "
	for _, c := range []struct {
		delivered, failing, mistaken, untried int
		rules                                 Rules
		want, remarks                         string
	}{
		{delivered: 1},
		{untried: 1, want: "1 of 1 targets" + identity + "synced yet: untried0"},
		{delivered: 1, failing: 1, untried: 1, want: "1 of 3 targets" + identity + "synced yet: untried0"},
		{delivered: 1, failing: 1, want: "1 of 2 targets" + identity + "delivered yet\nfailing0: refused"},
		{failing: 2, want: "2 of 2 targets" + identity + "delivered yet\nfailing0: refused\nfailing1: refused"},
		{failing: 2, rules: Rules{Tried: true}},
		{failing: 1, rules: Rules{Refreshes: true}, want: "the identity default has not been able to reach Conjur yet\nfailing0: refused"},
		{failing: 1, delivered: 1, rules: Rules{Refreshes: true}, want: "1 of 2 targets" + identity + "delivered yet\nfailing0: refused"},
		{mistaken: 1, remarks: "not delivered: the definition of mistaken0 is faulty: no"},
		{mistaken: 1, rules: Rules{Refreshes: true}, remarks: "not delivered: the definition of mistaken0 is faulty: no"},
	} {
		l := laneOf()
		add := func(name string, n int, done func(*records.Status)) {
			for i := range n {
				key := targets.Key(fmt.Sprint(name, i))
				l.Targets.Put(&targets.Target{Key: key})
				if done != nil {
					l.settle(key, done)
				}
			}
		}
		add("delivered", c.delivered, delivered)
		add("failing", c.failing, failed(fault))
		add("mistaken", c.mistaken, failed(&workers.InvalidError{Key: "mistaken0", Faults: []string{"no"}}))
		add("untried", c.untried, nil)
		remarks, err := Ready([]Lane{l}, c.rules)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || strings.Join(remarks, "; ") != c.remarks {
			t.Errorf("%+v: %s; remarks %q", c, got, remarks)
		}
		if l.delivers() != (c.delivered > 0) {
			t.Errorf("%+v: it delivers %t", c, l.delivers())
		}
	}
}

func TestAwaited(t *testing.T) {
	next, held := time.Unix(1, 0), time.Unix(2, 0)
	ids := []string{"a", "b"}
	for _, c := range []struct {
		state status.State
		wait  queue.Wait
		held  time.Time
		what  string
		next  time.Time
	}{
		{status.Fresh, queue.Wait{}, held, "", time.Time{}},
		{status.Failing, queue.Wait{Working: true, Queued: true, Retry: next}, held, "the end of its sync", time.Time{}},
		{status.Failing, queue.Wait{Queued: true, Retry: next}, held, "its turn", time.Time{}},
		{status.Doubted, queue.Wait{Retry: next}, held, "the end of the hold on removals: a, b", held},
		{status.Doubted, queue.Wait{Retry: next}, time.Time{}, "proof that variables are gone: a, b", time.Time{}},
		{status.Stale, queue.Wait{Retry: next}, held, "a poll of Conjur that succeeds", time.Time{}},
		{status.Failing, queue.Wait{Retry: next}, held, "the next try", next},
		{status.Revoked, queue.Wait{}, held, "the variables to be back", time.Time{}},
		{status.Failing, queue.Wait{}, held, "a change of its variables, template or definition", time.Time{}},
	} {
		what, at := awaited(c.state, nil, c.wait, ids, c.held)
		if what != c.what || !at.Equal(c.next) {
			t.Errorf("%s, %+v: %q at %v, want %q at %v", c.state, c.wait, what, at, c.what, c.next)
		}
	}
}

func TestStatesOfTargets(t *testing.T) {
	for _, c := range []struct {
		status    records.Status
		uncertain bool
		want      status.State
	}{
		{want: status.Waiting},
		{status: records.Status{Proven: time.Now()}, want: status.Fresh},
		{status: records.Status{Proven: time.Now()}, uncertain: true, want: status.Doubted},
		{status: records.Status{Err: errors.New("no")}, want: status.Failing},
		{status: records.Status{Err: errors.New("no")}, uncertain: true, want: status.Doubted},
		{status: records.Status{Err: &workers.RevokedError{}}, uncertain: true, want: status.Revoked},
		{status: records.Status{Err: &workers.RevokedError{Never: true}}, want: status.Failing},
	} {
		l := laneOf()
		l.Values = &variables.Client{}
		if got := l.state(Rules{}, c.status, new(time.Time), c.uncertain); got != c.want {
			t.Errorf("%+v is %s, want %s", c.status, got, c.want)
		}
	}
}

func TestKeysOfFiles(t *testing.T) {
	shows := func(set string) []targets.Entry {
		return []targets.Entry{{Variable: set, ContentType: targets.ContentKeys}}
	}
	has := func(primary string, ids ...string) func(*records.Status) {
		return func(s *records.Status) {
			s.Sets = map[string]targets.DeliveredSet{"set": {IDs: ids, Primary: primary}}
		}
	}
	unknown := &targets.Target{Key: "file/c", Faults: []string{"a fault"}}
	for name, c := range map[string]struct {
		ask  string
		none bool // no files are delivered now
		lane func() Lane
		note string // what the application says it has
		want string // a part of the answer
	}{
		"one file": {lane: func() Lane {
			l := laneOf(&targets.Target{Key: "file/a", Entries: shows("set")})
			l.settle("file/a", has("2", "1", "2"))
			return l
		}, want: `{"ids":["1","2"],"primary":"2"}`},
		"what both files have": {ask: "set", lane: func() Lane {
			l := laneOf(&targets.Target{Key: "file/a", Entries: shows("set")}, &targets.Target{Key: "file/b", Entries: shows("set")})
			l.settle("file/a", has("2", "1", "2"))
			l.settle("file/b", has("2", "2", "3"))
			return l
		}, want: `{"ids":["2"],"primary":"2"}`},
		"no common primary": {lane: func() Lane {
			l := laneOf(&targets.Target{Key: "file/a", Entries: shows("set")}, &targets.Target{Key: "file/b", Entries: shows("set")})
			l.settle("file/a", has("1", "1", "2"))
			l.settle("file/b", has("2", "1", "2"))
			return l
		}, want: `{"ids":["1","2"]`},
		"one not delivered": {lane: func() Lane {
			l := laneOf(&targets.Target{Key: "file/a", Entries: shows("set")}, &targets.Target{Key: "file/b", Entries: shows("set")})
			l.settle("file/a", has("1", "1"))
			return l
		}, want: "not delivered yet: file/b"},
		"another set": {ask: "other", lane: func() Lane { return laneOf(&targets.Target{Key: "file/a", Entries: shows("set")}) }, want: `of the set "other" no file`},
		"which of two": {lane: func() Lane {
			return laneOf(&targets.Target{Key: "file/a", Entries: append(shows("set"), shows("other")...)})
		}, want: `of the set "" no file`},
		"the note counts": {note: "7", lane: func() Lane {
			return laneOf(&targets.Target{Key: "file/a", Entries: shows("set")})
		}, want: `{"ids":["7"]`},
		"a file that nobody knows": {lane: func() Lane { return laneOf(&targets.Target{Key: "file/a", Entries: shows("set")}, unknown) }, want: "not known which sets file/c shows: a fault"},
		"a file that is not there": {ask: "set", lane: func() Lane {
			l := laneOf(&targets.Target{Key: "file/a", Entries: shows("set")}, unknown)
			l.settle("file/a", has("1", "1"))
			l.settle("file/c", func(s *records.Status) { s.TargetEmpty = true })
			return l
		}, want: `{"ids":["1"],"primary":"1"}`},
		"no files now": {none: true, lane: func() Lane { return laneOf() }, want: "delivers no files now"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			Keys(func() ([]Lane, Noted, bool) {
				return []Lane{c.lane()}, func(string) (consumers.Holding, bool, error) {
					return consumers.Holding{IDs: []string{c.note}}, c.note != "", nil
				}, !c.none
			}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/keys?set="+c.ask, nil))
			if body := answer.Body.String(); !strings.Contains(body, c.want) || (answer.Code == http.StatusOK) != strings.HasPrefix(c.want, "{") {
				t.Errorf("%d %s, want %s", answer.Code, body, c.want)
			}
			if answer.Header().Get("Cache-Control") != "no-store" || (answer.Header().Get("Content-Type") == "application/json") != strings.HasPrefix(c.want, "{") {
				t.Errorf("headers %v", answer.Header())
			}
		})
	}
}

// unasked is a Conjur that nobody asks.
type unasked struct{ variables.Conjur }

func (unasked) LineLength(...string) int { return 0 }

func TestLanesAndTheirTargets(t *testing.T) {
	values, err := variables.New(unasked{}, variables.Config{})
	if err != nil {
		t.Fatal(err)
	}
	lane := func(all ...*targets.Target) Lane {
		l := laneOf(all...)
		l.Values, l.Queue = values, queue.New(queue.Config{})
		return l
	}
	secret := func(name string) *targets.Target {
		return &targets.Target{Key: targets.KubeSecretKey("shop", name), Secret: &targets.Secret{Namespace: "shop", Name: name, Warnings: []targets.Fault{{Place: "map", Why: "a warning"}}}}
	}
	first := lane(
		&targets.Target{Key: "file/z", File: targets.File{Path: "z"}, Entries: []targets.Entry{{Variable: "general"}, {Variable: "node/own", General: "own"}}},
		&targets.Target{Key: "file/exec"}, secret("db"), secret("web"),
	)
	first.settle("file/exec", delivered)
	first.settle("file/z", failed(errors.New("one\ntwo")))
	first.settle("secret/shop/db", delivered)
	first.settle("secret/shop/web", failed(errors.New("no")))
	lanes, all := Lanes([]Lane{first, lane(&targets.Target{Key: "file/a", File: targets.File{Path: "a"}})}, Rules{SecretsFolder: "/secrets"})
	var got []string
	for _, at := range all {
		got = append(got, fmt.Sprintf("%s %s at %q, overrides %q, limits %q, error %q since %t", at.Name, at.State, at.Place, at.Overrides, at.Limits, at.Error, !at.Since.IsZero()))
	}
	want := []string{
		`file/a waiting at "/secrets/a", overrides "", limits "", error "" since false`,
		`file/exec fresh at "", overrides "", limits "", error "" since false`,
		`file/z failing at "/secrets/z", overrides "node/own", limits "", error "one; two" since true`,
		`secret/shop/db limited at "shop/db", overrides "", limits "map: a warning", error "" since false`,
		`secret/shop/web failing at "shop/web", overrides "", limits "map: a warning", error "no" since true`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("targets\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(lanes) != 2 || lanes[0].Targets != 4 || lanes[1].Targets != 1 || lanes[0].Held != (status.Held{}) {
		t.Errorf("lanes %+v", lanes)
	}
}

func TestHealthyWorkersAreNotOverdue(t *testing.T) {
	fine := Lane{Name: "fine", Pool: workers.NewPool(workers.PoolConfig{})}
	stuck := Lane{Name: "stuck", Pool: &workers.Pool{}} // each of its no workers is overdue
	if err := Healthy([]Lane{fine}); err != nil {
		t.Error(err)
	}
	if err := Healthy([]Lane{fine, stuck}); err == nil || !strings.Contains(err.Error(), "the identity stuck") {
		t.Errorf("error %v", err)
	}
	owing := laneOf(&targets.Target{Key: "file/a"})
	if _, err := Ready([]Lane{owing, laneOf()}, Rules{}); err == nil {
		t.Error("a lane that is not ready is forgotten")
	}
}
