package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/backup"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// A daemon makes a backup once a day, catches up what it missed, whatever the clock does, and
// restores it for a test; one that is damaged is known, and the next one mends it.
func TestNightlyBackup(t *testing.T) {
	t.Parallel()
	h := newVendorHouse(t)
	to := filepath.Join(h.dir, "backups")
	h.write("config.yaml", "language: en\nsandbox: {mode: none}\nllm: {script: {file: "+filepath.Join(h.dir, "script.yaml")+"}}\npause_resume: {enabled: false}\n"+
		"routing: {llm: {chat_provider: script, coder_provider: script, coder2_provider: script}}\ncontext_storage: {base_dir: "+h.base+", durability: os}\n"+
		"channels: {slack: {bot_token: xoxb-test, app_token: xapp-test, allow_from: [U1]}}\nmaintenance: {at: '03:00'}\nbackup: {dir: "+to+", generations: 3}\n")
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)
	d := h.vendorDaemon(filepath.Join(h.dir, "posts"), func() time.Time { return now }, nil)
	run := func(id string) {
		uuid, err := d.store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "github", Owner: "acme", Repo: "widgets", Type: "issue", ID: id}, Title: id, Run: []byte("{}")})
		h.must(err)
		c, _, err := d.store.Claim(t.Context(), uuid)
		h.must(err)
		h.must(c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "done"}))
	}
	run("1")
	generations := func() (all []string) {
		all, err := filepath.Glob(filepath.Join(to, "generations", "*.json"))
		h.must(err)
		return all
	}
	for _, at := range []struct {
		time string
		want string // the number of the last generation
	}{{"2026-03-04 12:00", "00000001"}, {"2026-03-05 02:59", "00000001"}, {"2026-03-05 03:00", "00000002"}, {"2026-03-05 03:01", "00000002"}, {"2026-03-09 15:00", "00000003"},
		{"2026-02-01 00:00", "00000004"}, {"2026-02-01 02:00", "00000004"}, {"2026-02-01 03:00", "00000005"}} {
		var err error
		now, err = time.ParseInLocation("2006-01-02 15:04", at.time, time.Local)
		h.must(err)
		if _, err := d.night().backup(t.Context()); err != nil {
			t.Fatalf("%s: %v", at.time, err)
		}
		all := generations()
		if last := filepath.Base(all[len(all)-1]); !strings.HasPrefix(last, at.want) || len(all) > 3 {
			t.Errorf("%s: %q", at.time, all)
		}
		health, err := d.backupHealth(t.Context())
		if err != nil || health.Made.After(now) || health.Verified.Before(health.Made) || health.Damage != "" {
			t.Errorf("%s: %+v, %v", at.time, health, err)
		}
	}

	r, err := d.repository("", "")
	h.must(err)
	if g, err := r.Find(t.Context(), 0); err != nil || g.Runs != 1 {
		t.Errorf("the last generation: %+v, %v", g.Runs, err)
	}
	all, err := filepath.Glob(filepath.Join(to, "data", "*", "*"))
	h.must(err)
	for _, f := range all {
		h.must(os.WriteFile(f, []byte("x"), 0o600))
	}
	err = d.verifyLast(t.Context())
	health, herr := d.backupHealth(t.Context())
	if !backup.IsDamage(err) || herr != nil || health.Damage == "" {
		t.Errorf("of a damaged one: %v; %+v, %v", err, health, herr)
	}
	run("2")
	now = now.AddDate(0, 0, 1)
	if _, err := d.night().backup(t.Context()); err != nil {
		t.Errorf("the night after: %v", err)
	}
	if health, err = d.backupHealth(t.Context()); err != nil || health.Damage != "" || health.Verified.Before(health.Made) {
		t.Errorf("the night after: %+v, %v", health, err)
	}
	last := generations()
	raw, err := os.ReadFile(last[len(last)-1])
	h.must(err)
	h.must(os.WriteFile(last[len(last)-1], raw[1:], 0o600)) // the one before it is whole
	if err = d.verifyLast(t.Context()); !backup.IsDamage(err) {
		t.Errorf("of a damaged manifest: %v", err)
	}
	h.must(os.RemoveAll(to))
	h.must(os.WriteFile(to, nil, 0o600))
	now = now.AddDate(0, 0, 1)
	was := health.Made
	if _, err := d.night().backup(t.Context()); err == nil {
		t.Error("a backup to nowhere")
	}
	if health, err = d.backupHealth(t.Context()); err != nil || !health.Made.Equal(was) {
		t.Errorf("after it: %+v, %v", health, err)
	}
}

// A run that was damaged when it was copied is an alert that names it, and keeps nothing else from
// counting as verified. Where the test would leave too little room, it waits for another night.
func TestWhatTheNightVerifies(t *testing.T) {
	t.Parallel()
	h := newVendorHouse(t)
	h.write("config.yaml", "language: en\nsandbox: {mode: none}\nllm: {script: {file: "+filepath.Join(h.dir, "script.yaml")+"}}\npause_resume: {enabled: false}\n"+
		"routing: {llm: {chat_provider: script, coder_provider: script, coder2_provider: script}}\ncontext_storage: {base_dir: "+h.base+", durability: os}\n"+
		"channels: {slack: {bot_token: xoxb-test, app_token: xapp-test, allow_from: [U1]}}\nbackup: {dir: "+filepath.Join(h.dir, "backups")+"}\nmonitor: {alerts: {disk_free_gb: 1000000}}\n")
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)
	d := h.vendorDaemon(filepath.Join(h.dir, "posts"), func() time.Time { return now }, nil)
	var runs []string
	for _, id := range []string{"1", "2"} {
		uuid, err := d.store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "github", Owner: "acme", Repo: "widgets", Type: "issue", ID: id}, Title: id, Run: []byte("{}")})
		h.must(err)
		c, _, err := d.store.Claim(t.Context(), uuid)
		h.must(err)
		for range 3 {
			_, err = c.Append(contextstore.Message{Role: "user", Content: "please"})
			h.must(err)
		}
		h.must(c.Transition(t.Context(), task.Outcome{Status: task.Completed, Summary: "done"}))
		runs = append(runs, uuid)
	}
	night := func() string {
		t.Helper()
		var went NightStep
		h.must(d.night().do(t.Context(), []step{{"backup", d.night().backup}}, true, func(s NightStep) { went = s }))
		now = now.AddDate(0, 0, 1)
		return fmt.Sprint(append(went.Did, went.Err)...)
	}
	if did := night(); !strings.Contains(did, "later, for want of room") || !strings.HasSuffix(did, "<nil>") {
		t.Error(did)
	}
	health, err := d.backupHealth(t.Context())
	if err != nil || health.Made.IsZero() || !health.Verified.IsZero() || !health.tested.IsZero() || health.Failed != "" {
		t.Errorf("%+v, %v", health, err)
	}
	d.cfg.Monitor.Alerts.DiskFreeGB = 0
	messages := filepath.Join(h.base, "completed", runs[1], "messages.jsonl")
	raw, err := os.ReadFile(messages)
	h.must(err)
	lines := strings.SplitAfter(string(raw), "\n")
	h.must(os.WriteFile(messages, []byte(lines[0]+strings.Join(lines[2:], "")), 0o600))
	if did := night(); !strings.Contains(did, "restored for a test") {
		t.Error(did)
	}
	health, err = d.backupHealth(t.Context())
	if err != nil || health.Verified.Before(health.Made) || health.Damage != "" {
		t.Errorf("%+v, %v", health, err)
	}
	all, err := d.premises().backup(t.Context())
	if err != nil || len(all) != 1 || all[0].Name != "backup_failed" || !strings.Contains(all[0].Why.Error(), runs[1]) || strings.Contains(all[0].Why.Error(), runs[0]) {
		t.Errorf("%+v, %v", all, err)
	}
	h.must(os.WriteFile(messages, raw, 0o600))
	night()
	if all, err = d.premises().backup(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
}
