package sandbox

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// SystemPath is the PATH of commands, but for languages of this machine that lie elsewhere.
const SystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// toolchain is what of this machine's programs and packages lies where no command
// would see it: language installations of a user, and package caches that their
// tools can use without writing to them.
type toolchain struct {
	goRoot string
	bin    []string          // directories of programs, before those of the system
	read   []string          // what is to be seen
	env    map[string]string // what leads to it
}

// languages are the programs by which people install languages below their home,
// often shims, and the script that asks each where its installation is.
var languages = [][2]string{
	{"rustc", "rustc --print sysroot"},
	{"python3", "python3 -c 'import sys; print(sys.base_prefix)'"},
	{"node", "node -p 'path.dirname(path.dirname(process.execPath))'"},
}

// findToolchain asks the programs on the PATH of this process. Of what is missing
// there is nothing.
func findToolchain(ctx context.Context) toolchain {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ask := func(name string, args ...string) []byte {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = "/" // no file of a project may choose another one
		cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local")
		out, _ := cmd.Output()
		return out
	}
	home, _ := os.UserHomeDir()
	roots := make([]string, len(languages))
	var wg sync.WaitGroup
	for i, l := range languages {
		at, err := exec.LookPath(l[0])
		if err != nil || slices.ContainsFunc(systemDirs(), func(d string) bool { return within(at, d) }) {
			continue
		}
		wg.Go(func() { roots[i] = strings.TrimSpace(string(ask("/bin/sh", "-c", l[1]))) })
	}
	bin, err := exec.LookPath("go")
	if err != nil {
		bin = "/usr/local/go/bin/go"
	}
	var v struct{ GOROOT, GOMODCACHE string }
	_ = json.Unmarshal(ask(bin, "env", "-json", "GOROOT", "GOMODCACHE"), &v)
	wg.Wait()
	t := toolchain{goRoot: v.GOROOT, env: map[string]string{}}
	if t.see(v.GOROOT) {
		t.bin = append(t.bin, filepath.Join(v.GOROOT, "bin"))
	}
	for _, r := range roots {
		if ownDirectory(r, home) && t.see(r) {
			t.bin = append(t.bin, filepath.Join(r, "bin"))
		}
	}
	if t.see(v.GOMODCACHE) { // else commands have one of their own
		t.env["GOMODCACHE"] = v.GOMODCACHE
	}
	if m2 := filepath.Join(home, ".m2", "repository"); t.see(m2) {
		t.env["MAVEN_ARGS"] = "-Dmaven.repo.local.tail=" + m2
	}
	if t.see(filepath.Join(home, ".gradle", "caches", "modules-2")) {
		t.env["GRADLE_RO_DEP_CACHE"] = filepath.Join(home, ".gradle", "caches")
	}
	return t
}

// ownDirectory reports that a language's installation has a directory to itself:
// one above the home, the home, or one beside the user's own things in it, such as
// ~/.local, would show more.
func ownDirectory(root, home string) bool {
	if !filepath.IsAbs(root) || within(home, root) {
		return false
	}
	rel, err := filepath.Rel(home, root)
	return err == nil && (!within(root, home) || strings.Contains(rel, "/"))
}

// see adds what is to be seen, as far as it is there and this user may see it.
func (t *toolchain) see(p string) bool {
	if _, err := os.Stat(p); err != nil || !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
		return false
	}
	t.read = append(t.read, filepath.Clean(p))
	return true
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
		"HOME":                filepath.Join(tmp, "home"),
		"TMPDIR":              tmp,
		"LANG":                "C.UTF-8",
		"TERM":                "dumb",
		"CI":                  "1", // no test runner may wait for a key in watch mode
		"XDG_CACHE_HOME":      filepath.Join(caches, "xdg"),
		"GIT_OPTIONAL_LOCKS":  "0", // git status must not try to refresh a read-only index
		"GIT_TERMINAL_PROMPT": "0",
		"GRADLE_USER_HOME":    filepath.Join(caches, "xdg", "gradle"),
		"GOCACHE":             filepath.Join(caches, "go-build"),
		"GOPATH":              filepath.Join(caches, "go"),
		"GOFLAGS":             "-buildvcs=false",
		"GOPROXY":             "off",
		"GOSUMDB":             "off",
		"npm_config_offline":  "true", // npx then says at once that there is nothing, instead of trying for a minute
		"GOTOOLCHAIN":         "local",
	}
	env["PATH"] = strings.Join(append(slices.Clone(tools.bin), SystemPath), ":")
	maps.Copy(env, tools.env)
	if spec.Network.open() {
		maps.Copy(env, spec.Network.environment())
	}
	maps.Copy(env, spec.Env)
	if own := tools.env["GOMODCACHE"]; own != "" && own != env["GOMODCACHE"] { // what is there need not be loaded
		env["GOPROXY"] = "file://" + filepath.Join(own, "cache", "download") + "," + env["GOPROXY"]
	}
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
