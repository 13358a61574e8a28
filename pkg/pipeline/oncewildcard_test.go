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
	clientConfig := d.Pipe(t)
	clientConfig.RateLimit = 50
	client, err := conjur.New(clientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	set := &records.Lane{}
	set.Replace(cfg.Targets)
	values, err := variables.New(client, variables.Config{Rules: rules(cfg), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{name: "default", settings: newSettings(cfg), targets: set, metrics: health.NewMetrics(), log: zap.NewNop()}
	q := queue.New(l.queueConfig(cfg))
	settled := &lastError{}
	pool := workers.NewPool(workers.PoolConfig{
		Work: q, Workers: 2, Timeout: 3 * cfg.Conjur.HTTPTimeout, Listener: settled,
		Syncer: &workers.Syncer{
			Targets: set, Values: values, Sink: sinks.NewFiles(dir, nil), Policy: policy(cfg), Log: zap.NewNop(),
			Lister: &listing{catalog: values.NewCatalog(), set: set}, Templates: &texts{files: &sources.Templates{}},
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { pool.Run(ctx) })
	q.Add(queue.Hint{Trigger: "start", Wakes: true}, spec.Key)
	_ = q.WaitDone(ctx)
	stop()
	wg.Wait()
	return settled.err
}

// lastError is a workers.Listener.
type lastError struct{ err error }

func (*lastError) Started(queue.Item)                       {}
func (l *lastError) Settled(_ queue.Item, r workers.Result) { l.err = r.Err }
