package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/tool/mcp"
)

// TestUnknownContent is told by its name, and the rest of the result is shown:
// over a pipe, in one answer and in a stream of events.
func TestUnknownContent(t *testing.T) {
	t.Parallel()
	want := strings.Join([]string{
		"before", `[content of the unknown type "hologram" left out, 33 bytes]`, "[content without a type left out, 4 bytes]",
		"[content of the type image left out, which cannot be read: 59 bytes]", `[content of the unknown type "tool_use" left out, 50 bytes]`,
		"[content without a type left out, 21 bytes]", "[content without a type left out, 1 bytes]",
		"[image 1: image/png, 70 bytes]", "after",
	}, "\n\n")
	check := func(t *testing.T, m *mcp.Manager, name string) {
		t.Helper()
		res := call(t, m, name, "")
		if !res.IsError || res.Text != want || len(res.Images) != 1 {
			t.Errorf("%d images, error %t:\n%s", len(res.Images), res.IsError, res.Text)
		}
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start}, mode("s"))
			defer m.Close()
			check(t, m, "s__future")
			says(t, call(t, m, "s__nonsense", ""), true, "failed")
		})
	})
	for _, c := range []struct{ name, before, after string }{
		{"event", "event: message\nid: 1\ndata: ", "\n\n"},
		{"event that ends with the stream", ": comment\r\ndata: ", ""},
		{"two events", "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"\\\"content\\\"\"}}\r\n\r\ndata: ", "\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			web := serveHTTP(t, answers(func(w http.ResponseWriter, _ *http.Request, id any) {
				b, _ := json.Marshal(obj{"jsonrpc": "2.0", "id": id, "result": futureResult()})
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.before+string(b)+c.after)
			}))
			m := open(t, mcp.Options{}, mcp.Server{Name: "web", URL: web.URL})
			check(t, m, m.Tools()[0].Definition().Name)
		})
	}
	t.Run("body", func(t *testing.T) {
		t.Parallel()
		web := serveHTTP(t, answers(func(w http.ResponseWriter, _ *http.Request, id any) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(obj{"jsonrpc": "2.0", "id": id, "result": futureResult()})
		}))
		m := open(t, mcp.Options{}, mcp.Server{Name: "web", URL: web.URL})
		check(t, m, m.Tools()[0].Definition().Name)
	})
}

// TestLeftOutTools are named in the log, once.
func TestLeftOutTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		dir := t.TempDir()
		m := mustOpen(t, mcp.Options{Dir: dir, Start: (&within{}).start, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			Mask: func(s string) string { return strings.ReplaceAll(s, "the first", "[masked]") }}, mode("odd"))
		time.Sleep(time.Minute)
		m.Suspend()
		m.Resume(t.Context())
		synctest.Wait()
		if d := find(t, m, mcp.Name("odd", "twin")).Description; d != "[masked]" || strings.Contains(pinsOf(t, dir), "the first") {
			t.Errorf("what is masked is %q", d)
		}
		m.Close()
		for _, want := range []string{`\"twin\": another one has this name`, "a tool without a name", `hid\\u200bden`, "cannot be shown"} {
			if strings.Count(logged.String(), want) != 1 {
				t.Errorf("%s is told %d times in\n%s", want, strings.Count(logged.String(), want), logged.String())
			}
		}
	})
}

// TestLongestSecretFirst: what a shorter value hides of a longer one must not
// leave the rest of it.
func TestLongestSecretFirst(t *testing.T) {
	t.Parallel()
	s := mode("exit")
	s.Env = map[string]string{"A": "hunter2", "B": "hunter2-and-more", "C": "and-more-of-it"}
	start := func(mcp.Command) error { return fmt.Errorf("refused hunter2-and-more, hunter2") }
	w := &within{fail: func(string, int) error { return start(mcp.Command{}) }}
	m := open(t, mcp.Options{Start: w.start}, s)
	if got := status(t, m, "exit").Reason; !strings.Contains(got, "refused [hidden], [hidden]") {
		t.Errorf("reason %q", got)
	}
}

// TestHomes are where they are wanted.
func TestHomes(t *testing.T) {
	t.Parallel()
	homes := t.TempDir()
	m := open(t, mcp.Options{Homes: homes, Start: self}, mode("s"))
	says(t, call(t, m, "s__env", ""), false, "HOME="+homes+"/s-")
	if all, err := os.ReadDir(homes); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
