package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/queue"
	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/sources"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/test/proctest"
)

// stuckSink hangs, whatever its context says, until it is closed.
type stuckSink chan struct{}

func (s stuckSink) Read(context.Context, records.Record) (sinks.State, error) {
	<-s
	return sinks.State{}, nil
}

func (s stuckSink) Apply(context.Context, records.Record, sinks.Changes) (records.Sight, error) {
	return records.Sight{}, nil
}

// TestHealthzWhenAllWorkersAreOverdue: one worker that moves is health enough,
// and so is a lane of another identity that is idle.
func TestHealthzWhenAllWorkersAreOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Minute // of a request; a worker has three
		sink := make(stuckSink)
		cfg := &config.Config{Mode: config.ModeInit, Conjur: config.Conjur{HTTPTimeout: timeout}}
		s := &supervisor{settings: newSettings(cfg)}
		troubles, all := health.NewTroubles(zap.NewNop()), &lanes{}
		p := &pipeline{
			parts: Parts{Workers: 2, Log: zap.NewNop()}, settings: s.settings, clients: connect.Options{Log: zap.NewNop()},
			targetSet: &records.Set{}, sink: sink, troubles: troubles, listeners: &listeners{}, lanes: all, texts: sources.NewTemplateTexts("", nil, all, all, troubles),
		}
		var lanes []*lane
		for _, name := range []string{"idle", "stuck"} {
			l, err := p.newLane(cfg, config.Identity{Name: name, Conjur: config.Conjur{
				ApplianceURL: "https://conjur.invalid", Account: "a", AuthnType: config.AuthnAPIKey,
				Login: "host/x", APIKey: secret.New([]byte("key")),
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer l.stop()
			lanes = append(lanes, l)
		}
		all.set(lanes)
		if err := s.Healthy(); err != nil {
			t.Errorf("without a pipeline: %v", err)
		}
		s.show(p)
		for _, l := range lanes {
			l.start(t.Context())
		}
		stuck := lanes[1]
		begin := func(names ...string) {
			for _, name := range names {
				key := targets.FileKey(name)
				stuck.targets.Put(&targets.Target{Key: key, Group: name, Format: targets.FormatTemplate, Template: targets.Template{Inline: "text"}, File: targets.File{Path: name}})
				stuck.Enqueue(queue.Hint{}, key)
				synctest.Wait()
			}
		}
		begin("a")
		time.Sleep(time.Hour)
		if err := s.Healthy(); err != nil {
			t.Errorf("with one of two workers stuck: %v", err)
		}
		begin("b")
		time.Sleep(3 * timeout)
		if err := s.Healthy(); err != nil {
			t.Errorf("at the deadline: %v", err)
		}
		time.Sleep(timeout)
		if err := s.Healthy(); err == nil || !strings.Contains(err.Error(), "the workers of the identity stuck have not finished a sync for too long") {
			t.Errorf("with all workers stuck: %v", err)
		}
		close(sink)
		synctest.Wait()
		if err := s.Healthy(); err != nil {
			t.Errorf("when they move again: %v", err)
		}
	})
}

// TestAStartThatFailsHalfwayLeavesNothing: no goroutine, and no address in use.
func TestAStartThatFailsHalfwayLeavesNothing(t *testing.T) {
	address := proctest.FreeAddress(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := write("key", "key")
	kubeconfig := write("kubeconfig", fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}",
		"http://"+proctest.FreeAddress(t)))
	file := write("config.yaml", fmt.Sprintf(`
containerMode: standalone
secretsDestination: k8s_secrets
conjur: {applianceUrl: "https://%s", account: dev}
server: {address: %q}
leaderElection: {enabled: false}
kubernetes: {namespaces: [one, two], kubeconfig: %q}
identities:
- {name: one, namespaces: [one], conjur: {login: host/one, apiKeyFile: %[4]q}}
- {name: two, namespaces: [two], conjur: {login: host/two, apiKeyFile: %[4]q}}
`, address, address, kubeconfig, key))
	load := func() *config.Config {
		t.Helper()
		cfg, _, err := config.Load(config.Sources{
			Annotations: config.ReadFile(filepath.Join(dir, "annotations")), ConfigFile: config.ReadFile(file),
			Getenv:     func(name string) string { return map[string]string{"MY_POD_NAMESPACE": "one"}[name] },
			SecretsDir: dir, TemplatesDir: dir, StatusDir: filepath.Join(dir, "status"),
		})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for name, c := range map[string]struct {
		spoil func(*config.Config)
		want  string
	}{
		"the second lane": {func(cfg *config.Config) { cfg.Identities[1].Conjur.Account = "" }, "account is missing"},
		"a folder that cannot be made": {func(cfg *config.Config) {
			cfg.Mode, cfg.Destination, cfg.Folders.Status = config.ModeSidecar, config.DestinationFile, filepath.Join(key, "status")
		}, "status folder"},
		"the address of the probes": {func(cfg *config.Config) { cfg.Server.Address = "127.0.0.1:-1" }, "server address"},
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			cfg := load()
			c.spoil(cfg)
			s := &Process{options: Options{Parts: Parts{Workers: 2}}, log: zap.NewNop()}
			if err := s.serve(t.Context(), newSettings(cfg)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %s", err, c.want)
			}
			goleak.VerifyNone(t, before)
		})
	}
}

// TestAChangeThatFailsHalfwayChangesNothing: the lanes that were there work, and no other.
func TestAChangeThatFailsHalfwayChangesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	c := newCluster(t, config.ModeStandalone, leftover{}, "")
	next := *c.settings.config()
	more := next.Identities[0]
	more.Name = "more"
	next.Identities = append(next.Identities[:1:1], more)
	next.Rotation.Sets = []config.RotatedSet{{Set: "a"}} // without a connection to Conjur
	if err := c.pipeline.apply(&next); err == nil || c.settings.config() == &next {
		t.Fatalf("error %v", err)
	}
	c.has("db", "{}")
	proctest.Eventually(t, "a worker of the first lane", func() bool {
		all := c.set.Records()
		return len(all) == 1 && all[0].Status.Version == "uid/2"
	})
}
