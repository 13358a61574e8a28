package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// measurement measures one subject with one profile.
type measurement struct {
	profile profile
	subject subject
	options options

	world  *world
	starts []float64 // ms
	result figures
}

func (m *measurement) run(ctx context.Context) (_ figures, err error) {
	m.result = figures{}
	if m.world, err = newWorld(ctx, m.profile, m.options.dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.world.close()) }()
	if m.subject.files {
		for range m.profile.starts - 1 { // the last start is the process that continues
			if err := m.process(ctx, nil); err != nil {
				return nil, fmt.Errorf("start: %w", err)
			}
		}
	}
	if err := m.process(ctx, m.whole); err != nil {
		return nil, err
	}
	if m.subject.files {
		m.result[startMedian], m.result[startMax] = median(m.starts), slices.Max(m.starts)
	}
	return m.result, nil
}

// process starts the subject in clean folders, waits for its files, calls then
// unless it is nil, and stops the subject.
func (m *measurement) process(ctx context.Context, then func(context.Context, *process, *watch) error) (err error) {
	if err := m.world.clear(ctx); err != nil {
		return err
	}
	files, err := newWatch(m.world)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	before := m.world.meter.read()
	p, err := start(m.world, m.subject)
	if err != nil {
		return err
	}
	defer func() {
		stopped := p.stop()
		if errors.Is(err, errExited) {
			err = nil // stop reports that too, with details
		}
		if err = errors.Join(err, stopped); err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w%s", err, p.lastWords())
		}
	}()
	return p.during(ctx, func(ctx context.Context) error {
		if m.subject.files {
			end, err := files.until(ctx, m.groups()...)
			if err != nil {
				return err
			}
			m.starts = append(m.starts, milliseconds(end.Sub(p.started)))
			requests := m.world.meter.read().minus(before).data
			m.result[startRequests] = max(m.result[startRequests], float64(requests))
		}
		if then == nil {
			return nil
		}
		return then(ctx, p, files)
	})
}

func (m *measurement) groups() (groups []group) {
	for i := range m.profile.groups {
		groups = append(groups, m.profile.group(i))
	}
	return groups
}

// whole measures a process that continues.
func (m *measurement) whole(ctx context.Context, p *process, files *watch) error {
	if err := m.refreshes(ctx, p); err != nil {
		return err
	}
	if m.subject.files {
		if err := m.changes(ctx, files); err != nil {
			return err
		}
	}
	m.result[peakRSS], m.result[peakAnon] = p.highest()
	return nil
}

// quietTime is how long no value may be read before a refresh and its consequences
// count as complete.
const quietTime = 300 * time.Millisecond

// refreshes measures unchanged refreshes.
func (m *measurement) refreshes(ctx context.Context, p *process) error {
	// The reads so far were the first fetch. The next burst is the first poll.
	if err := m.refreshed(ctx, m.world.meter.read().refreshes+1); err != nil {
		return err
	}
	before := m.world.meter.read()
	begun, err := p.cpu()
	if err != nil {
		return err
	}
	used, dearest := begun, time.Duration(0)
	for i := range m.options.refreshes {
		if err := m.refreshed(ctx, before.refreshes+i+1); err != nil {
			return err
		}
		now, err := p.cpu()
		if err != nil {
			return err
		}
		used, dearest = now, max(dearest, now-used)
	}
	seen := m.world.meter.read().minus(before)
	n := float64(seen.refreshes)
	m.result[cpuPerRefresh] = milliseconds(used-begun) / n
	m.result[cpuDearest] = milliseconds(dearest)
	m.result[dataRequests] = float64(seen.data) / n
	m.result[authentication] = float64(seen.authentications) / n
	m.result[connections] = float64(seen.connections) / n
	m.result[secretBytes] = float64(seen.dataBytes) / n
	return nil
}

// refreshed waits until the server has seen n refreshes and the last one is
// complete.
func (m *measurement) refreshed(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no refresh within %s", patience))
	defer cancel()
	tick := time.NewTicker(quietTime / 10)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			if m.world.meter.read().refreshes >= n && m.world.meter.quiet(now) >= quietTime {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// changes measures delivery times of values, each set at a random moment.
func (m *measurement) changes(ctx context.Context, files *watch) error {
	var times []float64
	for range m.options.changes {
		phase := time.NewTimer(time.Duration(rand.Int64N(int64(interval))))
		select {
		case <-phase.C:
		case <-ctx.Done():
			phase.Stop()
			return context.Cause(ctx)
		}
		g := m.profile.group(rand.IntN(m.profile.groups))
		if err := m.world.change(ctx, g.first+rand.IntN(g.end-g.first)); err != nil {
			return err
		}
		set := time.Now()
		seen, err := files.until(ctx, g)
		if err != nil {
			return err
		}
		times = append(times, milliseconds(seen.Sub(set)))
	}
	m.result[changeMedian], m.result[changeMax] = median(times), slices.Max(times)
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
