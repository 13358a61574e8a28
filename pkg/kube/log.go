package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// RouteLogs sends the client library's global messages to log instead of standard error.
// The library keeps the logger for the whole process, and it must not be set while others
// log. Call RouteLogs once, before anything else.
func RouteLogs(log *zap.Logger) { klog.SetLogger(newLogger(log)) }

// sink is a logr.LogSink that writes to zap. The library's informational lines matter
// only for debugging. Its errors are usually also returned to a caller that reports them.
// Therefore they become warnings, and the same one appears once a minute. Only the first
// line creates the logger, because its sampler takes 448 KiB.
type sink struct{ log func() *zap.Logger }

func newLogger(log *zap.Logger) klog.Logger {
	if log == nil {
		log = zap.NewNop()
	}
	return logr.New(sink{sync.OnceValue(func() *zap.Logger {
		return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
		}), zap.WithCaller(false), zap.AddStacktrace(zapcore.InvalidLevel))
	})})
}

func (s sink) Init(logr.RuntimeInfo) {}

func (s sink) Enabled(level int) bool {
	return level == 0 && s.log().Core().Enabled(zapcore.DebugLevel)
}

func (s sink) Info(_ int, message string, pairs ...any) {
	s.log().Debug("Kubernetes client: "+message, harmless(pairs)...)
}

func (s sink) Error(err error, message string, pairs ...any) {
	s.log().Warn("Kubernetes client: "+message, append(harmless(pairs), zap.Error(err))...)
}

func (s sink) WithValues(pairs ...any) logr.LogSink {
	fields := harmless(pairs)
	return sink{sync.OnceValue(func() *zap.Logger { return s.log().With(fields...) })}
}

func (s sink) WithName(string) logr.LogSink { return s }

// harmless keeps names and numbers. For any other value it keeps only the type: the
// library often attaches whole objects, and one could be a Secret.
func harmless(pairs []any) []zap.Field {
	var fs []zap.Field
	for i := 0; i+1 < len(pairs); i += 2 {
		key := fmt.Sprint(pairs[i])
		switch v := pairs[i+1].(type) {
		case string, bool, int, int32, int64, float64, time.Duration, time.Time:
			fs = append(fs, zap.Any(key, v))
		case error:
			fs = append(fs, zap.NamedError(key, v))
		default:
			fs = append(fs, zap.String(key, fmt.Sprintf("%T", v)))
		}
	}
	return fs
}

// warnings logs the warnings in the API server's answers.
type warnings struct{ log klog.Logger }

func (w warnings) HandleWarningHeaderWithContext(_ context.Context, code int, agent, text string) {
	if code == 299 && text != "" {
		w.log.Info("the API server warns", "warning", text)
	}
}
