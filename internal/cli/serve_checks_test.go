package cli

import (
	"strings"
	"testing"

	"toritsugi/internal/forge/github/githubtest"
)

// A login that may not read check runs, as a fine-grained token cannot, still
// brings the older statuses; what it could not read is said.
func TestChecksThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	w.repo.Commit("fix", "hanako", "Try", map[string]string{"answer.txt": "43\n"})
	p := w.repo.OpenPull("hanako", "fix", "main", "Mend the answer", "It is 43.")
	w.repo.AddCheckRun(w.repo.Branches()["fix"], githubtest.CheckRun{Name: "unit", Conclusion: "failure", Summary: "want 42, have 43"})
	w.repo.AddCheckRun(w.repo.Branches()["fix"], githubtest.CheckRun{Name: "ci/old", Conclusion: "failure", Summary: "the old one is red", Old: true})
	w.hub.OnRequest(func(q *githubtest.Request) *githubtest.Fault {
		if strings.HasSuffix(q.Path, "/check-runs") {
			f := githubtest.Forbidden()
			f.Message = "Resource not accessible by personal access token"
			return &f
		}
		return nil
	})
	w.repo.Label(p, "coding agent", "hanako")
	log := w.once()
	w.ended(t, p, "coding agent done", log, "Completed")
	if !strings.Contains(log, "Resource not accessible by personal access token") {
		t.Errorf("the log does not say what may not be read\n%s", log)
	}
	for _, want := range []string{"1 checks on its last commit, of which 1 failed", "the old one is red", "may not all be read"} {
		if r := w.request(); !strings.Contains(r, want) {
			t.Errorf("%q is not in the request\n%s", want, r)
		}
	}
}
