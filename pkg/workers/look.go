package workers

import (
	"context"

	"github.com/secretsync/syncer/pkg/secret"
	"github.com/secretsync/syncer/pkg/sinks"
	"github.com/secretsync/syncer/pkg/targets/records"
)

// Recognizer is a Sink that may know what Read would return, if the target has nothing of
// ours, or exactly the wanted parts. The returned parts may share their bytes with these.
type Recognizer interface {
	Recognize(r records.Record, wanted map[string]secret.Value) (sinks.State, bool)
}

// look finds out the existing content of a target. It reads it, unless the sink recognizes
// it without a request.
func (s *Syncer) look(ctx context.Context, j *job, wanted map[string]secret.Value) (have sinks.State, err error) {
	known := false
	if sink, ok := s.Sink.(Recognizer); ok {
		have, known = sink.Recognize(j.Record, wanted)
	}
	if !known {
		have, err = j.read(ctx)
	}
	if err == nil {
		err = ctx.Err() // the draft's input may be incomplete
	}
	if err != nil {
		return have, failed("reading", j.Spec, err)
	}
	j.see(have)
	return have, nil
}
