package consumers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/secretsync/syncer/internal/brief"
	"github.com/secretsync/syncer/pkg/rotation"
)

// snapshot is the state of all consumers at one moment.
type snapshot struct {
	at      time.Time // when the snapshot began
	pods    bool      // some of the consumers are Pods
	broken  []string  // objects that could not be checked
	groups  []group
	unasked []string // Pods that use a Secret of the set but are in no group
}

// group is the consumers that one line of the configuration names.
type group struct {
	name    string // "Pods of deployment/shop"; empty: each member has its own name
	answers bool   // its members are asked
	members []member
}

// member is one consumer.
type member struct {
	name    string
	address string // URL; empty: no address yet
	holding Holding
	err     error // why its versions are unknown
	old     bool  // known to date from before the step
}

// takeSnapshot takes a snapshot of all consumers after the given time. Versions that are
// checked at the same moment share one.
func (c *Consumers) takeSnapshot(ctx context.Context, after time.Time, secrets []rotation.Shown) snapshot {
	if at := c.last.at; !at.IsZero() && time.Since(at) < c.Again/10 && !at.Before(after) {
		return c.last
	}
	s := snapshot{at: time.Now(), pods: c.hasPods()}
	var asks []func()
	urls := group{answers: true, members: make([]member, len(c.urls))}
	for i, to := range c.urls {
		urls.members[i].name, urls.members[i].address = to, to
	}
	s.groups = append(s.groups, urls)
	if s.pods {
		if err := c.lookAtPods(ctx, &s, secrets); err != nil {
			s.broken = append(s.broken, err.Error())
		}
	}
	for _, g := range s.groups {
		if !g.answers {
			continue
		}
		for i := range g.members {
			m := &g.members[i]
			asks = append(asks, func() { m.holding, m.err = c.ask(ctx, m.address) })
		}
	}
	all(asks)
	c.last = s
	return s
}

// hasPods reports whether the snapshot includes Pods.
func (c *Consumers) hasPods() bool { return len(c.parsed.pods)+len(c.restarted) > 0 }

// all calls each function, several concurrently.
func all(calls []func()) {
	var wg sync.WaitGroup
	turns := make(chan struct{}, askers)
	for _, call := range calls {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			call()
		})
	}
	wg.Wait()
}

// others names the Pods that are not asked.
func (s snapshot) others() string {
	return "Pods that confirm does not name, but that use the set's Secrets: " + brief.List(s.unasked)
}

// against returns the reasons against going on, or "". It also reports whether a consumer
// is known to be behind.
func (s snapshot) against(lacks string, has func(Holding) bool) (text string, inUse bool) {
	lines := slices.Clone(s.broken)
	pods := false
	for _, g := range s.groups {
		var who []string
		for _, m := range g.members {
			switch {
			case m.err != nil:
				who = append(who, fmt.Sprintf("%s: %v", m.name, m.err))
			case m.old:
				who = append(who, m.name+": it began before the Secret changed")
				inUse = true
			case g.answers && !has(m.holding):
				who = append(who, fmt.Sprintf("%s: %s", m.name, lacks))
				inUse = true
			}
		}
		switch some := strings.Join(brief.Some(who, brief.Reasons), ", "); {
		case len(who) == 0:
		case g.name == "":
			lines = append(lines, some)
		default:
			pods = true
			lines = append(lines, fmt.Sprintf("%d of %d %s (%s)", len(who), len(g.members), g.name, some))
		}
	}
	if pods {
		lines = append(lines, "a Pod that is deleted comes back with what its Secret has now")
	}
	if len(lines) > 0 && len(s.unasked) > 0 {
		lines = append(lines, s.others())
	}
	return strings.Join(lines, "; "), inUse
}
