// Package health reports the state of the process. It computes the state from
// events. No caller sets the state directly.
package health

import (
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/secretsync/syncer/pkg/targets/records"
)

// Troubles tracks persistent errors. It logs each error when it begins, hourly
// while it lasts, and when it ends, no matter how often it occurs. It is safe for
// concurrent use. Create it with NewTroubles.
type Troubles struct {
	log *zap.Logger

	mu      sync.Mutex
	present map[string]trouble // subject → its trouble
}

type trouble struct {
	level zapcore.Level
	records.Trouble
}

// NewTroubles logs to log.
func NewTroubles(log *zap.Logger) *Troubles {
	return &Troubles{log: log, present: map[string]trouble{}}
}

// Report records the result for a subject, such as "poll". A nil error means
// success. See records.Trouble.Met for the resulting log lines.
func (t *Troubles) Report(subject string, err error) { t.recordTrouble(subject, err, zap.ErrorLevel) }

// Remark records an error that degrades a subject without stopping it. It is logged
// as a warning, once while it lasts. Report with a nil error ends it too.
func (t *Troubles) Remark(subject string, err error) { t.recordTrouble(subject, err, zap.WarnLevel) }

func (t *Troubles) recordTrouble(subject string, err error, level zapcore.Level) {
	t.mu.Lock()
	before := t.present[subject]
	if err != nil && before.level != level {
		before = trouble{level: level}
	}
	after, due := before.After(err, time.Now())
	if t.present[subject] = (trouble{level, after}); err == nil {
		delete(t.present, subject)
	}
	t.mu.Unlock()
	switch {
	case !due:
	case err == nil || level == zap.ErrorLevel:
		t.Log(subject, err, before.Trouble, after)
	case before.Times == 0 || before.Text != after.Text:
		t.log.Warn("Limited", zap.String("subject", subject), zap.Error(err), zap.Int("failures", after.Times))
	}
}

// Log logs that a trouble begins, lasts or ends, with additional fields.
func (t *Troubles) Log(subject string, err error, before, after records.Trouble, fields ...zap.Field) {
	log := t.log.With(fields...)
	if err == nil {
		log.Info("Recovered", zap.String("subject", subject), zap.Duration("after", time.Since(before.Began).Round(time.Millisecond)), zap.Int("failures", before.Times))
		return
	}
	log.Error("Failing", zap.String("subject", subject), zap.Error(err), zap.Int("failures", after.Times))
}

// Forget drops a subject that no longer exists.
func (t *Troubles) Forget(subject string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.present, subject)
}
