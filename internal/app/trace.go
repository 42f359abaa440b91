package app

import (
	"context"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
	"toritsugi/internal/telemetry"
)

// trace is ctx with the tracer of the settings, which done closes. The error is an i18n error
// of a setting.
func (s *system) trace(ctx context.Context) (traced context.Context, done func(), err error) {
	c := s.cfg.Telemetry.Traces
	if !c.Enabled {
		return ctx, func() {}, nil
	}
	t, err := telemetry.OpenTracer(telemetry.TraceOptions{Endpoint: c.Endpoint, Headers: c.Headers, Content: c.Content, Redact: s.redact.Strict().String,
		Getenv: s.env.Getenv, HTTP: s.env.HTTP, Version: s.env.Version, Log: s.log})
	return telemetry.With(ctx, t), t.Close, err
}

// traced begins the span of a process's work on a run, as an agent's by the GenAI conventions.
func traced(ctx context.Context, c *contextstore.Context) (context.Context, *telemetry.Span) {
	ctx, span := telemetry.StartRun(ctx, c.UUID(), "invoke_agent", "tori")
	if span != nil {
		m, st := c.Metadata(), c.State()
		span.Text(telemetry.Operation, "invoke_agent")
		span.Text(telemetry.AgentName, "tori")
		span.Text(telemetry.Provider, m.Config.Provider)
		span.Text(telemetry.RequestModel, m.Config.Model)
		span.Text("tori.task.key", m.TaskKey.String())
		span.Int("tori.generation", int(st.Generation))
	}
	return ctx, span
}

// ended ends it. A run that failed is an error; err is none of the run's, but of the ledger.
func ended(span *telemetry.Span, r agent.Report, err error) {
	span.Text("tori.status", string(r.Outcome.Status))
	span.Content("tori.reason", r.Reason)
	if r.Outcome.Status == task.Failed {
		span.Fail("failed")
	}
	span.End(err)
}

// tracing is work with its span.
func tracing(work func(context.Context, *contextstore.Context) (agent.Report, error)) func(context.Context, *contextstore.Context) (agent.Report, error) {
	return func(ctx context.Context, c *contextstore.Context) (report agent.Report, err error) {
		ctx, span := traced(ctx, c)
		defer func() { ended(span, report, err) }()
		return work(ctx, c)
	}
}
