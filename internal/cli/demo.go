package cli

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"toritsugi/internal/agent"
	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
)

// demoFiles is the repository, the issue and the script of the demo. Names end
// in .txt where the Go tool would otherwise take them for ours.
//
//go:embed all:demo
var demoFiles embed.FS

type demoCmd struct {
	Dir string `placeholder:"DIR" help:"${dir_help}"`
}

// Run makes a small repository with a failing test and an issue about it, runs
// the issue with a script instead of a model, and says what to look at.
func (d demoCmd) Run(c *console) error {
	for _, program := range []string{"go", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			return usage(i18n.E("cli.demo_needs", program))
		}
	}
	dir, err := d.make(c.lang)
	if err != nil {
		return err
	}
	c.say("cli.demo_where", dir)
	repo := filepath.Join(dir, "repo")
	opt := app.RunOptions{Repo: repo, Issue: filepath.Join(dir, "issues", "1-truncate.md"), BaseDir: filepath.Join(dir, "contexts"),
		Config: filepath.Join(dir, "config.yaml"), Script: filepath.Join(dir, "script.yaml")}
	if _, err := sandbox.Detect(context.Background()); err != nil {
		c.say("cli.demo_unconfined", err)
		opt.AllowUnsandboxed = true
	}
	self := "tori"
	if strings.ContainsRune(os.Args[0], '/') {
		self = app.Quoted(os.Args[0]) // as it was called: it may not be on the PATH
	}
	return c.run(opt, runHooks{after: func(r agent.Report) {
		c.say("cli.demo_look")
		for _, line := range []string{
			fmt.Sprintf("%s show %s --base-dir %s", self, contextstore.Short(r.UUID), app.Quoted(opt.BaseDir)),
			fmt.Sprintf("%s show %s --messages --base-dir %s", self, contextstore.Short(r.UUID), app.Quoted(opt.BaseDir)),
			fmt.Sprintf("git -C %s log -p main..%s", app.Quoted(repo), r.Branch),
			fmt.Sprintf("jq -r '[.seq,.role,.content]|@tsv' %s", app.Quoted(filepath.Join(r.Dir, "messages.jsonl"))),
			fmt.Sprintf("cat %s", app.Quoted(strings.TrimSuffix(opt.Issue, ".md")+".comments.md")),
		} {
			_, _ = fmt.Fprintln(c.out, "  "+line)
		}
	}})
}

// make writes the demo's files and commits its repository.
func (d demoCmd) make(lang i18n.Lang) (string, error) {
	dir, err := d.place()
	if err != nil {
		return "", err
	}
	err = fs.WalkDir(demoFiles, "demo", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimSuffix(strings.TrimPrefix(path, "demo"), ".txt"))
		if e.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		b, err := demoFiles.ReadFile(path)
		if err != nil {
			return err
		}
		if e.Name() == "config.yaml" {
			b = append(b, "language: "+lang+"\n"...)
		}
		return os.WriteFile(to, b, 0o600)
	})
	if err != nil {
		return "", err
	}
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "."},
		{"-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message=A small text library"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = filepath.Join(dir, "repo")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir, nil
}

// place is the directory for the demo: empty, and there.
func (d demoCmd) place() (string, error) {
	if d.Dir == "" {
		return os.MkdirTemp("", "tori-demo-")
	}
	return emptyDir(d.Dir)
}
