package notify_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets"
)

// TestBoundsOfMissing: of 20 targets, each with 500 bytes of its reason, 4000 bytes are
// shown.
func TestBoundsOfMissing(t *testing.T) {
	for _, c := range []struct{ targets, reason, lines, bytes, shown int }{
		{19, 1, 19, 19 * len("file/00: x\n"), 0},
		{20, 1, 20, 20 * len("file/00: x\n"), 0},
		{21, 1, 21, 20*len("file/00: x\n") + len("and 1 more\n"), 0},
		{1, 499, 1, 499 + len("file/00: \n"), 0},
		{1, 500, 1, 500 + len("file/00: \n"), 0},
		{1, 501, 1, 500 + len("file/00: \n"), 0},
		{8, 489, 8, 8 * 499, 8*499 + 7 - 1}, // a line break is shown as two bytes
		{8, 490, 8, 8 * 500, 4000},
	} {
		dir := t.TempDir()
		status := notify.OpenStatus(dir)
		var keys []targets.Key
		for i := range c.targets {
			keys = append(keys, targets.Key(fmt.Sprintf("file/%02d", i)))
		}
		a, _ := of(status, keys...)
		for _, key := range keys {
			a.Failed(key, errors.New(strings.Repeat("x", c.reason)))
		}
		must(t, a.SayMissing())
		text, err := os.ReadFile(filepath.Join(dir, notify.MissingFile))
		must(t, err)
		if lines := strings.Count(string(text), "\n"); lines != c.lines || len(text) != c.bytes {
			t.Errorf("%+v: %d lines, %d bytes", c, lines, len(text))
		}
		if shown, err := status.Missing(); err != nil || c.shown > 0 && len(shown) != c.shown {
			t.Errorf("%+v: %d bytes are shown, %v", c, len(shown), err)
		}
	}
}

// TestNothingIsSaidToBeMissing: after everything was delivered, whatever else comes.
func TestNothingIsSaidToBeMissing(t *testing.T) {
	dir := t.TempDir()
	a, _ := application(t, dir)
	missing := func() bool {
		_, err := os.Stat(filepath.Join(dir, notify.MissingFile))
		return err == nil
	}
	a.Delivered("file/a")
	a.Delivered("file/b")
	must(t, a.SayMissing())
	if missing() {
		t.Error("something is missing although all was delivered")
	}
	must(t, a.Provided())
	a.set.Put(&targets.Target{Key: "file/new"})
	must(t, a.SayMissing())
	if missing() {
		t.Error("something is missing although all was provided once")
	}
}

// TestAMarkMayBeGone: the application may remove any file of its folder.
func TestAMarkMayBeGone(t *testing.T) {
	dir := t.TempDir()
	a, _ := application(t, dir)
	a.Delivered("file/a")
	a.Delivered("file/b")
	must(t, a.Provided())
	writing(t, a)()
	marks, _ := filepath.Glob(filepath.Join(dir, ".untold-*"))
	if len(marks) != 1 {
		t.Fatalf("marks %q", marks)
	}
	must(t, os.Remove(marks[0]))
	if err := a.Updated(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestBoundsOfNotes: what an application writes is read up to a size.
func TestBoundsOfNotes(t *testing.T) {
	dir := t.TempDir()
	for less := -1; less <= 1; less++ {
		must(t, os.WriteFile(filepath.Join(dir, notify.KeysSeenFile), make([]byte, 1<<20+less), 0o600))
		if text, err := notify.OpenStatus(dir).KeysSeen(); (err == nil) != (less <= 0) {
			t.Errorf("of the bound%+d: %d bytes, %v", less, len(text), err)
		}
	}
}

// TestBoundsOfWaiting: a limit of zero is none.
func TestBoundsOfWaiting(t *testing.T) {
	const most = time.Minute
	for _, c := range []struct {
		most, provided time.Duration // when
		there          bool
	}{{most, most - time.Second, true}, {most, most + time.Second, false}, {0, 100 * most, true}} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			began := time.Now()
			time.AfterFunc(c.provided, func() {
				must(t, os.WriteFile(filepath.Join(dir, notify.ProvidedFile), nil, 0o600))
			})
			err := notify.Wait(t.Context(), dir, c.most)
			if took := time.Since(began); (err == nil) != c.there || err != nil && took != most {
				t.Errorf("%v of %v: %v, after %v", c.provided, c.most, err, took)
			}
			if err != nil && !strings.Contains(err.Error(), "not there after 1m0s: the secrets have not been provided yet; missing: not known") {
				t.Error(err)
			}
			time.Sleep(c.provided) // the file is there before the folder is removed
		})
	}
}

// TestBoundsOfAnnotations: the name of a Secret stays whole if the annotation's name has at
// most 63 characters.
func TestBoundsOfAnnotations(t *testing.T) {
	for n, whole := range map[int]bool{46: true, 47: true, 48: false} {
		secret := strings.Repeat("a", n)
		if got := notify.TemplateAnnotation(secret); strings.HasSuffix(got, "."+secret) != whole {
			t.Errorf("%d characters: %s", n, got)
		}
	}
}

// TestBoundsOfBudgets: an hour has 60 restarts by default.
func TestBoundsOfBudgets(t *testing.T) {
	for n, want := range map[int]int{59: 59, 60: 60, 61: 60} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster()
			var names []string
			for i := range n {
				w := targets.WorkloadIn("shop", fmt.Sprintf("deployment/w%d", i))
				c.templates[w] = targets.PodTemplate{Created: time.Now()}
				names = append(names, w.String())
			}
			time.Sleep(time.Minute)
			c.revise("shop", "db")
			c.revise("shop", "db")
			r, seen, end := restarting(t, c, 0)
			defer end()
			r.Check("shop", "db", names)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if restarts, _ := seen.told(); len(restarts) != want {
				t.Errorf("%d restarts of %d workloads, want %d", len(restarts), n, want)
			}
		})
	}
}

// TestTimesOfChecks: a restart is checked three times. A missing workload is looked for at
// the same times, and then without end.
func TestTimesOfChecks(t *testing.T) {
	for what, c := range map[string]struct {
		cluster *cluster
		want    []time.Duration // between the looks
	}{
		"a restart":          {newCluster(web), []time.Duration{time.Minute, 4 * time.Minute, 16 * time.Minute}},
		"a missing workload": {newCluster(), []time.Duration{time.Minute, 4 * time.Minute, 16 * time.Minute, 16 * time.Minute, 16 * time.Minute}},
	} {
		synctest.Test(t, func(t *testing.T) {
			for w := range c.cluster.templates {
				c.cluster.templates[w] = targets.PodTemplate{Created: time.Now()}
			}
			time.Sleep(time.Minute)
			c.cluster.revise("shop", "db")
			c.cluster.revise("shop", "db")
			var looks []time.Time
			c.cluster.during = func() {
				if now := time.Now(); len(looks) == 0 || now.After(looks[len(looks)-1]) {
					looks = append(looks, now)
				}
			}
			r, _, end := restarting(t, c.cluster, 0)
			r.Check("shop", "db", use)
			time.Sleep(time.Hour)
			end()
			var between []time.Duration
			for i := range looks[1:] {
				between = append(between, looks[i+1].Sub(looks[i]))
			}
			if !slices.Equal(between, c.want) {
				t.Errorf("%s: looks after %v, want %v", what, between, c.want)
			}
		})
	}
}

// TestProbesTakeWhatTheySee: each probe of a Pod fails or succeeds once for each sign.
func TestProbesTakeWhatTheySee(t *testing.T) {
	dir := t.TempDir()
	status := notify.OpenStatus(dir)
	broken := filepath.Join(dir, "file")
	must(t, os.WriteFile(broken, nil, 0o600))
	for name, probe := range map[string]struct {
		probe    func(string) error
		sign     func() error
		with, no string // the errors
	}{
		"unchanged": {notify.Unchanged, status.SetUpdated, "the secrets were updated", ""},
		"alive":     {notify.Alive, func() error { _, err := status.Beat(); return err }, "", "no heartbeat since the last probe"},
	} {
		text := func(dir string) string {
			if err := probe.probe(dir); err != nil {
				return err.Error()
			}
			return ""
		}
		for range 2 {
			if got := text(dir); got != probe.no {
				t.Errorf("%s, without a sign: %q", name, got)
			}
			must(t, probe.sign())
			if got := text(dir); got != probe.with {
				t.Errorf("%s, with a sign: %q", name, got)
			}
		}
		if got := text(broken); !strings.Contains(got, "not a directory") {
			t.Errorf("%s, without a folder: %q", name, got)
		}
	}
	if err := notify.Provided(dir); err == nil || !strings.Contains(err.Error(), "missing: not known; see the log") {
		t.Errorf("before anything is known: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, notify.MissingFile), []byte("file/a: no\n"), 0o600))
	if err := notify.Provided(dir); err == nil || !strings.HasSuffix(err.Error(), "missing: file/a: no") {
		t.Errorf("before all is provided: %v", err)
	}
	must(t, status.SetProvided())
	if err := notify.Provided(dir); err != nil {
		t.Errorf("when all is provided: %v", err)
	}
	if err := notify.Provided(broken); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("without a folder: %v", err)
	}
}

// TestMissingWorkloadsAreReportedWhileTheyAreNamed: what a Secret no longer names is no
// trouble of it.
func TestMissingWorkloadsAreReportedWhileTheyAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		time.Sleep(time.Minute)
		c.revise("shop", "db")
		r, seen, end := restarting(t, c, 0)
		defer end()
		var named atomic.Pointer[[]string]
		name := func(workloads ...string) { named.Store(&workloads) }
		r.Wants = func(w targets.Workload, _ string) bool { return slices.Contains(*named.Load(), w.String()) }
		last := func() string {
			synctest.Wait()
			_, reports := seen.told()
			return reports[len(reports)-1]
		}
		name("deployment/web", "deployment/other")
		r.Check("shop", "db", []string{"deployment/web", "deployment/other"})
		time.Sleep(10 * time.Second)
		if got := last(); !strings.Contains(got, "there is no deployment/other, deployment/web in") {
			t.Error(got)
		}
		name("deployment/other")
		time.Sleep(time.Hour)
		if got := last(); !strings.Contains(got, "there is no deployment/other in") {
			t.Error(got)
		}
		seen.assertLasting(t, "workloads of the secret shop/db")
		name()
		time.Sleep(time.Hour)
		synctest.Wait()
		seen.assertLasting(t)
	})
}
