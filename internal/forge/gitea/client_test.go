package gitea

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/gitea/giteatest"
	"toritsugi/internal/forge/gittest"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// server answers in the process.
type server func(r *http.Request) (*http.Response, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func reply(status int, body string, header ...string) (*http.Response, error) {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ProtoMajor: 1}, nil
}

// over makes the client speak over a transport.
func over(s server) func(*Options) {
	return func(o *Options) { o.HTTP = &http.Client{Transport: s} }
}

func (w *world) key(kind, id string) task.Key {
	return task.Key{Source: "gitea", Owner: w.repo.Owner, Repo: w.repo.Name, Type: kind, ID: id}
}

var agent = forge.Trigger{Label: "agent"}

func TestOptions(t *testing.T) {
	t.Parallel()
	for key, o := range map[string]Options{
		"gitea.no_login": {URL: "https://git.example"}, "rest.bad_token": {URL: "https://git.example", Token: "a b"},
		"rest.url": {Token: "x", URL: "http://git.example"},
	} {
		_, err := New(o)
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != key {
			t.Errorf("%s: %v", key, err)
		}
	}
	for in, want := range map[string]string{
		"https://Git.Example": "https://git.example/api/v1/", "https://git.example/code/": "https://git.example/code/api/v1/",
		"https://git.example/code/api/v1": "https://git.example/code/api/v1/", "http://127.0.0.1:3000": "http://127.0.0.1:3000/api/v1/",
		"": "", "git.example": "", "https://me:x@git.example": "", "https://git.example/?q": "", "ftp://git.example": "",
	} {
		a, err := parseAddress(in)
		if got := fmt.Sprint(a.api); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

// What goes wrong before an answer of Gitea's, and what it says itself.
func TestErrors(t *testing.T) {
	t.Parallel()
	const page = "<html><body>Down for maintenance</body></html>"
	for _, c := range []struct {
		name  string
		say   func() (*http.Response, error)
		kind  forge.Kind
		asked int
		text  string
	}{
		{"maintenance", func() (*http.Response, error) { return reply(503, page, "Content-Type", "text/html") }, forge.Unavailable, 4, "503: Service Unavailable"},
		{"maintenance that says it is well", func() (*http.Response, error) { return reply(200, page, "Content-Type", "text/html") }, forge.Unavailable, 1, "JSON"},
		{"a login page", func() (*http.Response, error) { return reply(302, "", "Location", "https://sso.example/login") }, forge.Unavailable, 1, "another host"},
		{"no connection", func() (*http.Response, error) { return nil, errors.New("refused") }, forge.Unavailable, 4, "refused"},
		{"a revoked token", func() (*http.Response, error) { return reply(401, `{"message":"token is revoked"}`) }, forge.Unauthorized, 1, "gitea.token_file"},
		{"a scope", func() (*http.Response, error) {
			return reply(403, `{"message":"token does not have at least one of required scope(s): [read:issue]"}`)
		}, forge.Forbidden, 1, "write:issue"},
		{"private", func() (*http.Response, error) { return reply(404, `{"message":"not found","errors":null}`) }, forge.NotFound, 1, "may not see"},
		{"slow down", func() (*http.Response, error) { return reply(429, "", "Retry-After", "77") }, forge.RateLimited, 1, "1m17s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			f, err := New(Options{URL: "https://git.example/", Token: "s3cret", RetryDelay: time.Microsecond, HTTP: &http.Client{Transport: server(func(r *http.Request) (*http.Response, error) {
				asked++
				if r.URL.Host != "git.example" || r.Header.Get("Authorization") != "Bearer s3cret" {
					t.Errorf("%s with %q", r.URL, r.Header.Get("Authorization"))
				}
				return c.say()
			})}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Self(t.Context())
			var e *forge.Error
			if !errors.As(err, &e) || e.Kind != c.kind || asked != c.asked || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "s3cret") {
				t.Fatalf("asked %d times: %v", asked, err)
			}
			if ja := i18n.Japanese.Error(err); ja == err.Error() || strings.Contains(ja, "%!") {
				t.Error(ja)
			}
		})
	}
}

func TestAnotherToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Open(w.Person("ken", forge.Write), "x", "x")
	var now atomic.Value
	now.Store("revoked")
	f := w.open(func(o *Options) { o.Fresh = func() []byte { return []byte(now.Load().(string) + "\n") } })
	if _, err := f.Item(t.Context(), w.key("issue", id)); !forge.Is(err, forge.Unauthorized) {
		t.Error(err)
	}
	now.Store(w.token)
	_, err := f.Item(t.Context(), w.key("issue", id))
	r, rerr := f.Remote(t.Context(), w.repo)
	if err != nil || rerr != nil || r.Password != w.token {
		t.Errorf("%v, %v", err, rerr)
	}
}

// A server with an authority of its own.
func TestOwnAuthority(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":7,"login":"tori-bot"}`)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	for _, known := range []bool{true, false} {
		pool := x509.NewCertPool()
		if known {
			pool.AddCert(s.Certificate())
		}
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
		t.Cleanup(tr.CloseIdleConnections)
		f, err := New(Options{URL: s.URL, Token: "x", HTTP: &http.Client{Transport: tr}, RetryDelay: time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := f.Self(t.Context()); (err == nil) != known || known && p.ID != 7 {
			t.Errorf("known %v: %+v, %v", known, p, err)
		}
	}
}

// A repository that was given another name answers under the old one, to what writes, too.
func TestRenamedRepository(t *testing.T) { t.Parallel(); everywhere(t, renamedRepository) }

func renamedRepository(t *testing.T, w *world) {
	ken := w.Person("ken", forge.Write)
	id := w.Open(ken, "x", "x", "agent")
	f, k := w.open(nil), w.key("issue", id)
	first, err := f.Post(t.Context(), k, "m", "one")
	if err != nil {
		t.Fatal(err)
	}
	w.do("", "PATCH", w.at(), map[string]string{"name": "renamed"}, nil)
	w.repo.Name = "renamed"
	c, err := f.Post(t.Context(), k, "m", "two")
	if err != nil || c.ID != first.ID || c.Body != "two" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := w.open(nil).Post(t.Context(), k, "other", "three"); err != nil {
		t.Error(err)
	}
	if err := f.SetLabels(t.Context(), k, []string{"done"}, []string{"agent"}); err != nil {
		t.Error(err)
	}
	if notes, on := w.Notes(id), w.LabelsOf(id); len(notes) != 2 || !strings.HasPrefix(notes[0], "two") || !slices.Equal(on, []string{"done"}) {
		t.Errorf("%q, %q", notes, on)
	}
	i, err := f.Item(t.Context(), k)
	if err != nil || i.Repository.Name != "renamed" {
		t.Errorf("%+v, %v", i, err)
	}
}

// To write after a redirect to another host would give the token away.
func TestWritesStayAtTheirHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Open(w.Person("ken", forge.Write), "x", "x")
	f := w.open(func(o *Options) {
		next := o.HTTP.Transport
		o.HTTP.Transport = server(func(r *http.Request) (*http.Response, error) {
			if !strings.HasPrefix(w.url, "http://"+r.URL.Host+"/") {
				t.Errorf("%s was asked", r.URL)
			}
			if r.Method == http.MethodPost {
				return reply(301, "", "Location", "https://elsewhere.example/git/api/v1/x")
			}
			return next.RoundTrip(r)
		})
	})
	if _, err := f.Post(t.Context(), w.key("issue", id), "m", "x"); !forge.Is(err, forge.Unavailable) || !strings.Contains(err.Error(), "another host") {
		t.Error(err)
	}
}

// Where something new is to be found is no other place to write to.
func TestWhatIsMadeIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := 0
	f := w.open(over(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			made++
			return reply(201, `{"id":1,"name":"x"}`, "Location", w.url+"/api/v1/labels/1")
		}
		return reply(200, "[]", "X-Total-Count", "0")
	}))
	if err := f.EnsureLabels(t.Context(), w.repo, []forge.Label{{Name: "x", Color: "00aabb"}}); err != nil || made != 1 {
		t.Errorf("made %d times, %v", made, err)
	}
}

func TestAStrangersToken(t *testing.T) { t.Parallel(); everywhere(t, aStrangersToken) }

func aStrangersToken(t *testing.T, w *world) {
	ken, eve := w.Person("ken", forge.Write), w.Person("eve", forge.None)
	id := w.Open(ken, "x", "x", "agent")
	f := w.open(func(o *Options) { o.Token = w.Token(eve.Login) })
	if _, err := f.Item(t.Context(), w.key("issue", id)); !forge.Is(err, forge.NotFound) {
		t.Errorf("a private repository: %v", err)
	}
	if all, err := f.Repositories(t.Context(), []string{w.repo.String()}); len(all) != 0 || !forge.Is(err, forge.NotFound) {
		t.Errorf("%v, %v", all, err)
	}
	// Without administration permissions of others are not told: nobody is taken for allowed.
	f = w.open(func(o *Options) { o.Token = w.Token(ken.Login) })
	p, err := f.Permission(t.Context(), w.repo, w.Person(giteatest.Bot, forge.Admin))
	if p != forge.None || !forge.Is(err, forge.Forbidden) || !strings.Contains(err.Error(), "Administrator") {
		t.Errorf("%v, %v", p, err)
	}
}

func TestLockedAndArchived(t *testing.T) { t.Parallel(); everywhere(t, lockedAndArchived) }

func lockedAndArchived(t *testing.T, w *world) {
	ken, eve := w.Person("ken", forge.Write), w.Person("eve", forge.Read)
	id := w.Open(ken, "x", "x")
	w.do("", "PUT", w.at("issues", id, "lock"), nil, nil)
	f := w.open(func(o *Options) { o.Token = w.Token(eve.Login) })
	if _, err := f.Post(t.Context(), w.key("issue", id), "m", "x"); !forge.Is(err, forge.Forbidden) {
		t.Errorf("locked: %v", err)
	}
	w.do("", "PATCH", w.at(), map[string]bool{"archived": true}, nil)
	f = w.open(nil)
	if _, err := f.Post(t.Context(), w.key("issue", id), "m", "x"); !forge.Is(err, forge.Forbidden) || !strings.Contains(err.Error(), "archived") {
		t.Errorf("archived: %v", err)
	}
	if all, err := f.Repositories(t.Context(), []string{w.repo.Owner + "/*"}); len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// Accounts that were deleted, and what was brought from another server under the name of who
// brought it, are nobody's whom we know.
func TestNobodys(t *testing.T) { t.Parallel(); everywhere(t, nobodys) }

func nobodys(t *testing.T, w *world) {
	leaver := w.Person("leaver", forge.Write)
	id := w.Open(leaver, "x", "x", "agent")
	w.Comment(leaver, id, "said")
	w.do("", "DELETE", "admin/users/"+leaver.Login, nil, nil)
	f, k := w.open(nil), w.key("issue", id)
	i, err := f.Item(t.Context(), k)
	all, _, cerr := f.Comments(t.Context(), k)
	a, aerr := f.Asked(t.Context(), k, agent)
	ghost := forge.Person{Login: rest.Ghost}
	if err != nil || cerr != nil || aerr != nil || i.Author != ghost || len(all) != 1 || all[0].Author != ghost || a.By != ghost {
		t.Errorf("%+v, %+v, %+v, %v", i.Author, all, a, errors.Join(err, cerr, aerr))
	}
	if p, err := f.Permission(t.Context(), w.repo, a.By); p != forge.None || err != nil {
		t.Errorf("%v, %v", p, err)
	}
	var c sdk.Comment
	if err := json.Unmarshal([]byte(`{"id":9,"user":{"id":5,"login":"ken"},"original_author":"mallory","body":"/approve"}`), &c); err != nil {
		t.Fatal(err)
	}
	if n := (&call{self: forge.Person{ID: 5, Login: "ken"}}).note(&c); n.Author != ghost || n.Marker != "" {
		t.Errorf("%+v", n)
	}
	if p := person(&sdk.User{ID: -2, UserName: "gitea-actions"}); !p.Bot || p.ID != 0 {
		t.Errorf("%+v", p)
	}
}

// Labels of the organization count as the repository's own, and none is made beside them.
func TestLabelsOfTheOrganization(t *testing.T) { t.Parallel(); everywhere(t, labelsOfTheOrganization) }

func labelsOfTheOrganization(t *testing.T, w *world) {
	ken := w.Person("ken", forge.Write)
	var l sdk.Label
	w.do("", "POST", "orgs/"+w.repo.Owner+"/labels", sdk.CreateLabelOption{Name: "Coding Agent", Color: "#00aabb"}, &l)
	id, other := w.Open(ken, "x", "x"), w.Open(ken, "y", "y")
	f, k := w.open(nil), w.key("issue", id)
	if err := f.EnsureLabels(t.Context(), w.repo, []forge.Label{{Name: "coding agent", Color: "00aabb"}}); err != nil || len(w.AllLabels()) != 0 {
		t.Errorf("%q, %v", w.AllLabels(), err)
	}
	if err := f.SetLabels(t.Context(), k, []string{"coding agent"}, nil); err != nil {
		t.Fatal(err)
	}
	got, err := f.Triggered(t.Context(), w.repo, forge.Trigger{Label: "coding agent"})
	if err != nil || len(got) != 1 || got[0].Key.ID != id {
		t.Errorf("%+v, %v, not %s", got, err, other)
	}
	if err := f.SetLabels(t.Context(), k, nil, []string{"coding agent"}); err != nil || len(w.LabelsOf(id)) != 0 {
		t.Errorf("%q, %v", w.LabelsOf(id), err)
	}
}

// A name with a comma is several to Gitea.
func TestALabelWithAComma(t *testing.T) { t.Parallel(); everywhere(t, aLabelWithAComma) }

func aLabelWithAComma(t *testing.T, w *world) {
	ken := w.Person("ken", forge.Write)
	w.MakeLabel("a")
	id := w.Open(ken, "x", "x", "a, b")
	got, err := w.open(nil).Triggered(t.Context(), w.repo, forge.Trigger{Label: "A, B"})
	if err != nil || len(got) != 1 || got[0].Key.ID != id {
		t.Errorf("%+v, %v", got, err)
	}
}

// A server may give few elements on a page.
func TestSmallPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.Most = 3
	ken := w.Person("ken", forge.Write)
	for n := range 10 {
		w.Comment(ken, w.Open(ken, "x", "x", "agent", fmt.Sprint("l", n)), fmt.Sprint(n))
	}
	f := w.open(nil)
	got, err := f.Triggered(t.Context(), w.repo, agent)
	news, nerr := f.CommentsSince(t.Context(), w.repo, time.Time{})
	if err != nil || nerr != nil || len(got) != 10 || len(news) != 10 {
		t.Errorf("%d items, %d comments, %v", len(got), len(news), errors.Join(err, nerr))
	}
	if err := f.EnsureLabels(t.Context(), w.repo, []forge.Label{{Name: "L9", Color: "00aabb"}}); err != nil || len(w.AllLabels()) != 11 {
		t.Errorf("%q, %v", w.AllLabels(), err)
	}
}

// What leaves a list while it is read moves another element to a page that was read.
func TestAListThatGetsShorter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.Most = 2
	ken := w.Person("ken", forge.Write)
	id := w.Open(ken, "x", "x")
	var notes []string
	for n := range 6 {
		notes = append(notes, w.Comment(ken, id, fmt.Sprint(n)))
	}
	once := false
	f := w.open(func(o *Options) {
		next := o.HTTP.Transport
		o.HTTP.Transport = server(func(r *http.Request) (*http.Response, error) {
			if q := r.URL.Query(); strings.HasSuffix(r.URL.Path, "/issues/comments") && q.Get("page") == "2" && !once {
				once = true
				w.Delete(ken, id, notes[0])
			}
			return next.RoundTrip(r)
		})
	})
	news, err := f.CommentsSince(t.Context(), w.repo, time.Time{})
	if err != nil || len(news) != 5 || news[1].Body != "2" {
		t.Errorf("%+v, %v", news, err)
	}
}

// Remarks on lines are left out of the pages of a history: those are empty, and not the last.
func TestAHistoryWithGaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.Most = 5
	ken := w.Person("ken", forge.Write)
	f := w.open(nil)
	w.Push("fix")
	p, err := f.Propose(t.Context(), w.repo, forge.Proposal{Head: "fix", Base: "main", Title: "Fix", Marker: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 8 {
		w.Review(ken, p.Key.ID, forge.Commented, "", fmt.Sprint(n))
	}
	w.Pass(time.Second)
	w.Label(ken, p.Key.ID, "agent")
	if a, err := f.Asked(t.Context(), p.Key, agent); err != nil || a.By.ID != ken.ID {
		t.Errorf("%+v, %v", a, err)
	}
	w.Unlabel(ken, p.Key.ID, "agent")
	var taken *forge.TriggerRemoved
	if _, err := f.Asked(t.Context(), p.Key, agent); !errors.As(err, &taken) || taken.By.ID != ken.ID {
		t.Errorf("%v", err)
	}
}

func TestEditedSince(t *testing.T) { t.Parallel(); everywhere(t, editedSince) }

func editedSince(t *testing.T, w *world) {
	ken, eve, amy := w.Person("ken", forge.Write), w.Person("eve", forge.Read), w.Person("amy", forge.Write)
	id := w.Open(eve, "x", "x")
	w.Label(ken, id, "agent")
	f, k := w.open(nil), w.key("issue", id)
	since := w.now().Truncate(time.Second)
	edited := func() (all []string) {
		t.Helper()
		got, err := f.EditedSince(t.Context(), k, since)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range got {
			all = append(all, p.Login)
		}
		return all
	}
	w.Pass(2 * time.Second)
	w.Comment(ken, id, "please")
	if got := edited(); len(got) != 0 {
		t.Errorf("nothing was edited: %q", got)
	}
	w.do(amy.Login, "PATCH", w.at("issues", id), map[string]string{"title": "y"}, nil)
	if got := edited(); !slices.Equal(got, []string{"amy"}) {
		t.Errorf("the title: %q", got)
	}
	// Of a text it is not told who: it could be its author.
	w.do(eve.Login, "PATCH", w.at("issues", id), map[string]string{"body": "y"}, nil)
	if got := edited(); !slices.Equal(got, []string{"amy", "eve"}) {
		t.Errorf("the text: %q", got)
	}
	w.Pass(2 * time.Second)
	since = w.now()
	if got := edited(); len(got) != 0 {
		t.Errorf("later: %q", got)
	}
}

// What people do to a proposal stays.
func TestProposeWhereItIsHard(t *testing.T) { t.Parallel(); everywhere(t, proposeWhereItIsHard) }

func proposeWhereItIsHard(t *testing.T, w *world) {
	ken := w.Person("ken", forge.Write)
	f := w.open(nil)
	w.Push("fix")
	p := forge.Proposal{Head: "fix", Base: "main", Title: "Fix", Body: "b", Marker: "m", Draft: true}
	propose := func() forge.Item {
		t.Helper()
		i, err := f.Propose(t.Context(), w.repo, p)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	i := propose()
	edit := func(change map[string]string) {
		t.Helper()
		w.do(ken.Login, "PATCH", w.at("pulls", i.Key.ID), change, nil)
	}
	edit(map[string]string{"body": i.Body + "\n\nken: see also #1"})
	p.Body = "changed"
	if again := propose(); again.Key != i.Key || !again.Pull.Draft || again.Title != "Fix" || !strings.HasPrefix(again.Body, "changed") || !strings.HasSuffix(again.Body, "ken: see also #1") {
		t.Errorf("%+v", again)
	}
	edit(map[string]string{"body": "mine now", "title": "[wip] mine"})
	if again := propose(); again.Key != i.Key || again.Body != "mine now" || again.Title != "mine" || !again.Pull.Draft {
		t.Errorf("%+v", again)
	}
	if err := f.Ready(t.Context(), i.Key); err != nil {
		t.Error(err)
	}
	if again := propose(); again.Pull.Draft || again.Title != "mine" {
		t.Errorf("%+v", again)
	}
	if w.fake != nil { // of a real one it is everybody's
		w.Rename(forge.Person{Login: giteatest.Bot}, "robot")
		if again := propose(); again.Key != i.Key {
			t.Errorf("our account has another name: %+v", again)
		}
		w.Rename(forge.Person{Login: "robot"}, giteatest.Bot)
	}
	// Somebody else has opened one from this branch already.
	w.Push("theirs")
	w.do(ken.Login, "POST", w.at("pulls"), map[string]string{"title": "x", "head": "theirs", "base": "main"}, nil)
	p.Head = "theirs"
	if _, err := f.Propose(t.Context(), w.repo, p); !forge.Is(err, forge.Invalid) {
		t.Error(err)
	}
}

// A server whose drafts have marks of their own.
func TestADraftWithAnotherMark(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.open(over(func(*http.Request) (*http.Response, error) {
		return reply(200, `{"number":1,"title":"Draft: x","draft":true,"state":"open"}`)
	}))
	if err := f.Ready(t.Context(), w.key("pull_request", "1")); !forge.Is(err, forge.Unsupported) || !strings.Contains(err.Error(), "Draft: x") {
		t.Error(err)
	}
}

// An answer that is lost, and a comment that was written all the same.
func TestPostWithLostAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Open(w.Person("ken", forge.Write), "x", "x")
	lost := 0
	f := w.open(func(o *Options) {
		next := o.HTTP.Transport
		o.HTTP.Transport = server(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if r.Method == http.MethodPost && lost < 2 && err == nil {
				lost++
				_ = resp.Body.Close()
				return nil, io.ErrUnexpectedEOF
			}
			return resp, err
		})
	})
	c, err := f.Post(t.Context(), w.key("issue", id), "m", "text")
	if notes := w.Notes(id); err != nil || c.Body != "text" || len(notes) != 1 {
		t.Errorf("%+v, %v, %q", c, err, notes)
	}
}

// An answer in a review stands on the line that it answers.
func TestRemarks(t *testing.T) {
	t.Parallel()
	all := (&call{}).remarks([]*sdk.PullReviewComment{
		{ID: 3, Path: "a", LineNum: 1, Body: "no"}, {ID: 1, Path: "a", LineNum: 1, Body: "why?"}, {ID: 2, Path: "a", OldLineNum: 1, Body: "gone?"}, nil,
	})
	if len(all) != 3 || all[0].Body != "why?" || all[0].ReplyTo != "" || all[1].ReplyTo != "" || all[1].Line != 0 || all[2].ReplyTo != "line/1" || all[2].Line != 1 {
		t.Errorf("%+v", all)
	}
}

// TestGit clones and pushes with what Remote says.
func TestGit(t *testing.T) { t.Parallel(); everywhere(t, git) }

func git(t *testing.T, w *world) {
	r, err := w.open(nil).Remote(t.Context(), w.repo)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(in string, args ...string) string {
		t.Helper()
		out, err := gittest.Run(in, "", time.Now(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if _, err := gittest.Run(dir, "", time.Now(), "clone", "-q", u.String(), "stranger"); err == nil {
		t.Error("a private repository was cloned without a login")
	}
	u.User = url.UserPassword(r.User, r.Password)
	run(dir, "clone", "-q", u.String(), "app")
	app := filepath.Join(dir, "app")
	run(app, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "work")
	run(app, "push", "-q", "origin", "HEAD:refs/heads/tori/1")
	if got := run(app, "ls-remote", "origin", "refs/heads/tori/1"); !strings.HasPrefix(got, run(app, "rev-parse", "HEAD")) {
		t.Error(got)
	}
}

// Before 1.27 Gitea takes no answers to remarks, and Forgejo never does.
func TestReplyBesideTheThread(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusMethodNotAllowed} {
		w := newWorld(t)
		w.fake.Wrap(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/replies") {
					rw.WriteHeader(status)
					return
				}
				next.ServeHTTP(rw, r)
			})
		})
		ken := w.Person("ken", forge.Write)
		w.Push("fix")
		f := w.open(nil)
		it, err := f.Propose(t.Context(), w.repo, forge.Proposal{Head: "fix", Base: "main", Title: "x", Body: "x", Marker: "pull-1"})
		if err != nil {
			t.Fatal(err)
		}
		w.Review(ken, it.Key.ID, forge.Commented, "", "why?")
		all, _, err := f.Comments(t.Context(), it.Key)
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v %v", all, err)
		}
		for range 2 {
			c, err := w.open(nil).Reply(t.Context(), it.Key, all[0].ID, "run-1.answer-1", "because")
			if err != nil || c.Kind != forge.Note || !strings.HasPrefix(c.Body, "["+all[0].Path+"](") || !strings.HasSuffix(c.Body, "because") {
				t.Errorf("%+v %v", c, err)
			}
		}
		if notes := w.Notes(it.Key.ID); len(notes) != 1 {
			t.Errorf("%q", notes)
		}
	}
}
