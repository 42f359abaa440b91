package confined

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/sandbox"
)

// TestOwnDirectory: a program sees what it is installed as, and of what many share
// only itself.
func TestOwnDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range []string{"app/package.json", "app/dist/index.js", "x/node_modules/@a/b/dist/index.js", "venv/pyvenv.cfg", "venv/bin/serve", "node/lib/x", "node/bin/node",
		"go/bin/serve", "home/serve.js", "home/srv/a.js", "home/.local/bin/serve", "home/.local/lib/x"} {
		file := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		"app/dist/index.js":                 "app",
		"x/node_modules/@a/b/dist/index.js": "x/node_modules",
		"venv/bin/serve":                    "venv",
		"node/bin/node":                     "node",
		"go/bin/serve":                      "go/bin",
		"home/serve.js":                     "home/serve.js",
		"home/srv/a.js":                     "home/srv",
		"home/.local/bin/serve":             "home/.local/bin",
	} {
		if got := packageOf(filepath.Join(dir, file), filepath.Join(dir, "home")); got != filepath.Join(dir, want) {
			t.Errorf("%s: %s", file, got)
		}
	}
	if got := packageOf("/srv/serve.js", ""); got != "/srv/serve.js" {
		t.Error(got)
	}
	path := filepath.Join(dir, "home/.local/bin")
	if p := findProgram([]string{"serve", "/etc/passwd"}, path); p.argv[0] != path+"/serve" || p.dir != path || !slices.Equal(p.own, []string{path}) {
		t.Errorf("%+v", p)
	}
	if p := findProgram([]string{"sh", "-e", filepath.Join(dir, "app/dist/index.js")}, path); p.argv[0] != "sh" || !slices.Equal(p.own, []string{filepath.Join(dir, "app")}) {
		t.Errorf("%+v", p)
	}
}

// TestServerOutsideTheSystem: a program that the system does not have starts in each
// kind of sandbox, sees what it is installed as, and says what it lacked.
func TestServerOutsideTheSystem(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{sandbox.KindBwrap, sandbox.KindNamespaces, sandbox.KindLandlock} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			box, err := sandbox.Choose(t.Context(), sandbox.Options{Prefer: kind})
			if err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			for name, content := range map[string]string{"srv/package.json": "{}", "srv/bin/serve": "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/word\" || exit 3; cat " + dir + "/other/word || exit 4\n", "srv/lib/word": "found\n", "other/word": "given\n"} {
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			o, c, _ := starter(t, Server{})
			o.Shell = func(s sandbox.Spec) (sandbox.Runner, error) { return box.Runner(s) }
			c.Argv = []string{filepath.Join(dir, "srv/bin/serve")}
			p, err := o.start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			out, _ := readAll(p)
			if err = p.Wait(); out != "found\n" || err == nil || err.Error() != "exit status 4; besides the system's directories it reads "+dir+"/srv, and what sandbox.read_only_paths names" {
				t.Errorf("%q, %v", out, err)
			}
			o.Spec.ReadOnly = []string{filepath.Join(dir, "other")}
			if all := printed(t, o, c); strings.Join(all, " ") != "found given " {
				t.Errorf("%q", all)
			}
			c.Argv = []string{"no-such-program"}
			if p, err = o.start(t.Context(), c); err == nil {
				_, _ = readAll(p)
				err = p.Wait()
			}
			if err == nil || !strings.Contains(err.Error(), "mcp_servers[].command by its whole path") {
				t.Errorf("a program that is not there: %v", err)
			}
		})
	}
}
