package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Place is where a script would run. Paths are told apart by their text alone:
// nothing is looked up, so a link inside the workspace is what it is called.
type Place struct {
	Workspace string // absolute, slashes
	Also      string // another absolute path of the workspace; "" for none
	Dir       string // absolute; the workspace where empty
	Home      string // absolute; "" where not known
}

// unknownHome stands for a home directory that was not given.
const unknownHome = "/home/~"

func (p Place) home() string {
	if p.Home == "" {
		return unknownHome
	}
	return p.Home
}

// clean returns p with clean absolute paths.
func (p Place) clean() Place {
	p.Workspace = path.Clean("/" + p.Workspace)
	p.Dir = cmp.Or(p.Dir, p.Workspace)
	p.Dir = path.Clean("/" + p.Dir)
	if p.Home != "" {
		p.Home = path.Clean("/" + p.Home)
	}
	return p
}

// Class says where a path lies. A path has one: the first that fits.
type Class string

// The classes of paths.
const (
	Unknown   Class = "unknown"   // cannot be told
	Stream    Class = "stream"    // /dev/null and what else holds nothing
	Secret    Class = "secret"    // keys and passwords, environments of processes
	Device    Class = "device"    // the rest of /dev
	Kernel    Class = "kernel"    // the rest of /proc and /sys
	Private   Class = "private"   // a file in the workspace or /tmp that is named as secrets are
	Git       Class = "git"       // a git directory
	Tree      Class = "tree"      // the workspace itself, or all that is in it
	Workspace Class = "workspace" // inside the workspace
	Temp      Class = "temp"      // inside /tmp or /var/tmp
	Root      Class = "root"      // /, the directories in it, the home directory, and all above the workspace
	Home      Class = "home"      // inside the home directory
	Outside   Class = "outside"   // elsewhere
)

var classes = []Class{Unknown, Stream, Secret, Device, Kernel, Private, Git, Tree, Workspace, Temp, Root, Home, Outside}

var streams = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"}

// secretHome are the places below a home directory that hold secrets.
var secretHome = []string{".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".config/glab-cli", ".kube", ".docker", ".netrc", "_netrc", ".git-credentials",
	".npmrc", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".password-store", ".local/share/keyrings",
	".mozilla", ".config/google-chrome", ".config/chromium", ".config/op", ".config/git/credentials", ".config/rclone", ".terraform.d", ".vault-token", ".pgpass", ".my.cnf", ".bash_history", ".zsh_history", ".psql_history", ".config/sops", ".age"}

var secretSystem = []string{"/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/krb5.keytab", "/run/secrets", "/var/run/secrets",
	"/run/docker.sock", "/var/run/docker.sock", "/run/containerd", "/run/podman", "/var/lib/docker", "/proc/kcore", "/dev/mem", "/dev/kmem", "/boot/efi"}

// inside reports p in dir or below it.
func inside(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// classify returns the class of the path that w names, seen from dir; "" where
// it is no path.
func (p Place) classify(w Word, dir string) Class {
	if !w.Known && !w.Glob {
		return Unknown
	}
	s := w.Value
	if strings.Contains(s, "://") && !strings.HasPrefix(s, "file:") {
		return ""
	}
	s = strings.TrimPrefix(s, "file://")
	if s == "~" || strings.HasPrefix(s, "~/") {
		s = p.home() + s[1:] // where a program or the shell may expand it
	}
	switch {
	case path.IsAbs(s):
		return p.class(s, w.Glob)
	case dir == "":
		return Unknown
	}
	return p.class(dir+"/"+s, w.Glob)
}

// sharedMemory holds files like any others (shm_overview(7)): a workspace may lie there.
const sharedMemory = "/dev/shm"

// class returns the class of an absolute path, or of a pattern of paths.
func (p Place) class(s string, glob bool) Class {
	all := false // the pattern is for everything in a directory
	if glob {
		if i := strings.IndexAny(s, "*?["); i >= 0 {
			cut := strings.LastIndexByte(s[:i], '/')
			rest := s[cut+1:]
			if named := p.named(rest); named != "" && !strings.HasPrefix(rest, "*") {
				return named
			}
			if strings.Contains(rest, "..") || strings.HasPrefix(rest, ".?") || strings.HasPrefix(rest, ".[") || strings.HasPrefix(rest, "?") && strings.Trim(rest, "?") == "" || strings.HasPrefix(rest, "[.") || strings.HasPrefix(rest, ".*") && rest == ".*" {
				return p.class(path.Join("/", s[:cut], ".."), false)
			}
			if c, found := p.globbed(s, cut); found {
				return c
			}
			all = strings.Trim(rest, "*") == ""
			s = s[:cut+1]
			if !all {
				s += "x"
			}
		}
	}
	s = path.Clean(s)
	if p.Also != "" && inside(s, p.Also) && !inside(p.Workspace, p.Also) {
		s = p.Workspace + strings.TrimPrefix(s, p.Also)
	}
	home := p.home()
	for _, h := range []string{home, "/root"} {
		if rest, found := strings.CutPrefix(s, h+"/"); found && slices.ContainsFunc(secretHome, func(d string) bool { return inside(rest, d) }) {
			return Secret
		}
	}
	if others, found := strings.CutPrefix(s, "/home/"); found {
		if _, rest, found := strings.Cut(others, "/"); found && slices.ContainsFunc(secretHome, func(d string) bool { return inside(rest, d) }) {
			return Secret
		}
	}
	inTree := inside(s, p.Workspace)
	switch {
	case slices.Contains(streams, s) || strings.HasPrefix(s, "/dev/fd/"):
		return Stream
	case slices.ContainsFunc(secretSystem, func(d string) bool { return inside(s, d) }), environ(s):
		return Secret
	case inside(s, "/dev") && !inside(s, sharedMemory):
		return Device
	case inside(s, "/proc") || inside(s, "/sys"):
		return Kernel
	case strings.Contains(s+"/", "/.git/"):
		return Git
	case (inTree || inside(s, "/tmp")) && private(path.Base(s)):
		return Private
	case s == p.Workspace:
		return Tree
	case inTree:
		return Workspace
	case inside(s, "/tmp") || inside(s, "/var/tmp") || inside(s, sharedMemory):
		return Temp
	case s == "/" || s == home || strings.Count(s, "/") == 1 || inside(p.Workspace, s) || all && (path.Dir(s) == "/"):
		return Root
	case inside(s, home) || inside(s, "/home") || inside(s, "/root"):
		return Home
	}
	return Outside
}

// named returns the class that a pattern's own letters tell.
func (p Place) named(rest string) Class {
	switch {
	case strings.HasPrefix(rest, ".git"):
		if len(rest) > 4 && rest[4] != '/' && rest[4] != '*' && rest[4] != '?' && rest[4] != '[' {
			return ""
		}
		return Git
	case strings.HasPrefix(rest, ".env"):
		return Private
	}
	return ""
}

// globbed returns the class of a pattern outside the workspace that secrets
// may match: /home/*/.ssh/*, /etc/shad?w, /proc/*/environ.
func (p Place) globbed(s string, cut int) (Class, bool) {
	dir := path.Clean("/" + s[:cut])
	if inside(dir, p.Workspace) || inside(dir, "/tmp") {
		return "", false
	}
	could := func(target string) bool {
		a, b := strings.Split(strings.Trim(s, "/"), "/"), strings.Split(strings.Trim(target, "/"), "/")
		for i := range min(len(a), len(b)) {
			if ok, err := path.Match(a[i], b[i]); err != nil || !ok {
				return false
			}
		}
		return len(a) >= len(b)
	}
	for _, h := range secretHome {
		if could(p.home()+"/"+h) || could("/home/*/"+h) || could("/home/x/"+h) {
			return Secret, true
		}
	}
	for _, t := range secretSystem {
		if could(t) {
			return Secret, true
		}
	}
	for _, t := range []string{"/proc/1/environ", "/proc/self/environ", "/proc/1/mem"} {
		if could(t) {
			return Secret, true
		}
	}
	return "", false
}

// environ reports the parts of /proc that show other processes' secrets.
func environ(s string) bool {
	if !strings.HasPrefix(s, "/proc/") {
		return false
	}
	rest := strings.Split(s[len("/proc/"):], "/")
	if len(rest) < 2 || rest[0] == "sys" || rest[0] == "net" {
		return false
	}
	return slices.ContainsFunc(rest[1:], func(e string) bool {
		return e == "environ" || e == "mem" || e == "root" || e == "cwd" || e == "fd" || e == "maps" || e == "auxv"
	})
}

// private reports a file name that projects give to secrets.
func private(name string) bool {
	switch {
	case name == ".env" || name == ".netrc" || name == ".npmrc" || name == ".pypirc" || name == ".git-credentials" || name == "credentials.json" || name == "secrets.yaml" || name == "secrets.yml":
		return true
	case strings.HasPrefix(name, ".env."):
		for _, harmless := range []string{"example", "sample", "template", "dist", "test", "defaults"} {
			if strings.HasSuffix(name, harmless) {
				return false
			}
		}
		return true
	case strings.HasPrefix(name, "id_rsa") || strings.HasPrefix(name, "id_ed25519") || strings.HasPrefix(name, "id_ecdsa"):
		return !strings.HasSuffix(name, ".pub")
	}
	return strings.HasSuffix(name, ".p12") || strings.HasSuffix(name, ".pfx") || strings.HasSuffix(name, ".keystore")
}
