package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// canaries are secrets of this test alone, by where each is planted. None stands
// here in one piece.
var canaries = map[string]string{
	"environment":  "zebra+Quartz/7781=lantern",
	"config":       "plum" + "-4471-orchid-Basalt",
	"issue text":   "ghp_" + "Iss1aaaaBBBBccccDDDDeeeeFFFF00001111",
	"issue title":  "ghs_" + "Tit1aaaaBBBBccccDDDDeeeeFFFF00001111",
	"repo file":    "glpat-" + "Rep1-aaaBBBccc-0001",
	"tool output":  "AKIA" + "OUT1OUT2OUT3OUT4",
	"tool args":    "xoxb-" + "4417-Arg1aaaaBBBB",
	"tool name":    "npm_" + "Nam1aaaaBBBBccccDDDDeeeeFFFF00001111",
	"tool error":   "hf_" + "Err1aaaaBBBBccccDDDDeeeeFFFF00001111",
	"reasoning":    "sk-ant-" + "Rea1-aaaaBBBBcccc",
	"answer":       "sk-proj-" + "Ans1aaaaBBBBcccc",
	"check output": "github_pat_" + "Chk1aaaaBBBBcccc",
	"model error":  "gho_" + "Mod1aaaaBBBBccccDDDDeeeeFFFF00001111",
	"key block":    strings.Repeat("MIIEow1BAAKCAQEA", 4),
	"password":     "Tq7" + "vLm2Zr9Xw",
}

// shapes are the forms in which a canary may fly.
func shapes(v string) []string {
	all := []string{v, hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))), url.QueryEscape(v), url.PathEscape(v)}
	for lead := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			// Without the characters that hold bits of what stands beside it.
			text := enc.EncodeToString(append(make([]byte, lead), v...))
			all = append(all, text[(lead*8+5)/6:(lead+len(v))*8/6])
		}
	}
	return all
}

// aviary collects what every sink holds.
type aviary struct {
	t     *testing.T
	sinks map[string][]byte
}

func (a *aviary) add(name string, b []byte) { a.sinks[name] = append(a.sinks[name], b...) }

// files adds every file below dir but the users' own trees.
func (a *aviary) files(dir string) {
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "workspaces" {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		a.add("name of "+p, []byte(p))
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := readFile(p)
		a.add(strings.TrimPrefix(p, dir), b)
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
}

// check demands that no sink holds a canary in any form.
func (a *aviary) check() {
	a.t.Helper()
	for where, v := range canaries {
		for _, form := range shapes(v) {
			for sink, b := range a.sinks {
				if i := bytes.Index(b, []byte(form)); i >= 0 {
					a.t.Errorf("the secret of the %s is in %s: …%s…", where, sink, b[max(0, i-80):min(len(b), i+len(form)+20)])
				}
			}
		}
	}
}

// plant makes a house whose repository, issue, settings and environment hold
// canaries, and returns it with the environment.
func plant(t *testing.T, model string) (h *house, env []string) {
	t.Helper()
	env = append(os.Environ(), "DEPLOY_TOKEN="+canaries["environment"], "USER=ken")
	h = newHouse(t, model, "'cat check.sh; sh check.sh'")
	cfg := fmt.Sprintf("language: en\nchecks: ['sh check.sh']\nllm:\n  provider: openai\n  max_retries: 0\n  openai: {base_url: %q, model: m, api_key: %q}\n", model, canaries["config"])
	h.write("config.yaml", cfg)
	h.write("issue.md", "# Rotate "+canaries["issue title"]+" at once\n\nThe old token is "+canaries["issue text"]+", see notes.\n")
	forms := []string{"known values in every shape:"}
	for _, where := range []string{"environment", "config"} {
		v := canaries[where]
		forms = append(forms, shapes(v)...)
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte("me:"+v)), "https://api.example/x?k="+url.QueryEscape(v))
	}
	h.write("repo/forms.txt", strings.Join(forms, "\n")+"\n")
	h.write("repo/notes.txt", "gitlab: "+canaries["repo file"]+"\nDB_PASSWORD="+canaries["password"]+"\n")
	h.write("repo/key.pem", "-----BEGIN "+"RSA PRIVATE KEY-----\n"+canaries["key block"]+"\n"+canaries["key block"]+"\nabcd==\n-----END "+"RSA PRIVATE KEY-----\n")
	h.write("repo/check.sh", "echo using "+canaries["check output"]+" >&2\ntest -f done.txt\n")
	for _, a := range [][]string{{"add", "."}, {"-c", "user.name=k", "-c", "user.email=k@example.com", "commit", "-q", "-m", "notes"}} {
		cmd := exec.CommandContext(t.Context(), "git", a...)
		cmd.Dir = filepath.Join(h.dir, "repo")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", a, err, out)
		}
	}
	return h, env
}

// run runs tori and adds what it prints.
func (a *aviary) run(env []string, args ...string) int {
	a.t.Helper()
	cmd := exec.CommandContext(a.t.Context(), "tori", args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, env
	_ = cmd.Run() // the exit code says it
	name := strings.Join(args[:min(len(args), 2)], " ")
	a.add("stdout of "+name, out.Bytes())
	a.add("stderr of "+name, errs.Bytes())
	return cmd.ProcessState.ExitCode()
}

// everything adds what a run left and what can be asked of it.
func (a *aviary) everything(h *house, env []string, server *llmtest.Server) {
	a.t.Helper()
	id := h.only().Metadata.UUID
	for _, args := range [][]string{
		{"show", id}, {"show", id, "--messages"}, {"show", id, "--tools"}, {"show", id, "--summaries"}, {"show", id, "--json"},
		{"show", id, "--messages", "--json"}, {"show", id, "--tools", "--json"}, {"show", id, "--summaries", "--json"}, {"tasks"}, {"tasks", "--json"},
	} {
		if code := a.run(env, append(args, "--base-dir", h.base())...); code != exitOK {
			a.t.Errorf("tori %v: exit code %d", args, code)
		}
	}
	a.files(h.base())
	if b, err := readFile(filepath.Join(h.dir, "issue.comments.md")); err == nil {
		a.add("the comment", b)
	}
	cmd := exec.CommandContext(a.t.Context(), "git", "-C", filepath.Join(h.dir, "repo"), "log", "--all", "--format=%D%n%B%an%ae")
	out, err := cmd.CombinedOutput()
	if err != nil {
		a.t.Fatal(err)
	}
	a.add("branches and commit messages", out)
	for _, r := range server.Requests() {
		a.add("a request to the model", r.Body)
	}
}

// A whole run that meets secrets at every turn leaves none of them anywhere but
// in the user's own tree.
func TestNoSecretReachesASink(t *testing.T) {
	t.Parallel()
	call := func(n int, tool, args string) llm.ToolCall {
		return llm.ToolCall{ID: fmt.Sprintf("c%d", n), Name: tool, Arguments: args}
	}
	server := llmtest.NewServer(t, llmtest.Sequence(
		llmtest.Answer{Text: "I read " + canaries["answer"] + ".", Reasoning: "Think of " + canaries["reasoning"], Calls: []llm.ToolCall{
			call(1, "read_file", `{"path":"notes.txt"}`), call(2, "read_file", `{"path":"forms.txt"}`), call(3, "read_file", `{"path":"key.pem"}`),
			call(4, "shell", `{"command":"a=AKIA; echo ${a}OUT1OUT2OUT3OUT4; cat forms.txt notes.txt; tail -n 3 key.pem"}`),
		}},
		llmtest.Answer{Calls: []llm.ToolCall{
			call(5, "shell", `{"command":"true `+canaries["tool args"]+`"}`), call(6, canaries["tool name"], `{}`), call(7, "read_file", `{"path":"`+canaries["tool error"]+`"}`),
			call(8, "shell", `{"command":"`+canaries["tool args"]), call(9, "write_file", `{"path":"done.txt","content":"done\n"}`),
		}},
		llmtest.Answer{Text: "Done; " + canaries["answer"] + " is retired, so is " + canaries["environment"] + "."},
	))
	h, env := plant(t, server.URL)
	a := &aviary{t: t, sinks: map[string][]byte{}}
	if code := a.run(env, h.args...); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, a.sinks["stderr of run --repo"])
	}
	a.everything(h, env, server)
	if len(a.sinks) < 25 {
		t.Errorf("only %d sinks", len(a.sinks))
	}
	for sink, want := range map[string]string{"branches and commit messages": "[OPENAI_KEY] is retired", "the comment": "Completed", "stdout of show " + h.only().Metadata.UUID: "[GITHUB_TOKEN]"} {
		if !bytes.Contains(a.sinks[sink], []byte(want)) {
			t.Errorf("%s holds no %q:\n%s", sink, want, a.sinks[sink])
		}
	}
	a.check()
}

// Errors quote what failed.
func TestNoSecretReachesASinkByAnError(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]llmtest.Answer{
		"at once":       {{Status: 401, ErrorText: "bad key " + canaries["config"] + " or " + canaries["model error"]}},
		"after a while": {{Calls: []llm.ToolCall{{ID: "c1", Name: "list_files", Arguments: `{}`}}}, {Status: 500, ErrorText: "no " + canaries["environment"] + " " + canaries["model error"]}},
		"patch":         {{Calls: []llm.ToolCall{{ID: "c1", Name: "shell", Arguments: `{"command":"cp notes.txt done.txt"}`}}}, {Text: "Done."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := llmtest.NewServer(t, llmtest.Sequence(answers...))
			h, env := plant(t, server.URL)
			a := &aviary{t: t, sinks: map[string][]byte{}}
			if code := a.run(env, h.args...); code == exitOK {
				t.Errorf("exit code %d:\n%s", code, a.sinks["stderr of run --repo"])
			}
			a.everything(h, env, server)
			a.check()
		})
	}
}

// What is wrong with the command line or the settings is told without them.
func TestNoSecretInAComplaint(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, llmtest.Sequence())
	h, env := plant(t, server.URL)
	a := &aviary{t: t, sinks: map[string][]byte{}}
	for _, args := range [][]string{
		{"run", "--repo", filepath.Join(h.dir, canaries["environment"]), "--message", "x", "--config", h.config, "--base-dir", h.base()},
		{"run", "--repo", filepath.Join(h.dir, "repo"), "--issue", filepath.Join(h.dir, canaries["config"]+".md"), "--config", h.config, "--base-dir", h.base()},
		{"run", "--repo", filepath.Join(h.dir, "repo"), "--message", "x", "--config", h.config, "--model", canaries["environment"], "--base-dir", h.base()},
		{"show", canaries["environment"], "--base-dir", h.base()},
		{"tasks", "--status", canaries["issue text"]},
		{"run", "--script", canaries["environment"], "--repo", filepath.Join(h.dir, "repo"), "--message", "x", "--config", h.config},
		{"config", "print", "--config", h.config},
		{canaries["answer"]},
	} {
		a.run(env, args...)
	}
	a.check()
}
