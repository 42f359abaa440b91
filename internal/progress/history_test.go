package progress

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/planning"
)

func same(s string) string { return s }

// life is what a run with a plan tells, in the order in which it happens: messages,
// lines of the planning history, checks.
func life() []any {
	n := 0
	at := func() contextstore.Time {
		n++
		return contextstore.Time{Time: noon.Add(time.Duration(n) * time.Second)}
	}
	asks := func(kind string) contextstore.Message {
		return contextstore.Message{Role: llm.RoleUser, Kind: kind, Timestamp: at()}
	}
	says := func(text string, calls ...contextstore.ToolCall) contextstore.Message {
		return contextstore.Message{Role: llm.RoleAssistant, Content: text, ToolCalls: calls, Timestamp: at()}
	}
	gives := func(name, text string, failed bool) contextstore.Message {
		return contextstore.Message{Role: llm.RoleTool, ToolName: name, ToolCallID: "1", Content: text, Failed: failed, Timestamp: at()}
	}
	call := func(name, args string) contextstore.ToolCall {
		return contextstore.ToolCall{ID: "1", Name: name, Arguments: args}
	}
	sure := 0.8
	plan := planning.Plan{Goal: planning.Goal{MainObjective: "The answer is 42", TaskType: "bug_fix", Confidence: &sure}}
	return []any{
		contextstore.Message{Role: llm.RoleSystem, Content: "rules", Timestamp: at()},
		contextstore.Message{Role: llm.RoleUser, Content: "the request", Timestamp: at()},
		contextstore.CheckRun{Setup: true, Command: "setup", Timestamp: at()},
		contextstore.CheckRun{Command: "make test", ExitCode: 1, Timestamp: at()},
		asks("plan"),
		says("I look.", call("read_file", `{"path":"`+strings.Repeat("長", 100)+`"}`)),
		gives("read_file", "41", false),
		says(`{"phase":"planning","comment":"Two steps."}`),
		planning.Entry{Timestamp: at(), Plan: &plan},
		planning.Entry{Timestamp: at(), Assumption: &planning.Assumption{Value: "decimal"}},
		asks("subtask/one"),
		says("", call("shell", `{"command":"make"}`)),
		gives("shell", "exit code 2\nno rule", true),
		asks("reflect"),
		says(`{"phase":"reflection","reflection":{}}`),
		planning.Entry{Timestamp: at(), Revision: &planning.Revision{Reason: "a step more", Changes: []planning.Change{{}}}},
		planning.Entry{Timestamp: at(), Replan: &planning.ReplanRecord{Do: "retry", Level: 1, Decision: planning.ReplanDecision{Decision: planning.Replan{Reasoning: "once more"}}}},
		asks("subtask/one"),
		asks("subtask/one"),
		says(`{"task_id":"one","status":"done","summary":"it is 42"}`),
		planning.Entry{Timestamp: at(), Subtask: &planning.SubtaskRecord{ID: "one", Status: planning.Done, Summary: "it is 42"}},
		contextstore.CheckRun{Command: "make test", Round: 1, Timestamp: at()},
		asks("verify"),
		says(`{"verification_passed":false}`),
		planning.Entry{Timestamp: at(), Verification: &planning.Verification{Issues: []string{"a", "b"}}},
		planning.Entry{Timestamp: at(), Question: &planning.Question{Questions: []string{"Which?"}}},
		planning.Entry{Timestamp: at(), Answer: &planning.Answer{By: "hanako", Text: "That."}},
		says(strings.Repeat("話", 300)),
	}
}

// follow tells a tracker a life as it happens.
func follow(t *Tracker, all []any) {
	for _, x := range all {
		switch x := x.(type) {
		case contextstore.Message:
			t.Message(x)
		case planning.Entry:
			t.Recorded(x)
		case contextstore.CheckRun:
			if !x.Setup {
				t.Checked(x, x.Timestamp.Time)
			}
		}
	}
}

// past is what is read again of a life: of the last n messages.
func past(all []any, n int) *Past {
	p := &Past{}
	var msgs []contextstore.Message
	for _, x := range all {
		switch x := x.(type) {
		case contextstore.Message:
			msgs = append(msgs, x)
		case planning.Entry:
			p.Entries = append(p.Entries, x)
		case contextstore.CheckRun:
			p.Checks = append(p.Checks, x)
		}
	}
	p.More = len(msgs) > n
	msgs = msgs[max(len(msgs)-n, 0):]
	p.Messages = func(f func(contextstore.Message)) error {
		for _, m := range msgs {
			f(m)
		}
		return nil
	}
	return p
}

// told is a history in short.
func told(h History) (all []string) {
	for _, e := range h.Entries {
		s := fmt.Sprintf("%s|%s|%s|%s|%d", e.Kind, e.Name, e.Result, e.Text, e.N)
		all = append(all, s)
	}
	return all
}

// Every kind of entry comes from what the run writes, as it happens; a run that is
// taken up has the same history.
func TestHistory(t *testing.T) {
	t.Parallel()
	want := []string{
		"check|make test|failed||0",
		"phase||planning||0",
		"said|||I look.|0",
		"tool|read_file|ok|" + strings.Repeat("長", maxArgs) + "…|0",
		"said|||Two steps.|0",
		"collected||||1",
		"understood|bug_fix||The answer is 42|0",
		"assumption|||decimal|0",
		"phase|one|execution||0",
		"tool|shell|failed|make|0",
		"error|shell||exit code 2 no rule|0",
		"phase||reflection||0",
		"revision|||a step more|1",
		"replan|try the same again||once more|1",
		"phase|one|execution||0",
		"summary|one|done|it is 42|0", // in the place of what the model said with it
		"check|make test|ok||1",
		"phase||verification||0",
		"verification||failed|a; b|0",
		"question|||Which?|0",
		"answer|hanako||That.|0",
		"said|||" + strings.Repeat("話", maxSaid) + "…|0",
	}
	all := Notify{true, true, true, true}
	live, again := NewTracker(100, all, same, i18n.English), NewTracker(100, all, same, i18n.English)
	follow(live, life())
	if got := told(live.History()); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := again.Resume(past(life(), 100)); err != nil {
		t.Fatal(err)
	}
	if got := told(again.History()); !slices.Equal(got, want) || again.History().More {
		t.Errorf("taken up, more %t\n%s", again.History().More, strings.Join(got, "\n"))
	}
}

// A result is older than what was recorded of its answer, and brings the phase that
// follows from it: the times do not go back, neither as it happens nor when the run
// is taken up.
func TestTimesOfAHistory(t *testing.T) {
	t.Parallel()
	at := func(s int) contextstore.Time {
		return contextstore.Time{Time: noon.Add(time.Duration(s) * time.Second)}
	}
	life := []any{
		contextstore.Message{Seq: 1, Role: llm.RoleAssistant, Timestamp: at(1), ToolCalls: []contextstore.ToolCall{{ID: "1", Name: planning.ToolReport, Arguments: "{}"}}},
		planning.Entry{Seq: 1, Timestamp: at(3), Subtask: &planning.SubtaskRecord{ID: "one", Status: planning.Failed, Summary: "no ink"}},
		contextstore.Message{Seq: 2, Role: llm.RoleTool, ToolName: planning.ToolReport, ToolCallID: "1", Kind: "replan", Timestamp: at(2)},
	}
	all := Notify{true, true, true, true}
	live, again := NewTracker(100, all, same, i18n.English), NewTracker(100, all, same, i18n.English)
	follow(live, life)
	if err := again.Resume(past(life, 100)); err != nil {
		t.Fatal(err)
	}
	for _, h := range []History{live.History(), again.History()} {
		if len(h.Entries) != 2 || h.Entries[1].Kind != KindPhase || h.Entries[1].At.Unix() != at(3).Unix() {
			t.Errorf("%+v", h.Entries)
		}
	}
}

// The oldest go, and are counted; of a run that is taken up nobody knows how many
// there were.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	all := Notify{true, true, true, true}
	live := NewTracker(5, all, same, i18n.English)
	follow(live, life())
	h := live.History()
	if len(h.Entries) != 5 || h.Dropped != 22-5 || h.More || h.Entries[0].Kind != KindPhase {
		t.Errorf("%d entries, %d dropped: %v", len(h.Entries), h.Dropped, told(h))
	}
	again := NewTracker(5, all, same, i18n.English)
	if err := again.Resume(past(life(), 3)); err != nil {
		t.Fatal(err)
	}
	if h := again.History(); len(h.Entries) != 5 || !h.More || h.Entries[4].Kind != KindSaid {
		t.Errorf("more %t: %v", h.More, told(h))
	}
	broken := errors.New("unreadable")
	p := past(nil, 0)
	p.Messages = func(func(contextstore.Message)) error { return broken }
	if err := again.Resume(p); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// The settings take away what people do not want to hear of the time before the
// plan, and nothing else.
func TestNotify(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]Notify{"phase||planning": {false, true, true, true}, "understood": {true, false, true, true}, "collected": {true, true, false, true}, "assumption": {true, true, true, false}} {
		tr := NewTracker(100, n, same, i18n.English)
		follow(tr, life())
		got := told(tr.History())
		if slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, name) }) || len(got) != 21 {
			t.Errorf("%s: %d entries\n%s", name, len(got), strings.Join(got, "\n"))
		}
	}
}

// What must not be seen is masked before it is cut, wherever the cut falls: blanks
// may bring what lies far behind into the little that is shown.
func TestHistoryIsMasked(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s", 250)
	for name, c := range map[string]struct{ text, want string }{
		"where little is shown": {"it is " + secret, "it is *"},
		"where little is read":  {"it is " + strings.Repeat(" ", maxRead-16) + secret, "it is *"},
	} {
		tr := NewTracker(9, Notify{}, func(s string) string { return strings.ReplaceAll(s, secret, "*") }, i18n.English)
		tr.Message(contextstore.Message{Role: llm.RoleAssistant, Content: c.text})
		if got := told(tr.History()); len(got) != 1 || got[0] != "said|||"+c.want+"|0" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A decision is told by what is done, with what was wished and why that was not, and
// with a warning where the model was not sure.
func TestADecisionIsTold(t *testing.T) {
	t.Parallel()
	decision := func(kind string, confidence float64, do string, level int, override string) planning.Entry {
		return planning.Entry{Replan: &planning.ReplanRecord{Decision: planning.ReplanDecision{Decision: planning.Replan{Type: kind, Reasoning: "ρ"}}, Confidence: confidence,
			Executed: do != planning.DoNothing && do != planning.DoStop, Do: do, Level: level, Override: override}}
	}
	for name, c := range map[string]struct {
		e      planning.Entry
		en, ja string
	}{
		"sure":       {decision(planning.DoRetry, 0.8, planning.DoRetry, 1, ""), "🔁 Planned anew: try the same again (level 1): ρ", "🔁 再計画: 同じ作業をやり直す（レベル 1）: ρ"},
		"not sure":   {decision(planning.DoRetry, 0.5, planning.DoRetry, 1, ""), "🔁 ⚠️ Planned anew: try the same again (level 1) — the model is not sure of it: ρ", "🔁 ⚠️ 再計画: 同じ作業をやり直す（レベル 1） — モデルは確信を持っていません: ρ"},
		"too unsure": {decision(planning.DoRetry, 0.2, planning.DoNothing, 0, "low_confidence"), "🔁 What went wrong: go on without it — wished: try the same again; not done because: the model was too unsure of it (planning.replanning.llm_decision): ρ", "🔁 問題への対応: そのまま続ける — モデルの希望: 同じ作業をやり直す。そうしなかった理由: モデルの確信度が低すぎます（planning.replanning.llm_decision）: ρ"},
		"overridden": {decision(planning.DoRetry, 0.9, planning.DoPartial, 2, "action_retries_spent, loop"), "🔁 Planned anew: do the rest in another way (level 2) — wished: try the same again; not done because: it was tried as often as it may be (planning.replanning.execution.max_action_retries); the same was wished again and again without progress (planning.replanning.global.same_trigger_max_count): ρ", ""},
		"asked":      {decision(planning.DoRetry, 0.4, planning.DoAsk, 0, "needs_confirmation"), "🔁 What went wrong: ask people — wished: try the same again; not done because: the model was not sure enough to go on without a person's yes (planning.replanning.llm_decision.min_confidence_threshold): ρ", ""},
	} {
		for l, want := range map[i18n.Lang]string{i18n.English: c.en, i18n.Japanese: c.ja} {
			tr := NewTracker(9, Notify{}, same, l)
			tr.Recorded(c.e)
			if got := tr.History().Entries[0].markdown(l); want != "" && got != want {
				t.Errorf("%s, %s:\n%s\nwant\n%s", name, l, got, want)
			}
		}
	}
}

// One line for what is looked at again and again, with which lines of it; what is
// looked for is seen.
func TestRepeatedCalls(t *testing.T) {
	t.Parallel()
	tr := NewTracker(100, Notify{}, same, i18n.English)
	for _, c := range []struct{ name, args string }{
		{"read_file", `{"path":"a.go","start_line":1,"end_line":40}`},
		{"read_file", `{"path":"a.go","start_line":41}`},
		{"read_file", `{"path":"a.go","start_line":41}`},
		{"read_file", `{"path":"/workspace/b.go"}`},
		{"grep", `{"pattern":"a*[b]","path":"internal"}`},
		{"git", `{"command":"log","path":"a.go"}`},
		{"list_files", `{}`},
		{"answer_remark", `{"remark":7,"answer":"Renamed."}`},
	} {
		tr.Message(contextstore.Message{Role: llm.RoleAssistant, ToolCalls: []contextstore.ToolCall{{ID: "1", Name: c.name, Arguments: c.args}}})
		tr.Message(contextstore.Message{Role: llm.RoleTool, ToolName: c.name, ToolCallID: "1"})
	}
	var got []string
	for _, e := range tr.History().Entries {
		got = append(got, e.markdown(i18n.English))
	}
	want := []string{"🔧 **read_file** `a.go:1-40,41-` → ok (×3)", "🔧 **read_file** `b.go` → ok", "🔧 **grep** `internal: a*[b]` → ok", "🔧 **git** `log a.go` → ok", "🔧 **list_files** → ok", "🔧 **answer_remark** `Renamed.` → ok"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]Report{
		"": {}, ", $0.1200": {MicroUSD: 120_000}, ", cost unknown": {Unpriced: 2}, ", cost $0.1200 or more": {Unpriced: 2, MicroUSD: 120_000},
	} {
		if got := r.cost(i18n.English); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
	if got := (&Report{Unpriced: 2, Scripted: true}).cost(i18n.English); got != "" {
		t.Errorf("a script: %q", got)
	}
}

// What the run asks beside a result is none of the error, however long that is.
func TestAnErrorBesideAQuestion(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"exit code 2", strings.Repeat("e", maxSaid-4)} {
		x := NewTracker(10, Notify{}, same, i18n.English)
		m := contextstore.Message{Role: llm.RoleTool, ToolName: "shell", Content: text, Failed: true}
		m.Ask("reflect", "What next?")
		x.Message(m)
		if got := told(x.History()); !slices.Contains(got, "error|shell||"+text+"|0") {
			t.Errorf("%q", got)
		}
	}
}
