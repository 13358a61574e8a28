package consumers

import (
	"time"

	"github.com/secretsync/syncer/pkg/rotation"
	"github.com/secretsync/syncer/pkg/rotation/versions"
)

const (
	longestAgo = 100 * 365 * 24 * 60 * 60 // in seconds: a consumer's report is not trusted
	watchEvery = time.Minute              // how often consumers are asked when they used a version
	watchGap   = 2 * time.Minute          // after a longer gap, use in the meantime is unknown
)

// watch records since when a version is known to be unused.
type watch struct {
	since time.Time
	last  time.Time // when all consumers were last asked
}

// idle finds out whether nobody has used a version for long enough. A restarted consumer
// has forgotten which versions it used. Therefore only time counts in which the consumers
// were asked regularly, or that the document records.
func (c *Consumers) idle(v versions.Version) rotation.Answer {
	w, seen := c.unused[v.ID], c.last
	if w == nil || seen.at.Sub(w.last) > watchGap {
		w = &watch{since: seen.at}
		if settled(v) {
			w.since = seen.at.Add(-c.Unused)
		}
		c.unused[v.ID] = w
	}
	w.last = seen.at
	inUse := false
	for _, g := range seen.groups {
		for _, m := range g.members {
			if ago, used := m.holding.Used[v.ID]; used {
				if at := seen.at.Add(-time.Duration(min(max(ago, 0), longestAgo)) * time.Second); at.After(w.since) {
					w.since, inUse = at, true
				}
			}
		}
	}
	a := until(w.since.Add(c.Unused), "%s without a use of %s, of which %s have passed", c.Unused, v.ID, time.Since(w.since).Round(time.Second))
	if next := seen.at.Add(watchEvery); !a.Open && a.Until.After(next) {
		a.Until = next
	}
	a.InUse = !a.Open && inUse
	return a
}
