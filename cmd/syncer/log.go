package main

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger logs to standard error, as text for people or as JSON, one line an
// event. The level can be changed later.
func newLogger(format string) (*zap.Logger, zap.AtomicLevel, error) {
	level := zap.NewAtomicLevel()
	encoder := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", MessageKey: "msg", NameKey: "logger",
		EncodeTime:       zapcore.TimeEncoderOfLayout(time.RFC3339Nano),
		EncodeLevel:      zapcore.LowercaseLevelEncoder,
		EncodeDuration:   zapcore.StringDurationEncoder,
		ConsoleSeparator: " ",
	}
	config := zap.Config{
		Level:            level,
		Encoding:         "json",
		EncoderConfig:    encoder,
		OutputPaths:      []string{"stderr"},
		ErrorOutputPaths: []string{"stderr"},
	}
	switch format {
	case "json":
	case "", "text":
		config.Encoding = "console"
		config.EncoderConfig.EncodeLevel = zapcore.CapitalLevelEncoder
		config.EncoderConfig.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00")
	default:
		return nil, level, fmt.Errorf("--log-format %q is not a format; use text or json", format)
	}
	log, err := config.Build()
	return log, level, err
}
