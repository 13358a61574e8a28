package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/health/status"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/targets/records"
	"github.com/secretsync/syncer/pkg/view"
)

// supervisor runs pipelines, one after the other, and outlives them. It holds the cluster
// client, contends to be the leader, and serves the probes, metrics and status page.
type supervisor struct {
	settings *settings
	parts    Parts
	set      *records.Set    // of files
	metrics  *health.Metrics // nil if no server exposes them
	cluster  *kube.Client    // nil if not needed
	division *kube.Division  // nil without a selector
	started  time.Time

	mu      sync.Mutex
	current *pipeline // the active pipeline, or nil
	leads   string    // the leader, if another process; empty if unknown
}

// newSupervisor makes the parts that the configuration needs. It starts nothing.
func newSupervisor(settings *settings, parts Parts, set *records.Set) (s *supervisor, err error) {
	s = &supervisor{settings: settings, parts: parts, set: set, started: time.Now()}
	cfg := settings.config()
	if cfg.Server.Address != "" {
		s.metrics = health.NewMetrics(parts.Version)
	}
	if needsCluster(cfg) {
		s.cluster, err = connect.Kubernetes(cfg.Kubernetes, connect.Options{Version: parts.Version, Log: parts.Log})
	}
	if err == nil && cfg.Kubernetes.NamespaceSelector != "" {
		election := cfg.Kubernetes.LeaderElection
		s.division = s.cluster.NewDivision(election.Namespace, election.Lease, health.NewTroubles(parts.Log), parts.Log)
	}
	return s, err
}

func needsCluster(cfg *config.Config) bool {
	if cfg.Destination == config.DestinationKubernetes {
		return true
	}
	for _, t := range cfg.Targets {
		if t.Template.ConfigMap != (targets.ConfigMapKey{}) {
			return true
		}
	}
	return false
}

// run runs a pipeline and serves probes meanwhile, until ctx ends or the job is done. If
// several processes contend, only the leader runs one.
func (s *supervisor) run(ctx context.Context) error {
	if s.cluster != nil {
		defer s.cluster.Close()
	}
	cfg := s.settings.config()
	if cfg.Server.Address == "" {
		return s.elected(ctx)
	}
	server := &health.Server{Address: cfg.Server.Address, Process: s, Metrics: s.metrics.Handler()}
	if cfg.Server.Status {
		server.Status = &status.Handler{Look: s.overview, TokenFile: cfg.Server.StatusTokenFile}
	}
	if cfg.Destination != config.DestinationKubernetes {
		server.Keys = view.Keys(s.files)
	}
	listener, err := server.Listen(ctx)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		defer stop() // without probes Kubernetes would soon kill the process
		failed <- server.Serve(serving, listener)
	}()
	err = s.elected(serving)
	stop()
	return errors.Join(err, <-failed)
}

// elected runs a pipeline whenever this process is the leader.
func (s *supervisor) elected(ctx context.Context) error {
	cfg := s.settings.config()
	election := cfg.Kubernetes.LeaderElection
	if cfg.Mode != config.ModeStandalone || !election.Enabled {
		s.metrics.Leads(true)
		return s.work(ctx)
	}
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("cannot read the host name for leader election: %w", err)
	}
	c := &candidate{supervisor: s, troubles: health.NewTroubles(s.parts.Log), identity: fmt.Sprintf("%s_%d_%d", name, os.Getpid(), time.Now().UnixNano())}
	err = s.cluster.Elect(ctx, kube.Election{
		Namespace: election.Namespace, Name: election.Lease,
		Identity:      c.identity,
		LeaseDuration: election.Duration,
		RenewDeadline: election.Duration * 2 / 3,
		RetryPeriod:   election.Duration / 7,
		Selector:      cfg.Kubernetes.NamespaceSelector,
	}, c)
	return errors.Join(err, c.worked)
}

// candidate contends for the Lease.
type candidate struct {
	supervisor *supervisor
	identity   string
	troubles   *health.Troubles
	worked     error
}

func (c *candidate) Lead(ctx context.Context) {
	c.supervisor.metrics.Leads(true)
	defer c.supervisor.metrics.Leads(false)
	c.worked = c.supervisor.work(ctx)
}

func (c *candidate) Leader(who string) {
	if who == c.identity {
		c.supervisor.parts.Log.Info("Leading", zap.String("identity", who))
		who = ""
	} else {
		c.supervisor.parts.Log.Info("Standing by", zap.String("leader", who))
	}
	c.supervisor.follow(who)
}

func (c *candidate) Report(err error) { c.troubles.Report("lease", err) }
func (c *candidate) Remark(err error) { c.troubles.Remark("lease", err) }

// work makes a pipeline and starts its parts from the bottom to the top. It waits until
// the job is done or ctx ends, and stops the parts from the top to the bottom. Nothing
// that it started outlives it. The error is nil only if the job was done.
func (s *supervisor) work(ctx context.Context) error {
	intake, stop := context.WithCancel(ctx)
	defer stop()
	p, err := s.start(intake)
	if err != nil {
		return err
	}
	defer s.show(nil)
	var dividing sync.WaitGroup
	dividing.Go(func() { s.division.Run(intake, p.rewatch) })
	p.ending.untilDone(intake)
	stop()
	dividing.Wait()
	p.end()
	p.close()
	return p.ending.verdict()
}

// start starts a pipeline. A change of the configuration waits until it is shown.
func (s *supervisor) start(ctx context.Context) (*pipeline, error) {
	s.settings.applying.Lock()
	defer s.settings.applying.Unlock()
	set := s.set
	if cfg := s.settings.config(); cfg.Destination == config.DestinationKubernetes { // others may have written meanwhile
		set = newSet(cfg)
	}
	p, err := newPipeline(s.parts, s.settings, set, s.metrics, s.cluster, s.division)
	if err != nil {
		return nil, err
	}
	p.start(ctx)
	s.show(p)
	return p, nil
}

// show connects probes, metrics and configuration changes to a pipeline, or to none.
func (s *supervisor) show(p *pipeline) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = p
}

func (s *supervisor) follow(leader string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = leader
}

// leader returns the leader if it is another process, or the empty string if none is
// known.
func (s *supervisor) leader() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leads
}

func (s *supervisor) active() *pipeline {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// views returns the lanes for questions about them.
func (p *pipeline) views() (all []view.Lane) {
	for _, l := range p.lanes.all() {
		conjur := l.settings.config().Conjur
		if l.identity.Name != "" {
			conjur = l.identity.Conjur
		}
		all = append(all, view.Lane{Name: l.name, Login: conjur.Login, URL: conjur.ApplianceURL, Targets: l.targets, Values: l.values, Queue: l.queue, Pool: l.pool})
	}
	return all
}

func (s *supervisor) rules() view.Rules {
	cfg := s.settings.config()
	return view.Rules{Refreshes: cfg.Refresh.Enabled, Freshness: cfg.Server.Freshness, Tried: cfg.Server.Tried, SecretsFolder: cfg.Folders.Secrets}
}

// Healthy implements health.Process. A process that waits or is about to start is healthy.
func (s *supervisor) Healthy() error {
	if p := s.active(); p != nil {
		return view.Healthy(p.views())
	}
	return nil
}

// Ready implements health.Process. A process on standby is ready.
func (s *supervisor) Ready() (remarks []string, err error) {
	p, leader := s.active(), s.leader()
	switch {
	case p == nil && leader != "":
		return []string{"standing by for " + leader}, nil
	case p == nil:
		return nil, errors.New("the work has not begun yet")
	}
	if remarks, err = p.inventory.ready(); err != nil {
		return remarks, err
	}
	more, err := view.Ready(p.views(), s.rules())
	return append(remarks, more...), err
}

// files supplies the answers about keys.
func (s *supervisor) files() ([]view.Lane, view.Noted, bool) {
	p := s.active()
	if p == nil {
		return nil, nil, false
	}
	return p.views(), p.app.keysSeen, true
}

// overview returns the current state of all targets.
func (s *supervisor) overview() status.Status {
	cfg := s.settings.config()
	now := status.Status{
		At: time.Now(), Version: s.parts.Version, Mode: string(cfg.Mode), Lanes: []status.Lane{}, Targets: []status.Target{},
		Namespace: cfg.Kubernetes.Namespace, Pod: podName(cfg), Started: s.started,
	}
	if p := s.active(); p == nil {
		now.Standby = s.leader()
	} else {
		now.Lanes, now.Targets = view.Lanes(p.views(), s.rules())
		now.Rotations = view.Rotations(p.rotations.reports())
		now.Restart = p.app.restart().Describe()
	}
	return now
}

// podName returns the name of the Pod of this process, or "" outside a Pod.
func podName(cfg *config.Config) string {
	if cfg.Kubernetes.PodName != "" || cfg.Kubernetes.Namespace == "" {
		return cfg.Kubernetes.PodName
	}
	name, _ := os.Hostname() // in a Pod it is the name, unless the Pod sets another one
	return name
}
