package memory

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// wireSize is a message as it is counted.
func wireSize(t *testing.T, m llm.Message) (n int) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(Form(m, false)); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// paid is what the requests of a run took, of what was sent.
func paid(t *testing.T, sent map[int64][]llm.Message, tools int) (c Calls) {
	t.Helper()
	var before []llm.Message
	for _, seq := range slices.Sorted(maps.Keys(sent)) {
		c.Requests++
		c.Sent += int64(tools)
		if before != nil {
			c.Cached += int64(tools)
		}
		same := before != nil
		for i, m := range sent[seq] {
			n := int64(wireSize(t, m))
			c.Sent += n
			if same = same && i < len(before) && reflect.DeepEqual(m, before[i]); same {
				c.Cached += n
			}
		}
		before = sent[seq]
	}
	return c.tokens()
}

func bill(t *testing.T, v contextstore.View) (TokenUsage, []contextstore.Damage) {
	t.Helper()
	b, damaged, err := ReadBill(v, 4000)
	if err != nil {
		t.Fatal(err)
	}
	return b, damaged
}

// The bill of a run is that of the requests that were sent, through stubs,
// summaries, truncations and kills, of compressed files as well; also of lines that
// do not say when they were decided.
func TestReadBill(t *testing.T) {
	t.Parallel()
	for _, kill := range []int{7, 0} {
		o, sent := taped(t, 75, kill)
		v := o.view()
		if kill == 0 {
			rewrite(t, v, "window.jsonl", func(b []byte) []byte { return regexp.MustCompile(`,"at_seq":\d+`).ReplaceAll(b, nil) })
		}
		got, damaged := bill(t, v)
		all, want := got.Calls, paid(t, sent, 4000)
		all.Requests -= got.Summaries.Requests
		all.Sent -= got.Summaries.Sent
		all.Cached -= got.Summaries.Cached
		all.Answered = 0
		if diff := cmp.Diff(want, all); diff != "" || len(damaged) > 0 {
			t.Errorf("kill %d: %v\n%s", kill, damaged, diff)
		}
		sum := int64(0)
		for _, n := range got.Parts {
			sum += n
		}
		if sum > all.Sent || sum < all.Sent-int64(len(got.Parts)) || got.First[BillTools] != 1000 || got.Summaries.Requests == 0 || got.Answered == 0 {
			t.Errorf("kill %d: parts of %d tokens: %+v", kill, sum, got)
		}
		for _, part := range []string{BillTools, BillSystem, BillTask, BillCarried, BillResults, BillAnswers, BillNews} {
			if got.Parts[part] == 0 {
				t.Errorf("kill %d: nothing is %s in %v", kill, part, got.Parts)
			}
		}
		o.kill()
		for _, name := range []string{"messages.jsonl", "window.jsonl", "summaries.jsonl"} {
			rewrite(t, v, name, func(b []byte) []byte {
				var z bytes.Buffer
				w := gzip.NewWriter(&z)
				if _, err := w.Write(b); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				return z.Bytes()
			})
			if err := os.Rename(filepath.Join(v.Dir, name), filepath.Join(v.Dir, name+".gz")); err != nil {
				t.Fatal(err)
			}
		}
		packed, damaged := bill(t, v)
		if diff := cmp.Diff(got, packed); diff != "" || len(damaged) > 0 {
			t.Errorf("compressed: %v\n%s", damaged, diff)
		}
	}
}

// rewrite changes a file of a run.
func rewrite(t *testing.T, v contextstore.View, name string, f func([]byte) []byte) {
	t.Helper()
	file := filepath.Join(v.Dir, name)
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, f(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestABillOfWhatIsDamaged(t *testing.T) {
	t.Parallel()
	o, sent := taped(t, 60, 0)
	v := o.view()
	rewrite(t, v, "messages.jsonl", func(b []byte) []byte {
		copy(b[bytes.Index(b, []byte(`{"seq":9,`)):], "\x00\x00\x00")
		return append(b, `{"seq":9999,"role":"us`...) // is being written
	})
	rewrite(t, v, "window.jsonl", func(b []byte) []byte { return append([]byte("oops\n"), b...) })
	rewrite(t, v, "summaries.jsonl", func([]byte) []byte { return []byte("\x00\n") })
	got, damaged := bill(t, v)
	files := map[string]int{}
	for _, d := range damaged {
		files[d.File]++
	}
	if files["messages.jsonl"] != 1 || files["window.jsonl"] != 1 || files["summaries.jsonl"] < 1 {
		t.Errorf("%+v", damaged)
	}
	if n := int64(len(sent)); got.Requests < n-1 || got.Requests > n || got.Sent == 0 {
		t.Errorf("%d requests were made: %+v", n, got)
	}
}

// What a run holds while it is added up is what its requests show.
func TestABillHoldsOneRequest(t *testing.T) {
	t.Parallel()
	o, sent := taped(t, 90, 0)
	most := 0
	for _, s := range sent {
		most = max(most, len(s))
	}
	b := newBilling(o.view(), 0)
	held := 0
	err := b.read(func() { held = max(held, len(b.held)) })
	if err != nil || held > most+maxFront+maxKept || held == 0 {
		t.Errorf("%d messages are held, the longest request has %d: %v", held, most, err)
	}
}

// What planning asks and is answered is told apart, and the requests by which a
// result is judged are counted whole.
func TestABillOfAPlan(t *testing.T) {
	t.Parallel()
	tally := NewTally(400)
	say := func(role, kind, text string, calls ...llm.ToolCall) {
		m := llm.Message{Role: role, Content: text, ToolCalls: calls}
		if role == llm.RoleAssistant {
			tally.Asked(m)
		}
		tally.Show(m, PartRecent, kind)
	}
	tally.Show(llm.Message{Role: llm.RoleSystem, Content: "You are tori." + mapHead + "a.go b.go c.go d.go e.go f.go g.go h.go\n"}, PartSystem, "")
	tally.Show(llm.Message{Role: llm.RoleUser, Content: "Do it."}, PartRequest, "")
	say(llm.RoleUser, "plan", "Plan it, please, as well as you can.")
	say(llm.RoleAssistant, "", "", llm.ToolCall{ID: "1", Name: "submit_plan", Arguments: `{"goal":"Do it"}`})
	tally.Show(llm.Message{Role: llm.RoleTool, ToolName: "submit_plan", Content: "Taken."}, PartRecent, "")
	say(llm.RoleAssistant, "", `{"phase":"execution"}`)
	if b := tally.Bill(); b.Verification.Requests != 0 || b.Requests != 2 || b.Parts[BillPlan] == 0 || b.Parts[BillAnswers] > 0 || b.First[BillMap] == 0 || b.First[BillTools] != 100 {
		t.Errorf("%+v", b)
	}
	say(llm.RoleUser, askVerify, "Is it done?")
	say(llm.RoleAssistant, "", "I look.", llm.ToolCall{ID: "2", Name: "read_file", Arguments: `{"path":"a"}`})
	tally.Show(llm.Message{Role: llm.RoleTool, ToolName: "read_file", Content: "aaaa"}, PartRecent, "")
	say(llm.RoleUser, "nudge", "Go on.")
	say(llm.RoleAssistant, "", `{"phase":"verification"}`)
	before := tally.window
	tally.Show(llm.Message{Role: llm.RoleTool, ToolName: "shell", Content: strings.Repeat("r", 400) + "\n\n[plan]\n" + strings.Repeat("q", 100)}, PartRecent, "reflect")
	for i, part := range billParts {
		if n := tally.window[i] - before[i]; part == BillResults && n < 400 || part == BillPlan && (n < 100 || n > 140) {
			t.Errorf("a question beside a result added %d bytes to %s", n, part)
		}
	}
	say(llm.RoleUser, "subtask/x", "Mend it.")
	say(llm.RoleAssistant, "", "Mended.")
	b := tally.Bill()
	if v := b.Verification; v.Requests != 2 || v.Sent <= v.Cached || v.Sent >= b.Sent || b.Requests != 5 || b.Parts[BillResults] == 0 || b.Parts[BillAnswers] == 0 {
		t.Errorf("%+v", b)
	}
}
