package dispatch

import (
	"net/http"
	"testing"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/gitea"
	"toritsugi/internal/forge/gitea/giteatest"
	"toritsugi/internal/forge/github"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/forge/gitlab"
	"toritsugi/internal/forge/gitlab/gitlabtest"
	"toritsugi/internal/forge/rest"
)

// wire counts what is asked over it.
type wire struct {
	http.Transport
	asked, paid int // paid: not answered as unchanged
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.Transport.RoundTrip(r)
	w.asked++
	if err == nil && resp.StatusCode != http.StatusNotModified {
		w.paid++
	}
	return resp, err
}

// A quiet repository costs each of the forges at most one request a minute, and what is asked for
// there is found at the next look.
func TestWhatAQuietRepositoryCosts(t *testing.T) {
	t.Parallel()
	type server struct {
		forge.Tracker
		repo  forge.Repo
		label func() // somebody asks for work
		free  bool   // what did not change is not counted
	}
	for name, open := range map[string]func(*testing.T, *wire, func() time.Time) (server, error){
		"github": func(t *testing.T, w *wire, now func() time.Time) (server, error) {
			s := githubtest.New(t, githubtest.Options{Now: now})
			r := s.AddRepo("acme", "app", githubtest.RepoOptions{}, map[string]string{"a": "b"})
			s.AddUser(githubtest.User{Login: "bot", Roles: map[string]string{"acme/app": "write"}})
			s.AddUser(githubtest.User{Login: "ken", Roles: map[string]string{"acme/app": "write"}})
			n := r.OpenIssue("ken", "x", "x")
			f, err := github.New(github.Options{Login: rest.Login{URL: s.URL, Token: s.Token("bot"), HTTP: &http.Client{Transport: w}, Now: now}, WriteSpacing: -1})
			return server{f, forge.Repo{Owner: "acme", Name: "app"}, func() { r.Label(n, "coding agent", "ken") }, true}, err
		},
		"gitlab": func(t *testing.T, w *wire, now func() time.Time) (server, error) {
			s := gitlabtest.New(t, gitlabtest.Options{Now: now})
			p := s.AddProject("acme/app", "private")
			s.AddUser("bot", false)
			s.AddUser("ken", false)
			p.Member("bot", 30)
			p.Member("ken", 30)
			p.Open("ken", "x", "x")
			f, err := gitlab.New(gitlab.Options{URL: s.URL, Token: s.Token("bot", "api"), HTTP: &http.Client{Transport: w}, Now: now})
			return server{f, forge.Repo{Owner: "acme", Name: "app"}, func() { p.Label("1", "ken", "coding agent", true) }, true}, err
		},
		"gitea": func(t *testing.T, w *wire, now func() time.Time) (server, error) {
			s := giteatest.New(t, now)
			in := &giteatest.World{T: t, URL: s.URL, Admin: s.Admin, Repo: forge.Repo{Owner: "acme", Name: "app"}}
			in.Prepare()
			bot, ken := in.Person(giteatest.Bot, forge.Admin), in.Person("ken", forge.Write)
			id := in.Open(ken, "x", "x")
			f, err := gitea.New(gitea.Options{URL: s.URL, Token: in.Token(bot.Login), HTTP: &http.Client{Transport: w}, Now: now})
			return server{f, in.Repo, func() { in.Label(ken, id, "coding agent") }, false}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, w := newLobby(t), &wire{}
			defer w.CloseIdleConnections()
			s, err := open(t, w, func() time.Time { return l.now })
			if err != nil {
				t.Fatal(err)
			}
			l.Interval, l.watch.Assignment, l.watch.Patterns = 5*time.Minute, true, []string{s.repo.String()}
			l.watch.Host.Tracker = s.Tracker
			l.watch.Host.Labels.Review, l.watch.Host.Labels.Create = "coding agent review", true
			l.looks(2)
			w.asked, w.paid = 0, 0
			l.looks(60)                            // five hours
			w.asked -= int(5 * time.Hour / relist) // the list of repositories
			t.Logf("%d requests in five hours, %d of them paid", w.asked, w.paid)
			if w.asked > 300 || s.free && w.paid > 5*4 {
				t.Errorf("%d requests in five hours, %d of them paid", w.asked, w.paid)
			}
			s.label()
			l.looks(1)
			if live, err := l.live(t.Context(), l.watch); err != nil || len(live[lower(s.repo)]) != 1 {
				t.Errorf("begun: %v, %v", live, err)
			}
		})
	}
}
