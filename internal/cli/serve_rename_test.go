package cli

import (
	"fmt"
	"strings"
	"testing"

	"toritsugi/internal/forge/github/githubtest"
)

// A repository that is renamed, or given to somebody else, while a run works:
// what is asked for and pushed under the former name goes where it is now, once.
func TestTheRepositoryIsRenamedWhileItWorks(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, c := range map[string]struct {
		after string
		nth   int
		to    string
	}{
		"before the start":            {taken, 1, "acme/gadgets"},
		"while the model works":       {listed, 2, "acme/gadgets"},
		"before the push":             {"git-receive-pack refs", 1, "acme/gadgets"},
		"before the pull request":     {"git-receive-pack", 1, "acme/gadgets"},
		"after the pull request":      {opening, 1, "acme/gadgets"},
		"transferred while it works":  {listed, 2, "others/widgets"},
		"transferred before the pull": {"git-receive-pack", 1, "others/widgets"},
		"transferred after the pull":  {opening, 1, "others/widgets"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := asked(t, "")
			w.hub.OnRequest((&trouble{after: c.after, nth: c.nth, begun: func() { w.repo.Rename(c.to) }, hits: func(*githubtest.Request) bool { return false }}).fate)
			log := w.look()
			w.hub.OnRequest(nil)
			log += w.look()
			if w.repo.Name() != c.to {
				t.Fatalf("it was never renamed\n%s", log)
			}
			w.handed(n, log)
			if p := w.repo.Pulls()[0]; p.Pull.Reviewers == nil || !strings.HasPrefix(p.Body, fmt.Sprintf("Closes #%d\n", n)) {
				t.Errorf("%+v\n%s", p.Pull, p.Body)
			}
			if len(w.runs()) != 1 {
				t.Errorf("%d runs\n%s", len(w.runs()), log)
			}
		})
	}
}
