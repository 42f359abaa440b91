package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/gitlab/gitlabtest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

var bg = context.Background()

func key(kind string, n int) task.Key {
	return task.Key{Source: "gitlab", Owner: acme.Owner, Repo: acme.Name, Type: kind, ID: strconv.Itoa(n)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is checks the kind of an error, and that it speaks both languages.
func is(t *testing.T, err error, kind forge.Kind, words ...string) {
	t.Helper()
	var e *forge.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("%v, want one of kind %s", err, kind)
	}
	en, ja := i18n.English.Error(err), i18n.Japanese.Error(err)
	if en == ja || strings.Contains(en+ja, "%!") {
		t.Errorf("%s\n%s", en, ja)
	}
	for _, w := range words {
		if !strings.Contains(en, w) {
			t.Errorf("%q does not say %q", en, w)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct{ url, token, want string }{
		{"", "", "gitlab.token"}, {"", "a b", "no token"}, {"http://gitlab.example", "x", "gitlab.url"}, {"https://u:p@gitlab.example", "x", "gitlab.url"},
		{"https://gitlab.example/?a=b", "x", "gitlab.url"}, {"gitlab.example", "x", "gitlab.url"}, {"://", "x", "gitlab.url"},
	} {
		_, err := New(Options{URL: c.url, Token: c.token})
		var e *i18n.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || i18n.Japanese.Error(err) == err.Error() {
			t.Errorf("%s: %v", c.url, err)
		}
	}
	for url, want := range map[string]string{
		"": "https://gitlab.com/a/b/c.git", "https://GitLab.example/": "https://gitlab.example/a/b/c.git", "https://x.example/git/lab": "https://x.example/git/lab/a/b/c.git",
		"https://x.example/gitlab/api/v4/": "https://x.example/gitlab/a/b/c.git", "http://127.0.0.1:8080": "http://127.0.0.1:8080/a/b/c.git",
	} {
		f, err := New(Options{URL: url, Token: "x"})
		must(t, err)
		r, err := f.Remote(bg, forge.Repo{Owner: "a/b", Name: "c"})
		if err != nil || r.URL != want || r.User == "" || r.Password != "x" {
			t.Errorf("%s: %+v, %v", url, r, err)
		}
		// What looks like an escape in a name is none, and leads nowhere else.
		r, err = f.Remote(bg, forge.Repo{Owner: "a.b/%2e%2e", Name: "c%2Fd.e"})
		if want := strings.TrimSuffix(want, "a/b/c.git") + "a.b/%252e%252e/c%252Fd.e.git"; err != nil || r.URL != want {
			t.Errorf("%s, want %s, %v", r.URL, want, err)
		}
	}
}

// What a server may answer in place of what was asked for.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer gitlabtest.Answer
		kind   forge.Kind
		words  []string
	}{
		{"revoked", gitlabtest.Answer{Status: 401, Body: `{"error":"invalid_token","error_description":"Token was revoked."}`}, forge.Unauthorized, []string{"invalid_token", "gitlab.token_file"}},
		{"scope", gitlabtest.Answer{Status: 403, Body: `{"error":"insufficient_scope","error_description":"…","scope":"api"}`}, forge.Forbidden, []string{"api and write_repository"}},
		{"role", gitlabtest.Answer{Status: 403, Body: `{"message":"403 Forbidden"}`}, forge.Forbidden, []string{"Developer"}},
		{"gone", gitlabtest.Answer{Status: 404, Body: `{"message":"404 Project Not Found"}`}, forge.NotFound, []string{"acme/tools/app"}},
		{"maintenance page", gitlabtest.Answer{Status: 502, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<!DOCTYPE html>\n<html><body>GitLab is not responding</body></html>"}, forge.Unavailable, []string{"502", "HTML"}},
		{"login page", gitlabtest.Answer{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<!DOCTYPE html><html>"}, forge.Unavailable, []string{"gitlab.url"}},
		{"nothing", gitlabtest.Answer{Status: 200}, forge.Unavailable, nil},
		{"of another form", gitlabtest.Answer{Status: 200, Body: `[{"title":"without a number"}]`}, forge.Unavailable, nil},
		{"null", gitlabtest.Answer{Status: 200, Body: `{"message":"x"}`}, forge.Unavailable, nil},
		{"elsewhere", gitlabtest.Answer{Status: 302, Header: http.Header{"Location": {"https://elsewhere.example/login"}}}, forge.Unavailable, []string{"another host"}},
		{"limited", gitlabtest.Answer{Status: 429, Header: http.Header{"Retry-After": {"42"}}, Body: "Retry later\n"}, forge.RateLimited, []string{"42s"}},
		{"limited without a word", gitlabtest.Answer{Status: 429, Body: `{"message":{"error":"This endpoint has been requested too many times. Try again later."}}`}, forge.RateLimited, []string{"1m0s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, gitlabtest.Options{})
			w.AddUser("ken", false)
			w.p.Open("ken", "x", "x", "agent")
			f := w.open(nil)
			w.Break(func(r *http.Request) *gitlabtest.Answer {
				if strings.Contains(r.URL.Path, "/issues") {
					return &c.answer
				}
				return nil
			})
			_, err := f.Triggered(bg, acme, forge.Trigger{Label: "agent"})
			is(t, err, c.kind, c.words...)
			if strings.Contains(err.Error(), "DOCTYPE") {
				t.Error(err)
			}
			w.Break(nil)
			w.clock.add(3 * time.Minute)
			if all, err := f.Triggered(bg, acme, forge.Trigger{Label: "agent"}); len(all) != 1 || err != nil {
				t.Errorf("afterwards: %+v, %v", all, err)
			}
		})
	}
	t.Run("a read-only server", func(t *testing.T) {
		w := newWorld(t, gitlabtest.Options{})
		w.AddUser("ken", false)
		n := w.p.Open("ken", "x", "x")
		w.Break(func(r *http.Request) *gitlabtest.Answer {
			if r.Method == http.MethodGet {
				return nil
			}
			return &gitlabtest.Answer{Status: 405, Body: `{"message":"You cannot perform write operations on a read-only instance"}`}
		})
		_, err := w.open(nil).Post(bg, key(issue, n), "m", "x")
		is(t, err, forge.Unavailable)
	})
}

func TestDownForAMoment(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	w.AddUser("ken", false)
	n := w.p.Open("ken", "x", "x")
	f := w.open(nil)
	left := 2
	w.Break(func(r *http.Request) *gitlabtest.Answer {
		if left == 0 {
			return nil
		}
		left--
		return &gitlabtest.Answer{Status: 503}
	})
	_, err := f.Item(bg, key(issue, n))
	must(t, err)
	// An answer that is lost: the note is there once.
	w.Break(func(r *http.Request) *gitlabtest.Answer {
		if r.Method != http.MethodPost {
			return nil
		}
		w.BreakLocked(nil)
		return &gitlabtest.Answer{Lost: true}
	})
	_, err = f.Post(bg, key(issue, n), "m", "x")
	must(t, err)
	if notes := w.p.Notes(strconv.Itoa(n)); len(notes) != 1 {
		t.Errorf("%q", notes)
	}
}

func TestRateLimit(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{Rate: 5})
	w.AddUser("ken", false)
	n := w.p.Open("ken", "x", "x")
	f := w.open(nil)
	var err error
	asked := 0
	for ; err == nil && asked < 20; asked++ {
		_, err = f.Item(bg, key(issue, n))
	}
	is(t, err, forge.RateLimited)
	if got := len(w.Requests()); got != 5 {
		t.Errorf("%d requests, of 5 that may be made", got)
	}
	w.clock.add(2 * time.Minute)
	_, err = f.Item(bg, key(issue, n))
	must(t, err)
}

func TestQuietProjectCostsLittle(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	w.AddUser("ken", false)
	w.p.Open("ken", "x", "x", "Coding Agent")
	f := w.open(nil)
	trigger := forge.Trigger{Label: "coding agent"}
	_, err := f.Triggered(bg, acme, trigger)
	must(t, err)
	w.Requests()
	all, err := f.Triggered(bg, acme, trigger)
	must(t, err)
	got := w.Requests()
	for _, r := range got {
		if !strings.HasSuffix(r, " 304") {
			t.Errorf("%s was answered in full", r)
		}
	}
	if len(all) != 1 || len(got) != 3 {
		t.Errorf("%d items, %q", len(all), got)
	}
}

// Labels that differ in case are different ones to GitLab, but not to us; those of the
// filter's own words are found, too.
func TestLabelsOfAnyCase(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	w.AddUser("ken", false)
	a, b, none := w.p.Open("ken", "a", "x", "Agent"), w.p.Open("ken", "b", "x", "agent"), w.p.Open("ken", "c", "x", "None")
	w.p.Open("ken", "without", "x")
	f := w.open(nil)
	find := func(label string) string {
		all, err := f.Triggered(bg, acme, forge.Trigger{Label: label})
		must(t, err)
		var ids []string
		for _, i := range all {
			ids = append(ids, i.Key.ID)
		}
		slices.Sort(ids)
		return strings.Join(ids, " ")
	}
	if got := find("AGENT"); got != fmt.Sprint(a, " ", b) {
		t.Errorf("%q", got)
	}
	if got := find("none"); got != strconv.Itoa(none) {
		t.Errorf("%q", got)
	}
	must(t, f.SetLabels(bg, key(issue, none), []string{"AGENT"}, nil))
	if got := w.p.Labels(); slices.Contains(got, "AGENT") {
		t.Errorf("another label was made: %q", got)
	}
}

func TestMergeRequestsAreItems(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	ken := w.Person("ken", forge.Write)
	fork := w.AddProject("ken/app", "public")
	w.p.Commit("main", "a.txt", "1")
	sha := fork.Commit("fix", "a.txt", "2")
	w.p.Open("ken", "an issue of the same number", "x")
	n := w.p.Merge("ken", fork, "fix", "main", "Draft: [Draft] mend it", "see\n\n<!-- tori:task-9 -->\nmore")
	at := "!" + strconv.Itoa(n)
	w.p.Label(at, "ken", "agent", true)
	w.p.Lock(at)
	f := w.open(nil)
	all, err := f.Triggered(bg, acme, forge.Trigger{Label: "agent"})
	must(t, err)
	if len(all) != 1 || all[0].Key != key(mergeRequest, n) || all[0].Pull == nil {
		t.Fatalf("%+v", all)
	}
	i, err := f.Item(bg, all[0].Key)
	must(t, err)
	if i.Title != "mend it" || !i.Pull.Draft || i.Pull.Head != (forge.Branch{Repo: forge.Repo{Owner: "ken", Name: "app"}, Name: "fix", Commit: sha}) || i.Pull.Base.Name != "main" ||
		i.Pull.Marker != "task-9" || !i.Open || i.Author != ken || !i.Repository.Private || !strings.Contains(i.URL, "/-/merge_requests/") {
		t.Errorf("%+v %+v", i, i.Pull)
	}
	a, err := f.Asked(bg, i.Key, forge.Trigger{Label: "Agent"})
	if err != nil || a.By != ken {
		t.Errorf("%+v, %v", a, err)
	}
	must(t, f.Ready(bg, i.Key))
	if title := w.p.Title(at); title != "mend it" {
		t.Errorf("%q", title)
	}
	for _, k := range []task.Key{key(issue, 0), key("pull_request", n), key(mergeRequest, 99)} {
		_, err := f.Item(bg, k)
		is(t, err, forge.NotFound)
	}
}

func TestThreads(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	ken := w.Person("ken", forge.Write)
	w.p.Commit("fix", "a.txt", "1")
	n := w.p.Merge("tori-bot", w.p, "fix", "main", "x", "x")
	at := "!" + strconv.Itoa(n)
	w.p.System(at, "ken", "added 1 commit")
	first := w.p.Remark(at, "ken", "a.txt", 3, "why?", 0)
	w.clock.add(time.Second)
	answer := w.p.Remark(at, "tori-bot", "a.txt", 3, "because", first)
	other := w.p.Remark(at, "ken", "a.txt", 5, "typo", 0)
	w.p.Resolve(at, other)
	f := w.open(nil)
	all, cut, err := f.Comments(bg, key(mergeRequest, n))
	must(t, err)
	if len(all) != 3 || cut != 0 {
		t.Fatalf("%+v, %d", all, cut)
	}
	line := func(id int64) string { return "line/" + strconv.FormatInt(id, 10) }
	if c := all[0]; c.ID != line(first) || c.Kind != forge.Line || c.Path != "a.txt" || c.Line != 3 || c.Author != ken || c.Resolved || c.ReplyTo != "" || c.ItemType != mergeRequest ||
		c.URL != w.URL+"/acme/tools/app/-/merge_requests/1#note_"+strconv.FormatInt(first, 10) {
		t.Errorf("%+v", c)
	}
	if c := all[1]; c.ID != line(answer) || c.ReplyTo != line(first) {
		t.Errorf("%+v", c)
	}
	if c := all[2]; !c.Resolved || c.ID != line(other) {
		t.Errorf("%+v", c)
	}
	_, err = f.Reply(bg, key(mergeRequest, n), line(other), "m", "mended")
	is(t, err, forge.Gone)
	w.p.Commit("fix", "a.txt", "2") // what was said is about what was there
	all, _, err = f.Comments(bg, key(mergeRequest, n))
	must(t, err)
	if all[0].Line != 0 || all[0].Path != "a.txt" {
		t.Errorf("%+v", all[0])
	}
}

func TestVerdictsThatDoNotHold(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	for _, login := range []string{"ken", "eve", "ann"} {
		w.Person(login, forge.Write)
	}
	w.p.Commit("fix", "a.txt", "1")
	n := w.p.Merge("tori-bot", w.p, "fix", "main", "x", "x")
	at := "!" + strconv.Itoa(n)
	f := w.open(nil)
	said := func() string {
		all, _, err := f.Comments(bg, key(mergeRequest, n))
		must(t, err)
		var s []string
		for _, c := range all {
			if c.Kind != forge.Review || !strings.HasPrefix(c.ID, "review/") || c.Body != "" {
				t.Errorf("%+v", c)
			}
			s = append(s, c.Author.Login+" "+c.Verdict)
		}
		return strings.Join(s, ", ")
	}
	for _, by := range []string{"ken approved", "eve requested_changes", "ann approved", "ann unapproved"} {
		login, verdict, _ := strings.Cut(by, " ")
		w.p.Verdict(at, login, verdict)
		w.clock.add(time.Second)
	}
	if got := said(); got != "ken approved, eve changes_requested, ann dismissed" {
		t.Error(got)
	}
	// People cannot write what the server does.
	w.p.Comment(at, "ann", "approved this merge request")
	if all, _, _ := f.Comments(bg, key(mergeRequest, n)); all[len(all)-1].Kind != forge.Note {
		t.Errorf("%+v", all)
	}
	w.p.Reset(at)
	all, err := f.CommentsSince(bg, acme, time.Time{})
	must(t, err)
	for _, c := range all {
		if c.Kind == forge.Review && c.Verdict != forge.Dismissed {
			t.Errorf("%+v", c)
		}
	}
}

// What is confidential is not there where others see the project.
// Where the server does not tell whose approvals stand, it still tells who wants changes, in
// whatever order it is asked.
func TestVerdictsAreToldEachByItself(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	w.p.Commit("fix", "a.txt", "1")
	n := w.p.Merge("tori-bot", w.p, "fix", "main", "x", "x")
	at := "!" + strconv.Itoa(n)
	for login, verdict := range map[string]string{"ken": "approved", "eve": "requested_changes"} {
		w.Person(login, forge.Write)
		w.p.Verdict(at, login, verdict)
	}
	w.p.Reset(at)
	w.Break(func(r *http.Request) *gitlabtest.Answer {
		if strings.HasSuffix(r.URL.Path, "/approvals") {
			return &gitlabtest.Answer{Status: 403, Body: `{"message":"403 Forbidden"}`}
		}
		return nil
	})
	f := w.open(nil)
	for range 20 {
		all, _, err := f.Comments(bg, key(mergeRequest, n))
		must(t, err)
		for _, c := range all {
			if want := map[string]string{"ken": forge.Approved, "eve": forge.Dismissed}[c.Author.Login]; c.Verdict != want {
				t.Fatalf("%s: %s, want %s", c.Author.Login, c.Verdict, want)
			}
		}
	}
}

func TestConfidential(t *testing.T) {
	for visibility, seen := range map[string]bool{"private": true, "internal": false, "public": false} {
		t.Run(visibility, func(t *testing.T) {
			w := newWorld(t, gitlabtest.Options{})
			w.p = w.AddProject("acme/tools/other", visibility)
			w.p.Member("tori-bot", 30)
			w.Person("ken", forge.Write)
			r := forge.Repo{Owner: "acme/tools", Name: "other"}
			secret, open := w.p.Open("ken", "secret", "x", "agent"), w.p.Open("ken", "open", "x", "agent")
			w.p.Confidential(strconv.Itoa(secret))
			w.p.Comment(strconv.Itoa(secret), "ken", "a secret")
			w.p.Internal(strconv.Itoa(open), "ken", "between us")
			w.p.Comment(strconv.Itoa(open), "ken", "hello")
			f := w.open(nil)
			all, err := f.Triggered(bg, r, forge.Trigger{Label: "agent"})
			must(t, err)
			news, err := f.CommentsSince(bg, r, time.Time{})
			must(t, err)
			k := task.Key{Source: "gitlab", Owner: r.Owner, Repo: r.Name, Type: issue, ID: strconv.Itoa(open)}
			notes, _, err := f.Comments(bg, k)
			must(t, err)
			k.ID = strconv.Itoa(secret)
			_, err = f.Item(bg, k)
			if seen {
				must(t, err)
				if len(all) != 2 || len(news) != 3 || len(notes) != 2 {
					t.Errorf("%d items, %d news, %d notes", len(all), len(news), len(notes))
				}
				return
			}
			is(t, err, forge.NotFound, "confidential")
			if len(all) != 1 || len(news) != 1 || len(notes) != 1 || news[0].Body != "hello" || notes[0].Body != "hello" {
				t.Errorf("%+v, %+v, %+v", all, news, notes)
			}
		})
	}
}

// Moved: the old path leads there for reading, and what is written goes there by number.
func TestMovedProject(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	w.Person("ken", forge.Write)
	n := w.p.Open("ken", "x", "x", "agent")
	f := w.open(nil)
	_, err := f.Item(bg, key(issue, n))
	must(t, err)
	w.p.Move("other/place/app")
	i, err := f.Item(bg, key(issue, n))
	must(t, err)
	if i.Key != key(issue, n) || i.Repository.Repo != (forge.Repo{Owner: "other/place", Name: "app"}) {
		t.Errorf("%+v", i)
	}
	_, err = f.Post(bg, key(issue, n), "m", "here")
	must(t, err)
	must(t, f.SetLabels(bg, key(issue, n), []string{"done"}, []string{"agent"}))
	if notes, labels := w.p.Notes(strconv.Itoa(n)), w.p.LabelsOf(strconv.Itoa(n)); len(notes) != 1 || !slices.Equal(labels, []string{"done"}) {
		t.Errorf("%q, %q", notes, labels)
	}
	w.p.Moved(strconv.Itoa(n))
	_, err = f.Item(bg, key(issue, n))
	is(t, err, forge.Gone)
}

func TestRepositories(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	old := w.AddProject("acme/tools/old", "private")
	old.Member("tori-bot", 30)
	old.Archive()
	w.AddProject("acme/tools/sub/deep", "public")
	w.AddProject("acme/tools/hidden", "private")
	w.AddProject("acme/tools/open", "public")
	w.AddUser("ken", false)
	f := w.open(nil)
	all, err := f.Repositories(bg, []string{"acme/tools/*", "acme/tools/hidden", "acme/tools/sub/deep", "ACME/tools/app", "nobody/*"})
	is(t, err, forge.NotFound, "acme/tools/hidden", "nobody/*")
	var names []string
	for _, r := range all {
		names = append(names, fmt.Sprint(r.String(), " ", r.Private))
	}
	if got := strings.Join(names, ", "); got != "acme/tools/app true, acme/tools/open false, acme/tools/sub/deep false" {
		t.Error(got)
	}
}

func TestWhoAsked(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	ken, eve := w.Person("ken", forge.Write), w.Person("eve", forge.Write)
	bot := w.Person("worker", forge.Write)
	w.AddUser("worker-2", false)
	f := w.open(nil)
	byAssignment := forge.Trigger{Assignee: bot}
	n := w.p.Open("ken", "x", "x")
	at := strconv.Itoa(n)
	asked := func(tr forge.Trigger, want forge.Person) {
		t.Helper()
		a, err := f.Asked(bg, key(issue, n), tr)
		if want.ID == 0 && !errors.Is(err, forge.ErrNotAsked) || want.ID != 0 && (err != nil || a.By != want || a.Event == "" || a.At.IsZero()) {
			t.Errorf("%+v, %v", a, err)
		}
	}
	asked(byAssignment, forge.Person{})
	w.p.Assign(at, "eve", "worker", "ken")
	asked(byAssignment, eve)
	w.p.Comment(at, "ken", "assigned to @worker") // which is not the server's word
	asked(byAssignment, eve)
	w.clock.add(time.Second)
	w.p.Assign(at, "ken", "ken")
	var taken *forge.TriggerRemoved
	if _, err := f.Asked(bg, key(issue, n), byAssignment); !errors.As(err, &taken) || taken.By != ken {
		t.Errorf("%v", err)
	}
	w.clock.add(time.Second)
	w.p.Assign(at, "ken", "ken", "worker-2")
	asked(byAssignment, forge.Person{})
	// Assigned when it was opened: by whoever opened it.
	n = w.p.OpenFor("ken", "x", "worker")
	asked(byAssignment, ken)
	// Labels that came with an import have no history.
	n = w.p.Imported("ken", "x", "agent")
	asked(forge.Trigger{Label: "agent"}, forge.Person{})
	asked(forge.Trigger{}, forge.Person{})
}

func TestWhoEdited(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	w.Person("ken", forge.Write)
	eve := w.Person("eve", forge.Write)
	n := w.p.Open("ken", "x", "x")
	at := strconv.Itoa(n)
	w.p.Retitle(at, "ken", "y", "x")
	w.clock.add(time.Minute)
	since := w.clock.now()
	w.clock.add(time.Minute)
	w.p.System(at, "ken", "changed due date to tomorrow")
	w.p.Comment(at, "ken", "changed the description")
	w.p.Retitle(at, "eve", "y", "other")
	w.p.System(at, "eve", "marked the checklist item **a** as completed")
	f := w.open(nil)
	who, err := f.EditedSince(bg, key(issue, n), since)
	if err != nil || !slices.Equal(who, []forge.Person{eve}) {
		t.Errorf("%+v, %v", who, err)
	}
	if who, _ := f.EditedSince(bg, key(issue, n), time.Time{}); len(who) != 2 {
		t.Errorf("%+v", who)
	}
}

func TestPeople(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	f := w.open(nil)
	for _, login := range []string{"project_1_bot_5d41402abc4b2a76b9719d911017c592", "group_12_bot", "service_account_group_1_aa", "support-bot", "builder"} {
		id := w.AddUser(login, true)
		if p, err := f.Person(bg, acme, login); err != nil || p != (forge.Person{ID: id, Login: login, Bot: true}) {
			t.Errorf("%+v, %v", p, err)
		}
		if p := person(id, login); p.Bot != (login != "builder") {
			t.Errorf("%+v", p)
		}
	}
	ghost := w.AddUser("ghost", true)
	w.p.Member("ghost", 50)
	n := w.p.Open("ghost", "x", "x")
	i, err := f.Item(bg, key(issue, n))
	must(t, err)
	if i.Author != (forge.Person{Login: "ghost"}) {
		t.Errorf("%+v", i.Author)
	}
	if p, err := f.Permission(bg, acme, i.Author); p != forge.None || err != nil {
		t.Errorf("%v, %v (%d)", p, err, ghost)
	}
	blocked := w.Person("blocked", forge.Admin)
	planner := forge.Person{ID: w.AddUser("planner", false), Login: "planner"}
	w.p.Member("planner", 15)
	w.Block("blocked")
	builder := forge.Person{ID: w.AddUser("builder-2", true), Login: "builder-2"}
	w.p.Member("builder-2", 30)
	stranger := forge.Person{ID: w.AddUser("stranger", false), Login: "stranger"}
	open := w.AddProject("acme/open", "public")
	open.Member("planner", 5)
	for _, c := range []struct {
		r    forge.Repo
		p    forge.Person
		want forge.Permission
	}{
		{acme, blocked, forge.None}, {acme, planner, forge.Read}, {acme, builder, forge.None}, {acme, forge.Person{ID: builder.ID, Login: builder.Login, Bot: true}, forge.Write}, {acme, stranger, forge.None}, {forge.Repo{Owner: "acme", Name: "open"}, stranger, forge.Read},
		{forge.Repo{Owner: "acme", Name: "open"}, blocked, forge.None}, {forge.Repo{Owner: "acme", Name: "open"}, forge.Person{ID: stranger.ID, Login: "other"}, forge.None},
		{forge.Repo{Owner: "acme", Name: "open"}, forge.Person{ID: 4711, Login: "nobody"}, forge.None},
	} {
		if got, err := f.Permission(bg, c.r, c.p); got != c.want || err != nil {
			t.Errorf("%s in %s: %v, %v", c.p.Login, c.r, got, err)
		}
	}
}

// A list whose length the server does not tell, as of more than 10,000.
func TestListsThatAreNotCounted(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{Counted: 150})
	ken := w.Person("ken", forge.Write)
	n := w.p.Open("ken", "x", "x", "agent")
	at := strconv.Itoa(n)
	for i := range 120 {
		w.p.Label(at, "ken", "noise", i%2 == 0)
		w.p.Label(at, "ken", "more", i%2 == 0)
	}
	for i := range forge.MaxComments + 150 {
		w.p.Comment(at, "ken", strconv.Itoa(i))
	}
	f := w.open(nil)
	a, err := f.Asked(bg, key(issue, n), forge.Trigger{Label: "agent"})
	if err != nil || a.By != ken {
		t.Errorf("%+v, %v", a, err)
	}
	all, cut, err := f.Comments(bg, key(issue, n))
	must(t, err)
	if len(all) != forge.MaxComments || cut == 0 || all[len(all)-1].Body != strconv.Itoa(forge.MaxComments+149) || all[0].Body != "150" {
		t.Errorf("%d, %d cut, from %s to %s", len(all), cut, all[0].Body, all[len(all)-1].Body)
	}
	for range 2 {
		_, err = f.Post(bg, key(issue, n), "m", "text")
		must(t, err)
	}
	if notes := w.p.Notes(at); len(notes) != forge.MaxComments+151 {
		t.Errorf("%d notes", len(notes))
	}
	for range 230 {
		w.p.Open("ken", "x", "x", "agent")
	}
	if all, err := f.Triggered(bg, acme, forge.Trigger{Label: "agent"}); len(all) != 231 || err != nil {
		t.Errorf("%d items, %v", len(all), err)
	}
}

// What we write carries nothing out.
func TestQuickActions(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	w.Person("ken", forge.Write)
	n := w.p.Open("ken", "x", "x")
	f := w.open(nil)
	text := "/close\n\n~~~\n/close\n~~~\n\r\n/merge"
	c, err := f.Post(bg, key(issue, n), "m", text)
	must(t, err)
	again, err := w.open(nil).Post(bg, key(issue, n), "m", text)
	must(t, err)
	if w.p.State(strconv.Itoa(n)) != "opened" || again.ID != c.ID || strings.Count(c.Body, "close") != 2 {
		t.Errorf("%s: %q", w.p.State(strconv.Itoa(n)), c.Body)
	}
	w.p.Commit("fix", "a.txt", "1")
	i, err := f.Propose(bg, acme, forge.Proposal{Head: "fix", Base: "main", Title: "x", Body: "text\n/merge", Marker: "m"})
	must(t, err)
	if !i.Open || !strings.Contains(i.Body, "/merge") {
		t.Errorf("%+v", i)
	}
	for text, want := range map[string]string{"/etc is full": `\/etc is full`, "a\n/usr/bin/x": "a\n /usr/bin/x", "a / b\n / c\n//x": "a / b\n / c\n//x", "": ""} {
		if got := harmless(text); got != want {
			t.Errorf("%q", got)
		}
	}
}

func TestProposals(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{Licensed: true})
	ken, eve, out := w.Person("ken", forge.Write), w.Person("eve", forge.Triage), w.Person("out", forge.None)
	w.p.Commit("fix", "a.txt", "1")
	f := w.open(nil)
	p := forge.Proposal{Head: "fix", Base: "main", Title: "Mend", Body: "text", Marker: "m", Draft: true}
	theirs := w.p.Merge("ken", w.p, "fix", "other", "theirs", "x")
	i, err := f.Propose(bg, acme, p)
	must(t, err)
	at := "!" + i.Key.ID
	if i.Key.ID == strconv.Itoa(theirs) || w.p.Title(at) != "Draft: Mend" || i.Title != "Mend" {
		t.Fatalf("%+v, %q", i, w.p.Title(at))
	}
	w.p.Retitle(at, "ken", "Draft: Mend", w.p.Body(at)+"\n\nReviewed with eve.")
	p.Title, p.Body = "Mend more", "another text"
	i, err = f.Propose(bg, acme, p)
	must(t, err)
	if body := w.p.Body(at); !strings.HasPrefix(body, "another text") || !strings.HasSuffix(body, "Reviewed with eve.") || w.p.Title(at) != "Draft: Mend more" {
		t.Errorf("%q", body)
	}
	w.p.Commit("long", "a.txt", "2")
	for range 2 {
		long, err := f.Propose(bg, acme, forge.Proposal{Head: "long", Base: "main", Title: strings.Repeat("長", 300), Body: "x", Marker: "long", Draft: true})
		if err != nil || !strings.HasSuffix(long.Title, "長…") {
			t.Errorf("%q, %v", long.Title, err)
		}
	}
	must(t, f.RequestReview(bg, i.Key, []forge.Person{ken}))
	must(t, f.RequestReview(bg, i.Key, []forge.Person{out, eve}))
	if got := w.p.Reviewers(at); !slices.Equal(got, []string{"ken", "eve"}) {
		t.Errorf("%q", got)
	}
	w.Requests()
	must(t, f.RequestReview(bg, i.Key, []forge.Person{eve, ken}))
	if got := w.Requests(); slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "PUT") }) {
		t.Errorf("%q", got)
	}
}

func TestLogsOfJobs(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	sha := w.p.Commit("fix", "a.txt", "1")
	long := strings.Repeat("0123456789 line of a log\n", 40_000)
	log := long + "section_start:1560896352:my_first[collapsed=true]\r\x1b[0K\x1b[32;1mRunning tests\x1b[0;m\n 10%\r 90%\r100%\nFAIL: TestX 失敗\nsection_end:1560896353:my_first\r\x1b[0K\x1b[31;1mERROR: Job failed: exit code 1\x1b[0;m\n"
	w.p.Job(sha, gitlabtest.Job{Name: "test", State: "failed", Log: "an older run"})
	w.p.Job(sha, gitlabtest.Job{Name: "test", State: "failed", Log: log})
	w.p.Job(sha, gitlabtest.Job{Name: "lint", State: "failed", MayFail: true})
	w.p.Job(sha, gitlabtest.Job{Name: "deploy", State: "manual"})
	w.p.Job(sha, gitlabtest.Job{Name: "later", State: "manual", MayFail: true})
	w.p.Job(sha, gitlabtest.Job{Name: "jenkins", State: "failed", External: true, Description: "2 tests failed"})
	f := w.open(nil)
	all, err := f.CheckRuns(bg, acme, sha)
	must(t, err)
	var got []string
	for _, c := range all {
		got = append(got, c.Name+" "+c.State)
	}
	if s := strings.Join(got, ", "); s != "test failed, lint passed, deploy pending, later skipped, jenkins failed" {
		t.Fatal(s)
	}
	out := all[0].Output
	if !strings.HasSuffix(out, "Running tests\n100%\nFAIL: TestX 失敗\nERROR: Job failed: exit code 1") || len(out) > 8<<10 || len(out) < 7<<10 || !strings.HasPrefix(out, "… 0123456789") {
		t.Errorf("%d bytes: %q … %q", len(out), out[:40], out[max(0, len(out)-200):])
	}
	if all[4].Output != "2 tests failed" {
		t.Errorf("%q", all[4].Output)
	}
	w.Break(func(r *http.Request) *gitlabtest.Answer {
		if strings.HasSuffix(r.URL.Path, "/trace") {
			return &gitlabtest.Answer{Status: 403, Body: `{"message":"403 Forbidden"}`}
		}
		return nil
	})
	all, err = f.CheckRuns(bg, acme, sha)
	is(t, err, forge.Forbidden)
	if len(all) != 5 {
		t.Errorf("%+v", all)
	}
}

// The answers about a project whose name looks like the log of a job are no logs.
func TestAProjectCalledTrace(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	p := w.AddProject("acme/jobs/trace", "private")
	p.Member("tori-bot", 30)
	f := w.open(nil)
	for _, want := range []string{"GET /projects/{id}", "GET /projects/{id} 304"} {
		w.Requests()
		_, err := f.Repositories(bg, []string{"acme/jobs/trace"})
		must(t, err)
		if got := w.Requests(); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %s", got, want)
		}
	}
	sha := p.Commit("fix", "a.txt", "1")
	p.Job(sha, gitlabtest.Job{Name: "test", State: "failed", Log: strings.Repeat("x", 3*mostTail) + "\nFAIL"})
	all, err := f.CheckRuns(bg, forge.Repo{Owner: "acme/jobs", Name: "trace"}, sha)
	if err != nil || len(all) != 1 || !strings.HasSuffix(all[0].Output, "FAIL") {
		t.Errorf("%+v, %v", all, err)
	}
}

// Pipelines of merged results run on another commit.
func TestMergedResults(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	sha := w.p.Commit("fix", "a.txt", "1")
	n := w.p.Merge("tori-bot", w.p, "fix", "main", "x", "x")
	merged := strings.Repeat("ab", 20)
	w.p.Job(merged, gitlabtest.Job{Name: "test", State: "failed", Log: "no"})
	w.p.Pipeline("!"+strconv.Itoa(n), merged)
	all, err := w.open(nil).CheckRuns(bg, acme, sha)
	if err != nil || len(all) != 1 || all[0].Output != "no" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestTokenIsReadAgain(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	now := w.token
	f := w.open(func(o *Options) { o.Fresh = func() []byte { return []byte(now + "\n") } })
	_, err := f.Repositories(bg, []string{acme.String()})
	must(t, err)
	w.Revoke(now)
	_, err = f.Repositories(bg, []string{acme.String()})
	is(t, err, forge.Unauthorized)
	now = w.Token("tori-bot", "api")
	_, err = f.Repositories(bg, []string{acme.String()})
	must(t, err)
	if r, _ := f.Remote(bg, acme); r.Password != now {
		t.Errorf("%+v", r)
	}
	now = w.Token("tori-bot", "read_api")
	n := w.p.Open("tori-bot", "x", "x")
	is(t, f.SetLabels(bg, key(issue, n), []string{"x"}, nil), forge.Forbidden, "write_repository")
}

func TestServerTime(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	f := w.open(func(o *Options) { o.Now = func() time.Time { return w.clock.now().Add(-time.Hour) } })
	_, err := f.Self(bg)
	must(t, err)
	if got := f.ServerTime(); got.After(w.clock.now()) || got.Before(w.clock.now().Add(-time.Second)) {
		t.Errorf("%v, there it is %v", got, w.clock.now())
	}
}

// A review goes on where it was cut short, and what else the account has in draft stays that.
func TestReviewBesideDrafts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gitlabtest.Options{})
	f := w.open(nil)
	commit := w.Push("work")
	w.Person("ken", forge.Write)
	iid := w.p.Merge("ken", w.p, "work", "main", "x", "x")
	n := "!" + strconv.Itoa(iid)
	w.p.Draft(n, "tori-bot", "what a person thinks\n/merge")
	w.p.Draft(n, "tori-bot", "one\n\n<!-- tori:r.a.b -->") // and the process was killed
	k := task.Key{Source: "gitlab", Owner: acme.Owner, Repo: acme.Name, Type: mergeRequest, ID: strconv.Itoa(iid)}
	etc := "/etc"
	post := forge.ReviewPost{Commit: commit, Body: "Fine.", Marker: "r.review", Remarks: []forge.Remark{
		{Path: "work.txt", OldPath: "work.txt", Line: 1, First: 1, Body: "one", Marker: "r.a.b"},
		{Path: "work.txt", OldPath: "work.txt", Line: 2, First: 1, Body: "two\n/close", Suggestion: &etc, Marker: "r.c.d"}}}
	if _, err := f.Review(t.Context(), k, post); err != nil {
		t.Fatal(err)
	}
	if notes := w.p.Notes(n); len(notes) != 3 || len(w.p.Drafts(n)) != 1 || !strings.Contains(strings.Join(notes, "\n"), "```\n /etc\n") || w.p.State(n) != "opened" {
		t.Errorf("%q, in draft %q, %s", notes, w.p.Drafts(n), w.p.State(n))
	}
}
