package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// tap is a conversation that keeps what it is given.
type tap struct {
	wire
	all []llm.Message
}

func (p *tap) Append(m llm.Message) { p.wire.Append(m); p.all = append(p.all, m) }
func (p *tap) Reset()               { p.wire.Reset(); p.all = nil }

// taped is a run of so many turns, and what was sent for each answer.
func taped(t *testing.T, turns, kill int) (o *owner, sent map[int64][]llm.Message) {
	t.Helper()
	asked := 0
	var conv *tap
	o = &owner{t: t, base: t.TempDir(), open: func() llm.Conversation { conv = &tap{}; return conv },
		p: Policy{Limit: 7000, Context: 10_000, Threshold: 0.7, MinMessages: 10, KeepRecent: 5, Masking: Masking{true, 3, 0.05}, Summarizer: scribe(&asked)}}
	o.claim()
	t.Cleanup(func() { o.kill() })
	o.append(contextstore.Message{Role: "system", Content: "SYSTEM"}, contextstore.Message{Role: "assistant", Content: InheritedPrefix + "PAST"},
		contextstore.Message{Role: "user", Content: "Repair pkg/file1.go, see #12."})
	sent = map[int64][]llm.Message{}
	for n := range turns {
		if n == turns*2/3 {
			o.p.Summarizer, o.p.Limit = nil, 3500 // from now on messages are dropped
			o.win.policy, o.win.cap = o.p, o.p.Limit
		}
		if err := o.win.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if kill > 0 && n%kill == kill-1 { // between the decision and the request
			o.kill()
			o.claim()
		}
		sent[o.ctx.LastSeq()+1] = slices.Clone(conv.all)
		for _, m := range turnOf(n) {
			o.append(m...)
		}
	}
	return o, sent
}

func (o *owner) view() contextstore.View {
	o.t.Helper()
	v, err := contextstore.Find(o.base, o.id, contextstore.Viewer{Admin: true})
	if err != nil {
		o.t.Fatal(err)
	}
	return v
}

func opened(t *testing.T, v contextstore.View, at int64) *Request {
	t.Helper()
	r, err := OpenRequest(v, at, Policy{Fixed: 4000})
	if err != nil {
		t.Fatalf("message %d: %v", at, err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func (r *Request) messages() (all []llm.Message) {
	for _, s := range r.Shown {
		all = append(all, s.Message)
	}
	return all
}

// Every request is told as it was sent, also where the clock went back at each
// kill, and while the owner goes on; without kills also of lines that do not say
// when they were decided.
func TestOpenRequest(t *testing.T) {
	t.Parallel()
	for _, kill := range []int{7, 0} {
		o, sent := taped(t, 75, kill)
		v := o.view()
		if kill == 0 {
			file := filepath.Join(v.Dir, "window.jsonl")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, regexp.MustCompile(`,"at_seq":\d+`).ReplaceAll(b, nil), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		parts, kinds := map[string]int{}, map[string]int{}
		for seq, want := range sent {
			r := opened(t, v, seq)
			if got := r.messages(); !reflect.DeepEqual(got, want) {
				t.Fatalf("message %d: %d messages were sent, told are %d:\n%.600v\n%.600v", seq, len(want), len(got), want, got)
			}
			sum := r.Tools
			for i, s := range r.Shown {
				parts[s.Part]++
				for part, words := range map[string]string{PartSaid: "[What people said", PartSummary: "[Summary ", PartNote: "no summary has them"} {
					if is := s.Seq == 0 && strings.Contains(s.Message.Content, words); is != (s.Part == part) {
						t.Errorf("message %d: part %s is %.60q", seq, s.Part, s.Message.Content)
					}
				}
				sum += s.Tokens
				if stub := strings.Contains(fmt.Sprint(s.Message), "; recall ref m-"); s.Masked != (stub && s.Part == PartRecent) || s.Tokens <= 0 || s.Seq > 0 && i < 3 && s.Seq != int64(i+1) {
					t.Errorf("message %d: %+v", seq, s)
				}
			}
			if r.Answer.Seq != seq || len(r.Damaged()) > 0 || sum > r.Tokens+5 || sum < r.Tokens-len(r.Shown)-5 || r.Tools != 1000 {
				t.Errorf("message %d: %d of %d tokens, %v", seq, sum, r.Tokens, r.Damaged())
			}
			if err := r.Decisions(func(d Decision) bool {
				kinds[d.Type]++
				if d.First < 4 || d.To < d.First || d.To >= seq {
					t.Errorf("message %d: %+v", seq, d)
				}
				return true
			}); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range []string{PartSystem, PartInherited, PartRequest, PartSaid, PartSummary, PartNote, PartRecent} {
			if parts[p] == 0 {
				t.Errorf("no %s in %v", p, parts)
			}
		}
		if kinds[contextstore.WindowMask] == 0 || kinds[contextstore.WindowSummary] == 0 || kinds[contextstore.WindowTruncate] == 0 {
			t.Errorf("%v", kinds)
		}
	}
}

// Which request a number belongs to, and what is said where there is none.
func TestWhichRequest(t *testing.T) {
	t.Parallel()
	o, sent := taped(t, 90, 0)
	v := o.view()
	last := int64(0)
	for seq := range sent {
		last = max(last, seq)
	}
	for at, want := range map[int64]int64{0: last, 4: 4, 5: 4, o.ctx.LastSeq(): last} {
		if r := opened(t, v, at); r.Answer.Seq != want {
			t.Errorf("%d: answered by %d, want %d", at, r.Answer.Seq, want)
		}
	}
	for at, key := range map[int64]string{1: "memoryshow.front", 3: "memoryshow.front", o.ctx.LastSeq() + 1: "memoryshow.range", -1: "memoryshow.range"} {
		_, err := OpenRequest(v, at, Policy{})
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != key {
			t.Errorf("%d: %v", at, err)
		}
	}
	// Nothing was said yet, and nothing was answered yet.
	begun := &owner{t: t, base: t.TempDir(), open: func() llm.Conversation { return &wire{} }}
	begun.claim()
	t.Cleanup(begun.kill)
	if r := opened(t, begun.view(), 0); r.Answer != nil || len(r.Shown) != 0 || r.Last != 0 {
		t.Errorf("%+v", r)
	}
	begun.append(contextstore.Message{Role: "system", Content: "SYSTEM"}, contextstore.Message{Role: "user", Content: "REQUEST"})
	if r := opened(t, begun.view(), 0); r.Answer != nil || len(r.Shown) != 2 || r.Shown[1].Part != PartRequest {
		t.Errorf("%+v", r)
	}
}

// What is damaged is told, with its place, and the rest is shown.
func TestDamagedPast(t *testing.T) {
	t.Parallel()
	o, _ := taped(t, 60, 0)
	v := o.view()
	whole := opened(t, v, 0)
	change := func(name string, f func([]byte) []byte) {
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
	n := len(whole.Shown)
	lost := whole.Shown[n-2].Seq
	at := int64(0)
	change("messages.jsonl", func(b []byte) []byte {
		at = int64(bytes.Index(b, fmt.Appendf(nil, `{"seq":%d,`, lost)))
		copy(b[at:], "\x00\x00\x00")
		return append(b, `{"seq":9999,"role":"us`...) // is being written
	})
	change("window.jsonl", func(b []byte) []byte { // and an editor moved the offsets
		all := bytes.SplitAfter(b, []byte("\n"))
		last := all[len(all)-2]
		var e map[string]any
		if err := json.Unmarshal(last, &e); err != nil {
			t.Fatal(err)
		}
		e["offset"] = 3
		moved, _ := json.Marshal(e)
		return append(append(bytes.Join(all[:len(all)-2], nil), "oops\n"...), append(moved, '\n')...)
	})
	change("summaries.jsonl", func([]byte) []byte { return []byte("\x00\n") })
	r := opened(t, v, 0)
	gone := slices.DeleteFunc(slices.Clone(r.Shown), func(s Shown) bool { return s.Part != PartLost })
	if len(r.Shown)-len(gone) != n-1 || len(gone) == 0 || !strings.Contains(gone[len(gone)-1].Message.Content, "are lost here, "+ref(lost)+":") {
		t.Errorf("%d messages are shown besides %+v, %d were sent", len(r.Shown)-len(gone), gone, n)
	}
	files := map[string]int{}
	for _, d := range r.Damaged() {
		files[d.File]++
		if d.File == "messages.jsonl" && d.Offset != at {
			t.Errorf("%+v, it is at byte %d", d, at)
		}
	}
	if files["messages.jsonl"] != 1 || files["window.jsonl"] != 2 || files["summaries.jsonl"] != 1 {
		t.Errorf("%+v", r.Damaged())
	}
	// The answer itself cannot be read.
	change("messages.jsonl", func(b []byte) []byte {
		copy(b[bytes.Index(b, fmt.Appendf(nil, `{"seq":%d,`, whole.Answer.Seq)):], "\x00\x00\x00")
		return b
	})
	if r := opened(t, v, whole.Answer.Seq); r.Answer.Seq >= whole.Answer.Seq || len(r.Damaged()) < 3 {
		t.Errorf("%+v", r)
	}
}

// The window of the past takes nothing down.
func TestThePastIsNotChanged(t *testing.T) {
	t.Parallel()
	s := &screening{}
	if _, err := s.AppendSummary(contextstore.Summary{}); err == nil || s.AppendWindow(contextstore.WindowEvent{}) == nil || s.Activity("", "") == nil {
		t.Error("it was taken down")
	}
	if _, err := (&screen{}).Send(context.Background(), nil); err == nil {
		t.Error("it was sent")
	}
}
