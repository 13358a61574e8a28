// Package traces sends the actions of each sync, and the duration of each step, to
// a collector. It uses OTLP over HTTP with the settings of the OTEL_ environment
// variables.
package traces

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer begins a Span for each sync. A nil Tracer begins none.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdk.TracerProvider
	hurry    context.CancelFunc // cancels the sending
}

// Start returns a Tracer that sends until Close is called. It returns nil if the
// environment names no collector. It calls report with the result of each sending.
// A nil error means success. The library retains report for the whole process.
func Start(version string, report func(error)) (*Tracer, error) {
	s, err := readSettings()
	if s == nil || err != nil {
		return nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(report))
	ctx, hurry := context.WithCancel(context.Background())
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "syncer"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil { // the other attributes remain valid
		report(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES cannot be read as a whole: %w", err))
	}
	exporter, err := otlptrace.New(ctx, &client{settings: s, http: s.client(), ending: ctx, report: report})
	if err != nil {
		hurry()
		return nil, err
	}
	provider := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithBatcher(exporter))
	return &Tracer{provider.Tracer("github.com/secretsync/syncer"), provider, hurry}, nil
}

// Close sends the remaining spans within the given time, and returns when
// everything has ended.
func (t *Tracer) Close(within time.Duration) {
	if t == nil {
		return
	}
	defer t.hurry()
	defer time.AfterFunc(within, t.hurry).Stop()
	_ = t.provider.Shutdown(context.Background()) // the client reports errors
}
