package traces

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// Span traces one sync. The zero Span does nothing.
type Span struct {
	tracer trace.Tracer
	span   trace.Span
}

// Begin begins the span of a target's sync. End ends it.
func (t *Tracer) Begin(target string) Span {
	if t == nil {
		return Span{}
	}
	_, span := t.tracer.Start(context.Background(), "sync", trace.WithAttributes(attribute.String("syncer.target", target)))
	return Span{t.tracer, span}
}

// Step begins a step of the sync. The function end ends it.
func (s Span) Step(name string) (end func()) {
	if s.span == nil {
		return func() {}
	}
	_, step := s.tracer.Start(trace.ContextWithSpan(context.Background(), s.span), name)
	return func() { step.End() }
}

// End ends the span with the result of the sync. No text may contain a value.
func (s Span) End(err error, attributes map[string]string) {
	if s.span == nil {
		return
	}
	for name, text := range attributes {
		s.span.SetAttributes(attribute.String("syncer."+name, text))
	}
	if err != nil {
		s.span.SetStatus(codes.Error, err.Error())
	}
	s.span.End()
}

// Fields returns the fields that link a log line of the sync to its trace.
func (s Span) Fields() []zap.Field {
	if s.span == nil || !s.span.SpanContext().IsSampled() {
		return nil
	}
	return []zap.Field{zap.Stringer("trace_id", s.span.SpanContext().TraceID())}
}
