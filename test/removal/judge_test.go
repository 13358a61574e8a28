package removal

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/secretsync/syncer/pkg/targets"
	"github.com/secretsync/syncer/pkg/workers"
)

// bound is the longest time that something revoked stays, without the grace and
// without a hold: three polls, one of which may come late, what a login that
// has failed pauses, and the syncs.
const bound = 4*interval + 10*time.Second + requestTimeout

// judge looks on. It knows the truth and what the server has answered, and
// nothing of how the client decides. It says that
//
//   - nothing was removed unless Conjur itself had said, twice in a row, far
//     enough apart and the second time to a newer token, that a variable of it
//     is gone, and then who we are,
//   - nor while most variables had been gone for less than half a hold,
//   - nothing of this node's own was replaced by what all nodes have without
//     such words about it,
//   - nothing is written of which the values were not there at one moment, unless
//     a follower lags behind,
//   - nothing is written that was replaced a moment ago, so that it does not flap,
//   - nothing of which Conjur says so stays longer than the bound,
//   - what is new is there within the bound, and
//   - in the end everything is as Conjur has it.
type judge struct {
	history *history
	began   time.Time // the history
	born    time.Time // the process
	well    time.Time // since when nothing is wrong with server, identity and process
	mass    time.Time // since when most are gone; zero: they are not
	massEnd time.Time
	lags    bool            // a follower lags behind
	settled map[string]bool // the process has called them gone
	// replaced is when a content of a target was replaced by another.
	replaced map[targets.Key]map[string]time.Time
	last     map[targets.Key]string // the content that was written last
}

// starts is for a process that is new: it has no proof of anything.
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

// mends is for whatever keeps the process from asking, and for its end.
func (j *judge) mends() { j.well = time.Now() }

// rest is the longest time for which a server is left alone that refuses to know
// us, or fails.
const rest = time.Minute

// healthy tells since when all is well and known to be.
func (j *judge) healthy() (since time.Time, ok bool) {
	return j.well.Add(rest), j.history.server.fault == nil && !j.history.server.noHost && !j.lags
}

// hears takes what a sync said.
func (j *judge) hears(r workers.Result) {
	j.history.server.with(func() {
		for _, id := range revoked(r) {
			j.settled[id] = true
		}
	})
	j.note()
}

// note keeps up with how many are gone, as far as anybody can see: what has come
// back is still gone for those who have had no answer since.
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
			// What comes back while nobody can see it, and goes again, has not.
			j.mass, j.massEnd = time.Time{}, time.Now()
		}
	})
}

// removing judges a removal.
func (j *judge) removing(t *targets.Target) {
	now := time.Now()
	j.history.server.mu.Lock()
	defer j.history.server.mu.Unlock()
	var oldest time.Duration // for which the server has said so of a variable that makes the removal right
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
	delete(j.last, t.Key) // what is restored is no earlier content
}

// writing judges a write. Between the two halves of a batch that was refused,
// variables may get new values.
func (j *judge) writing(t *targets.Target, whole []byte) {
	var values map[string]string // :: alias → value
	if err := json.Unmarshal(whole, &values); err != nil {
		j.history.Errorf("%s is to hold %q: %v", t.Key, whole, err)
	}
	j.history.server.mu.Lock()
	defer j.history.server.mu.Unlock()
	j.flaps(t, string(whole))
	j.falls(t)
	if j.history.fate != nil {
		return // a file may have two requests' values, one of them a follower's
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

// least is the shortest time for which many that go at once are held back.
const least = holdTime/2 - interval

// most tells whether most variables are gone, leaving those out of which the
// server has said so for long.
func (j *judge) most(now time.Time) bool {
	gone, all := 0, 0
	for id, v := range j.history.server.vars {
		switch {
		case j.settled[id] || now.Sub(v.saidSince(now)) >= least:
			continue
		case v.state != there && !v.found.After(v.since): // nor has a follower shown it since
			gone++
		}
		all++
	}
	return over(gone, all)
}

func over(gone, all int) bool { return gone > 3 && 2*gone > all }

// saidSince is since when the server has said that a variable is gone.
func (v *truth) saidSince(now time.Time) time.Time {
	if len(v.words) == 0 {
		return now
	}
	return v.words[0].at
}

// What is decided in one call takes several requests; they are done within
// this time, and what it decides within the longer one.
const (
	requestsTime = 50 * time.Millisecond
	callTime     = interval / 4
)

// proven tells whether the server's words about a variable are a proof. What
// was found a moment ago may have been proven before that, and what was proven
// stays so where later words come from a server that does not know us.
func (j *judge) proven(v *truth, now time.Time) bool {
	words := v.words
	if now.Sub(v.ended) < callTime {
		words = v.before // by which it may have been decided
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

// look judges what is there now: what has been gone for longer than the bound
// must not be, and what is new must be.
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

// deadline is when something must be right that may have been wrong since then.
// A hold lets go what has not come back when its time is over, and what has gone
// in its second half is held once more.
func (j *judge) deadline(since time.Time) time.Time {
	const holds = 2*holdTime + 2*interval
	switch {
	case !j.mass.IsZero():
		since = since.Add(holds)
	case !j.massEnd.IsZero():
		since = later(since, j.massEnd.Add(holds))
	}
	if j.history.own { // first the one goes, then the other, and each may be held back
		since = since.Add(2*holds + bound + j.history.process.grace)
	}
	if j.history.fate != nil {
		since = since.Add(4*steady + interval) // the right value may be held back as an earlier one
	}
	return since.Add(bound + j.history.process.grace)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
