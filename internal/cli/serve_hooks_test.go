package cli

import (
	"bytes"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

const hookSecret = "of-the-webhooks-0123456789"

// hooked is a town whose GitHub delivers webhooks, which a test hands over: a look of its own tori takes
// once, at the start.
type hooked struct {
	*town
	mu   sync.Mutex
	sent []githubtest.Delivery
}

func newHooked(t *testing.T) *hooked {
	w := &hooked{town: newTown(t, "")}
	w.env = []string{"TORI_SCHEDULING_INTERVAL=86400", "TORI_SCHEDULING_COMMENTS_INTERVAL=86400", "TORI_GITHUB_WEBHOOK_SECRET=" + hookSecret}
	w.repo.AddHook(githubtest.Hook{URL: "http://to.be.replaced/", Secret: hookSecret, ContentType: "json", Active: true, Events: []string{"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment"}})
	w.hub.OnDelivery(func(d githubtest.Delivery) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent = append(w.sent, d)
	})
	return w
}

var listening = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// up starts tori and returns once it has looked for work, and where it listens.
func (w *hooked) up() (d *daemon, at string) {
	w.t.Helper()
	d = w.start()
	w.until(d, "it listens, and has looked once", func() bool {
		at = listening.FindString(strings.ReplaceAll(d.out.String(), w.hub.URL, ""))
		if at == "" {
			return false
		}
		a, err := http.Get("http://" + at + "/readyz") //nolint:noctx // of a test
		if err != nil {
			return false
		}
		_ = a.Body.Close()
		return a.StatusCode == http.StatusOK
	})
	return d, "http://" + at + "/webhooks/github"
}

// take takes what was sent so far.
func (w *hooked) take() []githubtest.Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.sent
	w.sent = nil
	return all
}

// send hands deliveries over.
func (w *hooked) send(at string, want int, all ...githubtest.Delivery) {
	w.t.Helper()
	for _, d := range all {
		d.URL = at
		if got := d.Send(); got != want {
			w.t.Errorf("%s.%s: %d, not %d", d.Event, d.Action, got, want)
		}
	}
}

// runs counts the runs of an issue.
func (w *hooked) runsOf(n int) (count int) {
	for _, v := range w.runs() {
		if v.Metadata.TaskKey.ID == w.of(n).Metadata.TaskKey.ID {
			count++
		}
	}
	return count
}

// Work that a webhook tells of begins at once, and so does what a review wants; what came twice or in another
// order is done once, what came while nobody listened, or got lost with a kill right after the 200, is found
// at the start. Nothing of what was delivered but the place is on the disk.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := newHooked(t)
	d, at := w.up()

	// Each twice, the last first.
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41, says the peculiar-word.")
	w.repo.Label(n, "coding agent", "hanako")
	all := w.take()
	slices.Reverse(all)
	w.send(at, http.StatusOK, append(slices.Clone(all), all...)...)
	w.until(d, "the work is done", func() bool { return w.labels(n) == "coding agent done" })
	if len(w.repo.Pulls()) != 1 || w.runsOf(n) != 1 {
		t.Errorf("%d pull requests, %d runs", len(w.repo.Pulls()), w.runsOf(n))
	}
	for _, own := range w.take() { // labels, the comment, the pull request
		w.send(at, http.StatusAccepted, own)
	}
	files, err := filepath.Glob(filepath.Join(w.dir, "base", "house.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, f := range files {
		if raw, err := readFile(f); err != nil || bytes.Contains(raw, []byte("peculiar-word")) {
			t.Errorf("%s has what was delivered, %v", f, err)
		}
	}

	// A review.
	p := w.repo.Pulls()[0]
	write(t, filepath.Join(w.dir, "script.yaml"), "- calls: [{tool: write_file, args: {path: why.txt, content: because}}]\n- say: It says why now.\n")
	w.repo.Review(p.Number, "hanako", "CHANGES_REQUESTED", "Say why.")
	w.send(at, http.StatusOK, w.take()...)
	w.until(d, "the draft's branch has the follow-up", func() bool { return w.labels(p.Number) == "coding agent done" })

	// Killed right after the 200, and the delivery again after that.
	write(t, filepath.Join(w.dir, "script.yaml"), mends)
	n = w.repo.OpenIssue("hanako", "The answer is wrong again", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	all = w.take()
	all = all[len(all)-1:]
	w.send(at, http.StatusOK, all...)
	_ = d.Process.Kill()
	_ = d.Wait()
	down := w.repo.OpenIssue("hanako", "Nobody listens", "It says 41.")
	w.repo.Label(down, "coding agent", "hanako")
	d, at = w.up()
	w.send(at, http.StatusOK, all...)
	w.until(d, "both are done", func() bool { return w.labels(n) == "coding agent done" && w.labels(down) == "coding agent done" })
	if w.runsOf(n) != 1 || w.runsOf(down) != 1 || len(w.repo.Pulls()) != 3 {
		t.Errorf("%d and %d runs, %d pull requests", w.runsOf(n), w.runsOf(down), len(w.repo.Pulls()))
	}
	w.end(d)
	w.sound()
}

// A /stop reaches a run by a webhook, and so does what is said to it; what is forged, of others, or no
// delivery at all does nothing.
func TestWebhooksWhileARunGoesOn(t *testing.T) {
	t.Parallel()
	w := newHooked(t)
	begun, release := make(chan struct{}, 9), make(chan struct{})
	server := llmtest.NewServer(t, func(*llmtest.Request) llmtest.Answer {
		begun <- struct{}{}
		<-release
		return llmtest.Answer{Text: "Nothing."}
	})
	t.Cleanup(func() { close(release) })
	w.asks(server.URL)
	d, at := w.up()
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	good := w.take()
	forged := good[len(good)-1]
	forged.Header = forged.Header.Clone()
	forged.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
	w.send(at, http.StatusUnauthorized, forged)
	cut := good[len(good)-1]
	cut.Body = cut.Body[:len(cut.Body)/2]
	w.send(at, http.StatusUnauthorized, cut)
	if len(w.runs()) != 0 {
		t.Error("a forged delivery began a run")
	}
	sent := time.Now()
	w.send(at, http.StatusOK, good...)
	<-begun
	t.Logf("from the webhooks to the first call of a model: %s", time.Since(sent))
	w.repo.Comment(n, "hanako", "/stop")
	w.send(at, http.StatusOK, w.commented()...)
	w.until(d, "it is stopped", func() bool { return w.of(n).Status() == task.Stopped })
	w.end(d)
}

// commented takes the deliveries of comments of people.
func (w *hooked) commented() (some []githubtest.Delivery) {
	for _, d := range w.take() {
		if d.Event == "issue_comment" && bytes.Contains(d.Body, []byte(`"body":"/stop"`)) {
			some = append(some, d)
		}
	}
	return some
}
