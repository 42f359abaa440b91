package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
	"toritsugi/internal/userconfig"
)

// shelf is a source of settings of users in the hands of a test.
type shelf struct {
	asked atomic.Int64
	data  atomic.Pointer[string] // nil for none
	fails atomic.Bool
}

func (s *shelf) Read(context.Context, string, string) (userconfig.Settings, error) {
	s.asked.Add(1)
	d := s.data.Load()
	switch {
	case s.fails.Load():
		return userconfig.Settings{}, i18n.E("users.status", "there", 503)
	case d == nil:
		return userconfig.Settings{}, userconfig.ErrNone
	}
	return userconfig.Settings{From: "there", Data: []byte(*d)}, nil
}

func newUsers(t *testing.T, settings string) (*system, *shelf, *time.Time, *bytes.Buffer) {
	t.Helper()
	cfg, err := config.Parse("c.yaml", []byte(settings), func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	now, from, log := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), &shelf{}, &bytes.Buffer{}
	s := &system{cfg: cfg, redact: redact.New(nil, nil), log: slog.New(slog.NewTextHandler(log, nil)), env: Env{Lang: i18n.English, Now: func() time.Time { return now }}}
	s.users = s.openUsers()
	s.users.source = from
	return s, from, &now, log
}

// What is known of a user is asked for again after a while, outlasts a failure and settings that
// cannot be used, and is told of once.
func TestSettingsOfUsersOutlastFailures(t *testing.T) {
	t.Parallel()
	s, from, now, log := newUsers(t, "user_config: {directory: /u, on_failure: wait}")
	turns := func() (int, error) {
		p, err := s.users.of(t.Context(), "github", "Hanako")
		if err != nil || p.Config == nil {
			return 0, err
		}
		return p.Budget.MaxTurns, nil
	}
	set := func(text string) { from.data.Store(&text) }
	expect := func(what string, want int, asked int64, failed bool) {
		t.Helper()
		if n, err := turns(); n != want || from.asked.Load() != asked || (err != nil) != failed {
			t.Errorf("%s: %d turns after %d questions, %v", what, n, from.asked.Load(), err)
		}
	}
	from.fails.Store(true)
	expect("nothing is known", 0, 1, true)
	expect("at once again", 0, 1, true)
	*now = now.Add(believeFailed)
	from.fails.Store(false)
	set("budget: {max_turns: 7}")
	expect("it works", 7, 2, false)
	set("budget: {max_turns: 8}")
	expect("believed for a while", 7, 2, false)
	*now = now.Add(believeUser)
	expect("and no longer", 8, 3, false)
	from.fails.Store(true)
	for i := range int64(3) {
		*now = now.Add(believeUser)
		expect("the last known", 8, 4+i, false)
	}
	from.fails.Store(false)
	set("buget: {max_turns: 9}")
	*now = now.Add(believeUser)
	expect("a mistake in it", 8, 7, false)
	from.data.Store(nil)
	*now = now.Add(believeUser)
	expect("none any more", 0, 8, false)
	for what, want := range map[string]int{"answered HTTP 503": 2, "buget: unknown key": 1, "github/Hanako": 3} {
		if got := strings.Count(log.String(), what); got != want {
			t.Errorf("%q is told %d times:\n%s", what, got, log)
		}
	}
}

// Without anything known, the settings of the house hold where that is wanted; who gives up
// waiting leaves nothing behind.
func TestSettingsOfTheHouse(t *testing.T) {
	t.Parallel()
	s, from, _, _ := newUsers(t, "user_config: {directory: /u}")
	from.fails.Store(true)
	if one, _, err := s.forUser(t.Context(), "github", "hanako"); err != nil || one != s {
		t.Errorf("%v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.forUser(gone, "github", "ken"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	from.fails.Store(false)
	text := "system_prompt: short"
	from.data.Store(&text)
	for _, who := range []string{"ken", "KEN"} { // what was broken off counts for nothing
		if one, _, err := s.forUser(t.Context(), "github", who); err != nil || one.wishes != "short" || s.wishes != "" {
			t.Errorf("%v", err)
		}
	}
	for _, not := range [][2]string{{"folder", "ken"}, {"slack", "U1"}, {"github", ""}} {
		if one, _, err := s.forUser(t.Context(), not[0], not[1]); err != nil || one != s {
			t.Errorf("%v: %v", not, err)
		}
	}
}

// Many runs at once: each user is asked for once, keys are masked from then on, and there is an
// end to who is remembered.
func TestUsersAtOnce(t *testing.T) {
	t.Parallel()
	s, from, _, _ := newUsers(t, "user_config: {directory: /u}")
	text := "llm: {openai: {api_key: sk-of-everybody-0123}}"
	from.data.Store(&text)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if p, err := s.users.of(t.Context(), "github", "hanako"); err != nil || p.LLM.OpenAI.APIKey != "sk-of-everybody-0123" {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := from.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if got := s.redact.String("it is sk-of-everybody-0123."); strings.Contains(got, "everybody") || s.cfg.LLM.OpenAI.APIKey != "" {
		t.Error(got)
	}
}

// Whose settings count for a run.
func TestUserOfARun(t *testing.T) {
	t.Parallel()
	s, _, _, _ := newUsers(t, "user_config: {directory: /u}\naccess: {people: {'slack:U1': 'gitlab:hanako'}}")
	item := task.Key{Source: "gitea", Owner: "o", Repo: "r", Type: task.TypeIssue, ID: "1"}
	for order, want := range map[string]string{
		`{"ask":{"how":"label"}}`:                  "gitea ken",
		`{"repo":"/r","base":"b"}`:                 " ",
		`{"repo":"/r","chat":{"user":"slack:U1"}}`: "gitlab hanako",
		`{"repo":"/r","chat":{"user":"slack:U2"}}`: "slack U2", // of no forge: nobody's
	} {
		platform, login, err := s.userOf(t.Context(), contextstore.Metadata{TaskKey: item, User: "ken", Run: []byte(order)})
		if got := platform + " " + login; got != want || err != nil {
			t.Errorf("%s: %s, %v", order, got, err)
		}
	}
}

// A job of a chat goes by the settings of the account that who asked is linked to; the conversation
// does not.
func TestAJobGoesByItsUser(t *testing.T) {
	t.Parallel()
	v := newVillage(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "github", "hanako.yaml")
	text, err := os.ReadFile(v.config)
	if err := errors.Join(err, os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("llm: {lmstudio: {api_key: key-of-hanako-01, context_length: 16384}}\n"), 0o600),
		os.WriteFile(v.config, append(text, []byte("access: {people: {'terminal:hanako': 'github:hanako'}}\nuser_config: {directory: "+dir+"}\n")...), 0o600)); err != nil {
		t.Fatal(err)
	}
	h, s, end := v.process(hanakos)
	defer end()
	v.says(h, hanakos, "/code2 greet the moon")
	p, _ := s.until(t, 0, "request: ")
	jobs := 0
	for _, r := range v.models.Requests() {
		want := ""
		if r.Model == "coder-m" {
			jobs, want = jobs+1, "Bearer key-of-hanako-01"
		}
		if got := r.Header.Get("Authorization"); got != want {
			t.Errorf("%s is called with %q", r.Model, got)
		}
	}
	all, err := contextstore.List(t.Context(), h.store.BaseDir, contextstore.Viewer{Admin: true}, contextstore.Filter{})
	if err != nil || jobs == 0 || len(all.Views) != 1 || all.Views[0].Metadata.Config.ContextLength != 16384 || all.Views[0].Metadata.User != "hanako" {
		t.Errorf("%d calls for %s, %+v, %v", jobs, p.Approval.Job, all.Views, err)
	}
}
