package agent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"toritsugi/internal/disk"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
)

// Each of several people is named with their own words.
func TestJoined(t *testing.T) {
	t.Parallel()
	of := func(who, text string) forge.Comment {
		return forge.Comment{Author: forge.Person{Login: who}, Body: text}
	}
	for _, c := range []struct {
		replies  []forge.Comment
		by, text string
	}{
		{[]forge.Comment{of("taro", " ok ")}, "taro", "ok"},
		{[]forge.Comment{of("taro", "ok"), of("taro", "no")}, "taro", "ok\n\nno"},
		{[]forge.Comment{of("taro", "ok"), of("boss", "Never.")}, "taro, boss", "taro: ok\n\nboss: Never."},
		{[]forge.Comment{of("", "43")}, "", "43"},
		{[]forge.Comment{of("", "43"), of("taro", "no")}, "taro", "somebody: 43\n\ntaro: no"},
	} {
		if by, text := joined(i18n.English, c.replies); by != c.by || text != c.text {
			t.Errorf("%q, %q, want %q, %q", by, text, c.by, c.text)
		}
	}
}

// A line behind one that a crash tore is read.
func TestALineBehindATornOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), answersFile)
	if err := os.WriteFile(path, []byte("{\"question_id\":\"a\"}\n{\"question_id\":\"to"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"b", "c"} {
		if err := appendLine(&disk.FS{}, path, []byte(`{"question_id":"`+id+`"}`), true); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	if err := eachLine(path, func(r reply) { ids = append(ids, r.ID) }); err != nil || !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Errorf("%q, %v", ids, err)
	}
}

// A call that waits for people may be made again until their answer is on record:
// from then on it may have had an effect.
func TestWaited(t *testing.T) {
	t.Parallel()
	r := &run{questions: questions{answers: map[string]planning.Answer{}}}
	r.questions.all = []planning.Question{{ID: "ask1"}, {ID: "ask-a", Call: "7.c1"}}
	for id, want := range map[string]bool{"7.c1": true, "7.c2": false} {
		if r.waited(id) != want {
			t.Errorf("%q: %t", id, !want)
		}
	}
	r.questions.answers["ask-a"] = planning.Answer{ID: "ask-a"}
	if r.waited("7.c1") {
		t.Error("an answered call is made again")
	}
	r.questions.all = append(r.questions.all, planning.Question{ID: "ask-b", Call: "7.c1"})
	if !r.waited("7.c1") {
		t.Error("a second question of the call is not waited for")
	}
}
