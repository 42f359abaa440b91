package cli

import (
	"strings"
	"testing"

	"toritsugi/internal/forge/github/githubtest"
)

// The labels that ask are there to be chosen before anybody has used them; where they
// may not be made, that is said and keeps nothing back.
func TestTheLabelIsThereToAskWith(t *testing.T) {
	t.Parallel()
	names := func(r *githubtest.Repo) (all []string) {
		for _, l := range r.Labels() {
			all = append(all, l.Name)
		}
		return all
	}
	w := newTown(t, "")
	was := len(names(w.repo))
	log := w.once()
	if got := names(w.repo); len(got) != was+2 || got[was] != "coding agent" || got[was+1] != "coding agent review" {
		t.Errorf("%q\n%s", got, log)
	}
	w.hub.ResetLog()
	log += w.once() // it is not looked for again
	if n := w.hub.Count("GET /repos/{owner}/{repo}/labels"); n != 0 {
		t.Errorf("%d looks at the labels\n%s", n, log)
	}
	raw, _ := readFile(w.config)
	write(t, w.config, strings.Replace(string(raw), "write_spacing_ms: 0", "write_spacing_ms: 0, bot_label: ask tori", 1))
	if log += w.once(); names(w.repo)[was+2] != "ask tori" {
		t.Errorf("%q\n%s", names(w.repo), log)
	}
	write(t, w.config, strings.Replace(string(raw), "write_spacing_ms: 0", "write_spacing_ms: 0, bot_label: never, create_labels: false", 1))
	if log += w.once(); len(names(w.repo)) != was+3 {
		t.Errorf("%q\n%s", names(w.repo), log)
	}
	write(t, w.config, strings.Replace(string(raw), "write_spacing_ms: 0", "write_spacing_ms: 0, bot_label: refused", 1))
	w.hub.FailNext("POST /repos/{owner}/{repo}/labels", 1, githubtest.Forbidden())
	if log = w.once(); !strings.Contains(log, "The labels that ask cannot be made") {
		t.Error(log)
	}
}
