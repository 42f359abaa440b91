package app

import (
	"os"
	"path/filepath"
	"reflect"
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
		h.must(d.maintain(t.Context()))
		all, err := filepath.Glob(filepath.Join(h.base, "completed", uuid, "messages*"))
		if err != nil || at.form == "" && len(all) > 0 || at.form != "" && (len(all) != 1 || filepath.Base(all[0]) != at.form) {
			t.Errorf("%s: %q, %v", at.time, all, err)
		}
	}
}

// What a rule does not say is as for all runs; a rule that keeps is one for nothing else.
func TestRetentionOfTheSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	h := newVendorHouse(t)
	h.must(os.WriteFile(path, []byte("context_storage: {retention: {gzip_days: 3, max_gb: 1.5, rules: [{status: failed, delete_days: 14}, {repository: acme/law, keep: true}]}}\n"), 0o600))
	cfg, err := LoadConfig(path, func(string) string { return "" })
	h.must(err)
	r := (&system{cfg: cfg}).retention()
	day := 24 * time.Hour
	want := contextstore.Retention{Gzip: 3 * day, Slim: 30 * day, Delete: 90 * day, MaxBytes: 1_500_000_000, Rules: []contextstore.RetentionRule{
		{Status: task.Failed, Gzip: 3 * day, Slim: 30 * day, Delete: 14 * day}, {Repo: "acme/law", Keep: true, Gzip: 3 * day, Slim: 30 * day, Delete: 90 * day}}}
	if r.Near = nil; !reflect.DeepEqual(r, want) {
		t.Errorf("%+v\nwant %+v", r, want)
	}
}
