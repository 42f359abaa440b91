package app

import (
	"encoding/json"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// In the home of the app a person sees what they may decide about, and what they began
// by any id of theirs; of what may not leave the machine they see that it is there.
func TestHome(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "access: {people: {'slack:U1': 'github:hanako', '"+hanako+"': 'github:hanako'}}\napproval: {approvers: ['slack:U3']}\nchannels: {slack: {bot_token: xoxb-test, app_token: xapp-test}}\n")
	h.add("chat: {deliver: branch, repositories: [{name: tools, path: " + h.repo + "}]}\n")
	id := h.ask()
	h.must(h.once())
	talks, end := h.talks()
	defer end()
	home := func(who string) string {
		text, err := talks.home(t.Context(), who)
		h.must(err)
		return text
	}
	j, _ := h.job(id)
	press := "`/approve " + id + " " + j.Short() + "`"
	for who, want := range map[string][2]bool{"slack:U1": {true, true}, hanako: {true, true}, "slack:U3": {true, false}, "slack:U2": {false, false}} {
		waits, runs, _ := strings.Cut(home(who), "# Your runs\n")
		if strings.Contains(waits, press) != want[0] || strings.Contains(runs, "waiting for a decision: **") != want[1] || (waits == "# Waiting for your decision\nNothing.\n\n") == want[0] {
			t.Errorf("%s sees %s%s", who, waits, runs)
		}
	}
	h.must(h.decide(id, false))
	h.must(h.once())
	if text := home("slack:U1"); !strings.Contains(text, "- ended: **Make it 42**") {
		t.Errorf("of what has ended no title is told: %s", text)
	}
	run, err := json.Marshal(map[string]any{"local_only": true})
	h.must(err)
	_, err = talks.store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "terminal", Type: "chat", ID: "x"}, Title: "the secret plan", User: "hanako", Run: run})
	h.must(err)
	if text := home("slack:U1"); strings.Contains(text, "secret plan") || !strings.Contains(text, "waiting to begin: (does not leave the machine)") {
		t.Error(text)
	}
}
