package workspace

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"toritsugi/internal/i18n"
)

// Credential is a login at a remote. It prints as a mask.
type Credential struct {
	Username string // "" for servers that look at the token only
	Password string // usually a token
}

func (Credential) String() string       { return "[REDACTED]" }
func (Credential) GoString() string     { return "[REDACTED]" }
func (Credential) LogValue() slog.Value { return slog.StringValue("[REDACTED]") }

// Remote is a repository elsewhere.
//
// Its login reaches git through a sealed memory file that git inherits and that
// a credential helper of one line prints to it, for this scheme, host and port
// only. It is in no address, configuration, environment, argument or error.
type Remote struct {
	// URL is https://host/path or file:///path, without a login; http:// only
	// to this machine.
	URL string
	// Credential returns the login, and is asked once for each operation: tokens
	// of an hour's life are renewed there. Nil for none.
	Credential func(context.Context) (Credential, error)
	CAFile     string // certificates to trust instead of the system's, "" for those
	Proxy      string // of https, as curl's https_proxy; "" for none
}

// check returns the address as git is given it.
func (m Remote) check() (*url.URL, error) {
	u, err := url.Parse(m.URL)
	if err != nil || strings.ContainsFunc(m.URL, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, i18n.E("workspace.remote_url") // which may hold a login: not repeated
	}
	if u.User != nil {
		return nil, i18n.E("workspace.remote_login", u.Host)
	}
	local := u.Scheme == "http" && loopback(u.Hostname())
	switch {
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && filepath.IsAbs(u.Path):
	case (u.Scheme == "https" || local) && u.Host != "" && u.RawQuery == "" && u.Fragment == "":
	default:
		return nil, i18n.E("workspace.remote_url")
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// run runs git on r with m's login. The address is the last argument but rest.
func (m Remote) run(ctx context.Context, r repo, args []string, rest ...string) (string, error) {
	u, err := m.check()
	if err != nil {
		return "", err
	}
	c := call{write: true, remote: true, args: append(append(args, "--", m.URL), rest...)}
	c.env = []string{"GIT_ALLOW_PROTOCOL=" + u.Scheme}
	// A server that no longer says anything does not hold the run for ever.
	c.cfg = []string{"http.lowSpeedLimit=100", "http.lowSpeedTime=120", "push.negotiate=true"}
	if m.CAFile != "" {
		c.env = append(c.env, "GIT_SSL_CAINFO="+m.CAFile)
	}
	if m.Proxy != "" {
		c.env = append(c.env, "https_proxy="+m.Proxy)
		c.secrets = append(c.secrets, m.Proxy)
	}
	if u.Scheme == "file" {
		// The other half runs on this machine, and takes no -c from us.
		if c.secret, err = sealed("limits", otherHalf); err != nil {
			return "", err
		}
		defer func() { _ = c.secret.Close() }()
		c.env = append(c.env, "GIT_CONFIG_GLOBAL=/proc/self/fd/"+strconv.Itoa(secretFD))
	}
	if m.Credential != nil && u.Scheme != "file" {
		login, err := m.Credential(ctx)
		if err != nil {
			return "", fmt.Errorf("login for %s: %w", u.Host, err)
		}
		if login.Username == "" {
			login.Username = "tori"
		}
		if c.secret, err = login.file(); err != nil {
			return "", fmt.Errorf("login for %s: %w", u.Host, err)
		}
		defer func() { _ = c.secret.Close() }()
		c.secrets = append(c.secrets, login.forms()...)
		// git asks this helper only for the address that the key names.
		fd := strconv.Itoa(secretFD)
		c.cfg = append(c.cfg, "credential."+u.Scheme+"://"+u.Host+`.helper=!f() { test "$1" != get || cat /proc/self/fd/`+fd+"; }; f")
	}
	out, err := r.run(ctx, c)
	return out, m.explain(err)
}

// file is a memory file with the login in the words of git-credential(1).
func (c Credential) file() (*os.File, error) {
	if strings.ContainsAny(c.Username+c.Password, "\n\r\x00") {
		return nil, errors.New("it holds a line break or NUL")
	}
	if c.Password == "" {
		return nil, errors.New("it is empty")
	}
	return sealed("login", "username="+c.Username+"\npassword="+c.Password+"\n")
}

// otherHalf is the configuration of the git that serves a repository on this
// machine: its memory does not grow with it.
const otherHalf = "[core]\n\tpackedGitLimit = 128m\n\tpackedGitWindowSize = 16m\n\tdeltaBaseCacheLimit = 64m\n\tbigFileThreshold = 32m\n[pack]\n\tthreads = 1\n\twindowMemory = 64m\n"

// sealed is a memory file that nobody changes.
func sealed(name, text string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteString(text); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	const all = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, all); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// forms are how the login may come back in a server's words.
func (c Credential) forms() []string {
	pair := []byte(c.Username + ":" + c.Password)
	return []string{c.Password, url.QueryEscape(c.Password), url.PathEscape(c.Password),
		base64.StdEncoding.EncodeToString(pair), strings.TrimRight(base64.StdEncoding.EncodeToString(pair), "="),
		base64.StdEncoding.EncodeToString([]byte(c.Password))}
}

// explain says what a failure of git with the remote is to people.
func (m Remote) explain(err error) error {
	var g *gitError
	if !errors.As(err, &g) {
		return err
	}
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(g.stderr, p) })
	}
	switch {
	case has("error: 403"):
		return i18n.E("workspace.remote_forbidden", m.URL)
	case has("Authentication failed", "could not read Username", "could not read Password", "error: 401"):
		return i18n.E("workspace.remote_denied", m.URL)
	case has("not found", "does not appear to be a git repository", "does not exist"):
		return i18n.E("workspace.remote_missing", m.URL)
	}
	return i18n.E("workspace.remote_failed", m.URL, err)
}

// remoteHead is what a remote says of its HEAD.
type remoteHead struct {
	branch string // "" where it is detached
	id     string // "" where there is no commit
}

func (m Remote) head(ctx context.Context) (h remoteHead, err error) {
	out, err := m.lsRemote(ctx, nil, "--symref", "HEAD")
	for l := range strings.Lines(out) {
		what, name, _ := strings.Cut(line(l), "\t")
		if name != "HEAD" {
			continue
		}
		if ref, ok := strings.CutPrefix(what, "ref: "); ok {
			h.branch = strings.TrimPrefix(ref, "refs/heads/")
		} else {
			h.id = what
		}
	}
	return h, err
}

// branch returns the commit of a branch of the remote, "" where there is none.
func (m Remote) branch(ctx context.Context, hold *os.File, name string) (string, error) {
	ref := "refs/heads/" + name
	out, err := m.lsRemote(ctx, hold, "", ref)
	for l := range strings.Lines(out) {
		if id, there, _ := strings.Cut(line(l), "\t"); there == ref {
			return id, err
		}
	}
	return "", err
}

// lsRemote asks for refs without a repository of our own.
func (m Remote) lsRemote(ctx context.Context, hold *os.File, flag, pattern string) (string, error) {
	args := []string{"ls-remote", "--quiet"}
	if flag != "" {
		args = append(args, flag)
	}
	return m.run(ctx, repo{gitDir: "/nonexistent", hold: hold}, args, pattern)
}
