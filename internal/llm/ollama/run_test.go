package ollama

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain fails where a goroutine of the module outlives the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(); code == 0 && left != "" {
		println("goroutines are left:\n" + left)
		code = 1
	}
	os.Exit(code)
}

// leaked are the stacks of goroutines, other than this one, that run the
// module's code or its connections; those that are about to end are waited for.
func leaked() string {
	var left string
	for range 200 {
		buf := make([]byte, 1<<20)
		stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		left = ""
		for _, s := range stacks[1:] {
			if strings.Contains(s, "toritsugi/") || strings.Contains(s, "net/http.(*persistConn)") {
				left += s + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(10 * time.Millisecond) // after the tests, for what is ending
	}
	return left
}

func TestRunCommand(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	run := RunCommand
	if err := run(t.Context(), []string{sh, "-c", `echo "${PATH:+from the environment}" "$1"; echo 'a && b' >&2`, "x", "$HOME;"}, out); err != nil {
		t.Error(err)
	}
	if raw, _ := os.ReadFile(out.Name()); string(raw) != "from the environment $HOME;\na && b\n" {
		t.Errorf("wrote %q", raw)
	}
	var exit *exec.ExitError
	if err := run(t.Context(), []string{sh, "-c", "exit 3"}, out); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Error(err)
	}
	if err := run(t.Context(), []string{filepath.Join(t.TempDir(), "none")}, out); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := run(t.Context(), nil, out); err == nil {
		t.Error("no program, no error")
	}
	// A server that the command leaves running keeps nobody waiting.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := run(ctx, []string{sh, "-c", "exec 3>&1; sleep 2 & exit 0"}, out); err != nil {
		t.Error(err)
	}
	ended, stop := context.WithCancel(t.Context())
	go func() {
		for { // until the command says that it runs
			if raw, _ := os.ReadFile(out.Name()); strings.Contains(string(raw), "begun") {
				stop()
				return
			}
			runtime.Gosched()
		}
	}()
	if err := run(ended, []string{sh, "-c", "echo begun; exec sleep 60"}, out); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestArgv(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"": nil, "  ": nil, "systemctl --user restart ollama": {"systemctl", "--user", "restart", "ollama"},
		` "/opt/my tools/restart"  'a b' c\ d "e\"f" '\' ''`: {"/opt/my tools/restart", "a b", "c d", `e"f`, `\`, ""},
		"x 'a|b;$c' \\$HOME": {"x", "a|b;$c", "$HOME"}, "x=1 2": {"x=1", "2"}, "再起動 オラマ": {"再起動", "オラマ"},
	} {
		if got, err := Argv(command); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", command, got, err)
		}
	}
	for command, want := range map[string]string{
		"a && b": "ollama.command", "a; b": "ollama.command", "a $HOME": "ollama.command", "a > b": "ollama.command", "a `b`": "ollama.command", "a\x00b": "ollama.command",
		"a 'b": "ollama.command_open", `a "b`: "ollama.command_open", `a \`: "ollama.command_open", "'' a": "ollama.command_open",
	} {
		if got, err := Argv(command); key(err) != want {
			t.Errorf("%q: %q, %v", command, got, err)
		}
	}
}

// FuzzArgv: words quoted one by one come back as they were.
func FuzzArgv(f *testing.F) {
	f.Add("systemctl", "restart ollama's")
	f.Add(`\`, "\"$|\n")
	f.Fuzz(func(t *testing.T, a, b string) {
		_, _ = Argv(a + b)
		a, b = strings.ToValidUTF8(a, "?"), strings.ToValidUTF8(b, "?")
		quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
		got, err := Argv(quote(a) + "\t" + quote(b))
		if a != "" && (err != nil || !slices.Equal(got, []string{a, b})) {
			t.Errorf("%q, %q: %q, %v", a, b, got, err)
		}
	})
}
