package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"toritsugi/internal/i18n"
)

// Whatever a verb fails with once a signal ended it, one sentence in the reader's language says so.
func TestASignalIsOneSentence(t *testing.T) {
	for lang, want := range map[i18n.Lang]string{i18n.English: "tori: interrupted before it was done: run it again\n", i18n.Japanese: "tori: 途中で中断しました。もう一度実行してください\n"} {
		for _, err := range []error{errors.New("sql: transaction has already been committed"), usage(fmt.Errorf("write search.db: %w", errors.ErrUnsupported))} {
			var said bytes.Buffer
			c := &console{err: &said, lang: lang}
			ctx, stop := c.untilSignal()
			if c.ending(err); strings.Contains(said.String(), want) {
				t.Errorf("%v is a signal: %q", err, said.String())
			}
			said.Reset()
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			stop()
			if code := c.ending(err); code != exitStopped || said.String() != want {
				t.Errorf("%v: exit code %d, %q", err, code, said.String())
			}
			if code := c.ending(&exitError{code: exitDamage}); code != exitDamage {
				t.Errorf("what the verb told: exit code %d", code)
			}
		}
	}
	var said bytes.Buffer
	c := &console{err: &said, lang: i18n.English}
	_, stop := c.untilSignal()
	stop()
	if code := c.ending(errors.New("x")); code != exitFailed || said.String() != "tori: x\n" {
		t.Errorf("an end without a signal: exit code %d, %q", code, said.String())
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name != "cli.go" && !strings.HasSuffix(name, "_test.go") && bytes.Contains(b, []byte("signal.NotifyContext")) {
			t.Errorf("%s: signals that end a verb are console.untilSignal's", name)
		}
	}
}

// fails is a place that takes nothing.
type fails struct{ err error }

func (f fails) Write([]byte) (int, error) { return 0, f.err }

// What a verb printed and nobody can read is no success, whether it looked at that or not; a reader
// that went away wanted no more.
func TestLostOutputIsNoSuccess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		why, err error
		want     int
		said     string
	}{
		"done":          {syscall.ENOSPC, nil, exitFailed, "tori: no space left on device\n"},
		"with a code":   {syscall.ENOSPC, &exitError{code: exitWaiting}, exitWaiting, "tori: no space left on device\n"},
		"failed":        {syscall.ENOSPC, usage(errors.New("x")), exitUsage, "tori: x\n"},
		"no reader":     {syscall.EPIPE, nil, exitOK, ""},
		"one, and code": {syscall.EPIPE, &exitError{code: exitWaiting}, exitWaiting, ""},
	} {
		var said bytes.Buffer
		out := &console{out: onDisplay(fails{c.why}), err: &said, lang: i18n.English}
		out.say("cli.interrupted")
		if code := out.ending(c.err); code != c.want || said.String() != c.said {
			t.Errorf("%s: exit code %d, %q", name, code, said.String())
		}
	}
}
