package notify_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
)

// cluster is a Cluster in memory.
type cluster struct {
	mu        sync.Mutex
	templates map[targets.Workload]targets.PodTemplate
	revisions map[string]notify.Revision     // namespace/name → its revision
	pods      map[targets.Workload]time.Time // when the oldest Pod was created; none: no Pods
	failure   error                          // of every call
	during    func()                         // called with every call
	calls     int
	writes    []string // "workload annotation=value …"
}

func newCluster(workloads ...targets.Workload) *cluster {
	c := &cluster{templates: map[targets.Workload]targets.PodTemplate{}, revisions: map[string]notify.Revision{}}
	for _, w := range workloads {
		c.templates[w] = targets.PodTemplate{Created: time.Now()}
	}
	return c
}

func (c *cluster) called() error {
	c.mu.Lock()
	c.calls++
	during, failure := c.during, c.failure
	c.mu.Unlock()
	if during != nil {
		during()
	}
	return failure
}

func (c *cluster) PodTemplate(_ context.Context, w targets.Workload) (targets.PodTemplate, bool, error) {
	err := c.called()
	c.mu.Lock()
	defer c.mu.Unlock()
	t, found := c.templates[w]
	t.Annotations = maps.Clone(t.Annotations)
	return t, found, err
}

func (c *cluster) Annotate(_ context.Context, w targets.Workload, read targets.PodTemplate, annotations map[string]string) (bool, error) {
	if err := c.called(); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.templates[w]
	if t.Version != read.Version {
		return false, nil
	}
	t.Annotations = maps.Clone(t.Annotations)
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	text := w.Namespace + "/" + w.String()
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		t.Annotations[name] = annotations[name]
		text += " " + strings.TrimPrefix(name, "conjur.org/secret-revision.") + "=" + annotations[name]
	}
	c.templates[w] = t
	c.writes = append(c.writes, text)
	return true, nil
}

func (c *cluster) Revision(_ context.Context, namespace, secret string) (notify.Revision, bool, error) {
	err := c.called()
	c.mu.Lock()
	defer c.mu.Unlock()
	r, found := c.revisions[namespace+"/"+secret]
	return r, found, err
}

// revise raises a Secret's revision, as a write of its data does.
func (c *cluster) revise(namespace, secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.revisions[namespace+"/"+secret]
	memos := maps.Clone(r.Restarts)
	if memos == nil {
		memos = targets.RestartMemos{}
	}
	var named []string
	for w := range c.templates {
		if w.Namespace == namespace {
			named = append(named, w.String())
		}
	}
	previous := ""
	if r.Number > 0 {
		previous = fmt.Sprint(r.Number)
	}
	memos.Revised(named, previous, fmt.Sprint(r.Number+1))
	c.revisions[namespace+"/"+secret] = notify.Revision{Number: r.Number + 1, At: time.Now(), Restarts: memos}
}

func (c *cluster) Remember(_ context.Context, w targets.Workload, secret string, memo targets.RestartMemo) error {
	if err := c.called(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.revisions[w.Namespace+"/"+secret]
	r.Restarts = maps.Clone(r.Restarts)
	if r.Restarts == nil {
		r.Restarts = targets.RestartMemos{}
	}
	r.Restarts[w.String()] = memo
	c.revisions[w.Namespace+"/"+secret] = r
	return nil
}

func (c *cluster) HasPodsOf(_ context.Context, w targets.Workload, at time.Time) (bool, error) {
	err := c.called()
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest, any := c.pods[w]
	return any && !oldest.After(at), err
}

// revert removes the annotations of a Pod template, as an owner does that replaces it.
func (c *cluster) revert(w targets.Workload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.templates[w]
	t.Annotations = nil
	c.templates[w] = t
}

func (c *cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = err
}

// watch is what is to be seen from outside.
type watch struct {
	mu       sync.Mutex
	restarts []notify.Restart
	reports  []string        // "subject: error"
	failed   []string        // "workload secret … error"
	last     error           // of the last try
	reverted []string        // "workload secret consequence"
	lasting  map[string]bool // subjects whose last report was an error
}

// told is what was seen so far.
func (w *watch) told() (restarts []notify.Restart, reports []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.restarts, w.reports
}

// Restarted and Tried implement notify.RestartListener.
func (w *watch) Restarted(r notify.Restart) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restarts = append(w.restarts, r)
}

func (w *watch) Tried(workload targets.Workload, secrets []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
	if _, missing := errors.AsType[*notify.MissingWorkloadError](err); err == nil || missing {
		return // Missing reports those
	}
	w.failed = append(w.failed, fmt.Sprint(workload.Namespace, "/", workload, " ", strings.Join(secrets, " "), " ", err))
}

func (w *watch) Reverted(workload targets.Workload, secret, consequence string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reverted = append(w.reverted, fmt.Sprint(workload.Namespace, "/", workload, " ", secret, " ", strings.Fields(consequence)[0]))
}

func (w *watch) Missing(namespace, secret string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, fmt.Sprint(namespace, "/", secret, " ", err))
}

// Report implements notify.Reporter.
func (w *watch) Report(subject string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.lasting, subject)
	if err != nil {
		w.reports = append(w.reports, subject+": "+err.Error())
		if w.lasting == nil {
			w.lasting = map[string]bool{}
		}
		w.lasting[subject] = true
	}
}

// assertLasting compares the subjects whose last report was an error.
func (w *watch) assertLasting(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := slices.Sorted(maps.Keys(w.lasting)); !slices.Equal(got, want) {
		t.Errorf("troubles of %q last, want %q", got, want)
	}
}

// restarting runs Restarts over a cluster; the returned function ends it.
func restarting(t *testing.T, c *cluster, perHour int) (*notify.Restarts, *watch, func()) {
	t.Helper()
	seen := &watch{}
	r := &notify.Restarts{Cluster: c, PerHour: perHour, Log: zap.NewNop(), Listener: seen, Reporter: seen}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { r.Run(ctx) })
	return r, seen, func() { cancel(); wg.Wait() }
}

// assertWrites waits until nothing moves and compares all writes so far.
func (c *cluster) assertWrites(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.writes, want) {
		t.Errorf("written %q, want %q", c.writes, want)
	}
}

var web = targets.Workload{Namespace: "shop", Kind: "deployment", Name: "web"}

// use is how a Secret names the workload.
var use = []string{"deployment/web"}

func TestAWorkloadIsRestartedOnceForEachRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(web)
		time.Sleep(time.Minute)
		c.revise("shop", "db")
		c.revise("shop", "db")
		r, seen, end := restarting(t, c, 0)
		r.Check("shop", "db", use)
		time.Sleep(10*time.Second - time.Millisecond)
		c.assertWrites(t)
		time.Sleep(time.Millisecond)
		c.assertWrites(t, "shop/deployment/web db=2")
		r.Check("shop", "db", use)
		time.Sleep(time.Hour)
		end()
		if len(seen.restarts) != 1 || seen.restarts[0].String() != "db ?→2" || seen.restarts[0].Workload != web {
			t.Errorf("told of %v, want one restart for db 2", seen.restarts)
		}

		// Another process compares everything, and finds no difference.
		r, _, end = restarting(t, c, 0)
		r.Check("shop", "db", use)
		time.Sleep(time.Hour)
		c.assertWrites(t, "shop/deployment/web db=2")

		c.revise("shop", "db")
		end() // the process dies before it could restart anything
		r, seen, end = restarting(t, c, 0)
		r.Check("shop", "db", use)
		time.Sleep(time.Hour)
		c.assertWrites(t, "shop/deployment/web db=2", "shop/deployment/web db=3")
		end()
		if len(seen.restarts) != 1 || seen.restarts[0].String() != "db 2→3" {
			t.Errorf("told of %v, want one restart for db 2→3", seen.restarts)
		}
	})
}

func TestChangesThatFollowEachOtherAreOneRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := targets.Workload{Namespace: "shop", Kind: "statefulset", Name: "db"}
		c := newCluster(web, other)
		r, _, end := restarting(t, c, 0)
		defer end()
		for _, secret := range []string{"a", "b", "c", "a"} {
			time.Sleep(9 * time.Second)
			c.revise("shop", secret)
			c.revise("shop", secret)
			r.Check("shop", secret, use)
		}
		r.Check("shop", "b", []string{"statefulset/db"})
		time.Sleep(10*time.Second - time.Millisecond)
		c.assertWrites(t)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		slices.Sort(c.writes)
		c.assertWrites(t, "shop/deployment/web a=4 b=2 c=2", "shop/statefulset/db b=2")
	})
}

func TestChangesWithoutEndDoNotPutARestartOffForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(web)
		r, _, end := restarting(t, c, 0)
		defer end()
		for range 12 { // one minute
			time.Sleep(5 * time.Second)
			c.revise("shop", "db")
			r.Check("shop", "db", use)
		}
		time.Sleep(5*time.Second - time.Millisecond)
		c.assertWrites(t)
		time.Sleep(time.Millisecond)
		c.assertWrites(t, "shop/deployment/web db=12")
	})
}

func TestAWorkloadWithoutAnnotationIsRestartedOnlyIfItIsOlder(t *testing.T) {
	for _, test := range []struct {
		name    string
		number  int64
		first   bool
		newer   bool // the workload is newer than the revision
		noted   string
		restart bool
	}{
		{"older than a change of a Secret that did not name it", 2, false, false, "", false},
		{"newer than a change", 2, false, true, "", false},
		{"older than the first filling", 1, true, false, "", false},
		{"newer, but noted an earlier revision", 3, false, true, "2", true},
		{"noted the revision", 3, false, false, "3", false},
		{"noted a later one: the Secret was restored", 3, false, false, "4", true},
		{"noted the first", 1, true, false, "1", false},
		{"made anew and filled", 5, true, false, "4", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				revised, created := time.Now(), time.Now().Add(-time.Second)
				if test.newer {
					created = revised.Add(time.Second)
				}
				c.revisions["shop/db"] = notify.Revision{Number: test.number, At: revised, First: test.first}
				c.templates[web] = targets.PodTemplate{Created: created}
				if test.noted != "" {
					c.templates[web] = targets.PodTemplate{Created: created, Annotations: map[string]string{"conjur.org/secret-revision.db": test.noted}}
				}
				r, seen, end := restarting(t, c, 0)
				r.Check("shop", "db", use)
				time.Sleep(time.Minute)
				end()
				if restarted := len(seen.restarts) > 0; restarted != test.restart {
					t.Errorf("restarted: %v, want %v", restarted, test.restart)
				}
			})
		})
	}
}

// What a Secret remembers counts, whatever the owner of the workload does to its template.
func TestMemosDecideWhetherAWorkloadIsRestarted(t *testing.T) {
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of virtual time
	for _, test := range []struct {
		name    string
		memo    targets.RestartMemo
		noted   string
		created time.Duration // of the workload, relative to the revision 3
		oldPods bool
		restart bool
		after   targets.RestartMemo
	}{
		{"changed since", targets.RestartMemo{Revision: "2"}, "", -1, true, true, targets.RestartMemo{Revision: "3", Restarts: 1}},
		{"changed since, and reverted before", targets.RestartMemo{Revision: "2", Restarts: 3}, "", -1, true, true, targets.RestartMemo{Revision: "3", Restarts: 1}},
		{"changed since, but the workload is newer", targets.RestartMemo{Revision: "2"}, "1", 1, false, false, targets.RestartMemo{Revision: "2"}},
		{"a process died after the restart", targets.RestartMemo{Revision: "2"}, "3", -1, true, false, targets.RestartMemo{Revision: "3", Restarts: 1}},
		{"restarted", targets.RestartMemo{Revision: "3", Restarts: 1}, "3", -1, true, false, targets.RestartMemo{Revision: "3", Restarts: 1}},
		{"named only later", targets.RestartMemo{Revision: "3"}, "", -1, true, false, targets.RestartMemo{Revision: "3"}},
		{"named again", targets.RestartMemo{Revision: "3"}, "1", -1, true, false, targets.RestartMemo{Revision: "3"}},
		{"reverted when all Pods were new", targets.RestartMemo{Revision: "3", Restarts: 1}, "", -1, false, false, targets.RestartMemo{Revision: "3", Restarts: 4}},
		{"reverted while a Pod was old", targets.RestartMemo{Revision: "3", Restarts: 1}, "2", -1, true, true, targets.RestartMemo{Revision: "3", Restarts: 2}},
		{"reverted too often", targets.RestartMemo{Revision: "3", Restarts: 3}, "", -1, true, false, targets.RestartMemo{Revision: "3", Restarts: 4}},
		{"the Secret is an earlier one", targets.RestartMemo{Revision: "4", Restarts: 1}, "4", -1, true, true, targets.RestartMemo{Revision: "3", Restarts: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				c.templates[web] = targets.PodTemplate{Created: began.Add(test.created * time.Hour), Annotations: map[string]string{"conjur.org/secret-revision.db": test.noted}}
				c.revisions["shop/db"] = notify.Revision{Number: 3, At: began, Restarts: targets.RestartMemos{"deployment/web": test.memo}}
				if test.oldPods {
					c.pods = map[targets.Workload]time.Time{web: began.Add(-time.Minute)}
				}
				for i := range 3 { // three starts
					r, seen, end := restarting(t, c, 0)
					r.Check("shop", "db", use)
					time.Sleep(time.Minute - time.Second)
					end()
					if restarted := len(seen.restarts) > 0; restarted != (test.restart && i == 0) {
						t.Errorf("start %d: restarted: %v", i, restarted)
					}
				}
				if now := c.revisions["shop/db"].Restarts["deployment/web"]; now != test.after {
					t.Errorf("remembered %+v, want %+v", now, test.after)
				}
			})
		})
	}
}

// An owner that reverts each restart at once is named, and causes no endless restarts.
func TestARevertedRestartIsRepeatedAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(web)
		c.pods = map[targets.Workload]time.Time{web: time.Now()}
		time.Sleep(time.Second)
		c.revise("shop", "db")
		all := &watch{}
		r, seen, end := restarting(t, c, 0)
		r.Check("shop", "db", use)
		for range 4 {
			for range 60 {
				time.Sleep(time.Minute)
				c.revert(web)
			}
			end() // another start changes nothing
			all.restarts, all.reverted = append(all.restarts, seen.restarts...), append(all.reverted, seen.reverted...)
			r, seen, end = restarting(t, c, 0)
			r.Check("shop", "db", use)
		}
		end()
		seen = all
		if len(seen.restarts) != 3 || !slices.Equal(seen.reverted, []string{"shop/deployment/web db not", "shop/deployment/web db not", "shop/deployment/web db some"}) {
			t.Errorf("restarted %v; reverted %q", seen.restarts, seen.reverted)
		}
	})
}

func TestASecretWithoutRevisionRestartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(web)
		r, seen, end := restarting(t, c, 0)
		r.Check("shop", "db", use)
		time.Sleep(time.Minute)
		end()
		c.assertWrites(t)
		if len(seen.reports) > 0 {
			t.Errorf("reported %q", seen.reports)
		}
	})
}

func TestAMissingWorkloadIsReportedAndStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(web)
		c.revise("shop", "db")
		c.revise("shop", "db")
		r, seen, end := restarting(t, c, 0)
		r.Check("shop", "db", []string{"daemonset/nowhere", "deployment/web"})
		time.Sleep(24 * time.Hour)
		end()
		c.assertWrites(t, "shop/deployment/web db=2")
		if len(seen.reports) != 1 || !strings.Contains(seen.reports[0], `no daemonset/nowhere in the namespace "shop"`) {
			t.Errorf("reported %q, want the missing one once", seen.reports)
		}
		if len(seen.failed) != 1 || !strings.HasPrefix(seen.failed[0], "shop/db there is no daemonset/nowhere") {
			t.Errorf("failed: %q", seen.failed)
		}
	})
}

// TestEachTryIsReported: a workload that appears ends its error, the lack of budget is one,
// and nothing is tried for a Secret that no longer names the workload.
func TestEachTryIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.revise("shop", "db")
		r, seen, end := restarting(t, c, 1)
		defer end()
		var unwanted atomic.Bool
		r.Wants = func(targets.Workload, string) bool { return !unwanted.Load() }
		last := func(want string) {
			t.Helper()
			synctest.Wait()
			seen.mu.Lock()
			defer seen.mu.Unlock()
			if want == "" && seen.last != nil || want != "" && (seen.last == nil || !strings.Contains(seen.last.Error(), want)) {
				t.Errorf("the last error is %v, want %q", seen.last, want)
			}
		}
		r.Check("shop", "db", use)
		time.Sleep(time.Hour)
		last("no such workload")
		c.mu.Lock()
		c.templates[web] = targets.PodTemplate{Created: time.Now()}
		c.mu.Unlock()
		time.Sleep(time.Hour)
		last("") // it is newer than the change, and a check has found it
		c.assertWrites(t)
		for range 2 {
			c.revise("shop", "db")
			r.Check("shop", "db", use)
			time.Sleep(time.Minute)
		}
		last("has used its restarts")
		unwanted.Store(true)
		time.Sleep(2 * time.Hour)
		c.assertWrites(t, "shop/deployment/web db=2")
		if told := strings.Join(seen.failed, "\n"); strings.Count(told, "there is no") != 1 {
			t.Errorf("failed: %q", seen.failed)
		}
	})
}

// A namespace with very many workloads that are not there holds no other up, and
// hears of them all at once.
func TestNamespacesAreRestartedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1000
		c := newCluster(web)
		c.revise("shop", "db")
		c.revise("shop", "db")
		c.during = func() { time.Sleep(10 * time.Millisecond) }
		r, seen, end := restarting(t, c, 0)
		var names []string
		for i := range many {
			names = append(names, fmt.Sprintf("deployment/gone%04d", i))
		}
		began := time.Now()
		r.Check("hostile", "a", names)
		r.Check("hostile", "b", names)
		time.Sleep(time.Millisecond)
		r.Check("shop", "db", use)
		restarted := func() time.Duration {
			for {
				if all, _ := seen.told(); len(all) > 0 {
					return time.Since(began)
				}
				time.Sleep(time.Millisecond)
			}
		}()
		if restarted > 10*time.Second+100*time.Millisecond { // quiet, and some calls
			t.Errorf("restarted after %v", restarted)
		}
		time.Sleep(time.Hour)
		end()
		if len(seen.failed) != 2 || !strings.Contains(seen.failed[0], "and 980 more") {
			t.Errorf("failed: %q", seen.failed)
		}
	})
}

func TestWhatFailsIsTriedAgainAtGrowingIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(web)
		time.Sleep(time.Second)
		c.revise("shop", "db")
		c.revise("shop", "db")
		c.fail(errors.New("no API server"))
		r, seen, end := restarting(t, c, 0)
		defer end()
		r.Check("shop", "db", use)
		time.Sleep(time.Hour)
		synctest.Wait()
		_, reports := seen.told()
		seen.assertLasting(t, "restart of shop/deployment/web")
		c.mu.Lock()
		calls := c.calls
		c.mu.Unlock()
		if calls < 60 || calls > 90 || len(reports) != calls {
			t.Errorf("tried %d times in an hour, of which %d were reported", calls, len(reports))
		}
		if len(seen.failed) != calls || seen.failed[0] != "shop/deployment/web db no API server" {
			t.Errorf("failed: %q", seen.failed)
		}
		c.revise("shop", "tls") // meanwhile
		c.revise("shop", "tls")
		r.Check("shop", "tls", use)
		c.fail(nil)
		time.Sleep(time.Minute)
		c.assertWrites(t, "shop/deployment/web db=2 tls=2")
		seen.assertLasting(t)
	})
}

func TestAChangeDuringAnOutageDoesNotHastenTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(web)
		c.fail(errors.New("no API server"))
		r, seen, end := restarting(t, c, 0)
		defer end()
		c.mu.Lock()
		c.during = func() { r.Check("shop", "db", use) } // with each attempt
		c.mu.Unlock()
		r.Check("shop", "db", use)
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, reports := seen.told(); len(reports) > 90 {
			t.Errorf("tried %d times in an hour", len(reports))
		}
	})
}

func TestANamespaceHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		var names []string
		for i := range 5 {
			names = append(names, fmt.Sprintf("deployment/w%d", i))
			for _, namespace := range []string{"shop", "bank"} {
				c.templates[targets.Workload{Namespace: namespace, Kind: "deployment", Name: fmt.Sprintf("w%d", i)}] = targets.PodTemplate{Created: time.Now()}
			}
		}
		time.Sleep(time.Minute)
		c.revise("bank", "db")
		c.revise("bank", "db")
		c.revise("shop", "db")
		c.revise("shop", "db")
		r, seen, end := restarting(t, c, 3)
		defer end()
		assert := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if restarts, _ := seen.told(); len(restarts) != want {
				t.Errorf("%d restarts %s, want %d", len(restarts), when, want)
			}
		}
		r.Check("shop", "db", names)
		time.Sleep(10 * time.Second)
		assert(3, "at first")
		r.Check("bank", "db", names[:1])
		time.Sleep(10 * time.Second)
		assert(4, "with one of another namespace")
		seen.assertLasting(t, "restarts in shop")
		if _, reports := seen.told(); len(reports) == 0 || !strings.Contains(reports[0], `"shop" has used its restarts (3 an hour)`) {
			t.Errorf("reported %q", reports)
		}
		time.Sleep(19 * time.Minute)
		assert(4, "before there is budget again")
		time.Sleep(time.Minute)
		assert(5, "after a third of an hour")
		time.Sleep(20 * time.Minute)
		assert(6, "after another")
		seen.assertLasting(t)
		time.Sleep(time.Hour)
		for _, name := range names { // nothing to do costs nothing
			r.Check("shop", "db", []string{name})
			time.Sleep(time.Minute)
		}
		c.revise("shop", "db")
		r.Check("shop", "db", names[:3])
		time.Sleep(10 * time.Second)
		assert(9, "with a full budget")
		time.Sleep(5 * time.Hour)
		c.revise("shop", "db")
		r.Check("shop", "db", names)
		time.Sleep(10 * time.Second)
		assert(12, "after a long time without any")
	})
}

func TestAFailedRestartCostsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(web)
		time.Sleep(time.Second)
		c.revise("shop", "db")
		c.revise("shop", "db")
		c.fail(errors.New("no API server"))
		r, _, end := restarting(t, c, 1)
		defer end()
		r.Check("shop", "db", use)
		time.Sleep(5 * time.Minute)
		c.fail(nil)
		time.Sleep(2 * time.Minute)
		c.assertWrites(t, "shop/deployment/web db=2")
	})
}

func TestRunEndsWhileSomethingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(web)
		r, _, end := restarting(t, c, 0)
		r.Check("shop", "db", use)
		end()
		if c.calls > 0 {
			t.Error("the cluster was asked before its time")
		}
	})
}
