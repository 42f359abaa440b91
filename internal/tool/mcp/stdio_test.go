package mcp

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toritsugi/internal/disk/disktest"
)

// canned is a process that says something and ends when it was read.
func canned(out []byte) *Process {
	over := make(chan struct{})
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write(out)
		_ = w.Close()
		close(over)
	}()
	return &Process{
		Stdin: nothing{}, Stdout: r,
		Terminate: r.Close, Kill: r.Close,
		Wait: func() error { <-over; return nil },
	}
}

type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }
func (nothing) Close() error                { return nil }

// readAll reads messages until the connection is over.
func readAll(out []byte, maxMessage int) (msgs []jsonrpc.Message, c *pipes) {
	c = newPipes(canned(out), maxMessage)
	for {
		m, err := c.Read(context.Background())
		if err != nil {
			c.end(0)
			return msgs, c
		}
		msgs = append(msgs, m)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	answer := `{"jsonrpc":"2.0","id":1,"result":{}}`
	for name, tc := range map[string]struct {
		out         string
		msgs        int
		wrong, said string
	}{
		"answers":       {out: answer + "\n" + answer + "\r\n" + answer, msgs: 3},
		"blank lines":   {out: "\n \n" + answer + "\n\n", msgs: 1},
		"a batch":       {out: "[" + answer + "," + answer + "]\n", msgs: 2},
		"told":          {out: `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/message","params":7}`},
		"other notes":   {out: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}` + "\n" + answer, msgs: 1},
		"changes":       {out: strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n", 5) + answer, msgs: 2},
		"noise":         {out: "hello\n{\"level\":1}\n" + answer, msgs: 1, said: "(stdout) hello\n(stdout) {\"level\":1}"},
		"cut":           {out: answer + "\n" + answer[:20] + "\n" + answer, msgs: 1, wrong: "a message that is not valid"},
		"no id":         {out: `{"jsonrpc":"2.0","result":{}}`, wrong: "a message that is not valid"},
		"wrong version": {out: `{"jsonrpc":"3.0","id":1,"result":{}}`, wrong: "a message that is not valid"},
		"too long":      {out: answer + "\n" + strings.Repeat("x", 5000) + "\n" + answer, msgs: 1, wrong: "a message of more than 4096 bytes"},
		"a long answer": {out: `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 4000) + `"}` + "\n" + answer, msgs: 2},
		"NULs":          {out: "\x00\x00\xff\n" + answer, msgs: 1},
		"requests":      {out: strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n", 40), msgs: maxAsked, wrong: "without reading the answers"},
	} {
		msgs, c := readAll([]byte(tc.out), 4096)
		wrong := ""
		if c.wrong != nil {
			wrong = c.wrong.Error()
		}
		if len(msgs) != tc.msgs || !strings.Contains(wrong, tc.wrong) || (wrong == "") != (tc.wrong == "") {
			t.Errorf("%s: %d messages, wrong %q", name, len(msgs), wrong)
		}
		if tc.said != "" && c.said() != tc.said {
			t.Errorf("%s: said %q", name, c.said())
		}
	}
}

// FuzzLines: whatever a server prints is read to its end.
func FuzzLines(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}`, `[{"jsonrpc":"2.0"},7]`, `{"jsonrpc":"2.0","id":1.5,"error":{"code":"x"}}`,
		`{"jsonrpc":"2.0","method":null}`, `[[[[`, "{}\n[]\n\x00", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		defer disktest.Bounded(t, len(out))()
		msgs, c := readAll(out, 1<<10)
		lines := bytes.Count(out, []byte("\n")) + bytes.Count(out, []byte(",")) + 1
		if len(msgs) > lines {
			t.Errorf("%d messages in %d lines", len(msgs), lines)
		}
		if !c.dead() {
			t.Error("the connection is not over")
		}
	})
}
