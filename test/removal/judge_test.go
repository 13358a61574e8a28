package removal

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// bound is the longest time that a revoked value may stay, without the grace period and a
// hold. It consists of three polls, of which one may be late, the pause after a failed
// login, and the syncs.
const bound = 4*interval + 10*time.Second + requestTimeout

// judge observes a history. It knows the true state and all answers of the server, but
// nothing about the client's decisions. It requires that:
//   - nothing is removed unless Conjur itself said twice in a row, far enough apart and the
//     second time to a newer token, that a variable of it is gone, and then knew our identity
//   - nothing is removed while most variables have been gone for less than half a hold
//   - no general value replaces a node-specific one without such answers about the latter
//   - all values of a written content existed at one moment, unless a follower lags
//   - no content is written that was replaced a moment ago, because it would flap
//   - a revoked value does not stay longer than the bound
//   - a new value arrives within the bound
//   - at the end all targets match Conjur
type judge struct {
	history *history
	began   time.Time // the history
	born    time.Time // the process
	well    time.Time // since when server, identity and process have had no fault
	mass    time.Time // since when most variables are gone; zero: they are not
	massEnd time.Time
	lags    bool            // a follower lags behind
	settled map[string]bool // the variables that the process has reported as gone
	// replaced is the time at which each former content of a target was replaced.
	replaced map[targets.Key]map[string]time.Time
	last     map[targets.Key]string // the content that was written last
}

// starts resets the state for a new process, which has no proof of anything.
func (j *judge) starts() {
	j.born = time.Now()
	j.last, j.replaced = map[targets.Key]string{}, map[targets.Key]map[string]time.Time{}
	j.history.server.with(func() {
		clear(j.settled)
		for _, v := range j.history.server.vars {
			v.words, v.before = nil, nil
		}
	})
	j.note()
}

// mends restarts the time without faults. It is called when the process could not ask the
// server, and when that ends.
func (j *judge) mends() { j.well = time.Now() }

// rest is the longest pause before the client asks a server again that fails or refuses the
// identity.
const rest = time.Minute

// healthy returns since when there has been no fault, if the process can know that.
func (j *judge) healthy() (since time.Time, ok bool) {
	return j.well.Add(rest), j.history.server.fault == nil && !j.history.server.noHost && !j.lags
}

// hears records the result of a sync.
func (j *judge) hears(r workers.Result) {
	j.history.server.with(func() {
		for _, id := range revoked(r) {
			j.settled[id] = true
		}
	})
	j.note()
}

// note records when most variables are gone, as far as the client can know. A variable that
// has returned still counts as gone until it was answered with a value.
func (j *judge) note() {
	j.history.server.with(func() {
		gone, all := 0, 0
		for id, v := range j.history.server.vars {
			if v.state == there {
				delete(j.settled, id)
			}
			if !j.settled[id] {
				all++
				if v.state != there || v.lost {
					gone++
				}
			}
		}
		switch over := over(gone, all); {
		case over && j.mass.IsZero():
			j.mass = time.Now()
		case !over && !j.mass.IsZero() && j.history.server.fault == nil && !j.history.server.noHost:
			// A variable that returns and disappears again without an answer in between has not
			// returned.
			j.mass, j.massEnd = time.Time{}, time.Now()
		}
	})
}

// removing checks a removal.
func (j *judge) removing(t *targets.Target) {
	now := time.Now()
	j.history.server.mu.Lock()
	defer j.history.server.mu.Unlock()
	var oldest time.Duration // since when the server has reported a variable as gone that justifies the removal
	proven := false
	for _, e := range j.history.givenAs(t.Key).Entries {
		if v := j.history.server.vars[e.Variable]; j.proven(v, now) && j.mayFall(t.Key, e, now) {
			proven, oldest = true, max(oldest, now.Sub(v.saidSince(now)))
		}
	}
	if !proven {
		j.history.tell("%s is removed", t.Key)
		j.history.Errorf("%s was removed without proof: %s", t.Key, j.facts(t))
	}
	if m := j.mass; !j.history.own && !m.IsZero() && now.Sub(m) > 3*interval && now.Sub(m) < least && oldest < least && j.most(now) {
		j.history.tell("%s is removed", t.Key)
		j.history.Errorf("%s was removed though most are gone, for %v only: %s", t.Key, now.Sub(m), j.facts(t))
	}
	delete(j.last, t.Key) // a restored target has no earlier content
}

// writing checks a write. Variables may get new values between the two halves of a refused
// batch.
func (j *judge) writing(t *targets.Target, whole []byte) {
	var values map[string]string // alias → value
	if err := json.Unmarshal(whole, &values); err != nil {
		j.history.Errorf("%s is to hold %q: %v", t.Key, whole, err)
	}
	j.history.server.mu.Lock()
	defer j.history.server.mu.Unlock()
	j.flaps(t, string(whole))
	j.falls(t)
	if j.history.fate != nil {
		return // a file may contain the values of two requests, one of them answered by a follower
	}
	from, to := time.Time{}, time.Now().Add(time.Second)
	for _, e := range t.Entries {
		life := j.history.server.vars[e.Variable].lives[values[e.Alias]]
		from = later(from, life.from)
		if !life.to.IsZero() && life.to.Before(to) {
			to = life.to
		}
	}
	if !from.Before(to) {
		j.history.tell("%s is written", t.Key)
		j.history.Errorf("%s is to hold values that were never there at one moment: %s", t.Key, whole)
	}
}

// least is the shortest time for which the brake delays a mass removal.
const least = holdTime/2 - interval

// most reports whether most variables are gone. Variables that the server has long reported
// as gone do not count.
func (j *judge) most(now time.Time) bool {
	gone, all := 0, 0
	for id, v := range j.history.server.vars {
		switch {
		case j.settled[id] || now.Sub(v.saidSince(now)) >= least:
			continue
		case v.state != there && !v.found.After(v.since): // and no follower has shown it since
			gone++
		}
		all++
	}
	return over(gone, all)
}

func over(gone, all int) bool { return gone > 3 && 2*gone > all }

// saidSince returns since when the server has reported a variable as gone.
func (v *truth) saidSince(now time.Time) time.Time {
	if len(v.words) == 0 {
		return now
	}
	return v.words[0].at
}

// A call makes several requests, all within the shorter time. Its decision takes effect
// within the longer one.
const (
	requestsTime = 50 * time.Millisecond
	callTime     = interval / 4
)

// proven reports whether the server's answers about a variable are a proof. A variable that
// was found a moment ago may have been proven gone before. A proof remains valid if later
// answers come from a server that does not know the identity.
func (j *judge) proven(v *truth, now time.Time) bool {
	words := v.words
	if now.Sub(v.ended) < callTime {
		words = v.before // the answer on which the decision may rest
	}
	if len(words) < 2 {
		return false
	}
	apart := max(interval/2, j.history.process.grace) - requestsTime
	return slices.ContainsFunc(words, func(w word) bool {
		known := j.history.server.knew.After(w.at.Add(-callTime))
		return w.at.Sub(words[0].at) >= apart && w.token.After(words[0].at) && known
	})
}

func (j *judge) facts(t *targets.Target) (text string) {
	for _, id := range ids(j.history.givenAs(t.Key)) {
		v := j.history.server.vars[id]
		text += fmt.Sprintf("%s is %s since %.3f (%d words, found %.3f", id, v.state,
			v.since.Sub(j.began).Seconds(), len(v.words), v.found.Sub(j.began).Seconds())
		for _, w := range v.words {
			text += fmt.Sprintf(", at %.3f by a token of %.3f", w.at.Sub(j.began).Seconds(), w.token.Sub(j.began).Seconds())
		}
		text += "); "
	}
	return text
}

// look checks the present content: a value that has been gone for longer than the bound must
// be absent, and a new value present.
func (j *judge) look() {
	j.note()
	now := time.Now()
	j.history.server.mu.Lock()
	defer j.history.server.mu.Unlock()
	well, ok := j.healthy()
	if !ok {
		return
	}
	for _, t := range j.history.given {
		changed := well
		for _, e := range t.Entries {
			v, since := j.reads(e), well
			for _, id := range idsOf(e) {
				changed, since = later(changed, j.history.server.vars[id].changed), later(since, j.history.server.vars[id].since)
			}
			if v.state != there && now.After(j.deadline(since)) && j.history.sink.whole(t.Key) != "" {
				j.history.Errorf("%s is still there, %v after its variable went and all was well: %s", t.Key, now.Sub(since), j.facts(t))
			}
		}
		if now.After(j.deadline(changed)) {
			j.compare(t, fmt.Sprintf("%v after the last change", now.Sub(changed)))
		}
	}
}

// deadline returns when an error that may exist since a time must be corrected. At the end
// of a hold, the variables that are still gone are removed; those that disappeared in its
// second half are held once more.
func (j *judge) deadline(since time.Time) time.Time {
	const holds = 2*holdTime + 2*interval
	switch {
	case !j.mass.IsZero():
		since = since.Add(holds)
	case !j.massEnd.IsZero():
		since = later(since, j.massEnd.Add(holds))
	}
	if j.history.own { // two variables may disappear one after the other, each with a hold
		since = since.Add(2*holds + bound + j.history.process.grace)
	}
	if j.history.fate != nil {
		since = since.Add(4*steady + interval) // the right value may be held back as an earlier value
	}
	return since.Add(bound + j.history.process.grace)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
