package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNothingInTheListOfProcesses: neither what a command reads nor its
// variables are arguments of any process, while it runs.
func TestNothingInTheListOfProcesses(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, runner func(Spec) Runner) {
		spec := newSpec(t)
		secret := "lantern-" + strings.ReplaceAll(t.Name(), "/", "-")
		spec.Env = map[string]string{"PLAIN": secret}
		r := runner(spec)
		var seen []string
		look := writerFunc(func(b []byte) (int, error) {
			if bytes.Contains(b, []byte("up")) {
				seen = commandLines(secret)
				return len(b), os.WriteFile(filepath.Join(spec.Workspace, "looked"), nil, 0o600)
			}
			return len(b), nil
		})
		exit, err := r.Run(t.Context(), Command{Script: `read -r a; test "$a" = "in-$PLAIN" && echo up; until test -e looked; do sleep 0.01; done; read -r b || exit 7`, Input: "in-" + secret + "\n", Output: look, Timeout: time.Minute})
		if err != nil || exit.Code != 7 {
			t.Fatalf("exit %+v, %v", exit, err)
		}
		if len(seen) != 1 || seen[0] != "looked" {
			t.Errorf("the list of processes shows %q", seen)
		}
		if _, err := r.Start(t.Context(), Command{Script: ":", Input: "x"}); err == nil {
			t.Error("a command that has a pipe was given other input")
		}
	})
}

// commandLines returns the command lines that hold a text.
func commandLines(text string) []string {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	seen := []string{"looked"}
	for _, file := range all {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(text)) {
			seen = append(seen, string(b))
		}
	}
	return seen
}
