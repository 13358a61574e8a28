package removal

import (
	"fmt"
	"strings"

	"go.uber.org/zap/zapcore"
)

// silent fails the test if an error or the log contains a value.
func (w *world) silent() {
	w.Helper()
	for _, value := range w.all {
		if strings.Contains(w.said.String(), value) {
			w.Error("a value is in an error or in the log")
		}
	}
}

// The world receives the log, as a zapcore.Core.

func (w *world) Enabled(zapcore.Level) bool        { return true }
func (w *world) With([]zapcore.Field) zapcore.Core { return w }
func (w *world) Sync() error                       { return nil }
func (w *world) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return c.AddCore(e, w)
}
func (w *world) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(&w.said, e.Message, enc.Fields)
	return nil
}
