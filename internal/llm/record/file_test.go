package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

func said(text string) *llm.Reply {
	return &llm.Reply{Message: llm.Message{Content: text}, FinishReason: llm.FinishStop}
}

func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.jsonl")
	fs := &disk.FS{}
	f, err := Create(fs, path, plain, mustNot(t))
	if err != nil {
		t.Fatal(err)
	}
	f.record(said("one"))
	f.record(said("two"))
	if n := fs.Counts(); n.Appends != 2 || n.Syncs != 0 {
		t.Errorf("%+v before the end", n)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.record(said("too late"))
	got, err := os.ReadFile(path)
	if err != nil || string(got) != `{"role":"assistant","content":"one"}`+"\n"+`{"role":"assistant","content":"two"}`+"\n" {
		t.Errorf("%v: %s", err, got)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	if n := fs.Counts(); n.Syncs != 1 {
		t.Errorf("%+v at the end", n)
	}

	_, err = Create(fs, path, plain, nil)
	checkText(t, err, "record.exists", path)
	if !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != string(got) {
		t.Errorf("%v: it was touched: %s", err, again)
	}
}

func TestCreateFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	_, err := Create(&disk.FS{}, link, plain, nil)
	checkText(t, err, "record.exists", link)
	_, err = Create(&disk.FS{}, filepath.Join(dir, "none", "r.jsonl"), plain, nil)
	checkText(t, err, "record.create", "none")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	full := &disk.FS{Before: func(disk.Op) error { return syscall.ENOSPC }}
	_, err = Create(full, filepath.Join(dir, "r.jsonl"), plain, nil)
	checkText(t, err, "record.create", "r.jsonl")
	if _, err := os.Stat(filepath.Join(dir, "r.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
}

func checkText(t *testing.T, err error, key, says string) {
	t.Helper()
	var e *i18n.Error
	if !errors.As(err, &e) || e.Key != key || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "%!") {
		t.Fatalf("got %v, want %s", err, key)
	}
	if ja := i18n.Japanese.Error(err); ja == err.Error() || strings.Contains(ja, "%!") {
		t.Errorf("in Japanese: %s", ja)
	}
}

// TestDiskFault: a line that did not fit leaves nothing of itself, and none
// follows it.
func TestDiskFault(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.jsonl")
	appends := 0
	fs := &disk.FS{Before: func(op disk.Op) error {
		if op.Kind == disk.Append {
			if appends++; appends == 2 {
				return &disk.ShortWrite{N: 7, Err: syscall.ENOSPC}
			}
		}
		return nil
	}}
	var told []error
	f, err := Create(fs, path, plain, func(err error) { told = append(told, err) })
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two", "three"} {
		f.record(said(text))
	}
	if len(told) != 1 || !errors.Is(told[0], syscall.ENOSPC) {
		t.Fatalf("told %v", told)
	}
	checkText(t, told[0], "record.write", path)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != `{"role":"assistant","content":"one"}`+"\n" {
		t.Errorf("%v: %s", err, got)
	}
}

func TestCloseAndDiscard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fs := &disk.FS{Before: func(op disk.Op) error {
		if op.Kind == disk.Sync {
			return syscall.EIO
		}
		return nil
	}}
	f, err := Create(fs, filepath.Join(dir, "a"), plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Close()
	checkText(t, err, "record.write", "a")
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	f, err = Create(fs, filepath.Join(dir, "b"), plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.record(said("nothing came of it"))
	if err := f.Discard(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	if _, err := Create(fs, filepath.Join(dir, "b"), plain, nil); err != nil {
		t.Error(err)
	}
}
