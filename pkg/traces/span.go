package traces

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// Span is one sync. The zero Span is not traced.
type Span struct {
	tracer trace.Tracer
	span   trace.Span
}

// Begin begins the span of a target's sync, which lasts until End.
func (t *Tracer) Begin(target string) Span {
	if t == nil {
		return Span{}
	}
	_, span := t.tracer.Start(context.Background(), "sync", trace.WithAttributes(attribute.String("syncer.target", target)))
	return Span{t.tracer, span}
}

// Step begins a step of the sync, which lasts until end is called.
func (s Span) Step(name string) (end func()) {
	if s.span == nil {
		return func() {}
	}
	_, step := s.tracer.Start(trace.ContextWithSpan(context.Background(), s.span), name)
	return func() { step.End() }
}

// End ends the span with what came of the sync. No text may hold a value.
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

// Fields are what a log line of the sync carries, so that its trace is found.
func (s Span) Fields() []zap.Field {
	if s.span == nil || !s.span.SpanContext().IsSampled() {
		return nil
	}
	return []zap.Field{zap.Stringer("trace_id", s.span.SpanContext().TraceID())}
}
