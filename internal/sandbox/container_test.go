package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/disk/disktest"
)

// fakeEngine is a program that takes an engine's commands: it keeps what it was
// called with, and runs the command of a container bare.
const fakeEngine = `#!/bin/bash
log=$(dirname "$0")/log
printf '%s\n' "$*" >>"$log"
case $1 in
info) cat "$(dirname "$0")/info"; exit ;;
image) exit 1 ;;
import) cat >/dev/null; exit ;;
kill) kill -"$3" $(cat "$(dirname "$0")/pid-$4" 2>/dev/null) 2>/dev/null; exit ;;
esac
shift
while [ "$1" != localhost/tori-empty:1 ]; do
	case $1 in
	--name) name=$2 ;;
	--workdir) cd "$2" ;;
	--mount) case $2 in *,target=/run/reached) gate=${2#type=bind,source=}; gate=${gate%,target=/run/reached} ;; esac ;;
	esac
	shift
done
shift
echo $$ >"$(dirname "$0")/pid-$name"
script=${3//\/run\/reached/$gate}
shift 3
exec /bin/sh -c "$script" "$@"
`

func newEngine(t *testing.T, name, info string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	disktest.Program(t, path, fakeEngine)
	if err := os.WriteFile(filepath.Join(dir, "info"), []byte(info), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestContainer(t *testing.T) {
	t.Parallel()
	for name, info := range map[string]string{"podman": "true\n", "docker": "name=seccomp,profile=builtin\nname=rootless\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newEngine(t, name, info)
			s, err := Choose(t.Context(), Options{Prefer: KindContainer, Engine: path})
			if err != nil {
				t.Fatal(err)
			}
			spec := newSpec(t)
			spec.MemoryMB = 512
			r, err := s.Runner(spec)
			if err != nil {
				t.Fatal(err)
			}
			if r.Kind() != KindContainer || !r.Confined() {
				t.Errorf("%s, %v", r.Kind(), r.Confined())
			}
			if out, exit := sh(t, r, "echo hello; exit 3"); out != "hello\n" || exit.Code != 3 {
				t.Errorf("%q %+v", out, exit)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			exit, err := r.Run(ctx, Command{Script: "sleep 1000", Timeout: 300 * time.Millisecond})
			if err != nil || !exit.TimedOut {
				t.Errorf("%+v, %v", exit, err)
			}
			ctx, cancel = context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			p, err := r.Start(ctx, Command{Script: "exec cat"})
			if err != nil {
				t.Fatalf("a server that waits for its caller: %v", err)
			}
			_ = p.Stdin.Close()
			if _, err := p.Wait(); err != nil {
				t.Error(err)
			}
			log, err := os.ReadFile(filepath.Join(filepath.Dir(path), "log"))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"--network none", "--read-only", "--cap-drop ALL", "no-new-privileges", "--pids-limit 1024", "--memory 536870912",
				"type=bind,source=" + spec.Workspace + ",target=" + spec.Workspace + " ", "source=/usr,target=/usr,readonly", "import - " + emptyImage, "kill --signal TERM"} {
				if !bytes.Contains(log, []byte(want)) {
					t.Errorf("no %q in\n%s", want, log)
				}
			}
			if bytes.Contains(log, []byte("GOCACHE")) {
				t.Error("the environment is in the arguments")
			}
		})
	}
}

func TestEngineRefused(t *testing.T) {
	t.Parallel()
	for name, info := range map[string]string{"podman": "false\n", "docker": "name=seccomp\n"} {
		path := newEngine(t, name, info)
		if _, err := Choose(t.Context(), Options{Prefer: KindContainer, Engine: path}); err == nil || !strings.Contains(err.Error(), "rootless") {
			t.Errorf("%s that runs as root: %v", name, err)
		}
	}
	spec := newSpec(t)
	spec.Network.AllowHosts = []string{"a.example"}
	if _, err := (&Sandbox{kind: KindContainer}).Runner(spec); err == nil {
		t.Error("a list of hosts was taken")
	}
}

func TestContainerArgs(t *testing.T) {
	t.Parallel()
	s := &Sandbox{kind: KindContainer, engine: engine{path: "podman", podman: true}}
	spec := newSpec(t)
	git := filepath.Join(filepath.Dir(spec.Workspace), "git")
	hide := filepath.Join(spec.Workspace, "secret")
	for _, d := range []string{git, hide} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	spec.GitDir, spec.Hide = git, []string{hide, "/nowhere"}
	if err := os.WriteFile(filepath.Join(spec.Workspace, ".git"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	args := s.containerArgs(spec, "name", "/env", "/gate", spec.Workspace)
	for _, want := range []string{"type=bind,source=" + git + ",target=" + git + ",readonly", hide + ":ro,size=4k", "keep-id",
		fmt.Sprintf("type=bind,source=%[1]s/.git,target=%[1]s/.git,readonly", spec.Workspace)} {
		if !slices.Contains(args, want) {
			t.Errorf("no %q in %q", want, args)
		}
	}
}
