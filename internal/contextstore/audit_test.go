package contextstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/disk"
)

func asIs(s string) string { return s }

// auditOf decodes every line of a base directory's audit.
func auditOf(t *testing.T, base string) (all []AuditEntry) {
	t.Helper()
	b, err := readFile(filepath.Join(base, auditFile))
	must(t, err)
	for l := range strings.SplitSeq(strings.TrimSuffix(string(b), "\n"), "\n") {
		var e AuditEntry
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatalf("%v: %q", err, l)
		}
		all = append(all, e)
	}
	return all
}

func TestAuditIsRedactedAndDurable(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	fs := &disk.FS{}
	now := time.Date(2024, 1, 15, 10, 30, 0, 0, time.UTC)
	hide := func(s string) string { return strings.ReplaceAll(s, "hunter2", "[X]") }
	must(t, Audit(fs, base, now, hide, AuditEntry{Actor: "ken", Action: "read", UUID: "u", What: "messages", Detail: "hunter2"}))
	b, err := readFile(filepath.Join(base, auditFile))
	if want := `{"timestamp":"2024-01-15T10:30:00.000000Z","actor":"ken","action":"read","uuid":"u","what":"messages","detail":"[X]"}` + "\n"; err != nil || string(b) != want {
		t.Errorf("%s %v", b, err)
	}
	if st, _ := kernel.Stat(filepath.Join(base, auditFile)); st.Mode().Perm() != disk.FileMode {
		t.Errorf("mode %v", st.Mode())
	}
	if fs.Counts().Syncs != 1 {
		t.Errorf("%d syncs", fs.Counts().Syncs)
	}
	fs.Before = func(disk.Op) error { return os.ErrPermission }
	if err := Audit(fs, base, now, asIs, AuditEntry{Action: "read"}); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
	if n := len(auditOf(t, base)); n != 1 {
		t.Errorf("%d entries", n)
	}
}

func TestAuditMendsATornEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tail string
		kept string
		n    int
	}{
		"half a line":          {`{"timestamp":"20`, `{"timestamp":"20`, 2},
		"a line, no newline":   {`{"action":"stop"}`, "", 3},
		"NULs":                 {strings.Repeat("\x00", 3*(16<<10)), strings.Repeat("\x00", 3*(16<<10)), 2},
		"NULs and newlines":    {"\x00\n\x00\n", "\x00\n\x00\n", 2},
		"a long line, whole":   {`{"detail":"` + strings.Repeat("x", 3*(16<<10)) + "\"}\n", "", 3},
		"a long line, torn":    {`{"detail":"` + strings.Repeat("x", 3*(16<<10)), `{"detail":"` + strings.Repeat("x", 3*(16<<10)), 2},
		"nothing":              {"", "", 2},
		"newlines and no more": {"\n\n", "\n\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			must(t, Audit(&disk.FS{}, base, time.Now(), asIs, AuditEntry{Action: "read"}))
			appendTo(t, filepath.Join(base, auditFile), c.tail)
			must(t, Audit(&disk.FS{}, base, time.Now(), asIs, AuditEntry{Action: "stop"}))
			if got := auditOf(t, base); len(got) != c.n || got[0].Action != "read" || got[c.n-1].Action != "stop" {
				t.Errorf("%+v", got)
			}
			if b, _ := readFile(filepath.Join(base, auditFile+".cut")); string(b) != c.kept {
				t.Errorf("kept %d bytes, want %d", len(b), len(c.kept))
			}
		})
	}
}

const auditHelper = "TORI_TEST_AUDIT"

// TestAuditHelper is a process of TestAuditOfManyProcesses.
func TestAuditHelper(t *testing.T) {
	base := os.Getenv(auditHelper)
	if base == "" {
		t.Skip("a process of another test")
	}
	for n := range auditEach {
		must(t, Audit(&disk.FS{}, base, time.Now(), asIs, AuditEntry{Actor: fmt.Sprint(os.Getpid()), Action: "read", Detail: strings.Repeat("y", 3000*(n%4)) + fmt.Sprint(n)}))
	}
}

const auditProcesses, auditEach = 8, 25

// Lines of many processes never tear, and none is lost.
func TestAuditOfManyProcesses(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var all []*exec.Cmd
	for range auditProcesses {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAuditHelper$")
		cmd.Env = append(os.Environ(), auditHelper+"="+base)
		must(t, cmd.Start())
		all = append(all, cmd)
	}
	for _, cmd := range all {
		must(t, cmd.Wait())
	}
	seen := map[string]int{}
	for _, e := range auditOf(t, base) {
		if want := fmt.Sprint(seen[e.Actor]); strings.TrimLeft(e.Detail, "y") != want {
			t.Fatalf("entry %s of %s, want %s", strings.TrimLeft(e.Detail, "y"), e.Actor, want)
		}
		seen[e.Actor]++
	}
	if len(seen) != auditProcesses {
		t.Errorf("%d processes", len(seen))
	}
	for actor, n := range seen {
		if n != auditEach {
			t.Errorf("%d entries of %s", n, actor)
		}
	}
	if _, err := kernel.Stat(filepath.Join(base, auditFile+".cut")); err == nil {
		t.Error("something was torn")
	}
}
