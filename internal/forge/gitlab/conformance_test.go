package gitlab

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/forgetest"
	"toritsugi/internal/forge/gitlab/gitlabtest"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// world is a server with a project, and what people do there.
type world struct {
	*gitlabtest.Server
	t     *testing.T
	clock *clock
	p     *gitlabtest.Project
	token string
	open  func(change func(*Options)) *Forge
	files int
}

var acme = forge.Repo{Owner: "acme/tools", Name: "app"}

// newWorld has a private project acme/tools/app that tori-bot may write to, on a server
// below a path.
func newWorld(t *testing.T, o gitlabtest.Options) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{at: time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)}}
	o.Now = w.clock.now
	if o.Path == "" {
		o.Path = "/gitlab"
	}
	w.Server = gitlabtest.New(t, o)
	w.p = w.AddProject(acme.String(), "private")
	w.AddUser("tori-bot", false)
	w.p.Member("tori-bot", 30)
	w.token = w.Token("tori-bot", "api", "write_repository")
	w.open = func(change func(*Options)) *Forge {
		t.Helper()
		o := Options{URL: w.URL, Token: w.token, HTTP: &http.Client{Transport: &http.Transport{}}, Now: w.clock.now, RetryDelay: time.Millisecond}
		if change != nil {
			change(&o)
		}
		f, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(o.HTTP.CloseIdleConnections)
		return f
	}
	return w
}

var levels = map[forge.Permission]int{forge.Read: 10, forge.Triage: 20, forge.Write: 30, forge.Maintain: 40, forge.Admin: 50}

// number is an item as the server's methods take it: the contract's pull requests are never
// among issues that they would be mistaken for.
func (w *world) number(id string) string {
	n, err := strconv.Atoi(id)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.p.Has(n) {
		return "!" + id
	}
	return id
}

func (w *world) note(id string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, "note/"), 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) Person(login string, p forge.Permission) forge.Person {
	id := w.AddUser(login, false)
	w.p.Member(login, levels[p])
	return forge.Person{ID: id, Login: login}
}

func (w *world) Rename(p forge.Person, login string) { w.Server.Rename(p.Login, login) }

func (w *world) Open(by forge.Person, title, body string, labels ...string) string {
	return strconv.Itoa(w.p.Open(by.Login, title, body, labels...))
}

func (w *world) Close(_ forge.Person, id string) { w.p.Close(w.number(id)) }

func (w *world) Comment(by forge.Person, id, body string) string {
	return fmt.Sprint(w.p.Comment(w.number(id), by.Login, body))
}

func (w *world) Edit(_ forge.Person, id, note, body string) {
	w.p.Edit(w.number(id), w.note(note), body)
}
func (w *world) Delete(_ forge.Person, id, note string) { w.p.Delete(w.number(id), w.note(note)) }

func (w *world) React(by forge.Person, id, note, sign string) {
	w.p.Award(w.number(id), w.note(note), by.Login, map[string]string{forge.Yes: "thumbsup", forge.No: "thumbsdown", "heart": "heart"}[sign])
}

func (w *world) Label(by forge.Person, id, label string) {
	w.p.Label(w.number(id), by.Login, label, true)
}

func (w *world) Unlabel(by forge.Person, id, label string) {
	w.p.Label(w.number(id), by.Login, label, false)
}

func (w *world) Assign(by forge.Person, id string, to forge.Person) {
	w.p.Assign(w.number(id), by.Login, to.Login)
}

func (w *world) Notes(id string) []string    { return w.p.Notes(w.number(id)) }
func (w *world) LabelsOf(id string) []string { return w.p.LabelsOf(w.number(id)) }
func (w *world) AllLabels() []string         { return w.p.Labels() }

func (w *world) Push(branch string) string {
	w.files++
	return w.p.Commit(branch, "work.txt", fmt.Sprintf("line\nfile %d\n", w.files))
}

func (w *world) File(string) string { return "work.txt" }

func (w *world) Review(by forge.Person, id, verdict, body, remark string) {
	if body != "" {
		w.p.Comment(w.number(id), by.Login, body)
	}
	if remark != "" {
		w.p.Remark(w.number(id), by.Login, "work.txt", 1, remark, 0)
	}
	if verdict != forge.Commented {
		w.p.Verdict(w.number(id), by.Login, map[string]string{forge.ChangesRequested: "requested_changes"}[verdict]+map[string]string{forge.Approved: "approved"}[verdict])
	}
}

func (w *world) Reviewers(id string) []string { return w.p.Reviewers(w.number(id)) }

func (w *world) Check(commit, name, state, output string) {
	w.p.Job(commit, gitlabtest.Job{Name: name, State: map[string]string{
		forge.CheckPassed: "success", forge.CheckFailed: "failed", forge.CheckPending: "running", forge.CheckSkipped: "skipped"}[state], Log: output})
}

func (w *world) Pass(d time.Duration) { w.clock.add(d) }

func TestContract(t *testing.T) {
	t.Parallel()
	forgetest.Run(t, func(t *testing.T) forgetest.Fixture {
		w := newWorld(t, gitlabtest.Options{})
		f := w.open(nil)
		return forgetest.Fixture{
			Forge: f, Code: f, Reopen: func() forge.Tracker { return w.open(nil) }, Repo: acme, Main: "main", World: w, PullType: mergeRequest,
			Lacks: map[forgetest.Feature]string{forgetest.Summaries: "what is written with a verdict is a note"},
		}
	})
}
