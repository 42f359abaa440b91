package conversation

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// plainStage is a channel that shows answers whole, as vendors' are.
type plainStage struct{ *stage }

func (p plainStage) Stream() {} // hides that of stage

// vendor makes a house of a vendor's channel in a bubble.
func vendor(t *testing.T, test func(t *testing.T, h *house)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, i18n.English, "slack", func(h *house, o *Options) {
			h.id, o.Now = "slack:T1:C1:17.5", time.Now
			o.ToChat = map[channel.Kind]bool{"slack": true}
		})
		h.Add(plainStage{h.stage})
		test(t, h)
	})
}

// begin handles a message beside the test.
func (h *house) begin(ctx context.Context, m channel.Message) (ended chan error) {
	ended = make(chan error, 1)
	go func() { ended <- h.Handle(ctx, m) }()
	synctest.Wait()
	return ended
}

func TestWithdrawn(t *testing.T) {
	vendor(t, func(t *testing.T, h *house) {
		h.plays("chat", "One.", "Two.")
		h.saw("the word is swordfish", "answer: One.")
		m1 := "m1"
		h.saw("and now?", "answer: Two.")
		// One that is being answered: the turn ends and says nothing.
		h.play("chat", slowly("never", time.Hour))
		m := h.message("the word is tuna")
		ended := h.begin(t.Context(), m)
		for range 2 {
			if err := h.Withdraw(t.Context(), h.id, m.ID); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		// It comes again, and one comes that was taken back before.
		if err := h.Handle(t.Context(), m); err != nil {
			t.Error(err)
		}
		late := h.message("the word is halibut")
		if err := h.Withdraw(t.Context(), h.id, late.ID); err != nil {
			t.Fatal(err)
		}
		if err := h.Handle(t.Context(), late); err != nil {
			t.Error(err)
		}
		// One that was answered: no model is sent it, or the answer to it.
		if err := h.Withdraw(t.Context(), h.id, m1); err != nil {
			t.Fatal(err)
		}
		if got := h.stateNow(); got.Title != "" || got.Withdrawn != 3 {
			t.Errorf("%+v", got)
		}
		h.plays("chat", "Three.")
		h.saw("what was it?", "answer: Three.")
		asked := h.last("chat").asked()
		for _, word := range []string{"swordfish", "tuna", "halibut", "One."} {
			if strings.Contains(asked, word) {
				t.Errorf("a model is sent %q: %s", word, asked)
			}
		}
		if !strings.Contains(asked, "Two.") || h.stateNow().Title != "what was it?" {
			t.Errorf("%s\n%+v", asked, h.stateNow())
		}
		said, err := h.History(t.Context(), h.id, 20)
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		for _, s := range said {
			shown = append(shown, s.Text)
		}
		if !slices.Equal(shown, []string{"and now?", "Two.", "what was it?", "Three."}) {
			t.Errorf("%q", shown)
		}
		if got := len(h.stage.seen()); got != 3 {
			t.Errorf("%q", h.stage.seen())
		}
	})
}

// The short memory of what was taken back is made anew without it, also where it was being
// made meanwhile.
func TestWithdrawnFromMemory(t *testing.T) {
	vendor(t, func(t *testing.T, h *house) {
		for range 10 {
			h.plays("chat", "Well.")
			h.hears("swordfish")
		}
		h.plays("chat", "Well.")
		h.play("chat", slowly("They spoke of a swordfish.", time.Minute)) // the summary
		ended := h.begin(t.Context(), h.message("the eleventh"))
		time.Sleep(time.Second)
		if err := h.Withdraw(t.Context(), h.id, "m2"); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if s := h.stateNow(); s.ShortMemory != "" || s.MemorySeq != 0 {
			t.Errorf("%+v", s)
		}
		h.plays("chat", "Well.", "They spoke of fish.")
		h.hears("the twelfth")
		if s := h.stateNow(); s.ShortMemory != "They spoke of fish." {
			t.Fatalf("%+v", s)
		}
		if err := h.Withdraw(t.Context(), h.id, "m1"); err != nil {
			t.Fatal(err)
		}
		if s := h.stateNow(); s.ShortMemory != "" {
			t.Errorf("%+v", s)
		}
	})
}

func TestWithdrawnJob(t *testing.T) {
	vendor(t, func(t *testing.T, h *house) {
		h.ToChat, h.Repositories = nil, []Repository{{Name: "widgets", Path: t.TempDir()}}
		if got := h.hears("/code2 do it"); len(h.desk.jobs) != 1 {
			t.Fatalf("%q", got)
		}
		if err := h.Withdraw(t.Context(), h.id, "m1"); err != nil {
			t.Fatal(err)
		}
		if want := []string{"20260301-101010-00000001 by slack:hanako"}; !slices.Equal(h.desk.stopped, want) {
			t.Errorf("%q", h.desk.stopped)
		}
	})
}

func TestRevised(t *testing.T) {
	vendor(t, func(t *testing.T, h *house) {
		revise := func(m channel.Message, text string) {
			t.Helper()
			m.UserText = text
			if err := h.Revise(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		// One that is being answered begins anew; said again as it is, it goes on.
		h.play("chat", slowly("never", time.Hour), slowly("To Kyoto.", time.Minute))
		m := h.message("the way to Tokyo?")
		ended := h.begin(t.Context(), m)
		revise(m, "the way to Kyoto?")
		synctest.Wait()
		revise(m, "the way to Kyoto?")
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if asked := h.last("chat").asked(); strings.Contains(asked, "Tokyo") || !strings.Contains(asked, "Kyoto") {
			t.Error(asked)
		}
		// One that was answered stays.
		revise(m, "the way to Nara?")
		// One that waits is answered as it is now, a command too.
		m = h.message("who is Ann?")
		revise(m, "who is Ben?")
		revise(m, "who is Cid?")
		h.plays("chat", "Somebody.")
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		asked := h.last("chat").asked()
		if strings.Contains(asked, "Ann") || strings.Contains(asked, "Ben") || strings.Contains(asked, "Nara") || !strings.Contains(asked, "Cid") || !strings.Contains(asked, "Kyoto") {
			t.Error(asked)
		}
		m = h.message("go on")
		revise(m, "/show channel")
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		// Taken back is taken back.
		m = h.message("a")
		if err := h.Withdraw(t.Context(), h.id, m.ID); err != nil {
			t.Fatal(err)
		}
		revise(m, "b")
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(h.stage.seen(), "\n"); got != "answer: To Kyoto.\nanswer: Somebody.\nnotice: Channel slack, session slack:T1:C1:17.5" {
			t.Error(got)
		}
	})
}

// A turn that the end of the program cuts off says no half an answer where nobody has seen
// one: the message comes again. What was said on the way is not said twice.
func TestComesAgain(t *testing.T) {
	vendor(t, func(t *testing.T, h *house) {
		h.plays("chat", "DELEGATE: PLAN\nTASK: a trip")
		h.play("worker", slowly(output(planResult, nil), time.Hour))
		ctx, end := context.WithCancel(t.Context())
		m := h.message("plan a trip")
		ended := h.begin(ctx, m)
		end()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		before := h.stage.seen()
		if len(before) != 1 || !strings.HasPrefix(before[0], "notice: ") {
			t.Fatalf("%q", before)
		}
		h.plays("chat", "DELEGATE: PLAN\nTASK: a trip", "By train.")
		h.plays("worker", output(planResult, nil))
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		keys, finals := map[string]bool{}, 0
		for _, p := range h.stage.posts {
			if keys[p.Key] = true; p.Kind == channel.Answer {
				finals++
			}
		}
		if len(keys) != 3 || finals != 1 { // begin, end, answer
			t.Errorf("%d posts, %d answers: %q", len(keys), finals, h.stage.seen())
		}
	})
}

// While it is quiet people are told what they ask for, and of the rest when it is over, or when
// they speak themselves.
func TestQuiet(t *testing.T) {
	vendor(t, func(t *testing.T, h *house) {
		quiet := true
		h.Quiet = func(k channel.Kind) bool { return quiet && k == "slack" }
		h.plays("chat", "Hello.")
		h.saw("hello", "answer: Hello.")
		say := func(key, job string) {
			t.Helper()
			if err := h.Post(t.Context(), channel.Post{SessionID: h.id, Key: key, Kind: channel.Notice, Job: job, Text: key}); err != nil {
				t.Fatal(err)
			}
		}
		say("for who just spoke", "20260301-101010-00000001")
		if got := h.stage.seen(); got[len(got)-1] != "notice: for who just spoke" {
			t.Errorf("%q", got)
		}
		time.Sleep(lately)
		say("an alert", "")
		say("first", "20260301-101010-00000001")
		for range 2 {
			h.postsOwing(h.id)
		}
		if got := h.stage.seen(); len(got) != 3 || got[2] != "notice: an alert" {
			t.Errorf("%q", got)
		}
		h.saw("/jobs", "progress: ", "notice: first", "notice: No job is running.")
		time.Sleep(lately)
		say("second", "20260301-101010-00000001")
		quiet = false
		h.postsOwing()
		if got := h.stage.seen(); got[len(got)-1] != "notice: second" {
			t.Errorf("%q", got)
		}
	})
}

// postsOwing posts what is owed, after which that is so of some sessions only.
func (h *house) postsOwing(want ...string) {
	h.t.Helper()
	err := h.PostOwing(h.t.Context())
	left, merr := h.store.Marks(h.t.Context(), "unposted/slack")
	if err = errors.Join(err, merr); err != nil || !slices.Equal(left, want) {
		h.t.Errorf("owing: %q, not %q: %v", left, want, err)
	}
}

// What a process says that has no channel is shown by the one that has it, once, though nobody
// speaks in the session and nothing failed there.
func TestPostsOfAnotherProcess(t *testing.T) {
	vendor(t, func(t *testing.T, h *house) {
		h.plays("chat", "Hello.")
		h.saw("hello", "answer: Hello.")
		h.postsOwing()
		store, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: h.store.BaseDir, Redact: func(s string) string { return s }, FS: &disk.FS{}, NoSync: true, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		o := h.Options
		o.Store = store
		other, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close() }()
		for _, text := range []string{"first", "second"} {
			if err := other.Post(t.Context(), channel.Post{SessionID: h.id, Key: text, Kind: channel.Notice, Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		h.stage.fail = 2
		h.postsOwing(h.id)
		h.postsOwing()
		h.postsOwing()
		if got := h.stage.seen(); !slices.Equal(got, []string{"answer: Hello.", "notice: first", "notice: second"}) {
			t.Errorf("%q", got)
		}
		dir := h.Engine.open(h.id, "slack").Dir
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := store.SetMark(t.Context(), "unposted/slack", h.id, "1"); err != nil {
			t.Fatal(err)
		}
		h.postsOwing() // of a session that was removed
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is there again: %v", err)
		}
	})
}

// What ANALYZE kept of a message goes with it, also in a file of before.
func TestWithdrawnAnalysis(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	before := strings.Replace(analysesSchema, ",\n\tmessage TEXT NOT NULL DEFAULT ''", "", 1)
	if err := os.MkdirAll(filepath.Dir(h.analyses.path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", h.analyses.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	h.plays("worker", output(analyzeResult, nil), output(analyzeResult, nil))
	h.plays("chat", "a", "b")
	if err := h.Withdraw(t.Context(), h.id, "m0"); err != nil { // nothing is kept yet
		t.Fatal(err)
	}
	first := h.message("/analyze sales\n1,2")
	if err := h.Handle(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	h.hears("/analyze costs\n3,4")
	if err := h.Withdraw(t.Context(), h.id, first.ID); err != nil {
		t.Fatal(err)
	}
	all, err := h.analyses.Find(t.Context(), "", nil, 10)
	if err != nil || len(all) != 1 || all[0].Title != "costs" {
		t.Errorf("%+v, %v", all, err)
	}
}
