package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"testing"
	"time"

	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// hub is a forge that says what a test lets it say, and has a clock of its own.
type hub struct {
	forge.Forge
	now    time.Time
	repos  []forge.Repository
	broken map[string]error // by what is asked: a repository, an item's number, a person
	unseen error            // returned with the repositories

	said     []forge.Comment // by Edited
	items    map[string]forge.Item
	late     func()       // called when the comments have been read
	sinces   []time.Time  // that were asked for
	by       forge.Person // who asks
	asked    map[string]error
	read     []string // items
	visited  []string // repositories
	posted   map[string]bool
	listings int
}

func (h *hub) Source() string        { return "github" }
func (h *hub) ServerTime() time.Time { return h.now }
func (h *hub) Self(context.Context) (forge.Person, error) {
	return forge.Person{ID: 1, Login: "tori"}, nil
}

func (h *hub) Repositories(context.Context, []string) ([]forge.Repository, error) {
	h.listings++
	return h.repos, h.unseen
}

func (h *hub) CommentsSince(_ context.Context, r forge.Repo, since time.Time) ([]forge.Comment, error) {
	h.sinces, h.visited = append(h.sinces, since), append(h.visited, r.Name)
	if err := h.broken[r.Name]; err != nil {
		return nil, err
	}
	var all []forge.Comment
	for _, c := range h.said {
		if !c.Edited.Before(since) && len(all) < forge.MaxComments {
			all = append(all, c)
		}
	}
	if h.late != nil {
		h.late()
	}
	return all, nil
}

func (h *hub) Triggered(context.Context, forge.Repo, forge.Trigger) ([]forge.Item, error) {
	var all []forge.Item
	for _, id := range slices.Sorted(keys(h.items)) {
		if h.items[id].Has("coding agent") {
			all = append(all, h.items[id])
		}
	}
	return all, nil
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (h *hub) Item(_ context.Context, k task.Key) (forge.Item, error) {
	h.read = append(h.read, k.ID)
	if err := h.broken[k.ID]; err != nil {
		return forge.Item{}, err
	}
	return h.items[k.ID], nil
}

func (h *hub) Asked(_ context.Context, k task.Key, t forge.Trigger) (forge.Asked, error) {
	if err := h.broken[k.ID]; err != nil {
		return forge.Asked{}, err
	}
	if err, ok := h.asked[t.Label]; ok {
		return forge.Asked{}, err
	}
	return forge.Asked{By: h.by, At: h.now, Event: fmt.Sprint("e", k.ID, "-", h.now.Unix())}, nil
}

func (h *hub) Permission(_ context.Context, _ forge.Repo, p forge.Person) (forge.Permission, error) {
	if p.Login != ken.Login {
		return forge.Triage, h.broken[p.Login]
	}
	return forge.Write, h.broken[p.Login]
}

// markers are what forges take for one.
var markers = regexp.MustCompile(`^[0-9A-Za-z._-]+$`)

func (h *hub) Post(_ context.Context, k task.Key, marker, _ string) (forge.Comment, error) {
	if err := h.broken["post"]; err != nil {
		return forge.Comment{}, err
	}
	if !markers.MatchString(marker) {
		return forge.Comment{}, &forge.Error{Kind: forge.Invalid, Err: errors.New("no marker: " + marker)}
	}
	if h.posted == nil {
		h.posted = map[string]bool{}
	}
	h.posted[k.ID+" "+marker] = true
	return forge.Comment{}, nil
}

var ken = forge.Person{ID: 7, Login: "ken"}

// says adds a comment of now.
func (h *hub) says(id, item string, by forge.Person, body string) {
	h.said = append(h.said, forge.Comment{ID: id, Kind: forge.Note, Item: item, Author: by, Body: body, Created: h.now, Edited: h.now})
}

// lobby is an intake before a hub.
type lobby struct {
	*Intake
	hub   *hub
	watch *Watch
	now   time.Time // by our clock
	t     *testing.T
}

func newLobby(t *testing.T, repos ...string) *lobby {
	t.Helper()
	at := time.Now().UTC().Truncate(time.Second) // the ledger's clock
	l := &lobby{t: t, now: at, hub: &hub{now: at, by: ken, items: map[string]forge.Item{}, broken: map[string]error{}, asked: map[string]error{}}}
	for _, r := range repos {
		l.hub.repos = append(l.hub.repos, forge.Repository{Repo: forge.Repo{Owner: "o", Name: r}})
	}
	labels := delivery.Labels{Trigger: "coding agent", Status: map[task.Status]string{task.Running: "processing", task.Paused: "paused"}}
	l.watch = &Watch{Host: &delivery.Host{Tracker: l.hub, Least: forge.Write, Labels: labels}, Patterns: []string{"o/*"}, Label: "coding agent",
		FollowUp: true, StopRemoved: true, MaxPerHour: 100}
	l.Intake = &Intake{Store: openStore(t, t.TempDir()), Watches: []*Watch{l.watch}, Mailbox: &Mailbox{}, Interval: time.Minute, CommentsEvery: 10 * time.Second,
		Lang: i18n.English, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Now: func() time.Time { return l.now }, Wake: func() {}, Stats: &Stats{}}
	return l
}

// look polls, and lets a time pass.
func (l *lobby) look(all bool, after time.Duration) error {
	l.t.Helper()
	err := l.Poll(l.t.Context(), l.watch, all)
	l.pass(after)
	return err
}

func (l *lobby) pass(d time.Duration) { l.now, l.hub.now = l.now.Add(d), l.hub.now.Add(d) }

// running is the uuid of a run on an issue that is worked on.
func (l *lobby) running(n int) string {
	l.t.Helper()
	id := enqueue(l.t, l.Store, "github", "a", "ken", n)
	c, _, err := l.Store.Claim(l.t.Context(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close() })
	l.hub.items[fmt.Sprint(n)] = forge.Item{Key: key(n), Open: true, Labels: []string{"processing"}}
	return id
}

func (l *lobby) queued(n int) string {
	l.t.Helper()
	l.hub.items[fmt.Sprint(n)] = forge.Item{Key: key(n), Open: true, Labels: []string{"processing"}}
	return enqueue(l.t, l.Store, "github", "a", "ken", n)
}

func (l *lobby) pause(uuid string) {
	l.t.Helper()
	c, _, err := l.Store.Claim(l.t.Context(), uuid)
	if err == nil {
		err = errors.Join(c.Transition(l.t.Context(), task.Outcome{Status: task.Paused}), c.Close())
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lobby) paused(n int) string {
	l.t.Helper()
	id := l.queued(n)
	l.pause(id)
	return id
}

func (l *lobby) status(uuid string) task.Status {
	l.t.Helper()
	v, err := l.Store.View(uuid)
	if err != nil {
		l.t.Fatal(err)
	}
	return v.Status()
}

func key(n int) task.Key {
	return task.Key{Source: "github", Owner: "o", Repo: "a", Type: task.TypeIssue, ID: fmt.Sprint(n)}
}

func (l *lobby) bodies(n int) (all []string) {
	for _, c := range l.Mailbox.Take(key(n)) {
		all = append(all, c.Body)
	}
	return all
}

func down() error { return &forge.Error{Kind: forge.Unavailable, Err: errors.New("502")} }
