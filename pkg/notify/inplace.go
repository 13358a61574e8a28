package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/secretsync/syncer/internal/wake"
)

// inPlaceFile remembers the restarts in the status folder, because each of them ends this
// process too.
const inPlaceFile = ".restart-in-place"

// mostDoubled bounds the time between restarts in place that follow one another, as a
// multiple of InPlaceRules.Every. The kubelet has no back-off for them.
const mostDoubled = 10

// InPlaceRules are the settings of restarts in place. The zero InPlaceRules restarts
// nothing.
type InPlaceRules struct {
	Enabled bool
	// Every is the least time between two restarts. It doubles with each restart, up to
	// ten times Every. After twice that time without a restart it is Every again.
	Every time.Duration
	// Warning is the time between an announcement and the restart that follows it.
	Warning time.Duration
}

// InPlaceState describes a Pod's restarts in place. The zero InPlaceState means that
// there was none and none is due.
type InPlaceState struct {
	Due   time.Time `json:"due,omitzero"`  // of the first announcement since the last restart; zero: none
	Last  time.Time `json:"last,omitzero"` // of the last restart
	Count int       `json:"count"`         // all restarts in the life of the Pod
	Row   int       `json:"row"`           // restarts that followed one another
}

// InPlace has the kubelet restart all containers of the Pod after a change was announced,
// once for all changes that are announced before. The state is in the status folder, so a
// killed process loses no restart. Application makes it.
type InPlace struct {
	status *Status
	log    *zap.Logger
	wake   wake.Wake
	ended  chan struct{} // closed when the process must end

	mu    sync.Mutex
	rules InPlaceRules
}

func newInPlace(status *Status, log *zap.Logger) *InPlace {
	return &InPlace{status: status, log: log, ended: make(chan struct{})}
}

// SetRules replaces the rules.
func (p *InPlace) SetRules(rules InPlaceRules) {
	p.mu.Lock()
	p.rules = rules
	p.mu.Unlock()
	p.wake.Rouse()
}

func (p *InPlace) currentRules() InPlaceRules {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules
}

// Ended returns a channel that is closed when this process must end, so that the kubelet
// restarts all containers. The caller then calls Record, and exits with the status of the rule.
// A nil InPlace never ends a process.
func (p *InPlace) Ended() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.ended
}

// State reads the state. A file that is not readable counts as none: the application may
// write to the folder, and only its own restarts depend on it.
func (p *InPlace) State() (InPlaceState, error) {
	text, err := p.status.readFile(inPlaceFile)
	if errors.Is(err, fs.ErrNotExist) {
		return InPlaceState{}, nil
	}
	var s InPlaceState
	if err == nil && (json.Unmarshal(text, &s) != nil || s.Count < 0 || s.Row < 0) {
		s = InPlaceState{}
	}
	if err != nil {
		err = fmt.Errorf("restart in place: %w", err)
	}
	return s, err
}

func (p *InPlace) write(s InPlaceState) error {
	text, err := json.Marshal(s)
	if err == nil {
		err = p.status.put(inPlaceFile, note{text: text, mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("restart in place: %w", err)
	}
	return nil
}

// require makes a restart due, before the announcement that causes it.
func (p *InPlace) require() error {
	if !p.currentRules().Enabled {
		return nil
	}
	s, err := p.State()
	if err != nil {
		return err
	}
	if s.Due.IsZero() {
		s.Due = time.Now()
		if err := p.write(s); err != nil {
			return err
		}
	}
	p.wake.Rouse()
	return nil
}

// forget cancels a due restart.
func (p *InPlace) forget() error {
	s, err := p.State()
	if err != nil || s.Due.IsZero() {
		return err
	}
	s.Due = time.Time{}
	return p.write(s)
}

// at returns when the due restart may happen.
func (s InPlaceState) at(rules InPlaceRules, now time.Time) time.Time {
	at := s.Due.Add(rules.Warning)
	if next := s.Last.Add(s.pause(rules)); next.After(at) && !s.Last.After(now) { // else the clock was set back
		at = next
	}
	return at
}

// Describe says when the next restart happens and how many there were; "" if none is due
// and none was. It accepts nil.
func (p *InPlace) Describe() string {
	if p == nil {
		return ""
	}
	rules := p.currentRules()
	if !rules.Enabled {
		return ""
	}
	s, err := p.State()
	switch {
	case err != nil || s.Count == 0 && s.Due.IsZero():
		return ""
	case s.Due.IsZero():
		return fmt.Sprintf("Restarts in place: %d, the last at %s", s.Count, s.Last.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("Restarts in place: %d; the next is due at %s", s.Count, s.at(rules, time.Now()).UTC().Format(time.RFC3339))
}

// pause returns the time between the last restart and the next.
func (s InPlaceState) pause(rules InPlaceRules) time.Duration {
	times := 1
	for range s.Row - 1 {
		if times *= 2; times >= mostDoubled {
			return mostDoubled * rules.Every
		}
	}
	return time.Duration(times) * rules.Every
}

// Run waits until a restart is due, closes Ended and returns, or returns when ctx ends.
func (p *InPlace) Run(ctx context.Context) {
	var told time.Time
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.wake.Loop(ctx, func() time.Duration {
		rules := p.currentRules()
		if !rules.Enabled {
			return -1
		}
		s, err := p.State()
		switch {
		case err != nil:
			return RetryEvery
		case s.Due.IsZero():
			return -1
		}
		now := time.Now()
		wait := s.at(rules, now).Sub(now)
		if wait <= 0 {
			close(p.ended)
			cancel()
			return -1
		}
		if !told.Equal(s.Due) {
			told = s.Due
			p.log.Info("A restart of all containers in place is due", zap.Duration("in", wait.Round(time.Millisecond)), zap.Int("restarts", s.Count))
		}
		return wait
	})
}

// Record records that the restart happens now. Exit at once afterwards: a kill in between
// loses the restart. After an error, exit with another status: otherwise nothing would limit
// the restarts. If a file is absent, the application must wait for it as at its first start,
// and its delivery is not a change.
func (p *InPlace) Record(absent bool) error {
	s, err := p.State()
	if err == nil && absent {
		err = p.status.remove(ProvidedFile)
	}
	if err != nil {
		return err
	}
	now := time.Now()
	if now.Sub(s.Last) >= 2*mostDoubled*p.currentRules().Every {
		s.Row = 0
	}
	return p.write(InPlaceState{Last: now, Count: s.Count + 1, Row: s.Row + 1})
}
