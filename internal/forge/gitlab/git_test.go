package gitlab

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/gitlab/gitlabtest"
	"toritsugi/internal/forge/gittest"
)

// git runs git in a directory with what Remote gives.
func git(t *testing.T, dir string, r forge.Remote, args ...string) (string, error) {
	t.Helper()
	u, err := url.Parse(r.URL)
	must(t, err)
	helper := "!f() { echo username=" + r.User + "; echo password=" + r.Password + "; }; f"
	cmd := exec.Command("git", append([]string{"-c", "credential.helper=", "-c", "credential." + u.Scheme + "://" + u.Host + ".helper=" + helper, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
	cmd.Dir, cmd.Env = dir, gittest.Env()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestRemote(t *testing.T) {
	w := newWorld(t, gitlabtest.Options{})
	f := w.open(nil)
	r, err := f.Remote(bg, acme)
	must(t, err)
	dir := t.TempDir()
	clone := filepath.Join(dir, "clone")
	if out, err := git(t, dir, r, "clone", "-q", r.URL, clone); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, os.WriteFile(filepath.Join(clone, "new.txt"), []byte("x\n"), 0o600))
	for _, args := range [][]string{{"checkout", "-q", "-b", "tori/fix"}, {"add", "."}, {"commit", "-q", "-m", "x"}, {"push", "-q", "origin", "tori/fix"}} {
		if out, err := git(t, clone, r, args...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	i, err := f.Propose(bg, acme, forge.Proposal{Head: "tori/fix", Base: "main", Title: "x", Body: "x", Marker: "m"})
	must(t, err)
	if sha := w.p.Branch("tori/fix"); sha == "" || i.Pull.Head.Commit != sha {
		t.Errorf("%q, %+v", sha, i.Pull)
	}
	// A project that moved is found by git, too; with a token that is none it is not.
	w.p.Move("other/app")
	if out, err := git(t, clone, r, "fetch", "-q", "origin"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	r.Password = "glpat-revoked"
	if out, err := git(t, clone, r, "fetch", "-q", "origin"); err == nil || !strings.Contains(out, "Authentication failed") {
		t.Errorf("%v: %s", err, out)
	}
}
