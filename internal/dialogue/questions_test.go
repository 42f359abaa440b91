package dialogue

import (
	"testing"

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

// A call that waits for people may be made again until their answer is on record:
// from then on it may have had an effect.
func TestWaited(t *testing.T) {
	t.Parallel()
	d := &Dialogue{questions: questions{answers: map[string]planning.Answer{}}}
	d.questions.all = []planning.Question{{ID: "ask1"}, {ID: "ask-a", Call: "7.c1"}}
	for id, want := range map[string]bool{"7.c1": true, "7.c2": false} {
		if d.Waits(id) != want {
			t.Errorf("%q: %t", id, !want)
		}
	}
	d.questions.answers["ask-a"] = planning.Answer{ID: "ask-a"}
	if d.Waits("7.c1") {
		t.Error("an answered call is made again")
	}
	d.questions.all = append(d.questions.all, planning.Question{ID: "ask-b", Call: "7.c1"})
	if !d.Waits("7.c1") {
		t.Error("a second question of the call is not waited for")
	}
}
