package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/workers"
)

// leftover is a sink in which each Secret holds a key that nobody wants.
type leftover struct{}

func (leftover) Read(_ context.Context, r records.Record) (sinks.State, error) {
	state := sinks.State{Sight: records.Sight{Version: "uid/1", Revision: r.Status.Revision}}
	if r.Status.Version == "" {
		state.Parts = map[string]secret.Value{"old": secret.New([]byte("value"))}
	}
	return state, nil
}

func (leftover) Apply(_ context.Context, r records.Record, _ sinks.Changes) (records.Sight, error) {
	return records.Sight{Version: "uid/2", Revision: records.Revision{Fingerprint: r.Fingerprint("", nil), Stamp: records.Stamp{Number: "1"}}}, nil
}

// cluster is a pipeline whose Secrets come from the test.
type cluster struct {
	pipeline *pipeline
	*definer
	t *testing.T
}

func newCluster(t *testing.T, mode config.Mode, sink workers.Sink, identities ...string) *cluster {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: https://cluster.invalid}}]}"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := kube.Connect(kube.Config{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	cfg := &config.Config{
		Mode: mode, Destination: config.DestinationKubernetes, RemoveDeleted: true, Refresh: config.Refresh{Enabled: mode == config.ModeStandalone},
		Conjur: config.Conjur{HTTPTimeout: time.Minute}, Kubernetes: config.Kubernetes{Namespaces: []string{"ns"}},
	}
	identified := *cfg
	for _, name := range identities {
		identified.Identities = append(identified.Identities, config.Identity{Name: name, Conjur: config.Conjur{
			ApplianceURL: "https://conjur.invalid", Account: "a", AuthnType: config.AuthnAPIKey, Login: "host/x", APIKey: secret.New([]byte("key")),
		}})
	}
	p, err := newPipeline(Parts{Workers: 2, Log: zap.NewNop()}, newSettings(cfg), &records.Set{}, nil, client, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.sink = sink
	lanes, err := p.newLanes(&identified, identified.Identities)
	if err != nil {
		t.Fatal(err)
	}
	p.settings.now.Store(&identified)
	p.lanes.set(lanes)
	for _, l := range lanes {
		l.start(t.Context())
	}
	t.Cleanup(p.close)
	return &cluster{p, p.inventory.(*secrets).definitions, t}
}

// has a Secret with a map appear.
func (c *cluster) has(name, conjurMap string) {
	c.Upsert(&kube.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "1"}, Map: &kube.Map{Text: conjurMap}}, true)
}

func (c *cluster) settled() {
	c.t.Helper()
	for _, l := range c.lanes.all() {
		if err := l.queue.WaitSettled(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
	}
}

const faulty = "a: 5"

// A process serves Secrets that come and go for as long as it lives.
func TestSecretsThatComeAndGoLeaveTheHeapWhereItWas(t *testing.T) {
	c := newCluster(t, config.ModeStandalone, leftover{}, "")
	rounds := 0
	churn := func(n int) uint64 {
		rounds++
		name := func(i int) string { return fmt.Sprintf("s%d-%d", rounds, i) }
		for i := range n {
			c.has(name(i), [...]string{"{}", faulty}[i%2])
			if i%100 == 0 {
				c.settled()
			}
		}
		c.settled()
		for i := range n {
			c.Gone("ns", name(i))
		}
		c.settled()
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := churn(10000) // what is bounded is full then, and maps keep their size
	after := churn(10000)
	const most = 200 << 10 // 20 bytes each
	if after > before+most {
		t.Errorf("the heap grew from %d to %d KiB over 10,000 Secrets that are gone", before>>10, after>>10)
	}
	if n := len(c.set.Records()); n > 0 {
		t.Errorf("%d targets are left", n)
	}
}

func TestAOneShotProcessDoesNotFailOverATargetThatItNoLongerHas(t *testing.T) {
	c := newCluster(t, config.ModeApplication, leftover{}, "")
	c.has("good", "{}")
	c.has("bad", faulty)
	c.settled()
	if err := (&job{set: c.pipeline.targetSet, lanes: c.pipeline.lanes}).undelivered(); err == nil {
		t.Error("a faulty definition is no failure")
	}
	c.Gone("ns", "bad")
	c.lanes.all()[0].lastRetries(t.Context())
	if err := (&job{set: c.pipeline.targetSet, lanes: c.pipeline.lanes}).undelivered(); err != nil {
		t.Errorf("with the faulty one gone: %v", err)
	}
}
