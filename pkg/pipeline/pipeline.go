// Package pipeline assembles Syncer from the parts in docs/architecture.md. It wires them
// as a configuration says, and starts and stops them in order.
package pipeline

import (
	"context"
	"slices"
	"sync"

	"github.com/secretsync/syncer/config"
	"github.com/secretsync/syncer/pkg/sources"
)

// destination is what differs between files and Kubernetes Secrets while Syncer runs.
type destination interface {
	// prime does the work before the first sync.
	prime(context.Context)
	// sources lists the sources of hints, except the polls, and the other tasks that run
	// while the lanes work.
	sources() []source
	// prepare makes the parts that another configuration needs. before is nil at the
	// start. On an error nothing has changed.
	prepare(before, cfg *config.Config) (change, error)
}

// change puts prepared parts in effect: commit before the new sources start, finish after
// the old ones have ended.
type change struct{ commit, finish func() }

// inventory says whether all targets are known yet.
type inventory interface {
	// known returns why some targets may be missing.
	known() error
	// ready is like known, but only remarks on what Syncer may not read.
	ready() (remarks []string, err error)
}

// fill makes the parts for each item of the configuration's lists.
func (p *pipeline) fill(cfg *config.Config) error {
	lanes, err := p.newLanes(cfg, cfg.Identities)
	if err != nil {
		return err
	}
	for _, l := range lanes {
		l.targets.Renew()
	}
	p.lanes.set(lanes)
	first, err := p.destination.prepare(nil, cfg)
	if err == nil {
		first.commit()
	}
	return err
}

// newLanes makes either all lanes or none. They do nothing yet.
func (p *pipeline) newLanes(cfg *config.Config, identities []config.Identity) (made []*lane, err error) {
	for _, identity := range identities {
		l, err := p.newLane(cfg, identity)
		if err != nil {
			stopAll(made)
			return nil, err
		}
		made = append(made, l)
	}
	return made, nil
}

// start does the work before the first sync, and runs the lanes and the sources until ctx
// ends.
func (p *pipeline) start(ctx context.Context) {
	p.app.start(ctx, p.destination.prime)
	for _, l := range p.lanes.all() {
		l.start(ctx)
	}
	p.running.ctx = ctx
	p.running.start(p.sources())
}

// sources lists the sources of the destination, and those that the process has with each
// destination.
func (p *pipeline) sources() []source { return append(p.destination.sources(), p.tasks...) }

// end waits for the sources, whose context has ended. Afterwards the pipeline applies no
// change of the configuration.
func (p *pipeline) end() {
	p.settings.applying.Lock()
	defer p.settings.applying.Unlock()
	p.running.keep(nil)
	p.running.ctx = nil
}

// close stops the lanes and frees the resources of the other parts.
func (p *pipeline) close() {
	stopAll(p.lanes.all())
	for _, end := range p.closers {
		end()
	}
}

// source runs until its context ends.
type source = sources.Source

// runner runs sources. It can start and stop some while others continue.
type runner struct {
	ctx context.Context // the context of all runs
	all map[source]*run
}

// run is a running source.
type run struct {
	stop context.CancelFunc
	done chan struct{}
}

// start starts the wanted sources that do not run yet.
func (r *runner) start(wanted []source) {
	for _, s := range wanted {
		if r.all[s] != nil {
			continue
		}
		ctx, stop := context.WithCancel(r.ctx)
		one := &run{stop: stop, done: make(chan struct{})}
		go func() {
			defer close(one.done)
			s.Run(ctx)
		}()
		if r.all == nil {
			r.all = map[source]*run{}
		}
		r.all[s] = one
	}
}

// keep stops all sources except the wanted ones, and returns when they have ended.
func (r *runner) keep(wanted []source) {
	var ending sync.WaitGroup
	for s, one := range r.all {
		if slices.Contains(wanted, s) {
			continue
		}
		one.stop()
		ending.Go(func() { <-one.done })
		delete(r.all, s)
	}
	ending.Wait()
}
