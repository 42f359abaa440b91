package telemetry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Keys of attributes, as far as several packages set them. Those of models and tools are of
// the GenAI semantic conventions 1.41, the last of OpenTelemetry's own.
const (
	Operation        = "gen_ai.operation.name"
	ConversationID   = "gen_ai.conversation.id"
	Provider         = "gen_ai.provider.name"
	RequestModel     = "gen_ai.request.model"
	ResponseModel    = "gen_ai.response.model"
	FinishReasons    = "gen_ai.response.finish_reasons"
	FirstChunk       = "gen_ai.response.time_to_first_chunk" // seconds
	InputTokens      = "gen_ai.usage.input_tokens"
	OutputTokens     = "gen_ai.usage.output_tokens"
	CacheReadTokens  = "gen_ai.usage.cache_read.input_tokens"
	CacheWriteTokens = "gen_ai.usage.cache_creation.input_tokens"
	ReasoningTokens  = "gen_ai.usage.reasoning.output_tokens"
	InputMessages    = "gen_ai.input.messages"
	OutputMessages   = "gen_ai.output.messages"
	AgentName        = "gen_ai.agent.name"
	ToolName         = "gen_ai.tool.name"
	ToolType         = "gen_ai.tool.type"
	ToolArguments    = "gen_ai.tool.call.arguments"
	ToolResult       = "gen_ai.tool.call.result"
	ErrorType        = "error.type"
)

// Span is something that takes time, in the trace of a run or of a turn of a conversation. nil is one that nobody looks at:
// its methods do nothing, and take no memory. It is used by one goroutine.
type Span struct {
	span   trace.Span
	mask   func(string) string // of what was written or said; nil where that is not to be seen
	failed bool                // its error.type was set
	phases *phases             // of a run
}

type tracerKey struct{}

// With is ctx for what this tracer sees; nil is nobody.
func With(ctx context.Context, t *Tracer) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, tracerKey{}, t)
}

func tracerOf(ctx context.Context) *Tracer {
	t, _ := ctx.Value(tracerKey{}).(*Tracer)
	return t
}

// Start begins a span below that of ctx, named by what is done and to what. Without one in
// ctx, and without a tracer, there is none.
func Start(ctx context.Context, does, what string) (context.Context, *Span) {
	return start(ctx, does, what, trace.SpanKindInternal)
}

// StartCall is Start for a call of a server.
func StartCall(ctx context.Context, does, what string) (context.Context, *Span) {
	return start(ctx, does, what, trace.SpanKindClient)
}

func start(ctx context.Context, does, what string, kind trace.SpanKind) (context.Context, *Span) {
	t := tracerOf(ctx)
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, nil
	}
	return t.start(within(ctx), does, what, trace.WithSpanKind(kind))
}

// StartRun begins a span in the trace of a run, whose id is the run's uuid (store-v2 §9.3):
// below that of ctx where that is of the run, else at the top of the trace, which has as many
// tops as processes worked on the run.
func StartRun(ctx context.Context, uuid, does, what string) (context.Context, *Span) {
	t := tracerOf(ctx)
	if t == nil {
		return ctx, nil
	}
	id, err := trace.TraceIDFromHex(strings.ReplaceAll(uuid, "-", ""))
	if err != nil {
		return ctx, nil
	}
	if trace.SpanContextFromContext(ctx).TraceID() == id {
		return t.start(within(ctx), does, what)
	}
	ctx, s := t.top(ctx, id, uuid, does, what)
	if s == nil {
		return ctx, nil
	}
	s.phases = &phases{run: s.span}
	return context.WithValue(ctx, phasesKey{}, s.phases), s
}

// StartTurn begins the span of a turn of a conversation, at the top of a trace whose id is made of
// the turn's: an attempt that was killed and the next one are in the same trace.
func StartTurn(ctx context.Context, session, turn string) (context.Context, *Span) {
	t := tracerOf(ctx)
	if t == nil {
		return ctx, nil
	}
	sum := sha256.Sum256([]byte(turn))
	ctx, s := t.top(ctx, trace.TraceID(sum[:16]), session, "turn", "")
	s.Text("tori.turn", turn)
	return ctx, s
}

// top begins a span at the top of a trace.
func (t *Tracer) top(ctx context.Context, id trace.TraceID, conversation, does, what string) (context.Context, *Span) {
	ctx, s := t.start(context.WithValue(ctx, idKey{}, id), does, what, trace.WithNewRoot())
	s.Text(ConversationID, conversation)
	return ctx, s
}

func (t *Tracer) start(ctx context.Context, does, what string, opts ...trace.SpanStartOption) (context.Context, *Span) {
	name := does
	if what != "" {
		name += " " + what
	}
	ctx, s := t.tracer.Start(ctx, name, opts...)
	if !s.IsRecording() {
		return ctx, nil // what is below it is not seen either
	}
	return ctx, &Span{span: s, mask: t.mask}
}

// Text sets an attribute; not what somebody wrote or a model said, which is Content's.
func (s *Span) Text(key, value string) {
	if s != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// List sets an attribute that is a list, of one value.
func (s *Span) List(key, value string) {
	if s != nil {
		s.span.SetAttributes(attribute.StringSlice(key, []string{value}))
	}
}

// Int sets an attribute.
func (s *Span) Int(key string, value int) {
	if s != nil {
		s.span.SetAttributes(attribute.Int(key, value))
	}
}

// Float sets an attribute.
func (s *Span) Float(key string, value float64) {
	if s != nil {
		s.span.SetAttributes(attribute.Float64(key, value))
	}
}

// ShowsContent reports whether what was written and said is to be seen
// (telemetry.traces.content).
func (s *Span) ShowsContent() bool { return s != nil && s.mask != nil }

// maxContent is how much of one text is shown, in bytes.
const maxContent = 32 << 10

// Content sets an attribute of what was written or said, where that is to be seen: the first
// 32 KiB of it.
func (s *Span) Content(key, value string) {
	if !s.ShowsContent() || value == "" {
		return
	}
	value = s.mask(value) // before it is cut: half a secret is known to nobody
	if n := len(value); n > maxContent {
		value = strings.ToValidUTF8(value[:maxContent], "") + fmt.Sprintf(" [%d more bytes]", n-maxContent)
	}
	s.Text(key, value)
}

// Fail says that what the span is of failed, by the class of its error.
func (s *Span) Fail(class string) {
	if s != nil {
		s.failed = true
		s.Text(ErrorType, class)
		s.span.SetStatus(codes.Error, "")
	}
}

// End ends the span. What an error says may quote what was written: it is shown where that is
// to be seen. Who was told to end did not fail.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		s.span.SetAttributes(attribute.Bool("tori.interrupted", true))
	default:
		if !s.failed {
			s.Fail(class(err))
		}
		if s.mask != nil && utf8.ValidString(err.Error()) {
			s.span.SetStatus(codes.Error, err.Error())
		}
	}
	if s.phases != nil {
		s.phases.enter(nil, "", 0)
	}
	s.span.End()
}

// class is the type of the innermost of wrapped errors.
func class(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}
