package github

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
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/forge/rest"
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

// world is a server with a repository, and what people do there.
type world struct {
	*githubtest.Server
	t     *testing.T
	clock *clock
	repo  *githubtest.Repo
	token string
	open  func(change func(*Options)) *Forge
	files int
}

// newWorld has a repository acme/app that tori-bot may write to.
func newWorld(t *testing.T, o githubtest.Options) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{at: time.Now()}} // the App's client takes the machine's time
	o.Now = w.clock.now
	w.Server = githubtest.New(t, o)
	w.repo = w.AddRepo("acme", "app", githubtest.RepoOptions{}, map[string]string{"README.md": "hello\n"})
	w.AddUser(githubtest.User{Login: "tori-bot", Roles: map[string]string{"acme/app": "write"}})
	w.token = w.Token("tori-bot")
	w.open = func(change func(*Options)) *Forge {
		t.Helper()
		o := Options{Login: rest.Login{URL: w.URL, Token: w.token, HTTP: &http.Client{Transport: &http.Transport{}}, Now: w.clock.now, RetryDelay: time.Millisecond}, WriteSpacing: -1}
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

var acme = forge.Repo{Owner: "acme", Name: "app"}

func (w *world) number(id string) int {
	n, err := strconv.Atoi(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) note(id string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(id, "note/"), 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) Person(login string, p forge.Permission) forge.Person {
	u := w.AddUser(githubtest.User{Login: login, Roles: map[string]string{"acme/app": p.String()}})
	return forge.Person{ID: u.ID, Login: u.Login}
}

func (w *world) Rename(p forge.Person, login string) { w.Server.Rename(p.Login, login) }

func (w *world) Open(by forge.Person, title, body string, labels ...string) string {
	return strconv.Itoa(w.repo.OpenIssue(by.Login, title, body, labels...))
}

func (w *world) Close(by forge.Person, id string) { w.repo.Close(w.number(id), by.Login) }

func (w *world) Comment(by forge.Person, id, body string) string {
	return fmt.Sprint(w.repo.Comment(w.number(id), by.Login, body))
}

func (w *world) Edit(_ forge.Person, _, note, body string) { w.repo.EditComment(w.note(note), body) }
func (w *world) Delete(_ forge.Person, _, note string)     { w.repo.DeleteComment(w.note(note)) }

func (w *world) React(by forge.Person, _, note, sign string) {
	w.repo.React(w.note(note), by.Login, sign)
}

func (w *world) Label(by forge.Person, id, label string) { w.repo.Label(w.number(id), label, by.Login) }
func (w *world) Unlabel(by forge.Person, id, label string) {
	w.repo.Unlabel(w.number(id), label, by.Login)
}

func (w *world) Assign(by forge.Person, id string, to forge.Person) {
	w.repo.Assign(w.number(id), to.Login, by.Login)
}

func (w *world) Notes(id string) []string {
	var all []string
	for _, c := range w.repo.Issue(w.number(id)).Comments {
		all = append(all, c.Body)
	}
	return all
}

func (w *world) LabelsOf(id string) []string { return w.repo.Issue(w.number(id)).Labels }

func (w *world) AllLabels() []string {
	var all []string
	for _, l := range w.repo.Labels() {
		all = append(all, l.Name)
	}
	return all
}

func (w *world) Push(branch string) string {
	w.files++
	return w.repo.Commit(branch, "tori-bot", "work", map[string]string{"work.txt": fmt.Sprintf("line\nfile %d\n", w.files)})
}

func (w *world) File(string) string { return "work.txt" }

func (w *world) Review(by forge.Person, id, verdict, body, remark string) {
	var lines []githubtest.Line
	if remark != "" {
		lines = append(lines, githubtest.Line{Path: "work.txt", Line: 1, Body: remark})
	}
	w.repo.Review(w.number(id), by.Login, strings.ToUpper(verdict), body, lines...)
}

func (w *world) Reviewers(id string) []string { return w.repo.Issue(w.number(id)).Pull.Reviewers }

func (w *world) Check(commit, name, state, output string) {
	c := githubtest.CheckRun{Name: name, Summary: output, Title: "result"}
	switch state {
	case forge.CheckPassed:
		c.Conclusion = "success"
	case forge.CheckFailed:
		c.Conclusion = "failure"
	case forge.CheckSkipped:
		c.Conclusion = "skipped"
	}
	w.repo.AddCheckRun(commit, c)
}

func (w *world) Pass(d time.Duration) { w.clock.add(d) }

func TestContractWithAToken(t *testing.T) {
	t.Parallel()
	forgetest.Run(t, func(t *testing.T) forgetest.Fixture {
		w := newWorld(t, githubtest.Options{Rate: 1 << 30})
		f := w.open(nil)
		return forgetest.Fixture{Forge: f, Code: f, Reopen: func() forge.Tracker { return w.open(nil) }, Repo: acme, Main: "main", World: w}
	})
}

func TestContractWithAnApp(t *testing.T) {
	t.Parallel()
	forgetest.Run(t, func(t *testing.T) forgetest.Fixture {
		w := newWorld(t, githubtest.Options{Rate: 1 << 30})
		app := App{ID: 7, Key: w.AddApp(githubtest.App{ID: 7, Slug: "tori"})}
		w.Install("tori", "acme")
		open := func() forge.Forge { return w.open(func(o *Options) { o.Token, o.App = "", app }) }
		f := open()
		return forgetest.Fixture{Forge: f, Code: f, Reopen: func() forge.Tracker { return open() }, Repo: acme, Main: "main", World: w}
	})
}
