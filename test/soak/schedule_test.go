//go:build long

package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	beat   = 250 * time.Millisecond // between two actions
	season = 80                     // beats between two calm periods
)

// action is something that happens to the world.
type action struct {
	name   string
	weight int // how often it happens, beside the others
	do     func()
}

// schedule is a random sequence of actions. Only the seed determines it, except for its end.
type schedule struct {
	c       *conjur
	actions []action
	calm    func(season int) // ends all faults, and waits until all content is correct
	outage  int              // beats until the server's outage ends
	done    map[string]int
}

// run executes actions for a time, in periods that end in calm.
func (s *schedule) run(d time.Duration) {
	s.c.Helper()
	s.done = map[string]int{}
	beats := time.NewTicker(beat)
	defer beats.Stop()
	end := time.After(d)
	for round := 0; ; round++ {
		for range season {
			select {
			case <-s.c.Context().Done():
				return
			case <-end:
				s.rest(round)
				s.c.Logf("%d rounds: %s", round+1, s.summary())
				return
			case <-beats.C:
				s.step()
			}
		}
		s.rest(round)
	}
}

func (s *schedule) rest(round int) {
	s.outage = 0
	s.c.fail("")
	s.calm(round)
}

// step does one action, and ends an outage that has lasted.
func (s *schedule) step() {
	if s.outage--; s.outage == 0 {
		s.c.fail("")
	}
	total := 0
	for _, a := range s.actions {
		total += a.weight
	}
	n := s.c.random.IntN(total)
	for _, a := range s.actions {
		if n -= a.weight; n < 0 {
			s.done[a.name]++
			a.do()
			return
		}
	}
}

// breakDown has the server fail for up to three seconds.
func (s *schedule) breakDown() {
	name, beats := pick(s.c.random, slices.Sorted(maps.Keys(outages()))), 1+s.c.random.IntN(12)
	if s.outage > 0 {
		return
	}
	s.done[name]++
	s.outage = beats
	s.c.fail(name)
}

func (s *schedule) summary() string {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(s.done)) {
		text = append(text, fmt.Sprintf("%d× %s", s.done[name], name))
	}
	return strings.Join(text, ", ")
}
