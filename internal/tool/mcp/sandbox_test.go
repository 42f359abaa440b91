package mcp_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/tool/mcp"
)

// TestServerInASandbox starts a server under bubblewrap, which is what Start
// is for.
func TestServerInASandbox(t *testing.T) {
	t.Parallel()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("bubblewrap is not installed; scripts/setup.sh installs it")
	}
	if out, err := exec.Command(bwrap, "--ro-bind", "/", "/", "--unshare-all", "true").CombinedOutput(); err != nil {
		t.Skipf("bubblewrap does not work here: %s", out)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	secret := t.TempDir()
	if err := os.WriteFile(filepath.Join(secret, "key"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	var seen mcp.Command
	m := mustOpen(t, mcp.Options{Start: func(_ context.Context, c mcp.Command) (*mcp.Process, error) {
		seen = c
		cmd := exec.Command(bwrap, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", secret, "--bind", c.Home, c.Home, "--ro-bind", filepath.Dir(exe), "/mnt",
			"--chdir", c.Home, "--unshare-all", "--die-with-parent", "--new-session", "--", filepath.Join("/mnt", filepath.Base(exe)))
		cmd.Env = append(c.Env, "MCP_FAKE="+c.Argv[0], "GONE="+filepath.Join(secret, "key"))
		return mcp.StartCmd(cmd)
	}}, mode("s"))
	env := call(t, m, "s__env", "").Text
	if !strings.Contains(env, "HOME="+seen.Home) || strings.Contains(env, "GOPATH") {
		t.Errorf("its environment is %s", env)
	}
	says(t, call(t, m, "s__spawn", ""), false) // ends with the sandbox, whose numbers are its own
	says(t, call(t, m, "s__peek", ""), false, "no such file")
	m.Close()
	if s := status(t, m, "s"); s.State != mcp.Closed {
		t.Errorf("status %+v", s)
	}
}
