package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"toritsugi/internal/contextstore/ancestortest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/sandbox"
)

// TestMain puts tori first on the PATH, for the scripts and for the tests that need a real
// process to kill. It is the program as it ships: what the tests import besides takes a third
// of a process that starts, and a run starts ten.
func TestMain(m *testing.M) {
	sandbox.Helper(os.Args)
	if os.Getenv(sdkServer) != "" {
		serveSDK()
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	// The conversations of most tests are those of the plain loop; those of a plan say
	// so. The settings of whoever runs the tests do not count.
	for name, value := range map[string]string{"TORI_PLANNING_ENABLED": "false", "XDG_CONFIG_HOME": os.DevNull} {
		if _, set := os.LookupEnv(name); !set {
			if err := os.Setenv(name, value); err != nil {
				panic(err)
			}
		}
	}
	dir, err := os.MkdirTemp("", "tori-tests-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o711); err != nil { // for who is not who runs the tests
		panic(err)
	}
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "tori"), "toritsugi/cmd/tori")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	path := os.Getenv("PATH")
	if home, err := os.UserHomeDir(); err == nil {
		path = withoutShims(path, home)
	}
	if err := errors.Join(os.Setenv(ownPath, os.Getenv("PATH")), os.Setenv("PATH", dir+string(filepath.ListSeparator)+path)); err != nil {
		panic(err)
	}
	return m.Run()
}

// ownPath names the variable that holds the PATH of whoever runs the tests.
const ownPath = "OWN_PATH_OF_TESTS"

// withoutShims is a PATH without what lies in the home, but for Go: each process of tori
// asks what it finds there where languages are installed, and shims of version managers
// take longer to answer than the rest of a run.
func withoutShims(path, home string) string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "go"))
		return err != nil && strings.HasPrefix(dir, home+string(filepath.Separator))
	}), string(filepath.ListSeparator))
}

// skipShort leaves a test out of make test-short.
func skipShort(t *testing.T, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("not with -short: " + why)
	}
}

// The scripts are the command line's documentation: what is typed, what is
// printed, which files are left.
func TestScripts(t *testing.T) {
	t.Parallel()
	box, err := sandbox.Detect(t.Context())
	confined := err == nil
	cache := goCache(t)
	both := []string{"completion", "tools"}
	chat, ollama := llmtest.NewServer(t, greets), llmtest.NewOllama(t, greets, llmtest.OllamaModel{Name: "worker", ContextLength: 40960, Capabilities: both}, llmtest.OllamaModel{Name: "small", Capabilities: both})
	ollama.Load("worker", 32768)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GIT_AUTHOR_NAME", "ken")
			e.Setenv("GIT_AUTHOR_EMAIL", "ken@example.com")
			e.Setenv("GIT_COMMITTER_NAME", "ken")
			e.Setenv("GIT_COMMITTER_EMAIL", "ken@example.com")
			e.Setenv("LANG", "C.UTF-8")
			e.Setenv("TORI_PLANNING_ENABLED", "false") // the scripts answer the plain loop
			if b := os.Getenv(backend); b != "" {
				e.Setenv(backend, b)
			}
			e.Setenv("GOCACHE", cache)
			e.Setenv("USER", "ken")
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
			e.Setenv("CHAT_SERVER", chat.URL) // with model-a and model-b
			e.Setenv("OLLAMA_SERVER", ollama.URL)
			if !confined {
				e.Setenv("BARE", "--allow-unsandboxed")
			}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "sandbox":
				return confined, nil
			case "online": // an allow-list of hosts can be kept
				return confined && (box.Kind() == sandbox.KindBwrap || box.Kind() == sandbox.KindNamespaces), nil
			case "root":
				return os.Getuid() == 0, nil
			}
			return false, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"repo": makeRepo, "exits": exits, "samemessages": sameMessages, "ancestor": makeAncestor},
	})
}

// greets is a model that works on an issue in one step. It remembers nothing, so
// all scripts share its servers.
func greets(r *llmtest.Request) llmtest.Answer {
	usage := &llm.Usage{PromptTokens: 1000, CompletionTokens: 100, TotalTokens: 1100}
	if r.Turn() == 0 && len(r.Tools) > 0 {
		return llmtest.Answer{Text: "I write it.", Usage: usage, Calls: []llm.ToolCall{{ID: "call_1", Name: "write_file", Arguments: `{"path":"greeting.txt","content":"こんにちは\n"}`}}}
	}
	return llmtest.Answer{Text: "The greeting is there.", Usage: usage}
}

func goCache(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Skip("no go command:", err)
	}
	return strings.TrimSpace(string(out))
}

// makeRepo turns a directory of the script into a git repository with one commit.
func makeRepo(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	for _, a := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "start"}} {
		cmd := exec.CommandContext(context.Background(), "git", a...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=ken", "GIT_AUTHOR_EMAIL=ken@example.com", "GIT_COMMITTER_NAME=ken", "GIT_COMMITTER_EMAIL=ken@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			ts.Fatalf("git %v: %v\n%s", a, err, out)
		}
	}
}

// makeAncestor makes the tree of an older edition, v2 or v3, in a directory.
func makeAncestor(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(map[string]func(string) error{"v2": ancestortest.V2, "v3": ancestortest.V3}[args[0]](ts.MkAbs(args[1])))
}

// sameMessages demands that the only runs of two base directories have the same
// messages, but for times and the ids of the runs.
func sameMessages(ts *testscript.TestScript, _ bool, args []string) {
	var all []string
	for _, base := range args {
		files, err := filepath.Glob(ts.MkAbs(filepath.Join(base, "completed", "*", "messages.jsonl")))
		if err != nil || len(files) != 1 {
			ts.Fatalf("%d runs in %s: %v", len(files), base, err)
		}
		all = append(all, unique.ReplaceAllString(ts.ReadFile(files[0]), "…"))
	}
	if len(all) != 2 || all[0] != all[1] || strings.Count(all[0], "\n") < 3 {
		ts.Fatalf("messages:\n%s", strings.Join(all, "\n"))
	}
}

var unique = regexp.MustCompile(`"timestamp":"[^"]*"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// exits runs tori and demands an exit code: exits 3 run --repo …
func exits(ts *testscript.TestScript, _ bool, args []string) {
	// An unset variable leaves an empty argument.
	err := ts.Exec("tori", slices.DeleteFunc(args[1:], func(a string) bool { return a == "" })...)
	code := 0
	if err != nil {
		var ee *exec.ExitError
		if !errors.As(err, &ee) {
			ts.Fatalf("tori: %v", err)
		}
		code = ee.ExitCode()
	}
	if want := args[0]; want != itoa(code) {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

func itoa(n int) string { return string(rune('0' + n)) }

func matches(s, re string) bool { return regexp.MustCompile(re).MatchString(s) }
