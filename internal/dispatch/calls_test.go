package dispatch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// asks puts the label that asks for work on an issue.
func (l *lobby) asks(n int) {
	l.hub.items[fmt.Sprint(n)] = forge.Item{Key: key(n), Open: true, Labels: []string{"coding agent"}}
}

// calls has somebody call, and the intake answer.
func (l *lobby) calls(name string, numbers ...string) error {
	l.t.Helper()
	var changed []Changed
	for _, n := range numbers {
		changed = append(changed, Changed{ID: n})
	}
	return l.callsOf(name, changed...)
}

func (l *lobby) callsOf(name string, changed ...Changed) error {
	l.t.Helper()
	got := make(chan error)
	go func() {
		got <- l.Call(l.t.Context(), l.watch, Call{Repo: forge.Repo{Owner: "O", Name: name}, Changed: changed})
	}()
	l.waitFor(1)
	l.answer(l.t.Context(), l.watch)
	return <-got
}

// waitFor returns once so many calls wait.
func (l *lobby) waitFor(n int) {
	for waiting := -1; waiting < n; runtime.Gosched() {
		l.watch.mu.Lock()
		waiting = len(l.watch.calls)
		l.watch.mu.Unlock()
	}
}

func (l *lobby) begun(n int) bool {
	l.t.Helper()
	_, ok, err := l.Store.Latest(l.t.Context(), key(n))
	if err != nil {
		l.t.Fatal(err)
	}
	return ok
}

// Who calls has the one repository looked at: at what is said there, and at what is asked for
// where an item changed. It is looked at once more with the next look at comments.
func TestACallIsAnswered(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a", "b")
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	l.asks(1)
	l.hub.visited = nil
	if err := l.calls("A"); err != nil || l.begun(1) || strings.Join(l.hub.visited, " ") != "a" {
		t.Errorf("only something was said: %v, visited %q", err, l.hub.visited)
	}
	if err := l.calls("a", "1"); err != nil || !l.begun(1) {
		t.Errorf("not begun: %v", err)
	}
	l.asks(2) // the call for it came before the forge's list had it
	l.hub.visited = nil
	l.revisit(t.Context(), l.watch)
	l.revisit(t.Context(), l.watch)
	if !l.begun(2) || strings.Join(l.hub.visited, " ") != "a" {
		t.Errorf("looked once more at %q", l.hub.visited)
	}
}

// A closed issue stops its run at once, whether it is worked on or waits; those of other items
// are not asked about.
func TestACallStops(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	one, two, three := l.running(1), l.queued(2), l.running(3)
	if err := l.look(true, time.Second); err != nil {
		t.Fatal(err)
	}
	l.hub.read = nil
	for _, n := range []int{1, 2, 3} {
		l.hub.items[fmt.Sprint(n)] = forge.Item{Key: key(n)}
	}
	if err := errors.Join(l.calls("a", "1"), l.calls("a", "2")); err != nil {
		t.Fatal(err)
	}
	_, asked := l.Store.Pending(one)
	_, others := l.Store.Pending(three)
	if !asked || others || l.status(two) != task.Stopped || strings.Join(l.hub.read, " ") != "1 2" {
		t.Errorf("asked to end: %v, %v; %s; read %q", asked, others, l.status(two), l.hub.read)
	}
}

// Where a forge numbers issues and merge requests each on their own, a call about one is none about
// the other of its number.
func TestACallTellsTheTypesApart(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	run := l.queued(5)
	if err := l.look(true, time.Second); err != nil {
		t.Fatal(err)
	}
	l.hub.items["5"] = forge.Item{Key: key(5)} // closed
	l.hub.read = nil
	if err := l.callsOf("a", Changed{"merge_request", "5"}); err != nil || l.hub.read != nil || l.status(run).Final() {
		t.Errorf("of the merge request: %v, read %q, %s", err, l.hub.read, l.status(run))
	}
	if err := l.callsOf("a", Changed{key(5).Type, "5"}); err != nil || l.status(run) != task.Stopped {
		t.Errorf("of the issue: %v, %s", err, l.status(run))
	}
}

// Calls that come while something is looked at share a look; a repository that nobody watches
// gets none, one that is new to a pattern does.
func TestCallsShareALook(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	if err := l.look(true, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	l.hub.visited = nil
	all := make(chan error)
	for _, name := range []string{"a", "a", "a", "gone", "b"} {
		go func() {
			all <- l.Call(t.Context(), l.watch, Call{Repo: forge.Repo{Owner: "o", Name: name}, Changed: []Changed{{ID: "1"}}})
		}()
	}
	l.waitFor(5)
	l.hub.repos = append(l.hub.repos, forge.Repository{Repo: forge.Repo{Owner: "o", Name: "b"}})
	l.answer(t.Context(), l.watch)
	for range 5 {
		if err := <-all; err != nil {
			t.Error(err)
		}
	}
	if err := l.calls("b"); err != nil { // at the first look comments are not read
		t.Error(err)
	}
	slices.Sort(l.hub.visited)
	if got := strings.Join(l.hub.visited, " "); got != "a b" {
		t.Errorf("visited %q", got)
	}
}

// What keeps a look from being made is told, so that it is made later; a forge that wants to be left
// alone is.
func TestACallFails(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a")
	if err := l.look(true, time.Minute); err != nil {
		t.Fatal(err)
	}
	l.hub.broken["a"] = down()
	if err := l.calls("a"); err == nil {
		t.Error("the forge was down, and nothing was told")
	}
	visits := len(l.hub.visited)
	if err := l.calls("a"); !errors.Is(err, errHeld) || len(l.hub.visited) != visits {
		t.Errorf("%v, %d visits", err, len(l.hub.visited))
	}
	l.pass(time.Minute)
	l.hub.broken["a"] = &forge.Error{Kind: forge.Forbidden, Err: errors.New("403")}
	if err := l.calls("a"); err != nil { // trying again would not mend it
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.Call(ctx, l.watch, Call{Repo: forge.Repo{Owner: "o", Name: "a"}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Where webhooks come looks are a quarter as often, and as often as before when none came
// for that long. One repository is looked at each time.
func TestLooksAreFewerWhereWebhooksCome(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "a", "b", "c")
	count := func(all bool, every time.Duration) string {
		t.Helper()
		l.hub.visited = nil
		for range 8 {
			if err := l.look(all, every); err != nil {
				t.Fatal(err)
			}
		}
		n := map[string]int{}
		for _, name := range l.hub.visited {
			n[name]++
		}
		return fmt.Sprint(n["a"], n["b"], n["c"])
	}
	if err := l.look(true, l.Interval); err != nil { // the first one reads no comments
		t.Fatal(err)
	}
	if got := count(true, l.Interval); got != "8 8 8" {
		t.Errorf("without webhooks: %s", got)
	}
	for range 2 {
		if err := l.calls("a", "1"); err != nil {
			t.Fatal(err)
		}
		l.lookedAt(l.watch, forge.Repo{Owner: "o", Name: "a"}, true)
		if got := count(true, l.Interval); got != "4 8 8" { // left out until the 4th, then no webhook came any more
			t.Errorf("one webhook: %s", got)
		}
	}
	run := l.running(9)
	if err := errors.Join(l.calls("a"), l.look(false, 0)); err != nil {
		t.Fatal(err)
	}
	if got := count(false, l.CommentsEvery); got != "4 0 0" {
		t.Errorf("comments on the run %s: %s", run, got)
	}
}

// What may be taken from, and who is ourselves, is known without asking.
func TestWatches(t *testing.T) {
	t.Parallel()
	l := newLobby(t, "renamed")
	l.watch.Patterns = []string{"o/*", "Acme/Widgets"}
	if l.watch.Own(forge.Person{}) || l.watch.Own(forge.Person{ID: 1}) {
		t.Error("known before it was asked for")
	}
	l.hub.repos[0].Owner = "elsewhere"
	if err := l.look(true, 0); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"o/x": true, "O/x": true, "acme/widgets": true, "acme/other": false, "oo/x": false, "elsewhere/renamed": true} {
		r, _ := forge.ParseRepo(name)
		if l.watch.Watches(r) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	if !l.watch.Own(forge.Person{ID: 1, Login: "renamed"}) || l.watch.Own(forge.Person{ID: 2, Login: "tori"}) {
		t.Error("not the account")
	}
}
