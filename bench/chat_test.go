package main

import (
	"maps"
	"os"
	"strings"
	"testing"
)

// TestChat: the parts of the chat door, measured little, answer all that the report prints
// of them, and check that each message was answered once, by its own answer.
func TestChat(t *testing.T) {
	t.Chdir("..")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{self: self, dir: t.TempDir()}
	s, err := b.chat(t.Context(), chatSize{routed: 1, turns: 20, pieces: 20, sessions: 5, each: 4, events: 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{routedCount, routedMedian, routedWorst, bareCall, chatTurn, chatSync, manyRate, takenMedian} {
		if s[name] <= 0 {
			t.Errorf("%s is %v", name, s[name])
		}
	}
	if s[chatSyncs] != 2 || s[manyWrong] != 0 {
		t.Errorf("%v syncs, %v wrong", s[chatSyncs], s[manyWrong])
	}
	var out strings.Builder
	(&report{w: &out}).chat(s)
	if strings.Count(out.String(), "≤") != 5 || strings.Contains(out.String(), "NaN") {
		t.Errorf("%v gives\n%s", s, &out)
	}
}

// TestChatReport: each budget that is exceeded is marked and counted, and no other.
func TestChatReport(t *testing.T) {
	t.Parallel()
	within := sample{routedLate: 50, takenLate: 50, chatOwn: 2, manyHeap: 64, startNone: 100, startMany: 300, startResumed: 300}
	for name, over := range map[string]int{"": 0, routedLate: 1, takenLate: 1, chatOwn: 1, chatLast: 1, manyWrong: 1, manyHeap: 1, startMany: 1, startResumed: 1} {
		s := maps.Clone(within)
		if name != "" {
			s[name] += 5
		}
		var out strings.Builder
		r := &report{w: &out}
		if r.chat(s); r.over != over || strings.Count(out.String(), "OVER") != over {
			t.Errorf("%s: %d over, want %d:\n%s", name, r.over, over, &out)
		}
	}
}
