// Package pgtest gives tests a PostgreSQL: that of TORI_TEST_POSTGRES_URL, or one of their own that
// lives in memory and is gone, with all that it wrote, when the process of the tests is, however that
// ends. Each test has a schema of its own there.
package pgtest

import (
	"bufio"
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Env names a server to use instead of one that is started: its schemas are dropped after each test.
const Env = "TORI_TEST_POSTGRES_URL"

//go:embed server.sh
var script string

// patience is how long a server may take to start.
const patience = time.Minute

// Server is one that tests may stop.
type Server struct {
	dir    string // of its socket
	orders io.WriteCloser
	says   *bufio.Reader
	run    *exec.Cmd
}

// shared is the one of the tests of a process. Nothing stops it: it ends with the process.
var shared = sync.OnceValues(forTests)

// forTests starts a server that syncs nothing.
func forTests() (*Server, error) {
	return start(room(), 0, "listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=500", "shared_buffers=64MB", "max_wal_size=4GB", "autovacuum_naptime=5s")
}

// Start starts a server as it is installed, in a directory that anybody may write to, on a port of
// the loopback interface: for who measures. Close ends it.
func Start(dir string, port int) (*Server, error) {
	return start(dir, port, "listen_addresses=127.0.0.1")
}

// URL names a new schema, that is gone after the test. Where there is no server the test is skipped.
func URL(t testing.TB) string {
	t.Helper()
	at := os.Getenv(Env)
	if at == "" {
		s, err := shared()
		if err != nil {
			t.Skip(err)
		}
		at = s.url()
	}
	schema := "t_" + strings.ToLower(rand.Text())
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		c, err := pgx.Connect(ctx, at)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close(ctx) }()
		if _, err := c.Exec(ctx, `SET client_min_messages=warning; DROP SCHEMA IF EXISTS `+schema+` CASCADE`); err != nil {
			t.Error(err)
		}
	})
	return u.String()
}

// Own starts a server for one test, which may stop it.
func Own(t testing.TB) *Server {
	t.Helper()
	s, err := forTests()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Close ends the server; nothing is left of it.
func (s *Server) Close() {
	_ = s.orders.Close()
	_ = s.run.Wait()
}

// URL names the database of the server.
func (s *Server) URL() string { return s.url() }

// Stop ends the server as an administrator does who restarts it: connections are cut.
func (s *Server) Stop(t testing.TB) { s.order(t, "stop") }

// Start starts it again.
func (s *Server) Start(t testing.TB) { s.order(t, "start") }

func (s *Server) order(t testing.TB, what string) {
	t.Helper()
	_, err := fmt.Fprintln(s.orders, what)
	if err == nil {
		_, err = s.says.ReadString('\n')
	}
	if err != nil {
		t.Fatalf("%s PostgreSQL: %v", what, err)
	}
}

func (s *Server) url() string {
	return (&url.URL{Scheme: "postgres", User: url.User("tori"), Path: "/postgres", RawQuery: url.Values{"host": {s.dir}}.Encode()}).String()
}

// start starts a server on a port, or that of PostgreSQL: as nobody where root asks, which initdb refuses.
func start(dir string, port int, settings ...string) (*Server, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("PostgreSQL is not installed: run scripts/setup.sh, or set %s", Env)
	}
	newest := found[0]
	for _, f := range found {
		if version(f) > version(newest) {
			newest = f
		}
	}
	args := []string{"-c", script, "pgtest", filepath.Dir(newest), dir}
	for _, set := range settings {
		args = append(args, "-c", set)
	}
	run := exec.Command("/bin/sh", args...)
	if port > 0 {
		run.Env = append(os.Environ(), "PGPORT="+strconv.Itoa(port))
	}
	run.Dir = "/"
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C is for the tests alone
	if os.Getuid() == 0 {
		run.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	var complaint strings.Builder
	run.Stderr = &complaint
	orders, err := run.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := run.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := run.Start(); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	s := &Server{orders: orders, says: bufio.NewReader(out), run: run}
	late := time.AfterFunc(patience, func() { _ = orders.Close() })
	line, err := s.says.ReadString('\n')
	late.Stop()
	if err != nil {
		_ = orders.Close()
		_ = run.Wait()
		return nil, fmt.Errorf("PostgreSQL does not start: %s", strings.TrimSpace(complaint.String()))
	}
	s.dir = strings.TrimSpace(line)
	return s, nil
}

// version is that in the path of a program, 0 for none.
func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// room is a directory that anybody may write to; the name of a socket has at most 107 bytes.
func room() string {
	for _, dir := range []string{os.TempDir(), "/dev/shm"} {
		if st, err := os.Stat(dir); err == nil && st.Mode()&os.ModeSticky != 0 && len(dir) < 60 {
			return dir
		}
	}
	return "/tmp"
}
