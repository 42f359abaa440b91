package telemetry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"toritsugi/internal/redact"
)

// logFile is one whose files hold eleven lines.
func logFile(dir string, otherwise *bytes.Buffer) *LogFile {
	return &LogFile{Path: filepath.Join(dir, "log", "tori.log"), Max: 500, Keep: 3, Else: otherwise}
}

const logLine = "%05d 23456789 23456789 23456789 23456789 23456\n"

func TestLogFileRotates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var other bytes.Buffer
	f := logFile(dir, &other)
	for i := range 57 {
		if _, err := fmt.Fprintf(f, logLine, i); err != nil {
			t.Fatal(err)
		}
	}
	var first []string
	for _, name := range []string{"tori.log", "tori.log.1", "tori.log.2", "tori.log.3"} {
		b, err := os.ReadFile(filepath.Join(dir, "log", name))
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, string(b[:5]))
		if about, err := os.Stat(filepath.Join(dir, "log", name)); err != nil || about.Mode() != 0o600 {
			t.Errorf("%s: %v %v", name, about.Mode(), err)
		}
	}
	if !slices.Equal(first, []string{"00055", "00044", "00033", "00022"}) {
		t.Errorf("they begin with %v", first)
	}
	if about, err := os.Stat(filepath.Join(dir, "log")); err != nil || about.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", about.Mode(), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "log", "tori.log.4")); !errors.Is(err, fs.ErrNotExist) || other.Len() > 0 {
		t.Errorf("%v, %s", err, &other)
	}
}

// Processes that share a file lose no line, and write none into another.
func TestLogFileIsShared(t *testing.T) {
	const processes, lines = 3, 300
	if dir := os.Getenv("TORI_TEST_LOG_DIR"); dir != "" {
		f := logFile(dir, &bytes.Buffer{})
		f.Max, f.Keep = 2000, 1000
		var all sync.WaitGroup
		for w := range 2 {
			all.Go(func() {
				for i := range lines {
					_, _ = fmt.Fprintf(f, "%s/%d/%d said at some length, as records are\n", os.Getenv("TORI_TEST_LOG_NAME"), w, i)
				}
			})
		}
		all.Wait()
		return
	}
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for p := range processes {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLogFileIsShared$")
		cmd.Env = append(os.Environ(), "TORI_TEST_LOG_DIR="+dir, fmt.Sprint("TORI_TEST_LOG_NAME=", p))
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	files, err := filepath.Glob(filepath.Join(dir, "log", "tori.log*"))
	if err != nil || len(files) < 4 { // a rotation that another one is in the way of is left out
		t.Fatalf("%d files, %v", len(files), err)
	}
	seen := map[string]int{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			id, rest, _ := strings.Cut(s.Text(), " ")
			if seen[id]++; rest != "said at some length, as records are" {
				t.Errorf("%s: %q", name, s.Text())
			}
		}
		_ = f.Close()
	}
	if len(seen) != processes*2*lines {
		t.Errorf("%d different lines of %d", len(seen), processes*2*lines)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", id, n)
		}
	}
}

// What the file does not take goes where it went before, which is told once until the file
// takes lines again. No reader of a pipe is waited for.
func TestLogFileThatIsNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var other bytes.Buffer
	f := logFile(dir, &other)
	if err := os.MkdirAll(filepath.Join(dir, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(f.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		_, _ = fmt.Fprintf(f, logLine, i)
	}
	if got := other.String(); strings.Count(got, "the log goes to standard error") != 1 || strings.Count(got, " 23456\n") != 2 {
		t.Errorf("%s", got)
	}
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(f, logLine, 2)
	if err := errors.Join(os.Remove(f.Path), os.Symlink("/dev/null", f.Path)); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(f, logLine, 3)
	if got := other.String(); strings.Contains(got, "00002") || !strings.Contains(got, "00003") || strings.Count(got, "the log goes") != 2 {
		t.Errorf("%s", got)
	}
}

func TestJSONLog(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := NewJSONLogger(&b, slog.LevelInfo, redact.New([]string{"correct-horse"}, nil).Strict().String)
	log = log.With("uuid", aRun, "password", "hunter2hunter2")
	log.Warn("it said correct-horse\nand more", "n", 3, "key", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789", "err", errors.New("of hanako@example.com"), slog.Group("g", "token", "correct-horse"))
	log.Debug("not shown")
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, &b)
	}
	if got["uuid"] != aRun || got["level"] != "WARN" || got["n"] != 3.0 || !strings.HasSuffix(got["msg"].(string), "\nand more") {
		t.Errorf("%v", got)
	}
	for _, secret := range []string{"correct-horse", "hunter2", "abcdefghij", "hanako"} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("%s is in %s", secret, &b)
		}
	}
}
