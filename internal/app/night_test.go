package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
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
		h.must(d.night().do(t.Context(), d.night().steps(), false, func(s NightStep) { h.must(s.Err) }))
		all, err := filepath.Glob(filepath.Join(h.base, "completed", uuid, "messages*"))
		if err != nil || at.form == "" && len(all) > 0 || at.form != "" && (len(all) != 1 || filepath.Base(all[0]) != at.form) {
			t.Errorf("%s: %q, %v", at.time, all, err)
		}
	}
}

// A step that fails is an alert and waits for the next night; one that is cut short or is not for now
// is begun again; the others are done once a night. One process is at it.
func TestStepsOfTheNight(t *testing.T) {
	t.Parallel()
	h := newVendorHouse(t)
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)
	d := h.vendorDaemon(filepath.Join(h.dir, "posts"), func() time.Time { return now }, nil)
	var did []string
	fails := map[string]error{}
	ctx, stop := context.WithCancel(t.Context())
	steps := make([]step, 0, len(nightSteps()))
	for _, name := range nightSteps() {
		steps = append(steps, step{name, func(context.Context) ([]any, error) {
			if did = append(did, name); errors.Is(fails[name], context.Canceled) {
				stop()
			}
			return []any{"n", 1}, fails[name]
		}})
	}
	night := func(want string) {
		t.Helper()
		did = nil
		if err := d.night().do(ctx, steps, false, func(NightStep) {}); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got := strings.Join(did, " "); got != want {
			t.Errorf("%s: %q, not %q", now.Format(time.DateTime), got, want)
		}
	}
	failed := func(want string) {
		t.Helper()
		all, err := d.premises().night(t.Context())
		h.must(err)
		var got []string
		for _, a := range all {
			got = append(got, a.About+": "+firstLine(i18n.English.Error(a.Why)))
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	fails = map[string]error{"locks": errors.New("no luck"), "vacuum": errLater, "index": context.Canceled}
	night("backup retention workspaces locks index")
	failed("locks: the step locks of the nightly work failed: no luck")
	ctx, stop = context.WithCancel(t.Context()) // the next start
	defer stop()
	fails["index"] = nil
	night("index vacuum report")
	night("vacuum")
	fails["vacuum"] = nil
	night("vacuum")
	night("")
	now = now.AddDate(0, 0, 3)
	alone, err := d.store.Alone("maintenance")
	h.must(err)
	if err := d.night().do(ctx, steps, false, func(NightStep) {}); !errors.Is(err, contextstore.ErrBusy) {
		t.Error(err)
	}
	alone.Release()
	fails = nil
	night("backup retention workspaces locks index vacuum report")
	failed("")
}

// What a dead owner left is freed, and nothing that somebody has.
func TestStaleLocks(t *testing.T) {
	t.Parallel()
	h := newVendorHouse(t)
	d := h.vendorDaemon(filepath.Join(h.dir, "posts"), time.Now, nil)
	run := func(id string) string {
		uuid, err := d.store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "folder", Owner: "a", Repo: "r", Type: "issue", ID: id}, Title: "one", Run: []byte("{}")})
		h.must(err)
		_, _, err = d.store.Claim(t.Context(), uuid)
		h.must(err)
		return filepath.Join(h.base, "running", uuid)
	}
	held, dead := run("1"), run("2")
	h.must(os.CopyFS(dead+"-copy", os.DirFS(dead))) // as a dead owner leaves it: with a lock that nobody holds
	h.must(os.RemoveAll(dead))
	h.must(os.Rename(dead+"-copy", dead))
	for _, want := range []int{1, 0} {
		if did, err := d.night().locks(t.Context()); err != nil || did[1] != want {
			t.Errorf("%v, %v", did, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dead, contextstore.LockFile)); !os.IsNotExist(err) {
		t.Error(err)
	}
	if _, ok := contextstore.ReadOwner(held); !ok {
		t.Error("the live one lost its lock")
	}
}

// The report goes where the settings say, once a night, and waits until it is quiet no more.
func TestReportOfTheNight(t *testing.T) {
	t.Parallel()
	h := newVendorHouse(t)
	h.write("config.yaml", "language: en\nsandbox: {mode: none}\nllm: {script: {file: "+filepath.Join(h.dir, "script.yaml")+"}}\npause_resume: {enabled: false}\n"+
		"routing: {llm: {chat_provider: script, coder_provider: script, coder2_provider: script}}\ncontext_storage: {base_dir: "+h.base+", durability: os}\n"+
		"channels: {slack: {bot_token: xoxb-test, app_token: xapp-test, allow_from: [U1], quiet: '02:00-07:00'}}\nmaintenance: {report_to: 'slack:T1:COPS'}\n")
	now := time.Date(2026, 3, 4, 3, 0, 0, 0, time.Local)
	d := h.vendorDaemon(filepath.Join(h.dir, "posts"), func() time.Time { return now }, nil)
	for _, hour := range []int{3, 6, 7, 8, 30, 31} { // the last two: the next day
		now = time.Date(2026, 3, 4, hour, 0, 0, 0, time.Local)
		h.must(d.night().do(t.Context(), d.night().steps(), false, func(s NightStep) { h.must(s.Err) }))
		h.must(d.night().do(t.Context(), d.night().steps(), false, func(s NightStep) { h.must(s.Err) }))
		told := 0
		for _, p := range posted(t, filepath.Join(h.dir, "posts")) {
			if p.SessionID == "slack:T1:COPS" && strings.Contains(p.Text, "Total contexts: 0") {
				told++
			}
		}
		if want := map[int]int{3: 0, 6: 0, 7: 1, 8: 1, 30: 1, 31: 2}[hour]; told != want {
			t.Errorf("at %s: told %d times, not %d", now.Format(time.DateTime), told, want)
		}
	}
	if s, err := d.night().report(t.Context()); err != nil || len(s) == 0 { // once for a day
		t.Error(s, err)
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
