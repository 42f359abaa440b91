package cli

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// spans are what a collector was sent.
type spans struct {
	mu  sync.Mutex
	all []*tracepb.Span
	raw bytes.Buffer
}

func collect(t *testing.T) (*spans, string) {
	s := &spans{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err != nil || proto.Unmarshal(body, &data) != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Authorization") != "Bearer key-of-traces" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raw.Write(body)
		for _, rs := range data.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				s.all = append(s.all, ss.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	return s, server.URL
}

// tree are the names of the spans, each below its parent, in the order of their beginnings.
func (s *spans) tree() string {
	slices.SortStableFunc(s.all, func(a, b *tracepb.Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	var b strings.Builder
	var below func(parent []byte, in string)
	below = func(parent []byte, in string) {
		for _, c := range s.all {
			if bytes.Equal(c.ParentSpanId, parent) {
				b.WriteString(in + c.Name + "\n")
				below(c.SpanId, in+"  ")
			}
		}
	}
	below(nil, "")
	return b.String()
}

// attribute is what the first span of that name has by a key, as text.
func (s *spans) attribute(name, key string) string {
	for _, c := range s.all {
		for _, a := range c.Attributes {
			if c.Name == name && a.Key == key {
				v := a.Value
				return v.GetStringValue() + fmt.Sprint(map[bool]any{true: "", false: v.GetIntValue()}[v.GetIntValue() == 0])
			}
		}
	}
	return ""
}

// oneStep works on the issue in one step, and says a secret.
func oneStep(r *llmtest.Request) llmtest.Answer {
	usage := &llm.Usage{PromptTokens: 1000, CompletionTokens: 100, TotalTokens: 1100, CachedTokens: 900}
	if r.Turn() == 0 {
		return llmtest.Answer{Text: "I write it with sk-proj-abcdefghijklmnopqrstuvwxyz0123456789.", Usage: usage, Calls: []llm.ToolCall{{ID: "call_1", Name: "write_file", Arguments: `{"path":"count.txt","content":"a hundred\n"}`}}}
	}
	return llmtest.Answer{Text: "It is counted.", Usage: usage}
}

// tracedHouse is a house that sends traces there.
func tracedHouse(t *testing.T, endpoint, more string, answer func(*llmtest.Request) llmtest.Answer) *house {
	h := newHouse(t, llmtest.NewServer(t, answer).URL, "test -f README.md")
	b, err := readFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	h.write("config.yaml", string(b)+fmt.Sprintf("telemetry: {traces: {enabled: true, endpoint: %q%s}}\n", endpoint, more))
	h.env = append(h.env, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20key-of-traces")
	return h
}

// A run is one trace, whose id is the run's uuid: what it is made of, how long each part
// took and what models were paid for, but no word of what was written.
func TestARunIsATrace(t *testing.T) {
	t.Parallel()
	got, at := collect(t)
	h := tracedHouse(t, at, "", oneStep)
	p := h.start(h.args...)
	if code := p.code(); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, &p.out)
	}
	want := `invoke_agent tori
  phase preparation
  phase execution
    chat m
    execute_tool write_file
    chat m
  phase verification
  phase completion
    effect push
    effect comment
`
	tree := got.tree()
	if n := strings.Count(tree, "    check\n"); n != 2 || !strings.Contains(tree, "  phase verification\n    check\n") { // that of the base is run beside the first turns
		t.Errorf("%d checks in\n%s", n, tree)
	}
	if tree = strings.ReplaceAll(tree, "    check\n", ""); tree != want {
		t.Errorf("got\n%swant\n%s\n%s", tree, want, &p.out)
	}
	v := h.only()
	id := uuid.MustParse(v.Metadata.UUID)
	for _, s := range got.all {
		if !bytes.Equal(s.TraceId, id[:]) {
			t.Errorf("%s is in trace %x", s.Name, s.TraceId)
		}
	}
	for _, a := range [][3]string{
		{"invoke_agent tori", "gen_ai.operation.name", "invoke_agent"},
		{"invoke_agent tori", "gen_ai.conversation.id", v.Metadata.UUID},
		{"invoke_agent tori", "tori.status", "completed"},
		{"invoke_agent tori", "tori.task.key", v.Metadata.TaskKey.String()},
		{"chat m", "gen_ai.operation.name", "chat"},
		{"chat m", "gen_ai.provider.name", "openai"},
		{"chat m", "gen_ai.request.model", "m"},
		{"chat m", "gen_ai.usage.input_tokens", "1000"},
		{"chat m", "gen_ai.usage.output_tokens", "100"},
		{"chat m", "gen_ai.usage.cache_read.input_tokens", "900"},
		{"execute_tool write_file", "gen_ai.tool.name", "write_file"},
		{"check", "tori.check.command", "test -f README.md"},
	} {
		if value := got.attribute(a[0], a[1]); value != a[2] {
			t.Errorf("%s: %s is %q, want %q", a[0], a[1], value, a[2])
		}
	}
	for _, word := range []string{"Count to a hundred", "I write it", "a hundred", "It is counted", "sk-proj", "key-of-traces", "key-for-a-test"} {
		if bytes.Contains(got.raw.Bytes(), []byte(word)) {
			t.Errorf("%q was sent", word)
		}
	}
}

// A turn of a conversation is a trace: who decides, what models are called and what is shown. It
// leads to that of the job that it begins, and so does the turn that tells what became of it.
func TestATurnIsATrace(t *testing.T) {
	skipShort(t, "chats with a job")
	t.Parallel()
	got, at := collect(t)
	h := chatHouse(t, "branch", func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "Something to keep."} })
	settings, err := readFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	h.write("config.yaml", string(settings)+fmt.Sprintf("telemetry: {traces: {enabled: true, endpoint: %q}}\n", at))
	h.env = append(h.env, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20key-of-traces")
	if out, code := h.once("how are you, hanako"); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	const answered = "turn\n  routing\n  chat m\n  post\n"
	if tree := got.tree(); tree != answered {
		t.Errorf("got\n%swant\n%s", tree, answered)
	}
	for key, want := range map[string]string{"tori.channel": "terminal", "tori.route": "CHAT", "tori.stop": "done", "tori.job": ""} {
		if value := got.attribute("turn", key); value != want {
			t.Errorf("%s is %q, want %q", key, value, want)
		}
	}
	out, _ := h.once("/code2 say goodbye")
	tree := got.tree()
	job := ""
	turns := map[string]bool{}
	for _, s := range got.all {
		switch s.Name {
		case "invoke_agent tori":
			_, job, _ = strings.Cut(got.attribute(s.Name, "tori.task.key"), "#")
		case "turn":
			turns[string(s.TraceId)] = true
		}
	}
	told := 0
	for _, s := range got.all {
		for _, a := range s.Attributes {
			if s.Name == "turn" && a.Key == "tori.job" && a.Value.GetStringValue() == job {
				told++
			}
		}
	}
	if job == "" || told != 2 || len(turns) != 3 {
		t.Errorf("job %q, told of by %d, %d turns\n%s\n%s", job, told, len(turns), tree, out)
	}
	for _, word := range []string{"how are you", "Something to keep", "say goodbye"} {
		if bytes.Contains(got.raw.Bytes(), []byte(word)) {
			t.Errorf("%q was sent", word)
		}
	}
}

// The phases of a plan, and the subtasks by their numbers.
func TestThePhasesOfAPlan(t *testing.T) {
	skipShort(t, "a whole run with a plan")
	t.Parallel()
	got, at := collect(t)
	h := tracedHouse(t, at, "", llmtest.Sequence(planned()...))
	h.env = append(h.env, "TORI_PLANNING_ENABLED=true")
	p := h.start(h.args...)
	if code := p.code(); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, &p.out)
	}
	_ = got.tree() // in order
	var phases []string
	for _, s := range got.all {
		if name, ok := strings.CutPrefix(s.Name, "phase "); ok {
			for _, a := range s.Attributes {
				if a.Key == "tori.subtask" {
					name += fmt.Sprint(" ", a.Value.GetIntValue())
				}
			}
			phases = append(phases, name)
		}
	}
	if want := "preparation, planning, execution 1, reflection, execution 1, execution 2, replan_decision, execution 2, execution 3, verification, completion"; strings.Join(phases, ", ") != want {
		t.Errorf("got\n%s, want\n%s\n%s", strings.Join(phases, ", "), want, got.tree()+p.out.String())
	}
}

// tori serve traces what it works on, and its log goes to a file by setting.
func TestServeTracesAndLogs(t *testing.T) {
	skipShort(t, "tori serve with a run of its own")
	t.Parallel()
	got, at := collect(t)
	file := filepath.Join(t.TempDir(), "tori.log")
	w, n := asked(t, fmt.Sprintf("logging: {format: json, file: %q}\ntelemetry: {traces: {enabled: true, endpoint: %q, headers: authorization=Bearer%%20key-of-traces}}\n", file, at))
	out := w.once()
	w.handed(n, out)
	id := w.of(n).Metadata.UUID
	tree := got.tree()
	for _, name := range []string{"invoke_agent tori\n  phase preparation\n", "  phase completion\n", "effect push\n", "effect comment\n"} { // whoever delivers them
		if !strings.Contains(tree, name) {
			t.Errorf("no %q in\n%s", name, tree)
		}
	}
	for _, s := range got.all {
		if want := uuid.MustParse(id); !bytes.Equal(s.TraceId, want[:]) {
			t.Errorf("%s is in trace %x", s.Name, s.TraceId)
		}
	}
	b, err := readFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begun := false
	for line := range bytes.Lines(b) {
		var r struct{ Time, Level, Msg, UUID string }
		if err := json.Unmarshal(line, &r); err != nil || r.Time == "" || r.Level == "" || r.Msg == "" {
			t.Errorf("%v: %s", err, line)
		}
		begun = begun || r.UUID == id && strings.HasPrefix(r.Msg, "Task started")
	}
	if !begun || strings.Contains(out, "Task started") || bytes.Contains(b, []byte("key-of-traces")) {
		t.Errorf("the log:\n%s\nprinted:\n%s", b, out)
	}
}

// With telemetry.traces.content it tells what was written, without secrets.
func TestContentOfATrace(t *testing.T) {
	t.Parallel()
	got, at := collect(t)
	h := tracedHouse(t, at, ", content: true", oneStep)
	p := h.start(h.args...)
	if code := p.code(); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, &p.out)
	}
	for key, words := range map[[2]string][]string{
		{"chat m", "gen_ai.input.messages"}:                       {`"role":"system"`, `"role":"user"`, "Count to a hundred"},
		{"chat m", "gen_ai.output.messages"}:                      {`"type":"text","content":"I write it with `, `"type":"tool_call","id":"call_1","name":"write_file","arguments":{"path":"count.txt"`},
		{"execute_tool write_file", "gen_ai.tool.call.arguments"}: {`{"path":"count.txt"`},
		{"execute_tool write_file", "gen_ai.tool.call.result"}:    {"count.txt"},
	} {
		value := got.attribute(key[0], key[1])
		for _, w := range words {
			if !strings.Contains(value, w) {
				t.Errorf("%v lacks %q: %s", key, w, value)
			}
		}
	}
	for _, word := range []string{"abcdefghijklmnopqrstuvwxyz0123456789", "key-of-traces", "key-for-a-test"} {
		if bytes.Contains(got.raw.Bytes(), []byte(word)) {
			t.Errorf("%q was sent", word)
		}
	}
}

// A run that was killed and taken up is one trace, with a top for each process that ended.
func TestAResumedRunIsOneTrace(t *testing.T) {
	t.Parallel()
	got, at := collect(t)
	asked := make(chan int, 10)
	h := tracedHouse(t, at, "", func(r *llmtest.Request) llmtest.Answer {
		asked <- r.Turn()
		return oneStep(r)
	})
	h.args = append(h.args, "--quiet")
	p := h.start(h.args...)
	for at := range asked { // the first call is on its way, or done
		if at >= 0 {
			break
		}
	}
	_ = p.Process.Kill()
	_ = p.Wait()
	v := h.only()
	p = h.start(append([]string{"run", "--resume", v.Metadata.UUID, "--config", h.config, "--base-dir", h.base()}, h.bare...)...)
	if code := p.code(); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, &p.out)
	}
	id := uuid.MustParse(v.Metadata.UUID)
	for _, s := range got.all {
		if !bytes.Equal(s.TraceId, id[:]) {
			t.Errorf("%s is in trace %x", s.Name, s.TraceId)
		}
	}
	if tree := got.tree(); !strings.Contains(tree, "invoke_agent tori\n  phase") || got.attribute("invoke_agent tori", "tori.generation") != "2" {
		t.Error(tree)
	}
}

// A collector that is away, or that never answers, changes nothing about a run.
func TestARunWithoutItsCollector(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"away":  nil,
		"fails": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else nobody sees that it goes away
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := "http://127.0.0.1:1"
			if answer != nil {
				s := httptest.NewServer(answer)
				t.Cleanup(s.Close)
				at = s.URL
			}
			h := tracedHouse(t, at, "", oneStep)
			p := h.start(h.args...)
			if code := p.code(); code != exitOK {
				t.Fatalf("exit code %d\n%s", code, &p.out)
			}
			if v := h.only(); v.Status() != task.Completed {
				t.Errorf("it is %s", v.Status())
			}
			if !strings.Contains(p.out.String(), "Not all of the traces was taken") {
				t.Errorf("%s", &p.out)
			}
			if _, err := os.Stat(filepath.Join(h.dir, "issue.comments.md")); err != nil {
				t.Error(err)
			}
		})
	}
}

// So is one that tori serve answers in a channel, with what a worker did: its calls of models and
// tools are below it. What was said is shown where that is asked for.
func TestATurnInAChannelIsATrace(t *testing.T) {
	skipShort(t, "tori serve with a channel")
	t.Parallel()
	for _, content := range []bool{false, true} {
		t.Run(fmt.Sprint("content ", content), func(t *testing.T) {
			t.Parallel()
			got, at := collect(t)
			h := chatHouse(t, "branch", func(r *llmtest.Request) llmtest.Answer {
				switch {
				case !slices.Contains(r.Tools, "read_file"):
					return llmtest.Answer{Text: "It is a greeting."}
				case r.Turn() == 0:
					return llmtest.Answer{Calls: []llm.ToolCall{{ID: "call_read", Name: "read_file", Arguments: `{"path":"README.md"}`}}}
				}
				return llmtest.Answer{Text: `{"result":{"data_type":"text","findings":["It greets."]},"needs_next_loop":false,"why":"read","next_actions":[],"questions_for_user":[],"confidence":0.9,"risk":"low"}`}
			})
			shown := make(chan string, 10)
			bridge := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				shown <- string(body)
			}))
			t.Cleanup(bridge.Close)
			settings, err := readFile(h.config)
			if err != nil {
				t.Fatal(err)
			}
			key := []byte("01234567890123456789012345678901")
			h.write("config.yaml", strings.NewReplacer("chat: {", fmt.Sprintf("chat: {repositories: [{name: repo, path: %q}], ", filepath.Join(h.dir, "repo")),
				"{chat_provider", "{worker_provider: openai, worker_model: m, chat_provider").Replace(string(settings))+
				fmt.Sprintf("serve: {listen: '127.0.0.1:0'}\nchannels: {http: {secret: whsec_%s, url: %q, allow_from: [hanako], entry: router}}\n"+
					"telemetry: {traces: {enabled: true, endpoint: %q, content: %v, headers: authorization=Bearer%%20key-of-traces}}\n", base64.StdEncoding.EncodeToString(key), bridge.URL, at, content))
			p := h.start(append([]string{"serve", "--config", h.config, "--base-dir", h.base()}, h.bare...)...)
			var door string
			h.until("it listens", func() bool {
				door = listening.FindString(strings.NewReplacer(at, "", bridge.URL, "").Replace(p.out.String()))
				return door != ""
			})
			body := `{"kind":"message","id":"m1","conversation":"room","user":{"id":"hanako"},"text":"/analyze What does it say, hanako?"}`
			stamp := fmt.Sprint(time.Now().Unix())
			sum := hmac.New(sha256.New, key)
			_, _ = io.WriteString(sum, "m1."+stamp+"."+body)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+door+"/webhooks/http", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range map[string]string{"webhook-id": "m1", "webhook-timestamp": stamp, "webhook-signature": "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))} {
				req.Header.Set(k, v)
			}
			answer, err := http.DefaultClient.Do(req)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatal(answer, err)
			}
			_ = answer.Body.Close()
			for text := ""; !strings.Contains(text, "It is a greeting."); text = <-shown {
			}
			_ = p.Process.Signal(syscall.SIGTERM)
			if code := p.code(); code != exitOK {
				t.Fatalf("exit code %d\n%s", code, &p.out)
			}
			const want = `turn
  routing
  invoke_agent ANALYZE
    chat m
    execute_tool read_file
    chat m
  chat m
  post
`
			if tree := got.tree(); tree != want {
				t.Errorf("got\n%swant\n%s\n%s", tree, want, &p.out)
			}
			for key, want := range map[[2]string]string{
				{"turn", "gen_ai.conversation.id"}:                  "http:room",
				{"turn", "tori.channel"}:                            "http",
				{"turn", "tori.route"}:                              "ANALYZE",
				{"invoke_agent ANALYZE", "gen_ai.operation.name"}:   "invoke_agent",
				{"invoke_agent ANALYZE", "gen_ai.agent.name"}:       "ANALYZE",
				{"execute_tool read_file", "gen_ai.operation.name"}: "execute_tool",
			} {
				if value := got.attribute(key[0], key[1]); value != want {
					t.Errorf("%v is %q, want %q", key, value, want)
				}
			}
			for _, word := range []string{"What does it say", "It is a greeting", "It greets", "hello"} {
				if bytes.Contains(got.raw.Bytes(), []byte(word)) != content {
					t.Errorf("%q was sent: %v", word, !content)
				}
			}
		})
	}
}
