package routing

import (
	"strings"
	"testing"
)

func TestParseDelegation(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, answer string
		want         Delegation
		rest         string
	}{
		{"plain", "DELEGATE: CODE\nTASK: fix main.go", Delegation{Code, "fix main.go"}, ""},
		{"task over lines", "DELEGATE: PLAN\nTASK: a\nb\n\n- c", Delegation{Plan, "a\nb\n\n- c"}, ""},
		{"task below its word", "DELEGATE: OPS\nTASK:\nlook at nginx", Delegation{Ops, "look at nginx"}, ""},
		{"preface", "少しお待ちください。\n\nDELEGATE: RESEARCH\nTASK: 調べる", Delegation{Research, "調べる"}, "少しお待ちください。"},
		{"preface on the line", "では頼みます。DELEGATE: CODE3\nTASK: x", Delegation{Code3, "x"}, "では頼みます。"},
		{"fence", "```\nDELEGATE: CODE2\nTASK: x\n```\nそれでは。", Delegation{Code2, "x"}, "それでは。"},
		{"fence with a language", "はい。\n```text\ndelegate: analyze\ntask: x\n```", Delegation{Analyze, "x"}, "はい。"},
		{"code in the task", "DELEGATE: CODE\nTASK: fix\n```go\nx()\n```\nthanks", Delegation{Code, "fix\n```go\nx()\n```\nthanks"}, ""},
		{"code in a fenced task", "```\nDELEGATE: CODE\nTASK: fix\n```go\nx()\n```\n```\nbye", Delegation{Code, "fix\n```go\nx()\n```"}, "bye"},
		{"full width", "ＤＥＬＥＧＡＴＥ：ＣＯＤＥ１\nＴＡＳＫ：　設計して", Delegation{Code1, "設計して"}, ""},
		{"full width within", "了解！ ＤＥＬＥＧＡＴＥ：ＰＬＡＮ\nTASK: x", Delegation{Plan, "x"}, "了解！"},
		{"bold", "**DELEGATE:** `CODE`\n**TASK:** x", Delegation{Code, "x"}, ""},
		{"bold inside", "**DELEGATE**: CODE\n**TASK**: x", Delegation{Code, "x"}, ""},
		{"list", "- Delegate : ops\n- Task : x", Delegation{Ops, "x"}, ""},
		{"crlf", "DELEGATE: CODE\r\nTASK: x\r\n", Delegation{Code, "x"}, ""},
		{"one line", "DELEGATE: CODE TASK: x", Delegation{Code, "x"}, ""},
		{"reason between", "DELEGATE: CODE\nREASON: because\nTASK: x", Delegation{Code, "x"}, ""},
		{"no task", "DELEGATE: CODE\nplease do it", Delegation{Code, ""}, ""},
		{"empty task", "DELEGATE: CODE\nTASK:  \n", Delegation{Code, ""}, ""},
		{"two", "DELEGATE: PLAN\nTASK: a\nDELEGATE: CODE\nTASK: b", Delegation{Plan, "a"}, ""},
		{"unknown route", "うん。\nDELEGATE: FISH\nTASK: a", Delegation{}, "うん。"},
		{"to chat", "DELEGATE: CHAT\nTASK: a", Delegation{}, ""},

		{"talk of it", "You should delegate: it saves time.", Delegation{}, "You should delegate: it saves time."},
		{"talk of it in front", "Delegate: a type in C#.", Delegation{}, "Delegate: a type in C#."},
		{"no colon", "DELEGATE CODE", Delegation{}, "DELEGATE CODE"},
		{"nothing", "", Delegation{}, ""},
	} {
		d, rest, found := ParseDelegation(tc.answer)
		if d != tc.want || rest != tc.rest || found != (tc.want.Route != "") {
			t.Errorf("%s: %+v, %q, %v", tc.name, d, rest, found)
		}
	}
}

func TestParseProposal(t *testing.T) {
	t.Parallel()
	const object = `{"propose_next_loop": true, "route": "OPS", "reason": "logs", "confidence": 0.7}`
	ops := Proposal{true, Ops, "logs", 0.7}
	for _, tc := range []struct {
		name, answer, rest string
		want               Proposal
		ok                 bool
	}{
		{"fenced", "はい。\n```json\n" + object + "\n```\n", "はい。", ops, true},
		{"no language", "はい。\n```\n" + object + "\n```", "はい。", ops, true},
		{"cut off behind", "はい。\n```json\n" + object, "はい。", ops, true},
		{"bare at the end", "はい。\n" + object, "はい。", ops, true},
		{"text behind", "a\n```json\n" + object + "\n```\nb", "a\n\nb", ops, true},
		{"other JSON stays", "```json\n{\"a\": 1}\n```\n```json\n" + object + "\n```", "```json\n{\"a\": 1}\n```", ops, true},
		{"the last counts", "```json\n" + strings.Replace(object, "OPS", "PLAN", 1) + "\n```\nx\n```json\n" + object + "\n```", "x", ops, true},
		{"as models write it", "x\n```json\n{'propose_next_loop': False, 'route': 'code', 'confidence': 1,}\n```", "x", Proposal{false, Code, "", 1}, true},
		{"route of no one", "x\n```json\n" + strings.Replace(object, "OPS", "FISH", 1) + "\n```", "x", Proposal{}, false},
		{"out of range", "x\n```json\n" + strings.Replace(object, "0.7", "7", 1) + "\n```", "x", Proposal{}, false},
		{"half an object", "x\n```json\n{\"propose_next_loop\": true, \"rou", "x", Proposal{}, false},
		{"missing confidence", "x\n```json\n{\"propose_next_loop\": true, \"route\": \"OPS\"}\n```", "x", Proposal{}, false},
		{"talk of it", "The field propose_next_loop is a boolean.", "The field propose_next_loop is a boolean.", Proposal{}, false},
		{"none", "```json\n{\"a\": 1}\n```", "```json\n{\"a\": 1}\n```", Proposal{}, false},
	} {
		p, rest, ok := ParseProposal(tc.answer)
		if p != tc.want || rest != tc.rest || ok != tc.ok {
			t.Errorf("%s: %+v, %q, %v", tc.name, p, rest, ok)
		}
	}
}

// streamed is what a Stream shows of an answer in pieces of n characters.
func streamed(answer string, n int) string {
	var b strings.Builder
	s := NewStream(func(delta string) { b.WriteString(delta) })
	for r := []rune(answer); len(r) > 0; r = r[min(n, len(r)):] {
		s.Write(string(r[:min(n, len(r))]))
	}
	return b.String()
}

func TestStream(t *testing.T) {
	t.Parallel()
	const object = `{"propose_next_loop": true, "route": "OPS", "reason": "x", "confidence": 1}`
	for answer, want := range map[string]string{
		"hello\nworld.":                     "hello\nworld.",
		"はい。\nDELEGATE: CODE\nTASK: x":      "はい。\n",
		"では DELEGATE: CODE\nTASK: x":        "では ",
		"了解。ＤＥＬＥＧＡＴＥ：CODE\nTASK: x":         "了解。",
		"```\ndelegate: code\ntask: x\n```": "",
		"x\n```json\n" + object + "\n```":   "x\n",
		"x\n```\n" + object + "\n```":       "x\n",
		"x\n" + object:                      "x\n",
		"see:\n```go\nf()\n```\nok\n":       "see:\n```go\nf()\n```\nok\n",
		"```json\n{\"a\": 1}\n```\ndone\n":  "```json\n{\"a\": 1}\n```\ndone\n",
		"I DELEGATED it. DELEGATES win.\n":  "I DELEGATED it. DELEGATES win.\n",
		"Delegate: a type in C#.\nYes\n":    "Delegate: a type in C#.\nYes\n",
		"a { b } c\n":                       "a { b } c\n",
	} {
		for _, n := range []int{1, 2, 3, 7, 1000} {
			if got := streamed(answer, n); got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", answer, n, got, want)
			}
		}
	}
}

// leaks reports whether a text shows something of a directive.
func leaks(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if _, _, _, is := directive(line); is {
			return true
		}
	}
	return false
}

func FuzzParseDelegation(f *testing.F) {
	for _, s := range []string{"a\nDELEGATE: CODE\nTASK: x\n```go\ny\n```", "```\nＤＥＬＥＧＡＴＥ： ops\ntask: 直す\n```\nDELEGATE: PLAN\nTASK:", "x DELEGATE:DELEGATE: CODE", "DELEGATE: \xff\nTASK: \xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, rest, found := ParseDelegation(s)
		if found && (d.Route == "" || d.Route == Chat) || !found && d != (Delegation{}) {
			t.Errorf("%q: %+v, %v", s, d, found)
		}
		if leaks(rest) || leaks(streamed(s, 3)) {
			t.Errorf("%q: left %q, streamed %q", s, rest, streamed(s, 3))
		}
		if leaks(d.Task) {
			t.Errorf("%q: task %q", s, d.Task)
		}
	})
}

func FuzzParseProposal(f *testing.F) {
	for _, s := range []string{"a\n```json\n{\"propose_next_loop\":true,\"route\":\"OPS\",\"confidence\":1}\n```", "{'propose_next_loop': 1", "```{\"propose_next_loop\"```"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, rest, ok := ParseProposal(s)
		if _, known := ParseRoute(string(p.Route)); ok && (!known || p.Confidence < 0 || p.Confidence > 1) {
			t.Errorf("%q: %+v", s, p)
		}
		if len(rest) > len(s) {
			t.Errorf("%q grew to %q", s, rest)
		}
	})
}
