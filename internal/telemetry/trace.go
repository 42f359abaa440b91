package telemetry

import (
	"context"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TraceOptions are what a Tracer is made of.
type TraceOptions struct {
	// Endpoint is the base address of the collector (OTLP over HTTP); "" for that of the
	// environment, else http://localhost:4318.
	Endpoint string
	Headers  string              // k=v,k2=v2, percent-encoded, that it is sent
	Content  bool                // what was written and said is shown
	Redact   func(string) string // masks every text that goes out
	Getenv   func(string) string // of OTEL_* variables, besides those that the SDK reads itself
	HTTP     *http.Client        // nil makes one
	Version  string              // of the program
	Log      *slog.Logger
}

// Tracer makes the spans of one process and has them sent to a collector, which keeps nobody
// waiting: what it does not take is dropped and counted. nil makes none. Safe for
// concurrent use.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdk.TracerProvider
	mask     func(string) string // of what was written or said; nil where that is not to be seen
	out      *exporter
	flush    time.Duration // flushTime
}

// OpenTracer returns a tracer, nil where OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER says that
// there is to be none. It calls nobody. The error is an i18n error of a setting.
func OpenTracer(o TraceOptions) (*Tracer, error) {
	if strings.EqualFold(o.Getenv("OTEL_SDK_DISABLED"), "true") || o.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	out, err := newExporter(&o)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(context.Background(), resource.WithAttributes(attribute.String("service.name", "tori"), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		o.Log.Warn("Traces do not tell all of this process: " + err.Error())
	}
	sampler, known := samplerOf(o.Getenv("OTEL_TRACES_SAMPLER"), o.Getenv("OTEL_TRACES_SAMPLER_ARG"))
	if !known {
		o.Log.Warn("OTEL_TRACES_SAMPLER is none of always_on, always_off, traceidratio with OTEL_TRACES_SAMPLER_ARG from 0 to 1, and these with parentbased_ in front: all is traced")
	}
	p := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithIDGenerator(ids{}), sdk.WithSampler(sampler),
		sdk.WithSpanProcessor(ended{sdk.NewBatchSpanProcessor(out), out}))
	t := &Tracer{tracer: p.Tracer("toritsugi", trace.WithInstrumentationVersion(o.Version)), provider: p, out: out, flush: flushTime}
	if o.Content {
		t.mask = o.Redact
	}
	return t, nil
}

// flushTime is how long the last spans may take to be sent.
const flushTime = 3 * time.Second

// Close sends what is left, once and within flushTime, and logs what could not be.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.flush)
	defer cancel()
	t.out.closing()
	_ = t.provider.Shutdown(ctx) // what it did not do is counted
	t.out.close()
}

// idKey is that of the id, in a context, of a trace to be begun.
type idKey struct{}

// ids are random, but for those of traces whose context says which.
type ids struct{}

// NewIDs implements sdk.IDGenerator.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, ok := ctx.Value(idKey{}).(trace.TraceID)
	if !ok {
		binary.BigEndian.PutUint64(id[:8], rand.Uint64())
		binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1)
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1) // never all zero
	return id
}

// samplerOf is the sampler that OTEL_TRACES_SAMPLER names; known is false where it names
// none.
func samplerOf(name, arg string) (s sdk.Sampler, known bool) {
	name, parent := strings.CutPrefix(name, "parentbased_")
	known = true
	switch name {
	case "", "always_on":
		s, parent = sdk.AlwaysSample(), parent || name == ""
	case "always_off":
		s = sdk.NeverSample()
	case "traceidratio":
		share, err := strconv.ParseFloat(arg, 64)
		if arg == "" {
			share, err = 1, nil
		}
		if known = err == nil && share >= 0 && share <= 1; !known {
			share = 1
		}
		s = shareOf(share)
	default:
		s, parent, known = sdk.AlwaysSample(), true, false
	}
	if parent {
		s = sdk.ParentBased(s)
	}
	return s, known
}

// shareOf samples a share of all traces, the same ones in each process. sdk.TraceIDRatioBased
// looks at bits that are the same in all uuids; these are the ones that the W3C's
// trace context, level 2, has be random, and RFC 9562 in a uuid of version 4.
type shareOf float64

// ShouldSample implements sdk.Sampler.
func (f shareOf) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	r := sdk.SamplingResult{Decision: sdk.Drop, Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState()}
	if float64(binary.BigEndian.Uint64(p.TraceID[8:])&(1<<56-1)) < float64(f)*(1<<56) {
		r.Decision = sdk.RecordAndSample
	}
	return r
}

// Description implements sdk.Sampler.
func (f shareOf) Description() string {
	return "traceidratio{" + strconv.FormatFloat(float64(f), 'g', -1, 64) + "}"
}
