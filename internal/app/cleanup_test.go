package app

import (
	"path/filepath"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// A daemon looks after ended runs once a day, at its time, and catches up what it missed.
func TestNightly(t *testing.T) {
	t.Parallel()
	h := newVendorHouse(t)
	h.write("config.yaml", "language: en\nsandbox: {mode: none}\nllm: {script: {file: "+filepath.Join(h.dir, "script.yaml")+"}}\npause_resume: {enabled: false}\n"+
		"routing: {llm: {chat_provider: script, coder_provider: script, coder2_provider: script}}\ncontext_storage: {base_dir: "+h.base+", durability: os}\n"+
		"channels: {slack: {bot_token: xoxb-test, app_token: xapp-test, allow_from: [U1]}}\nmaintenance: {at: '03:00'}\n")
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)
	d := h.vendorDaemon(filepath.Join(h.dir, "posts"), func() time.Time { return now }, nil)
	uuid, err := d.store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "github", Owner: "acme", Repo: "widgets", Type: "issue", ID: "1"}, Title: "one", Run: []byte("{}")})
	h.must(err)
	c, _, err := d.store.Claim(t.Context(), uuid)
	h.must(err)
	_, err = c.Append(contextstore.Message{Role: "user", Content: "please"})
	h.must(err)
	h.must(c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "done"}))
	for _, at := range []struct {
		time string
		form string
	}{{"2026-03-04 12:00", "messages.jsonl"}, {"2026-03-11 11:00", "messages.jsonl"}, {"2026-03-12 02:59", "messages.jsonl"}, {"2026-03-12 03:00", "messages.jsonl.gz"}, {"2026-06-20 00:00", ""}} {
		now, err = time.ParseInLocation("2006-01-02 15:04", at.time, time.Local)
		h.must(err)
		h.must(d.night().do(t.Context(), false, func(s NightStep) { h.must(s.Err) }))
		all, err := filepath.Glob(filepath.Join(h.base, "completed", uuid, "messages*"))
		if err != nil || at.form == "" && len(all) > 0 || at.form != "" && (len(all) != 1 || filepath.Base(all[0]) != at.form) {
			t.Errorf("%s: %q, %v", at.time, all, err)
		}
	}
}
