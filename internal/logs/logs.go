// Package logs writes the log. A log without a reader does not block the process.
package logs

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// New returns a logger that writes to a queue, as text for people or as JSON, one
// line per event. The returned level can be changed later.
func New(format string, out *Queue) (*zap.Logger, zap.AtomicLevel, error) {
	level := zap.NewAtomicLevel()
	config := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", MessageKey: "msg", NameKey: "logger",
		EncodeTime:       zapcore.TimeEncoderOfLayout(time.RFC3339Nano),
		EncodeLevel:      zapcore.LowercaseLevelEncoder,
		EncodeDuration:   zapcore.StringDurationEncoder,
		ConsoleSeparator: " ",
	}
	newEncoder := zapcore.NewJSONEncoder
	switch format {
	case "json":
	case "", "text":
		newEncoder = zapcore.NewConsoleEncoder
		config.EncodeLevel = zapcore.CapitalLevelEncoder
		config.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
	default:
		return nil, level, fmt.Errorf("--log-format %q is not a format; use text or json", format)
	}
	log := zap.New(zapcore.NewCore(newEncoder(config), out, level), zap.ErrorOutput(out))
	out.logger.Store(log) // the queue reports dropped lines in the log itself
	return log, level, nil
}
