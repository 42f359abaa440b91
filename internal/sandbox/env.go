package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// toolchain is the Go installation of this machine, empty where there is none.
type toolchain struct{ goRoot, modCache string }

// findToolchain asks go itself where it lives; the module cache is what lets
// tests of a repository run offline. A machine without go has neither.
func findToolchain(ctx context.Context) toolchain {
	bin, err := exec.LookPath("go")
	if err != nil {
		bin = "/usr/local/go/bin/go"
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "env", "-json", "GOROOT", "GOMODCACHE")
	cmd.Dir = "/" // no go.mod may choose another toolchain
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	if err != nil {
		return toolchain{}
	}
	var v struct{ GOROOT, GOMODCACHE string }
	if json.Unmarshal(out, &v) != nil {
		return toolchain{}
	}
	return toolchain{goRoot: v.GOROOT, modCache: v.GOMODCACHE}
}

// paths lists what the toolchain needs to be seen, wherever it lives, as far as
// this user may see it.
func (t toolchain) paths() []string {
	var all []string
	for _, p := range []string{t.goRoot, t.modCache} {
		if _, err := os.Stat(p); errors.Is(err, os.ErrPermission) {
			continue
		}
		if filepath.IsAbs(p) && filepath.Clean(p) != "/" {
			all = append(all, filepath.Clean(p))
		}
	}
	return all
}

// environment is everything a command knows of the world: constants, where its
// caches are, and Spec.Env. tmp is its private temporary directory. Nothing
// comes from the daemon's own environment.
func environment(spec Spec, tools toolchain, tmp string) []string {
	caches := spec.Cache
	if caches == "" {
		caches = filepath.Join(tmp, "cache")
	}
	env := map[string]string{
		"PATH":                systemPath,
		"HOME":                filepath.Join(tmp, "home"),
		"TMPDIR":              tmp,
		"LANG":                "C.UTF-8",
		"TERM":                "dumb",
		"CI":                  "1", // no test runner may wait for a key in watch mode
		"XDG_CACHE_HOME":      filepath.Join(caches, "xdg"),
		"GIT_OPTIONAL_LOCKS":  "0", // git status must not try to refresh a read-only index
		"GIT_TERMINAL_PROMPT": "0",
		"GOCACHE":             filepath.Join(caches, "go-build"),
		"GOPATH":              filepath.Join(caches, "go"),
		"GOFLAGS":             "-buildvcs=false",
		"GOPROXY":             "off",
		"GOSUMDB":             "off",
		"GOTOOLCHAIN":         "local",
	}
	if tools.goRoot != "" {
		env["PATH"] = filepath.Join(tools.goRoot, "bin") + ":" + systemPath
	}
	if tools.modCache != "" {
		env["GOMODCACHE"] = tools.modCache
	}
	if spec.Network.open() {
		maps.Copy(env, spec.Network.environment())
	}
	maps.Copy(env, spec.Env)
	list := make([]string, 0, len(env))
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}

// shell is what reads scripts.
func shell() string {
	for _, p := range []string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return "/bin/sh"
}

// scriptArgs is the argument list that runs a command behind the limits. The
// outer sh sets them, says on descriptor 3 that it was reached, which tells a
// sandbox that failed from a command that failed, and becomes the command. others
// are threads of the same user that are not the command's, -1 for unknown ones.
func scriptArgs(spec Spec, c Command, before string, others int) []string {
	gate := before + script(spec.Limits.kernel(spec.MemoryMB, others)) + `echo >&3; exec 3>&-; exec "$@"`
	args := []string{"/bin/sh", "-c", gate, "sh"}
	if c.Args != nil {
		return append(args, c.Args...)
	}
	return append(args, shell(), "-c", c.Script)
}
