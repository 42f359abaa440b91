package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

// collector takes OTLP over HTTP as it goes over the wire.
type collector struct {
	*httptest.Server
	answer func(n int) (status int, header http.Header) // the n-th request, from 1; nil takes all

	mu       sync.Mutex
	requests []*http.Request
	spans    []*tracepb.Span
	about    map[string]string // the resource
}

func newCollector(t *testing.T, answer func(int) (int, http.Header)) *collector {
	c := &collector{answer: answer, about: map[string]string{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, zerr := gzip.NewReader(bytes.NewReader(body))
		if zerr != nil {
			http.Error(w, zerr.Error(), http.StatusBadRequest)
			return
		}
		body, err = io.ReadAll(z)
	}
	var data tracepb.TracesData
	if err = errors.Join(err, proto.Unmarshal(body, &data)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.requests = append(c.requests, r)
	n := len(c.requests)
	c.mu.Unlock()
	status := http.StatusOK
	if c.answer != nil {
		var more http.Header
		if status, more = c.answer(n); status == 0 {
			<-r.Context().Done()
			return
		}
		for k, v := range more {
			w.Header()[k] = v
		}
	}
	if status == http.StatusOK {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rs := range data.ResourceSpans {
			for _, a := range rs.Resource.Attributes {
				c.about[a.Key] = a.Value.GetStringValue()
			}
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
	}
	w.WriteHeader(status)
}

// tree are the names of the spans, each below its parent, and their attributes.
func (c *collector) tree() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.spans, func(a, b *tracepb.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	var b strings.Builder
	var below func(parent []byte, in string)
	below = func(parent []byte, in string) {
		for _, s := range c.spans {
			if !bytes.Equal(s.ParentSpanId, parent) {
				continue
			}
			b.WriteString(in + s.Name)
			for _, a := range s.Attributes {
				b.WriteString(" " + a.Key + "=" + strings.TrimSpace(strings.NewReplacer("string_value:", "", "int_value:", "", "bool_value:", "", "double_value:", "").Replace(a.Value.String())))
			}
			if s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
				b.WriteString(" ERROR " + s.Status.Message)
			}
			b.WriteString("\n")
			below(s.SpanId, in+"  ")
		}
	}
	below(nil, "")
	return b.String()
}

// options are those of a tracer without an environment; lines of its log go to log.
func options(c *collector, log io.Writer, env map[string]string) TraceOptions {
	o := TraceOptions{Getenv: func(k string) string { return env[k] }, Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[SECRET]") }, Version: "v1",
		Log: NewLogger(log, slog.LevelInfo, func(s string) string { return s })}
	if c != nil {
		o.Endpoint = c.URL
	}
	return o
}

func open(t *testing.T, o TraceOptions) *Tracer {
	t.Helper()
	tr, err := OpenTracer(o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

const aRun = "550e8400-e29b-41d4-a716-446655440000"

// example is a run as its packages tell of it.
func example(ctx context.Context) {
	ctx, run := StartRun(ctx, aRun, "invoke_agent", "tori")
	Phase(ctx, "planning", 0)
	_, call := StartCall(ctx, "chat", "m1")
	call.Content(InputMessages, "what was said, and hunter2")
	call.Int(InputTokens, 10)
	call.List(FinishReasons, "stop")
	call.End(nil)
	Phase(ctx, "execution", 2)
	Phase(ctx, "execution", 2)
	inner, tool := Start(ctx, "execute_tool", "shell")
	tool.Text("tori.check.command", "curl -u hunter2")
	_, below := Start(inner, "setup", "")
	below.End(errors.New("it said hunter2"))
	tool.End(context.Canceled)
	run.Text("tori.status", "completed")
	run.End(nil)
	_, effect := StartRun(context.WithoutCancel(ctx), aRun, "effect", "comment")
	effect.End(nil)
}

func TestTheTraceOfARun(t *testing.T) {
	for _, tc := range []struct {
		name    string
		content bool
		want    string
	}{
		{"names and numbers", false, `invoke_agent tori gen_ai.conversation.id="550e8400-e29b-41d4-a716-446655440000" tori.status="completed"
  phase planning tori.phase="planning"
    chat m1 gen_ai.usage.input_tokens=10 gen_ai.response.finish_reasons=array_value:{values:{"stop"}}
  phase execution tori.phase="execution" tori.subtask=2
    execute_tool shell tori.check.command="curl -u [SECRET]" tori.interrupted=true
      setup error.type="*errors.errorString" ERROR 
  effect comment
`},
		{"content", true, `invoke_agent tori gen_ai.conversation.id="550e8400-e29b-41d4-a716-446655440000" tori.status="completed"
  phase planning tori.phase="planning"
    chat m1 gen_ai.input.messages="what was said, and [SECRET]" gen_ai.usage.input_tokens=10 gen_ai.response.finish_reasons=array_value:{values:{"stop"}}
  phase execution tori.phase="execution" tori.subtask=2
    execute_tool shell tori.check.command="curl -u [SECRET]" tori.interrupted=true
      setup error.type="*errors.errorString" ERROR it said [SECRET]
  effect comment
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			c := newCollector(t, nil)
			o := options(c, &log, nil)
			o.Content = tc.content
			tr := open(t, o)
			example(With(t.Context(), tr))
			tr.Close()
			// Between its values protobuf writes one blank or two, on purpose.
			if got := strings.ReplaceAll(c.tree(), "  \"", " \""); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			want := uuid.MustParse(aRun)
			for _, s := range c.spans {
				if !bytes.Equal(s.TraceId, want[:]) || len(s.SpanId) != 8 || s.EndTimeUnixNano < s.StartTimeUnixNano {
					t.Errorf("%s: %x %x", s.Name, s.TraceId, s.SpanId)
				}
				if call := s.Name == "chat m1"; call != (s.Kind == tracepb.Span_SPAN_KIND_CLIENT) {
					t.Errorf("%s is of kind %s", s.Name, s.Kind)
				}
			}
			if c.about["service.name"] != "tori" || c.about["service.version"] != "v1" || c.about["telemetry.sdk.language"] != "go" {
				t.Errorf("%v", c.about)
			}
			if log.Len() > 0 {
				t.Error(log.String())
			}
		})
	}
}

// A run that another process goes on with is in the same trace; what begins without a run
// is in none.
func TestAResumedRunIsInItsTrace(t *testing.T) {
	t.Parallel()
	c := newCollector(t, nil)
	for range 2 {
		tr := open(t, options(c, io.Discard, nil))
		ctx := With(t.Context(), tr)
		_, run := StartRun(ctx, aRun, "invoke_agent", "tori")
		run.End(nil)
		if _, s := Start(ctx, "chat", "m1"); s != nil {
			t.Error("a span without a trace")
		}
		if _, s := StartRun(ctx, "no uuid", "invoke_agent", "tori"); s != nil {
			t.Error("a run without an id")
		}
		tr.Close()
	}
	if len(c.spans) != 2 || !bytes.Equal(c.spans[0].TraceId, c.spans[1].TraceId) || bytes.Equal(c.spans[0].SpanId, c.spans[1].SpanId) || len(c.spans[1].ParentSpanId) > 0 {
		t.Errorf("%v", c.spans)
	}
}

// Attempts at the same turn of a conversation are in one trace, another turn is in another.
func TestTheTraceOfATurn(t *testing.T) {
	t.Parallel()
	c := newCollector(t, nil)
	tr := open(t, options(c, io.Discard, nil))
	for _, turn := range []string{"slack:T1:C1#1", "slack:T1:C1#1", "slack:T1:C1#2"} {
		ctx, s := StartTurn(With(t.Context(), tr), "slack:T1:C1", turn)
		_, call := StartCall(ctx, "chat", "m1")
		_, run := StartRun(ctx, aRun, "effect", "comment") // what is of a run is in the trace of that
		run.End(nil)
		call.End(nil)
		s.End(nil)
	}
	if _, s := StartTurn(t.Context(), "slack:T1:C1", "slack:T1:C1#1"); s != nil {
		t.Error("a span without a tracer")
	}
	tr.Close()
	ids := map[string]int{}
	for _, s := range c.spans {
		ids[string(s.TraceId)]++
	}
	one := uuid.MustParse(aRun)
	if got, n := c.tree(), ids[string(one[:])]; len(ids) != 3 || n != 3 || strings.Count(got, "\n  chat m1") != 3 || !strings.Contains(got, "tori.turn=") {
		t.Errorf("%d traces, %d spans of the run\n%s", len(ids), n, got)
	}
}

// The sanitizer leaves ids of runs alone, whichever digits they have.
func TestIdsAreNotMasked(t *testing.T) {
	t.Parallel()
	mask := redact.New(nil, nil).Strict().String
	for range 20_000 {
		if id := uuid.NewString(); mask(id) != id {
			t.Fatalf("%s becomes %s", id, mask(id))
		}
	}
}

// Without a tracer nothing is made, whatever is told.
func TestOffTakesNoMemory(t *testing.T) {
	ctx := With(t.Context(), nil)
	if n := testing.AllocsPerRun(1000, func() {
		ctx, turn := StartTurn(ctx, "slack:T1:C1", "slack:T1:C1#1")
		turn.End(nil)
		ctx, s := StartCall(ctx, "chat", "m1")
		Phase(ctx, "planning", 1)
		s.Text(Provider, "openai")
		s.List(FinishReasons, "stop")
		s.Int(InputTokens, 123_456)
		s.Content(InputMessages, "text")
		s.End(nil)
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkOff(b *testing.B) {
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		_, s := StartCall(ctx, "chat", "m1")
		s.Int(InputTokens, 123_456)
		s.End(nil)
	}
}

func BenchmarkOn(b *testing.B) {
	c := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer c.Close()
	o := options(nil, io.Discard, nil)
	o.Endpoint = c.URL
	tr, err := OpenTracer(o)
	if err != nil {
		b.Fatal(err)
	}
	defer tr.Close()
	ctx, run := StartRun(With(b.Context(), tr), aRun, "invoke_agent", "tori")
	defer run.End(nil)
	b.ReportAllocs()
	for b.Loop() {
		_, s := StartCall(ctx, "chat", "m1")
		s.Int(InputTokens, 123_456)
		s.End(nil)
	}
}

// What a collector that is away, busy or wrong costs: spans, which are counted, and no more.
func TestACollectorThatDoesNotTakeThem(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer func(int) (int, http.Header)
		gone   bool
		log    string
		spans  int
	}{
		{"gone", nil, true, "Traces are not taken", 0},
		{"refuses", func(int) (int, http.Header) { return http.StatusUnauthorized, nil }, false, "answers 401 Unauthorized", 0},
		{"fails", func(int) (int, http.Header) { return http.StatusInternalServerError, nil }, false, "answers 500 Internal Server Error", 0},
		{"busy", func(int) (int, http.Header) { return http.StatusServiceUnavailable, nil }, false, "answers 503 Service Unavailable", 0},
		{"leads on", func(int) (int, http.Header) {
			return http.StatusFound, http.Header{"Location": {"http://127.0.0.1:1/"}}
		}, false, "answers 302 Found", 0},
		{"hangs", func(int) (int, http.Header) { return 0, nil }, false, "dropped=7", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var log lockedBuffer
			c := newCollector(t, tc.answer)
			tr := open(t, options(c, &log, nil))
			tr.flush = 300 * time.Millisecond // how long the last one may take
			if tc.gone {
				c.Close()
			}
			example(With(t.Context(), tr))
			tr.Close() // a hang of which hangs the test
			if !strings.Contains(log.String(), tc.log) || !strings.Contains(log.String(), "Not all of the traces was taken spans=7 dropped=7") || len(c.spans) != tc.spans {
				t.Errorf("%d spans\n%s", len(c.spans), log.String())
			}
		})
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A collector that asks for a moment gets the batch again.
func TestABatchIsSentAgain(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	c := newCollector(t, func(n int) (int, http.Header) {
		if n == 1 {
			return http.StatusTooManyRequests, nil
		}
		return http.StatusOK, nil
	})
	tr := open(t, options(c, &log, nil))
	example(With(t.Context(), tr))
	if err := tr.provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	tr.Close()
	if len(c.spans) != 7 || len(c.requests) != 2 || log.String() != "" {
		t.Errorf("%d spans in %d requests\n%s", len(c.spans), len(c.requests), log.String())
	}
}

// A collector that takes a part of a batch says how many it does not.
func TestAPartIsTaken(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		part := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 2)
		part = protowire.AppendString(protowire.AppendTag(part, 2, protowire.BytesType), "too old")
		_, _ = w.Write(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), part))
	}))
	t.Cleanup(c.Close)
	o := options(nil, &log, nil)
	o.Endpoint = c.URL
	tr := open(t, o)
	example(With(t.Context(), tr))
	tr.Close()
	if got := log.String(); !strings.Contains(got, "Spans are refused by "+c.URL) || !strings.Contains(got, "spans=7 dropped=2") {
		t.Error(got)
	}
}

func FuzzRefused(f *testing.F) {
	f.Add([]byte{10, 2, 8, 5})
	f.Add([]byte{10, 2, 8})
	f.Fuzz(func(t *testing.T, answer []byte) {
		if n := refused(answer); n < 0 {
			t.Error(n)
		}
	})
}

// The queue is bounded, and whoever ends a span never waits for it.
func TestTheQueueIsBounded(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "16")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
	var log lockedBuffer
	c := newCollector(t, func(int) (int, http.Header) { return 0, nil })
	tr := open(t, options(c, &log, nil))
	tr.flush = 100 * time.Millisecond
	ctx, run := StartRun(With(t.Context(), tr), aRun, "invoke_agent", "tori")
	for range 5000 {
		_, s := Start(ctx, "execute_tool", "shell")
		s.End(nil)
	}
	run.End(nil)
	if waiting := tr.out.ended.Load(); waiting != 5001 {
		t.Errorf("%d ended", waiting)
	}
	tr.Close()
	if !strings.Contains(log.String(), "spans=5001 dropped=5001") {
		t.Error(log.String())
	}
}

// What the environment says by the variables of the SDK.
func TestEnvironment(t *testing.T) {
	c := newCollector(t, nil)
	send := func(t *testing.T, endpoint string, env map[string]string) *http.Request {
		o := options(nil, io.Discard, env)
		o.Endpoint = endpoint
		tr := open(t, o)
		example(With(t.Context(), tr))
		tr.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.requests) == 0 {
			return nil
		}
		r := c.requests[len(c.requests)-1]
		c.requests = nil
		return r
	}
	t.Run("off", func(t *testing.T) {
		for _, env := range []map[string]string{{"OTEL_SDK_DISABLED": "TRUE"}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_TRACES_SAMPLER": "always_off"},
			{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}} {
			if r := send(t, c.URL, env); r != nil {
				t.Errorf("%v sends", env)
			}
		}
	})
	t.Run("endpoint", func(t *testing.T) {
		for _, tc := range []struct {
			set  string
			env  map[string]string
			path string
		}{
			{c.URL, nil, "/v1/traces"},
			{c.URL + "/", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "/v1/traces"},
			{"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL + "/base"}, "/base/v1/traces"},
			{"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": c.URL + "/own", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "/own"},
		} {
			if r := send(t, tc.set, tc.env); r == nil || r.URL.Path != tc.path || r.Header.Get("Content-Type") != "application/x-protobuf" {
				t.Errorf("%v: %v", tc, r)
			}
		}
	})
	t.Run("headers", func(t *testing.T) {
		r := send(t, c.URL, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20k, x-scope = a", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"})
		if own := send(t, c.URL, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x-scope=a", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-scope=b"}); own == nil || own.Header.Get("X-Scope") != "b" {
			t.Errorf("%v", own)
		}
		if r == nil || r.Header.Get("Authorization") != "Bearer k" || r.Header.Get("X-Scope") != "a" || r.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%v", r)
		}
	})
	t.Run("resource", func(t *testing.T) {
		t.Setenv("OTEL_SERVICE_NAME", "night")
		t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=hunter2")
		send(t, c.URL, nil)
		if c.about["service.name"] != "night" || c.about["deployment.environment.name"] != "[SECRET]" {
			t.Errorf("%v", c.about)
		}
	})
	t.Run("mistakes", func(t *testing.T) {
		for want, env := range map[string]map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL is grpc":             {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			"telemetry.traces.endpoint: localhost:4318":       {"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"},
			"telemetry.traces.headers":                        {"OTEL_EXPORTER_OTLP_HEADERS": "Bearer hunter2"},
			"OTEL_EXPORTER_OTLP_CERTIFICATE: /nothing/ca.pem": {"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nothing/ca.pem"},
		} {
			_, err := OpenTracer(options(nil, io.Discard, env))
			if err == nil || !strings.Contains(i18n.English.Error(err), want) || strings.Contains(i18n.English.Error(err), "hunter2") {
				t.Errorf("%v: %v", env, err)
			}
		}
	})
}

// A share of the runs is traced, each of them by all processes or by none.
func TestTheShareOfRuns(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string][2]int{"": {10_000, 10_000}, "1": {10_000, 10_000}, "0.1": {800, 1200}, "0.75": {7200, 7800}} {
		c := [2]int{}
		traced := map[string]bool{}
		for process := range 2 {
			var n atomic.Int64
			tr := open(t, options(nil, io.Discard, map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": arg}))
			ctx := With(t.Context(), tr)
			for i := range 10_000 {
				id := uuid.NewSHA1(uuid.NameSpaceURL, []byte{byte(i), byte(i >> 8)})
				id[6] = id[6]&0x0f | 0x40 // of version 4, as those of runs
				in, s := StartRun(ctx, id.String(), "invoke_agent", "tori")
				if _, call := Start(in, "chat", "m"); (call != nil) != (s != nil) {
					t.Fatal("a part of a trace")
				}
				if s != nil {
					n.Add(1)
				}
				if process == 1 && traced[id.String()] != (s != nil) {
					t.Fatal("another process decides otherwise")
				}
				traced[id.String()] = s != nil
			}
			c[process] = int(n.Load())
		}
		if c[0] < want[0] || c[0] > want[1] {
			t.Errorf("%q: %d of 10,000", arg, c[0])
		}
	}
	var log bytes.Buffer
	if open(t, options(nil, &log, map[string]string{"OTEL_TRACES_SAMPLER": "jaeger_remote"})); !strings.Contains(log.String(), "OTEL_TRACES_SAMPLER is none of") {
		t.Error(log.String())
	}
}
