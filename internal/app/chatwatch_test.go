package app

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/job"
)

// A terminal shows how far a job is that another process works on, by what that leaves on
// disk, then what is said of its end, and the end behind that.
func TestAnotherProcessWorks(t *testing.T) {
	t.Parallel()
	t.Run("tori serve", func(t *testing.T) { t.Parallel(); anotherWorks(t, false) })
	t.Run("another terminal", func(t *testing.T) { t.Parallel(); anotherWorks(t, true) })
}

// anotherWorks has a process work that shows what is said to somebody itself, or to nobody.
func anotherWorks(t *testing.T, shows bool) {
	v := newVillage(t)
	reached, goOn := make(chan struct{}), make(chan struct{})
	v.first = func() {
		reached <- struct{}{}
		<-goOn
	}
	h, stop := v.house()
	defer stop()
	s := &screen{session: hanakos, moved: make(chan struct{})}
	h.engine.Add(s)
	h.following = map[string]*followed{}
	look := func() string {
		h.look(t.Context())
		return s.going[len(s.going)-1]
	}
	other, stopOther := v.house()
	defer stopOther()
	if shows {
		other.engine.Add(&posts{})
	}
	var run contextstore.View
	claim := func() *contextstore.Context {
		t.Helper()
		l, err := contextstore.List(t.Context(), h.store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{Type: "chat"})
		if err != nil || len(l.Views) != 1 {
			t.Fatalf("%+v, %v", l.Views, err)
		}
		run = l.Views[0]
		c, _, err := other.store.Claim(t.Context(), run.Metadata.UUID)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}

	v.says(h, hanakos, "/code2 greet the moon")
	if got := look(); got != "waiting to begin · greet the moon" {
		t.Errorf("%q", got)
	}
	if err := claim().Close(); err != nil { // as a kill does
		t.Fatal(err)
	}
	if got := look(); !strings.HasPrefix(got, "interrupted; the next tori chat") {
		t.Errorf("%q", got)
	}
	c := claim()
	done := make(chan error, 1)
	go func() {
		_, err := other.work(t.Context(), c)
		done <- err
	}()
	<-reached
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`reading greet.txt (step 1) · process %d on %s`, os.Getpid(), host)
	if got := look(); got != want+" · greet the moon" {
		t.Errorf("%q", got)
	}
	for _, command := range []string{"/jobs", "/status"} {
		v.says(h, hanakos, command)
		if got := s.all[len(s.all)-1].Text; !strings.Contains(got, "at work: "+want) {
			t.Errorf("%s: %q", command, got)
		}
	}
	v.says(other, others, "/jobs")
	n := len(s.going)
	if look(); len(s.going) != n {
		t.Errorf("said again: %q", s.going[n:])
	}
	before := len(s.all)
	close(goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.look(t.Context())
	var kinds []string
	for _, p := range s.all[before:] {
		kinds = append(kinds, string(p.Kind))
	}
	if got := strings.Join(kinds, " "); got != "request notice answer progress" {
		t.Fatalf("%s: %+v", got, s.all[before:])
	}
	a := s.all[before].Approval

	v.says(h, hanakos, "/approve "+a.Job+" "+a.Hash)
	if look(); !strings.Contains(strings.Join(s.going, "\n"), "applying · greet the moon") {
		t.Errorf("%q", s.going)
	}
	before = len(s.all)
	if _, err := other.work(t.Context(), claim()); err != nil {
		t.Fatal(err)
	}
	if h.look(t.Context()); s.count("decided: Applied, not committed: ") != 1 || s.all[len(s.all)-1].Text != a.Job+" has ended" {
		t.Errorf("%+v", s.all[before:])
	}
	if len(h.following) > 0 {
		t.Errorf("%+v", h.following)
	}
	if run, err = h.store.View(run.Metadata.UUID); err != nil {
		t.Fatal(err)
	}
	if got := job.Stage(run, i18n.Japanese); got != "適用中: 完了" {
		t.Errorf("%q", got)
	}
}
