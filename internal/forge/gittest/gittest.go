// Package gittest is the git of the forges that tests start: bare repositories, and git's own
// http-backend in front of them.
package gittest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// config of the bare repositories: what a real server allows, and no time lost with the disk.
const config = `[core]
	repositoryformatversion = 0
	bare = true
	fsync = none
[http]
	receivepack = true
[receive]
	hideRefs = refs/pull
	autogc = false
[gc]
	auto = 0
[uploadpack]
	allowAnySHA1InWant = true
	allowFilter = true
[user]
	name = %s
	email = %s
`

// Init makes a bare repository whose default branch and committer have these names; by hand,
// since a test may have hundreds.
func Init(dir, branch, name, email string) error {
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	for file, text := range map[string]string{"HEAD": "ref: refs/heads/" + branch + "\n", "config": fmt.Sprintf(config, name, email)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Env is the environment that git runs in: nothing of the machine's configuration.
func Env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"}
}

// Run runs git in a repository at a time, with what it reads, and returns what it prints,
// trimmed.
func Run(dir, in string, at time.Time, args ...string) (string, error) {
	date := strconv.FormatInt(at.Unix(), 10) + " +0000"
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(Env(), "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	cmd.Stdin = strings.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), err
}

// Backend is where git's http-backend lies.
func Backend() (string, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), err
}

// Serve answers a request of git for the repository root/path, whose tail is info/refs,
// git-upload-pack or git-receive-pack, to its end, so that what a push did is known before its
// answer is. user is who pushes, "" for nobody.
func Serve(backend, root, path, tail, user string, r *http.Request) (*httptest.ResponseRecorder, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<28))
	if err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	in.URL.Path, in.URL.RawPath = "/"+path+"/"+tail, ""
	in.Body, in.ContentLength, in.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	var stderr bytes.Buffer
	rec := httptest.NewRecorder()
	env := append(Env(), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))
	if user != "" {
		env = append(env, "REMOTE_USER="+user)
	}
	(&cgi.Handler{Path: backend, Dir: root, Env: env, Stderr: &stderr}).ServeHTTP(rec, in)
	return rec, nil
}
