package cli

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// A run is out of the reach of other processes of its user, and what it starts
// outside of the sandbox gets none of its secrets. It works as an ordinary user
// all the same, with its commands in a sandbox.
func TestRunIsHidden(t *testing.T) {
	t.Parallel()
	const secret = "a-secret-of-the-environment"
	pid := make(chan int, 1)
	ordinary := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		ordinary.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	looked := make(chan string, 8)
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() > 0 {
			return llmtest.Answer{Text: "Done."}
		}
		id := <-pid
		for _, look := range []string{"cat /proc/%d/environ", "ls /proc/%d/fd", ": < /proc/%d/mem"} {
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", fmt.Sprintf(look, id))
			cmd.SysProcAttr, cmd.Dir = ordinary, "/"
			if out, err := cmd.CombinedOutput(); err == nil {
				looked <- fmt.Sprintf(look, id) + ": " + string(out)
			}
		}
		close(looked)
		return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "shell", Arguments: `{"command":"echo x > new.txt"}`}}}
	})
	h := newHouse(t, server.URL, "")
	config := h.write("secret.yaml", fmt.Sprintf("language: en\nllm: {provider: openai, max_retries: 0, openai: {base_url: %q, model: m, api_key: '${KEY_FOR_THE_MODEL}'}}\n", server.URL))
	given := filepath.Join(h.dir, "given")
	disktest.Program(t, filepath.Join(h.dir, "bin/go"), "#!/bin/sh\nenv > "+given+"\necho '{}'\n") // it is asked where it lives, outside of the sandbox
	if os.Getuid() == 0 {
		if err := os.Chmod(filepath.Dir(h.dir), 0o711); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(h.dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && os.Getuid() == 0 {
			err = os.Lchown(path, 65534, 65534)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.CommandContext(t.Context(), "tori", append([]string{"run", "--repo", filepath.Join(h.dir, "repo"), "--message", "go", "--config", config, "--base-dir", h.base()}, h.bare...)...)}
	p.Dir, p.SysProcAttr, p.Stdout, p.Stderr = h.dir, ordinary, &p.out, &p.out
	p.Env = []string{"PATH=" + filepath.Join(h.dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + h.dir, "TMPDIR=" + h.dir, "XDG_STATE_HOME=" + filepath.Join(h.dir, "state"), "TORI_PLANNING_ENABLED=false",
		"KEY_FOR_THE_MODEL=" + secret, "OTHER_TOKEN=" + secret + "-2"}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	pid <- p.Process.Pid
	if code := p.code(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	for seen := range looked {
		t.Errorf("another process of the same user sees it: %s", seen)
	}
	if got := server.Requests()[0].Header.Get("Authorization"); got != "Bearer "+secret {
		t.Errorf("the model was called with %q", got)
	}
	if env, err := readFile(given); err != nil || !strings.Contains(string(env), "HOME="+h.dir) || strings.Contains(string(env), secret) {
		t.Errorf("%v: what it started was given\n%s", err, env)
	}
}

// Every verb that works with the settings' secrets gets its world from one place,
// which hides the process and takes them out of its environment.
func TestEveryVerbIsHidden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := readFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(b); !strings.HasSuffix(name, "_test.go") && strings.Count(text, "app.Env{Getenv")+strings.Count(text, "sandbox.Hide(") != map[string]int{"cli.go": 2}[name] {
			t.Errorf("%s makes a world of its own", name)
		}
	}
	c := &console{err: io.Discard, lang: i18n.English, getenv: func(string) string { return "" }, environ: []string{"KEY=a-secret-of-the-house"}}
	env, err := c.env(c.note)
	if err != nil || env.Unset == nil || len(env.Environ) != 1 {
		t.Errorf("%+v %v", env, err)
	}
	if n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || n != 0 {
		t.Errorf("other processes see it: %d %v", n, err)
	}
}
