// Package health knows how the process is doing. What it tells is computed
// from what happened, never set by hand.
package health

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Reminder is how often a trouble that lasts is logged again.
const Reminder = time.Hour

// Troubles follows the errors that last: each is logged once when it begins,
// hourly while it lasts, and when it ends, however often it is met. Safe for
// use by several goroutines; make it with NewTroubles.
type Troubles struct {
	log *zap.Logger

	mu      sync.Mutex
	present map[string]*trouble // :: subject → its trouble
}

type trouble struct {
	level         zapcore.Level
	began, logged time.Time
	text          string
	times         int
}

// NewTroubles logs to log.
func NewTroubles(log *zap.Logger) *Troubles {
	return &Troubles{log: log, present: map[string]*trouble{}}
}

// Report notes how it went with a subject, such as "poll" or a target's key;
// a nil error means well. An error with another text than before is logged
// as a new one, at most once a minute.
func (t *Troubles) Report(subject string, err error) { t.note(subject, err, zap.ErrorLevel, "Failing") }

// Remark notes what keeps a subject from going as well as it could, though it
// goes: it is logged as a warning, and not again while it lasts. Report with a
// nil error ends it as well.
func (t *Troubles) Remark(subject string, err error) { t.note(subject, err, zap.WarnLevel, "Limited") }

func (t *Troubles) note(subject string, err error, level zapcore.Level, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	known := t.present[subject]
	if err == nil {
		if known != nil {
			delete(t.present, subject)
			t.log.Info("Recovered", zap.String("subject", subject), zap.Duration("after", now.Sub(known.began).Round(time.Millisecond)), zap.Int("failures", known.times))
		}
		return
	}
	if known == nil || known.level != level {
		known = &trouble{began: now, level: level}
		t.present[subject] = known
	}
	known.times++
	quiet := now.Sub(known.logged)
	changed := known.text != err.Error()
	if known.times == 1 || level == zap.ErrorLevel && quiet >= Reminder || changed && quiet >= time.Minute {
		known.logged, known.text = now, err.Error()
		t.log.Log(level, message, zap.String("subject", subject), zap.Error(err), zap.Int("failures", known.times))
	}
}

// Forget drops a subject that no longer exists.
func (t *Troubles) Forget(subject string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.present, subject)
}
