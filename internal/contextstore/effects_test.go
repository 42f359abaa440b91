package contextstore

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/task"
)

func effectLines(t *testing.T, v View) (all []EffectRecord) {
	t.Helper()
	if err := v.Effects(func(r EffectRecord) bool { all = append(all, r); return true }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEffectsAreNumberedRedactedAndSynced(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	log := c.Effects()
	if err := log.Each(func(EffectRecord) bool { t.Error("a line of nothing"); return true }); err != nil {
		t.Fatal(err)
	}
	before := s.FS.Counts().Syncs
	must(t, log.Append(EffectRecord{Type: EffectFact, Leg: "sensitive", Fact: "home_path", Detail: "hunter2hunter2"}))
	if s.FS.Counts().Syncs == before {
		t.Error("it was not synced")
	}
	must(t, log.Append(EffectRecord{Type: EffectRequest, Kind: "comment", Target: "a hunter2hunter2", Title: "hunter2hunter2", Text: "b hunter2hunter2\xff", Reason: "c hunter2hunter2",
		Findings: []EffectFinding{{"link", "e hunter2hunter2", "text, line 1"}}}))
	must(t, c.Effects().Append(EffectRecord{Type: EffectRequest, Kind: "push"})) // by another hand
	must(t, log.Append(EffectRecord{Type: EffectRequest, Kind: "chat"}))
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	must(t, err)
	all := effectLines(t, v)
	var got []string
	for i, r := range all {
		got = append(got, r.Kind)
		if r.Seq != int64(i+1) || r.Timestamp.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	if !slices.Equal(got, []string{"", "comment", "push", "chat"}) {
		t.Errorf("%q", got)
	}
	if raw, err := readFile(filepath.Join(c.Dir(), RequestLog)); err != nil || strings.Contains(string(raw), "hunter2") || !strings.Contains(string(raw), `"text":"b [SECRET]`) {
		t.Errorf("%s %v", raw, err)
	}
	must(t, c.Transition(t.Context(), task.Outcome{Status: task.Completed}))
	if err := log.Append(EffectRecord{Type: EffectFact}); err == nil {
		t.Error("written after the end")
	}
	must(t, s.Close())
	if r := check(t, s.BaseDir, false); len(kinds(r)) > 0 {
		t.Errorf("%q", kinds(r))
	}
}

// A crash leaves half a line: who writes next cuts it off and keeps it, who
// only reads passes it over. A bad line within is an error for both.
func TestEffectsAfterACrash(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	must(t, c.Effects().Append(EffectRecord{Type: EffectRequest, Kind: "comment"}))
	path := filepath.Join(c.Dir(), RequestLog)
	appendTo(t, path, `{"seq":2,"type":"req`)
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	must(t, err)
	if all := effectLines(t, v); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	must(t, c.Effects().Append(EffectRecord{Type: EffectRequest, Kind: "push"}))
	if all := effectLines(t, v); len(all) != 2 || all[1].Seq != 2 || all[1].Kind != "push" {
		t.Errorf("%+v", all)
	}
	if kept, err := readFile(path + ".cut"); err != nil || string(kept) != `{"seq":2,"type":"req` {
		t.Errorf("%q %v", kept, err)
	}
	appendTo(t, path, "garbage\n{\"seq\":3}\n")
	if err := v.Effects(func(EffectRecord) bool { return true }); err == nil {
		t.Error("garbage was passed over")
	}
}

func TestEffectsOfARunThatNobodyWorksOn(t *testing.T) {
	engines(t, func(t *testing.T) {
		var s *Store
		s = open(t, Options{Changed: func(_ context.Context, v View, _ task.Outcome) (string, []Effect, error) {
			return "", nil, s.EffectsOf(v).Append(EffectRecord{Type: EffectRequest, Kind: "comment", Text: "stopped"})
		}})
		c := begin(t, s)
		id := c.UUID()
		must(t, c.Transition(t.Context(), task.Outcome{Status: task.Paused}))
		if _, err := s.Control(t.Context(), id, Stop, "ken"); err != nil {
			t.Fatal(err)
		}
		v, err := Find(s.BaseDir, id, Viewer{Admin: true})
		must(t, err)
		if all := effectLines(t, v); len(all) != 1 || all[0].Text != "stopped" {
			t.Errorf("%+v", all)
		}
	})
}
