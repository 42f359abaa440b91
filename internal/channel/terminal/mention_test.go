package terminal

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

func TestAttachments(t *testing.T) {
	t.Parallel()
	outside, repo := t.TempDir(), t.TempDir()
	for path, content := range map[string]string{
		repo + "/README.md": "# hi\n", repo + "/a b.txt": "ab", repo + "/docs/日本語.md": "こんにちは", repo + "/big": strings.Repeat("x", maxFile+1), repo + "/pic.png": png,
		outside + "/secret": "s", outside + "/shot one.png": png, outside + "/fake.png": "text", outside + "/big.png": png + strings.Repeat("x", 6<<20),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": outside + "/secret", "in": "README.md", "far": outside} {
		if err := os.Symlink(to, filepath.Join(repo, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(repo, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	opt := options()
	opt.Repo = repo
	term := New(opt)
	for name, c := range map[string]struct {
		text, want string
		notes      []string
	}{
		"a file":              {"see @README.md", "README.md text/plain; charset=utf-8 5", nil},
		"twice":               {"@README.md and @README.md", "README.md text/plain; charset=utf-8 5", nil},
		"with a full stop":    {"(@README.md), @docs/日本語.md。", "README.md text/plain; charset=utf-8 5|docs/日本語.md text/plain; charset=utf-8 15", nil},
		"with a blank":        {`@"a b.txt" and @a\ b.txt`, "a b.txt text/plain; charset=utf-8 2", nil},
		"a link within":       {"@in", "in text/plain; charset=utf-8 5", nil},
		"a link out":          {"@out @far/secret", "", []string{"out is not attached", "far/secret is not attached"}},
		"out by dots":         {"@../x @/etc/passwd", "", []string{"../x is not attached", "/etc/passwd is not attached"}},
		"no file":             {"mail a@b.c, @nobody, @docs, @", "", nil},
		"a pipe":              {"@pipe", "", []string{"pipe is not attached"}},
		"too large":           {"@big", "", []string{"larger than 256 KiB"}},
		"an image":            {"what is in " + repo + "/pic.png ?", "pic.png image/png 16", nil},
		"dropped on it":       {strings.ReplaceAll(outside+"/shot one.png", " ", `\ `), "shot one.png image/png 16", nil},
		"in quotes":           {"'file://" + outside + "/shot one.png' please", "shot one.png image/png 16", nil},
		"no image there":      {"save it as /tmp/none-of-that.png", "", nil},
		"an image in name":    {outside + "/fake.png", "", []string{"not png, jpeg"}},
		"a large image":       {outside + "/big.png", "", []string{"larger than 5 MiB"}},
		"apostrophes in text": {"don't @README.md 'tis", "README.md text/plain; charset=utf-8 5", nil},
	} {
		all, notes := term.attachments(c.text)
		var got []string
		for _, a := range all {
			got = append(got, strings.Join([]string{a.Name, a.MediaType, strconv.Itoa(len(a.Content))}, " "))
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s: %q, want %q", name, s, c.want)
		}
		for i, n := range c.notes {
			if i >= len(notes) || !strings.Contains(notes[i], n) {
				t.Errorf("%s: %q, want %q", name, notes, n)
			}
		}
		if len(notes) != len(c.notes) {
			t.Errorf("%s: %q", name, notes)
		}
	}
}

func TestLikely(t *testing.T) {
	t.Parallel()
	files := []string{"internal/cli/chat.go", "chat_test.go", "docs/channel.md", "internal/chat/x.go", "c/h/a.t"}
	for word, want := range map[string]string{
		"chat":         "chat_test.go internal/cli/chat.go internal/chat/x.go c/h/a.t",
		"internal/cli": "internal/cli/chat.go",
		"CLICHAT":      "internal/cli/chat.go",
		"zzz":          "",
	} {
		if got := strings.Join(likely(files, word), " "); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
