package confined

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/sandbox"
	"toritsugi/internal/tool/mcp"
)

// starter starts the server s with what it is given, without a wall.
func starter(t *testing.T, s Server) (o Options, c mcp.Command, seen *sandbox.Spec) {
	t.Helper()
	dir, seen := t.TempDir(), new(sandbox.Spec)
	for _, d := range []string{"tree/sub", "home"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.Name = "s"
	home := filepath.Join(dir, "home")
	runner := func(spec sandbox.Spec) (sandbox.Runner, error) {
		*seen = spec
		spec.Network = sandbox.Network{}
		return sandbox.Unconfined(spec), nil
	}
	o = Options{Servers: []Server{s}, Shell: runner, Spec: sandbox.Spec{Workspace: filepath.Join(dir, "tree"), Cache: filepath.Join(dir, "cache"), Env: map[string]string{"OURS": "1"}}}
	return o, mcp.Command{Server: "s", Argv: []string{"sh", "-c", "pwd; env"}, Env: []string{"HOME=" + home, "LANG=ja", "PATH=/nowhere"}, Home: home}, seen
}

func readAll(p *mcp.Process) (string, error) {
	b, err := io.ReadAll(p.Stdout)
	return string(b), err
}

// printed starts a server and returns what it prints, by lines.
func printed(t *testing.T, o Options, c mcp.Command) []string {
	t.Helper()
	p, err := o.start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(p.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(b), "\n")
}

// TestServerStart: a server has the directory, the home and the environment that
// it is given, and nothing of what commands have.
func TestServerStart(t *testing.T) {
	t.Parallel()
	has := func(all []string, line string) bool { return slices.Contains(all, line) }
	o, c, seen := starter(t, Server{})
	all := printed(t, o, c)
	if all[0] != o.Spec.Workspace || !has(all, "HOME="+c.Home) || !has(all, "LANG=ja") || has(all, "PATH=/nowhere") || has(all, "OURS=1") || seen.Cache != c.Home {
		t.Errorf("%q, cache %s", all, seen.Cache)
	}

	// What a repository has in its tree must not be the program that gets the key, or
	// a home that the next run has: it is seen, by its path.
	for _, keeps := range []mcp.Server{{Env: map[string]string{"TOKEN": "x"}}, {Home: c.Home}} {
		o, c, _ := starter(t, Server{Server: keeps})
		c.Argv = []string{"sh", "-c", `pwd; ls "$TORI_WORKSPACE"`}
		if all := printed(t, o, c); all[0] != c.Home || all[1] != "sub" {
			t.Errorf("with %+v it starts in %q", keeps, all)
		}
	}

	own := mcp.Server{Env: map[string]string{"PATH": "/bin:/usr/bin", "X": "y"}}
	o, c, _ = starter(t, Server{Server: own})
	c.Env = []string{"HOME=" + c.Home, "PATH=/bin:/usr/bin", "X=y"}
	if all := printed(t, o, c); !has(all, "PATH=/bin:/usr/bin") || !has(all, "X=y") {
		t.Errorf("%q", all)
	}

	o, c, seen = starter(t, Server{AllowHosts: []string{"a.example"}})
	if all := printed(t, o, c); all[0] != c.Home || len(seen.Network.AllowHosts) != 1 {
		t.Errorf("with network it starts in %q", all[0])
	}
	var e *i18n.Error
	o.Shell = func(sandbox.Spec) (sandbox.Runner, error) { return nil, i18n.E("sandbox.no_allow_list", "landlock") }
	if _, err := o.start(t.Context(), c); !errors.As(err, &e) || e.Key != "agent.server_network" {
		t.Errorf("%v", err)
	}
}

// TestServerOutlivesTheStart: what started it may end, it is ended by Kill.
func TestServerOutlivesTheStart(t *testing.T) {
	t.Parallel()
	o, c, _ := starter(t, Server{})
	c.Argv = []string{"cat"}
	ctx, cancel := context.WithCancel(t.Context())
	p, err := o.start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := p.Stdin.Write([]byte("still here\n")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 11)
	if _, err := io.ReadFull(p.Stdout, b); err != nil || string(b) != "still here\n" {
		t.Errorf("%q, %v", b, err)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	_ = p.Wait()
	if _, err := o.start(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("started with nobody waiting: %v", err)
	}
}

// Where a sandbox cannot open the network to some hosts alone, whoever configures a
// server is told so.
func TestServerWithoutAnAllowList(t *testing.T) {
	t.Parallel()
	o := Options{Shell: func(sandbox.Spec) (sandbox.Runner, error) {
		return nil, i18n.E("sandbox.no_allow_list", sandbox.KindLandlock)
	}}
	if _, err := o.runner(sandbox.Spec{}, Server{AllowHosts: []string{"api.example.com"}}); !IsKey(err, "agent.server_network") {
		t.Errorf("%v", err)
	}
	if IsKey(os.ErrNotExist, "agent.server_network") || IsKey(nil, "") {
		t.Error("any error is taken for it")
	}
}
