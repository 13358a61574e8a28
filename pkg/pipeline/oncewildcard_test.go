package pipeline

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/conjur"
	"github.com/secretsync/syncer/pkg/conjur/conjurtest"
	"github.com/secretsync/syncer/pkg/conjur/variables"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// A process that delivers once delivers a target with all variables, however many of
// them have no value or may not be read. The server names one of them at most.
func TestOneShotDeliversAmongManyVariablesWithoutAValue(t *testing.T) {
	forbid := func(_ int, v *conjurtest.Variable) { v.Forbidden, v.Privileges = true, []string{"read"} }
	cases := map[string]struct {
		spoil   func(i int, v *conjurtest.Variable)
		before  string // the file that an earlier process left
		bare    bool   // the list has only ids
		singly  int    // requests for each of these variables
		besides int    // requests for all others
	}{
		"never set":    {spoil: func(_ int, v *conjurtest.Variable) { v.Missing = true }, besides: 10},
		"not readable": {spoil: forbid, besides: 200},
		"both": {spoil: func(i int, v *conjurtest.Variable) {
			forbid(i, v)
			v.Missing, v.Forbidden = i%2 == 0, i%2 == 1
		}, besides: 200},
		"readable by other hosts": {spoil: func(i int, v *conjurtest.Variable) {
			v.Forbidden, v.Permitted = true, fmt.Sprintf("dev:host:h%d", i)
		}, singly: 6, besides: 200},
		"not in an earlier file":           {spoil: forbid, before: `{"app/v0000":"old"}`, besides: 200},
		"never set, and the list is short": {spoil: func(_ int, v *conjurtest.Variable) { v.Missing = true }, bare: true, singly: 2, besides: 200},
	}
	for name, c := range cases {
		for _, many := range []int{100, 1000, 3000} {
			if c.singly > 2 && many > 1000 {
				continue // takes long, and is no other case
			}
			t.Run(fmt.Sprintf("%s %d", name, many), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := conjurtest.New()
					d.Fill(conjurtest.Names(50))
					for i := range many {
						d.Change(fmt.Sprintf("app/v%04d/bad%d", i%50, i), func(v *conjurtest.Variable) { c.spoil(i, v) })
					}
					if c.bare {
						d.SetIntercept(func(w http.ResponseWriter, r *http.Request, kind conjur.Kind) bool {
							if kind != conjur.KindList {
								return false
							}
							answer := httptest.NewRecorder()
							d.Answer(answer, r, kind)
							conjurtest.JSON(w, http.StatusOK, regexp.MustCompile(`,"owner":.*?"secrets":\[[^]]*\]`).ReplaceAllString(answer.Body.String(), ""))
							return true
						})
					}
					began := time.Now()
					err := deliverOnce(t, d, c.before)
					n, took := len(d.Log()), time.Since(began)
					t.Logf("%d requests, %v", n, took)
					most := c.singly*many + c.besides
					if err != nil || n > most || took > time.Duration(most)*time.Second/25 {
						t.Errorf("%d requests, and at most %d are needed; after %v: %.300v", n, most, took, err)
					}
				})
			})
		}
	}
}

// deliverOnce does what the mode init does for a file with all variables, by the rules of
// that mode.
func deliverOnce(t *testing.T, d *conjurtest.Double, before string) error {
	dir := t.TempDir()
	if before != "" {
		if err := os.WriteFile(filepath.Join(dir, "all.json"), []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec := &targets.Target{Key: "file/all", Format: targets.FormatJSON, File: targets.File{Path: "all.json", Mode: 0o600}, Entries: []targets.Entry{{Alias: "*", Variable: "*"}}}
	cfg := &config.Config{
		Mode: config.ModeInit, Targets: []*targets.Target{spec}, Conjur: config.Conjur{HTTPTimeout: time.Minute},
		Retry:   config.Retry{Limit: 5, Interval: time.Second},
		Removal: config.Removal{Grace: 10 * time.Second, Confirmations: 2, Brake: 50, BrakeHold: 10 * time.Minute},
	}
	settled := &lastError{}
	p := newParts(t, d, cfg, dir, settled)
	defer p.client.Close()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.pool.Run(ctx) })
	p.queue.Add(queue.Hint{Trigger: "start", Wakes: true}, spec.Key)
	_ = p.queue.WaitDone(ctx)
	stop()
	wg.Wait()
	return settled.err
}

// parts are those of a lane, by the settings of a configuration, for virtual time.
type testParts struct {
	client *conjur.Client
	values *variables.Client
	set    *records.Lane
	queue  *queue.Queue
	pool   *workers.Pool
}

func newParts(t *testing.T, d *conjurtest.Double, cfg *config.Config, dir string, listener workers.Listener) testParts {
	clientConfig := d.Pipe(t)
	clientConfig.RateLimit = 50
	client, err := conjur.New(clientConfig)
	if err != nil {
		t.Fatal(err)
	}
	set := &records.Lane{}
	set.Replace(cfg.Targets)
	values, err := variables.New(client, variables.Config{Rules: rules(cfg), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{name: "default", settings: newSettings(cfg), targets: set, metrics: health.NewMetrics(""), log: zap.NewNop()}
	q := queue.New(l.queueConfig(cfg))
	return testParts{client, values, set, q, workers.NewPool(workers.PoolConfig{
		Work: q, Workers: 2, Timeout: 3 * cfg.Conjur.HTTPTimeout, Listener: listener,
		Syncer: &workers.Syncer{
			Targets: set, Values: values, Sink: sinks.NewFiles(dir, nil), Policy: policy(cfg), Log: zap.NewNop(),
			Lister: &workers.WildcardLister{Catalog: values.NewCatalog(), Targets: set}, Templates: sources.NewTemplateTexts(dir, nil, &lanes{}, &lanes{}, health.NewTroubles(zap.NewNop())),
		},
	})}
}

// Enqueue, Report, Beat, Stuck, Altered, Lists and Relist are the rest of a lane for a poll.
func (p testParts) Enqueue(h queue.Hint, keys ...targets.Key)   { p.queue.Add(h, keys...) }
func (testParts) Report(string, error)                          {}
func (testParts) Beat() (bool, error)                           { return false, nil }
func (testParts) Stuck() bool                                   { return false }
func (testParts) Altered() []targets.Key                        { return nil }
func (testParts) Lists() bool                                   { return false }
func (testParts) Relist(context.Context) ([]targets.Key, error) { return nil, nil }

// Targets with a wrong id cost requests in the order of the refresh, whatever their
// number. A variable that appears, or is back unchanged, is found by the poll.
func TestWrongIDsCostLittleBetweenPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := conjurtest.New()
		cfg := &config.Config{
			Mode: config.ModeSidecar, Conjur: config.Conjur{HTTPTimeout: time.Minute},
			Refresh: config.Refresh{Enabled: true, Interval: time.Hour},
			Retry:   config.Retry{Limit: 5, Interval: time.Second},
			Removal: config.Removal{Grace: 10 * time.Second, Confirmations: 2, Brake: 50, BrakeHold: 10 * time.Minute},
		}
		for i := range 60 {
			name := fmt.Sprintf("t%d", i)
			cfg.Targets = append(cfg.Targets, &targets.Target{
				Key: targets.FileKey(name), Format: targets.FormatJSON, File: targets.File{Path: name, Mode: 0o600},
				Entries: []targets.Entry{{Alias: "a", Variable: "wrong/" + name}},
			})
		}
		d.Set("wrong/t1", "v")
		dir := t.TempDir()
		p := newParts(t, d, cfg, dir, &lastError{})
		defer p.client.Close()
		poll := &sources.Poll{
			Interval: time.Hour, Deadline: 2 * time.Minute, Users: p.set, Values: p.values, Results: p, Lister: p, Queue: p, Reporter: p, Heart: p,
		}
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { p.pool.Run(ctx) })
		p.queue.Add(queue.Hint{Trigger: "start", Wakes: true}, p.set.Keys()...)
		wg.Go(func() { poll.Run(ctx) })
		time.Sleep(5 * time.Minute)
		d.Log()
		d.Change("wrong/t1", func(v *conjurtest.Variable) { v.Missing = true })
		p.queue.Add(queue.Hint{Trigger: "drift", Wakes: true}, targets.FileKey("t1"))
		time.Sleep(10 * time.Minute)
		if n := len(d.Log()); n > 60 {
			t.Errorf("%d requests in 10 minutes of a refresh of 1 h", n)
		}
		d.Set("wrong/t0", "v")
		d.Change("wrong/t1", func(v *conjurtest.Variable) { v.Missing = false })
		time.Sleep(time.Hour)
		if n := len(d.Log()); n > 200 {
			t.Errorf("%d requests in an hour", n)
		}
		if _, err := os.ReadFile(filepath.Join(dir, "t0")); err != nil {
			t.Errorf("the variable appeared: %v", err)
		}
		if _, failed, _ := p.set.Unproven(); len(failed) != 58 {
			t.Errorf("%d of 60 targets fail, want 58", len(failed))
		}
		for _, r := range p.set.Records() {
			if r.Spec.Key == targets.FileKey("t1") && r.Status.Err != nil {
				t.Errorf("the variable is back: %v", r.Status.Err)
			}
		}
		stop()
		wg.Wait()
	})
}

// lastError is a workers.Listener, which several workers call.
type lastError struct {
	mu  sync.Mutex
	err error
}

func (*lastError) Started(queue.Item) {}
func (l *lastError) Settled(r workers.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = r.Err
}
