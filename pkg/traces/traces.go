// Package traces sends what each sync did, and how long each step took, to a
// collector: OTLP over HTTP, as the OTEL_ variables of the environment say.
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
	hurry    context.CancelFunc // ends what is being sent
}

// Start returns a Tracer that sends until Close is called, and nil where the
// environment names no collector. report is called with how each sending went;
// a nil error means well. The library keeps report for the whole process.
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
	if err != nil { // the rest of it holds
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

// Close sends what is left, within the time given, and returns when all has
// ended.
func (t *Tracer) Close(within time.Duration) {
	if t == nil {
		return
	}
	defer t.hurry()
	defer time.AfterFunc(within, t.hurry).Stop()
	_ = t.provider.Shutdown(context.Background()) // the client reports
}
