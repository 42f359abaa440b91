package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"toritsugi/internal/forge/github/githubtest"
)

// ciStep is the script with which the action, or the component, runs tori.
type ciStep struct {
	shell  []string
	script string
	env    map[string]string // with expressions
}

// readStep reads it from the repository's own file of a forge.
func readStep(t *testing.T, source string) (s ciStep) {
	t.Helper()
	read := func(name string, v any, document int) {
		raw, err := readFile(filepath.Join("..", "..", name))
		if err == nil {
			err = yaml.Unmarshal([]byte(strings.Split(string(raw), "\n---\n")[document]), v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if source == "gitlab" {
		var file map[string]struct {
			Variables map[string]string
			Script    []string
		}
		read("templates/tori.yml", &file, 1)
		return ciStep{[]string{"sh", "-ec"}, strings.Join(file["tori"].Script, "\n"), file["tori"].Variables}
	}
	var file struct {
		Runs struct {
			Steps []struct {
				Name, Uses, Run string
				Env             map[string]string
			}
		}
	}
	read("action.yml", &file, 0)
	for _, step := range file.Runs.Steps {
		if step.Uses != "" && !regexp.MustCompile(`@[0-9a-f]{40}$`).MatchString(step.Uses) {
			t.Errorf("%s is not pinned", step.Uses)
		}
		if step.Name == "Run" {
			s = ciStep{[]string{"bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"}, step.Run, step.Env}
		}
	}
	return s
}

// job runs it as a runner does, for an event, and returns its exit code and what it printed.
func (s ciStep) job(w *town, server, token, model string, event []byte) (code int, out string) {
	w.t.Helper()
	file := filepath.Join(w.dir, "event.json")
	write(w.t, file, string(event))
	env := append(os.Environ(), "HOME="+w.dir, "XDG_STATE_HOME="+w.dir, "LANG=C.UTF-8", "GITHUB_EVENT_PATH="+file, "RUNNER_TEMP="+w.dir, "TRIGGER_PAYLOAD="+file,
		"CI_PROJECT_DIR="+w.dir, token)
	env = append(env, w.env...)
	_, secret, _ := strings.Cut(token, "=")
	values := map[string]string{"github.server_url": server, "inputs.token": secret, "inputs.config": w.config, "inputs.model": model,
		"inputs.arguments": "--quiet\n\n", "inputs.tori || format('{0}/bin/tori', github.action_path)": "tori"}
	expression := regexp.MustCompile(`\$\{\{ (.*?) \}\}|\$\[\[ (.*?) \]\]|\$(CI_SERVER_URL)`)
	for name, value := range s.env {
		env = append(env, name+"="+expression.ReplaceAllStringFunc(value, func(found string) string {
			m := expression.FindStringSubmatch(found)
			if m[3] != "" {
				return server
			}
			v, known := values[m[1]+m[2]]
			if !known {
				w.t.Errorf("nobody knows %s", found)
			}
			return v
		}))
	}
	var text bytes.Buffer
	cmd := exec.CommandContext(w.t.Context(), s.shell[0], append(s.shell[1:], s.script)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &text, &text
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// eventOf is what GitHub, Gitea or GitLab tells a webhook or a job of an item.
func eventOf(t *testing.T, source, owner, item string) []byte {
	t.Helper()
	n := number(strings.TrimPrefix(item, "!"))
	event := map[string]any{"action": "labeled", "issue": map[string]any{"number": n}, "repository": map[string]any{"full_name": owner + "/widgets"},
		"sender": map[string]any{"id": 101, "login": "hanako"}}
	if source == "gitlab" {
		kind := map[bool]string{true: "merge_request", false: "issue"}[item[0] == '!']
		event = map[string]any{"object_kind": kind, "object_attributes": map[string]any{"iid": n}, "project": map[string]any{"path_with_namespace": owner + "/widgets"},
			"user": map[string]any{"id": 1, "username": "hanako"}}
	}
	b, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// inCI has the doors find a tori that answers from the town's script, and shows what
// they keep where a town has it.
func (w *town) inCI(contexts string) {
	real, err := exec.LookPath("tori")
	if err != nil {
		w.t.Fatal(err)
	}
	at := filepath.Join(w.dir, "bin")
	if err := errors.Join(os.Mkdir(at, 0o700), os.Symlink(contexts, filepath.Join(w.dir, "base"))); err != nil {
		w.t.Fatal(err)
	}
	write(w.t, filepath.Join(at, "tori"), fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" --script '%s' --allow-unsandboxed\n", real, filepath.Join(w.dir, "script.yaml")))
	if err := os.Chmod(filepath.Join(at, "tori"), 0o700); err != nil { //nolint:gosec // it is a program
		w.t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+at+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// A whole life without a server: each event is a job of the forge's own CI, which ends when the
// work on its item does, or waits for people.
func TestAWholeLifeInCI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ source, owner, contexts string }{{"github", "acme", "tori"}, {"gitlab", "acme/tools", ".tori"}} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()
			w, all := newHomes(t, "language: en\n", c.owner, c.source)
			w.inCI(c.contexts)
			w.env = append(w.env, "TORI_PLANNING_ENABLED=true")
			step, server := readStep(t, c.source), ""
			switch h := all[0].(type) {
			case *gitHubHome:
				server = h.URL
			case *gitLabHome:
				server = h.URL
			}
			var codes []int
			wholeLife(t, w, all[0], wordings[0], func(item string, _ func() bool) string {
				code, out := step.job(w, server, all[0].login(), "", eventOf(t, c.source, c.owner, item))
				codes = append(codes, code)
				return fmt.Sprintf("---- job for %s: %d\n%s", item, code, out)
			})
			want := map[string][]int{"github": {0, 0, 0, 0}, "gitlab": {5, 0, 0, 0}}[c.source] // the component tells its runner which one it may have
			if !slices.Equal(codes, want) {
				t.Errorf("the jobs ended with %d, not %d", codes, want)
			}
		})
	}
}

// A job works on the item of its event alone, with the token that GitHub gives to each job.
func TestAJobOfGitHubActions(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	w.inCI("tori")
	w.hub.AddApp(githubtest.App{ID: 15368, Slug: "github-actions"})
	token := "GITHUB_TOKEN=" + w.hub.InstallationToken(w.hub.Install("github-actions", "acme", "widgets"))
	first, second := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41."), w.repo.OpenIssue("hanako", "Another", "It says 41.")
	for _, n := range []int{first, second} {
		w.repo.Label(n, "coding agent", "hanako")
	}
	step := readStep(t, "github")
	job := func(event string) (int, string) { return step.job(w, w.hub.URL, token, "", []byte(event)) }
	code, out := job(string(eventOf(t, "github", "acme", "#2")))
	if code != 0 || w.labels(second) != "coding agent done" || w.labels(first) != "coding agent" {
		t.Errorf("%d, labels %q and %q\n%s", code, w.labels(second), w.labels(first), out)
	}
	if all := w.repo.Pulls(); len(all) != 1 || all[0].Author != "github-actions[bot]" {
		t.Errorf("%+v\n%s", all, out)
	}
	if code, out := job(string(eventOf(t, "github", "acme", "#2"))); code != 0 || !strings.Contains(out, "Nothing is left to do now.") || len(w.runs()) != 1 {
		t.Errorf("again: %d, %d runs\n%s", code, len(w.runs()), out)
	}
	for event, says := range map[string]string{
		`{"ref":"refs/heads/main","repository":{"full_name":"acme/widgets"}}`: "it is about no issue and no pull or merge request",
		`{"issue":{"number":2}}`: "it names no repository",
		"<html>":                 "it is no JSON",
		string(eventOf(t, "github", "acme/no", "#2")):                      "acme/no/widgets",
		`{"issue":{"number":9},"repository":{"full_name":"acme/widgets"}}`: "Nothing is left to do now.",
	} {
		if code, out := job(event); !strings.Contains(out, says) || (code == 0) != strings.HasPrefix(says, "Nothing") {
			t.Errorf("%s: %d\n%s", event, code, out)
		}
	}
	w.env = append(w.env, "GITLAB_TOKEN=x")
	if code, out := job(string(eventOf(t, "github", "acme", "#1"))); code != 2 || !strings.Contains(out, "logins at several are set up (github, gitlab)") {
		t.Errorf("two forges: %d\n%s", code, out)
	}
}
