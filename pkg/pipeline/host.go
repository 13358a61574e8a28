package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/health"
	"github.com/secretsync/syncer/pkg/kube"
	"github.com/secretsync/syncer/pkg/pipeline/connect"
	"github.com/secretsync/syncer/pkg/targets"
)

// host is the environment of a pipeline, and outlives it: the cluster client, the leader
// election, and the probes, metrics and status page.
type host struct {
	*settings
	version string // of the build
	log     *zap.Logger
	metrics *health.Metrics // nil if no server exposes them
	cluster *kube.Client    // nil if not needed

	mu      sync.Mutex
	current *pipeline // the active pipeline, or nil
	leads   string    // the leader, if another process; empty if unknown
}

// newHost makes the parts that the configuration needs. It starts nothing.
func newHost(cfg *config.Config, version string, log *zap.Logger) (h *host, err error) {
	h = &host{settings: newSettings(cfg), version: version, log: log}
	if cfg.Server.Address != "" {
		h.metrics = health.NewMetrics()
	}
	if needsCluster(cfg) {
		h.cluster, err = connect.Kubernetes(cfg.Kubernetes, connect.Options{Version: version, Log: log})
	}
	return h, err
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

// run calls work and serves probes meanwhile, until ctx ends or work returns. If several
// processes contend, only the leader works.
func (h *host) run(ctx context.Context, work func(context.Context) error) error {
	if h.cluster != nil {
		defer h.cluster.Close()
	}
	if h.config().Server.Address == "" {
		return h.elected(ctx, work)
	}
	server := &health.Server{Address: h.config().Server.Address, Process: h, Metrics: h.metrics.Handler()}
	if page := h.page(); page != nil {
		server.Status = page
	}
	if h.config().Destination != config.DestinationKubernetes {
		server.Keys = http.HandlerFunc(h.keys)
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
	err = h.elected(serving, work)
	stop()
	return errors.Join(err, <-failed)
}

// elected calls work whenever this process is the leader.
func (h *host) elected(ctx context.Context, work func(context.Context) error) error {
	election := h.config().Kubernetes.LeaderElection
	if h.config().Mode != config.ModeStandalone || !election.Enabled {
		h.metrics.Leads(true)
		return work(ctx)
	}
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("this process has no name to be elected by: %w", err)
	}
	c := &candidate{host: h, work: work, troubles: health.NewTroubles(h.log), identity: fmt.Sprintf("%s_%d_%d", name, os.Getpid(), time.Now().UnixNano())}
	err = h.cluster.Elect(ctx, kube.Election{
		Namespace: election.Namespace, Name: election.Lease,
		Identity:      c.identity,
		LeaseDuration: election.Duration,
		RenewDeadline: election.Duration * 2 / 3,
		RetryPeriod:   election.Duration / 7,
	}, c)
	return errors.Join(err, c.worked)
}

// candidate contends for a host's Lease.
type candidate struct {
	*host
	identity string
	troubles *health.Troubles
	work     func(context.Context) error
	worked   error
}

func (c *candidate) Lead(ctx context.Context) {
	c.metrics.Leads(true)
	defer c.metrics.Leads(false)
	c.worked = c.work(ctx)
}

func (c *candidate) Leader(who string) {
	c.log.Info("Leader", zap.String("identity", who))
	if who == c.identity {
		who = ""
	}
	c.follow(who)
}

func (c *candidate) Report(err error) { c.troubles.Report("lease", err) }
func (c *candidate) Remark(err error) { c.troubles.Remark("lease", err) }

// show connects the pipeline to probes, metrics and configuration changes. The returned
// function disconnects it.
func (h *host) show(p *pipeline) (hide func()) {
	h.set(p)
	p.troubles.Report("configuration", h.handOver(p, p.config())) // it may have changed during construction
	return func() { h.set(nil) }
}

func (h *host) set(p *pipeline) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current = p
}

func (h *host) follow(leader string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leads = leader
}

// leader returns the leader if it is another process, or the empty string if none is
// known.
func (h *host) leader() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leads
}

func (h *host) shown() *pipeline {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current
}

// Healthy returns a problem that a restart of the process would solve.
func (h *host) Healthy() error {
	p := h.shown()
	if p == nil {
		return nil // another process works, or this one is about to start
	}
	for _, l := range p.lanes() {
		if l.pool.Overdue() {
			return fmt.Errorf("the workers of the identity %s do not move", l.name)
		}
	}
	return nil
}
