package ops

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

func TestCheckPrints(t *testing.T) {
	t.Parallel()
	base, uuid := example(t)
	admin := contextstore.Viewer{Admin: true}
	p := filepath.Join(base, "completed", uuid, "summaries.jsonl")
	f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{\"to\x1b[31m"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	r, err := Check(t.Context(), &b, base, CheckOptions{Lang: i18n.English, Viewer: admin})
	if err != nil || r.Left == 0 {
		t.Fatalf("%+v %v", r, err)
	}
	for _, want := range []string{
		"550e8400 messages.jsonl (line 1, byte 0): number 148 follows where 1 was expected — cannot be mended without loss; left as it is\n",
		"550e8400 summaries.jsonl (line 3, byte 345): the last 9 bytes are no whole line — --repair mends it (cut off, kept in summaries.jsonl.cut)\n",
		"1 contexts checked, 0 in use: 2 found, 0 mended, 2 left\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if _, err := Check(t.Context(), &b, base, CheckOptions{Lang: i18n.Japanese, Viewer: admin, JSON: true, Repair: true}); err != nil {
		t.Fatal(err)
	}
	var objects []map[string]any
	for d := json.NewDecoder(&b); d.More(); {
		var o map[string]any
		if err := d.Decode(&o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	last := objects[len(objects)-1]
	if len(objects) != 3 || last["type"] != "summary" || last["mended"] != 1.0 || last["left"] != 1.0 {
		t.Errorf("%v", objects)
	}
}

// Every context is read: that is for administrators.
func TestCheckIsForAdministrators(t *testing.T) {
	t.Parallel()
	base, _ := example(t)
	var want *i18n.Error
	o := CheckOptions{Viewer: contextstore.Viewer{User: "notfolder"}, Repair: true}
	var b bytes.Buffer
	if _, err := Check(t.Context(), &b, base, o); !errors.As(err, &want) || want.Key != "check.not_admin" || b.Len() > 0 {
		t.Error(err)
	}
	if _, err := Reindex(t.Context(), &b, base, o); !errors.As(err, &want) || want.Key != "check.not_admin" {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(base, "tasks.db")); err == nil {
		t.Error("an index was made")
	}
}

// Users see their own tasks; those of others are not counted either.
func TestTasksOfTheViewer(t *testing.T) {
	t.Parallel()
	base, _ := example(t)
	for who, want := range map[string]bool{"NotFolder": true, "ken": false} {
		var b bytes.Buffer
		if err := Tasks(t.Context(), &b, base, TasksOptions{Limit: 10, Width: 80, Viewer: contextstore.Viewer{User: who}}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "550e8400") != want {
			t.Errorf("%s sees\n%s", who, b.String())
		}
	}
}
