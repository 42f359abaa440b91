package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// A pull request names what its reviewer should look at. It is ready all the same,
// but where that may be what made the checks pass.
func TestPullRequestsNameWhatToReview(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file  string
		draft bool
		built string // what is said of the build
	}{{"Dockerfile", false, "`Dockerfile`: configuration of the build was changed"}, {"Makefile", true, "`Makefile:1`: configuration of the build was changed `all:`"}} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			w := newTown(t, "")
			write(t, filepath.Join(w.dir, "script.yaml"), "- calls:\n"+
				"    - {tool: write_file, args: {path: answer.txt, content: \"42\\n\"}}\n"+
				"    - {tool: write_file, args: {path: "+c.file+", content: \"all:\\n# TODO: build\\n\"}}\n- say: Done.\n")
			n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
			w.repo.Label(n, "coding agent", "hanako")
			log := w.once()
			pulls := w.repo.Pulls()
			if len(pulls) != 1 {
				t.Fatalf("%d pull requests\n%s", len(pulls), log)
			}
			body := pulls[0].Body
			for _, want := range []string{"**For the reviewer, found in the change**\n", "- `" + c.file + ":2`: marks work that is left to do `# TODO: build`\n", "- " + c.built + "\n"} {
				if !strings.Contains(body, want) {
					t.Errorf("%q is missing in\n%s", want, body)
				}
			}
			// What decides over the checks comes first, else the placeholder does.
			if first := strings.Index(body, "TODO: build") < strings.Index(body, "configuration of the build"); first == c.draft || pulls[0].Pull.Draft != c.draft {
				t.Errorf("draft %v, or out of order:\n%s", pulls[0].Pull.Draft, body)
			}
			if strings.Contains(body, "**Open points**") != c.draft {
				t.Errorf("how it was verified:\n%s", body)
			}
		})
	}
}
