package notify_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/pkg/notify"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// pod is a Pod whose containers restart in place, in virtual time. Its status folder
// outlives processes.
type pod struct {
	t     *testing.T
	dir   string
	rules notify.InPlaceRules
	app   *notify.Application
	run   context.CancelFunc
	done  chan struct{}
}

func newPod(t *testing.T, rules notify.InPlaceRules) *pod {
	p := &pod{t: t, dir: t.TempDir(), rules: rules}
	p.start()
	return p
}

// start starts a process of Syncer. Everything was delivered before.
func (p *pod) start() {
	status, err := notify.NewStatus(p.dir)
	must(p.t, err)
	must(p.t, status.SetProvided())
	p.app = notify.NewApplication(status, &records.Lane{}, zap.NewNop())
	p.app.InPlace().SetRules(p.rules)
	must(p.t, p.app.Recover(p.t.Context()))
	var ctx context.Context
	ctx, p.run = context.WithCancel(p.t.Context())
	p.done = make(chan struct{})
	go func() { defer close(p.done); p.app.InPlace().Run(ctx) }()
}

// kill ends the process at this moment.
func (p *pod) kill() {
	p.run()
	<-p.done
}

// change writes, and announces the write.
func (p *pod) change() {
	wrote, err := p.app.Writing()
	must(p.t, err)
	wrote()
	must(p.t, p.app.Updated(p.t.Context()))
}

// restartsWithin reports whether all containers restart within a time, and restarts them.
func (p *pod) restartsWithin(within time.Duration) bool {
	select {
	case <-p.app.InPlace().Ended():
		<-p.done
		must(p.t, p.app.InPlace().Record(false))
		p.start()
		return true
	case <-time.After(within):
		return false
	}
}

// after expects no restart before a time, and one at it.
func (p *pod) after(wait time.Duration) {
	p.t.Helper()
	if wait > 0 && p.restartsWithin(wait-time.Nanosecond) {
		p.t.Fatalf("a restart before %v", wait)
	}
	if !p.restartsWithin(2 * time.Nanosecond) { // both timers fire in any order
		p.t.Fatalf("no restart after %v", wait)
	}
}

// never expects no restart within a day.
func (p *pod) never() {
	p.t.Helper()
	if p.restartsWithin(24 * time.Hour) {
		p.t.Fatal("a restart that nothing required")
	}
}

func TestRestartsInPlace(t *testing.T) {
	rules := notify.InPlaceRules{Enabled: true, Every: time.Minute}
	for name, test := range map[string]struct {
		rules notify.InPlaceRules
		do    func(p *pod)
	}{
		"one for a change, none for a start": {rules, func(p *pod) {
			p.never()
			p.change()
			p.after(0)
			p.never()
			p.kill()
			p.start()
			p.never()
		}},
		"not before the first delivery": {rules, func(p *pod) {
			must(p.t, os.Remove(filepath.Join(p.dir, notify.ProvidedFile)))
			p.change()
			p.never()
		}},
		"switched off": {notify.InPlaceRules{Every: time.Minute}, func(p *pod) {
			p.change()
			p.never()
		}},
		"after a warning, once for all changes until then": {notify.InPlaceRules{Enabled: true, Every: time.Minute, Warning: 10 * time.Second}, func(p *pod) {
			p.change()
			time.Sleep(4 * time.Second)
			p.change()
			p.after(6 * time.Second)
			p.never()
		}},
		"further apart when they follow one another": {rules, func(p *pod) {
			for _, wait := range []time.Duration{0, 1, 2, 4, 8, 10, 10, 10} {
				p.change()
				p.after(wait * time.Minute)
			}
			time.Sleep(20*time.Minute - time.Nanosecond)
			p.change()
			p.after(0)
			p.change()
			p.after(10 * time.Minute)
			time.Sleep(20 * time.Minute)
			p.change()
			p.after(0)
			p.change()
			p.after(time.Minute)
			if s, err := p.app.InPlace().State(); err != nil || s.Count != 12 {
				p.t.Errorf("%+v, %v", s, err)
			}
		}},
		"also if the process is killed while one is due": {rules, func(p *pod) {
			p.change()
			p.after(0)
			p.change()
			time.Sleep(30 * time.Second)
			p.kill()
			p.start()
			p.after(30 * time.Second)
			p.never()
		}},
		"also if the process is killed before it announces": {rules, func(p *pod) {
			wrote, err := p.app.Writing()
			must(p.t, err)
			wrote()
			p.kill()
			p.start()
			p.after(0)
			p.never()
		}},
		"not if the machine has started since, and the application with it": {
			notify.InPlaceRules{Enabled: true, Every: time.Minute, Warning: 10 * time.Second}, func(p *pod) {
				p.change()
				p.kill()
				startMachine(p.t, p.dir)
				p.start()
				p.never()
				must(p.t, notify.OpenStatus(p.dir).SetProvided())
				p.change()
				p.after(10 * time.Second)
			},
		},
		"with a note that somebody damaged": {rules, func(p *pod) {
			for _, text := range []string{"", "x", `{"count":-1}`, `{"row":-1}`} {
				must(p.t, os.WriteFile(filepath.Join(p.dir, ".restart-in-place"), []byte(text), 0o600))
				if s, err := p.app.InPlace().State(); err != nil || s != (notify.InPlaceState{}) {
					p.t.Errorf("%q: %+v, %v", text, s, err)
				}
			}
			p.change()
			p.after(0)
		}},
		"if the clock was set back": {rules, func(p *pod) {
			text := `{"last":"` + time.Now().Add(time.Hour).Format(time.RFC3339) + `","count":1,"row":1}`
			must(p.t, os.WriteFile(filepath.Join(p.dir, ".restart-in-place"), []byte(text), 0o600))
			p.change()
			p.after(0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPod(t, test.rules)
				defer func() { p.kill() }()
				test.do(p)
			})
		})
	}
}

// TestRestartsInPlaceNeedTheirNote: without it, nothing would limit them.
func TestRestartsInPlaceNeedTheirNote(t *testing.T) {
	dir := t.TempDir()
	status, err := notify.NewStatus(dir)
	must(t, err)
	must(t, status.SetProvided())
	app, _ := of(status)
	app.InPlace().SetRules(notify.InPlaceRules{Enabled: true, Every: time.Minute})
	const note = ".restart-in-place"
	must(t, os.Mkdir(filepath.Join(dir, note), 0o700))
	if err := app.Updated(t.Context()); err == nil {
		t.Error("an announcement without the note")
	}
	if err := app.InPlace().Record(false); err == nil {
		t.Error("a restart without the note")
	}
	must(t, os.Remove(filepath.Join(dir, note)))
	if !app.Retry(t.Context(), func(subject string, err error) {
		if err != nil {
			t.Errorf("%s: %v", subject, err)
		}
	}) {
		t.Error("the announcement is not made up for")
	}
	if s, err := app.InPlace().State(); err != nil || s.Due.IsZero() {
		t.Errorf("no restart is due: %+v, %v", s, err)
	}
}
