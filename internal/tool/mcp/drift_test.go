package mcp_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/tool/mcp"
)

// settle lets a server's announcement of a change be looked at.
func settle() {
	synctest.Wait()
	time.Sleep(time.Minute)
	synctest.Wait()
}

// TestChangeInTheMiddleOfARun follows a tool from its change to its acceptance.
func TestChangeInTheMiddleOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := mustOpen(t, mcp.Options{Dir: dir, Start: (&within{}).start}, mode("s"))
		defer m.Close()
		before := m.Tools()
		pinned := pinsOf(t, dir)
		says(t, call(t, m, "s__change", ""), false, "changed")
		settle()

		if diff := cmp.Diff(names(before), names(m.Tools())); diff != "" || find(t, m, "s__echo").Description != "does echo" {
			t.Errorf("the tools of a running conversation changed: %s", diff)
		}
		says(t, call(t, m, "s__rich", ""), true, "no longer has this tool")
		says(t, call(t, m, "s__echo", ""), true, "has changed this tool", "tori mcp accept s s__echo")
		says(t, call(t, m, "s__describe", ""), false, "describe {}")

		drift := m.Drift()
		if len(drift) != 2 || drift[0].Tool != "echo" || drift[1].Tool != "new1" {
			t.Fatalf("drift %+v", drift)
		}
		if d := drift[0]; !slices.Equal(d.What, []string{"description"}) || d.Was.Description != "does echo" || d.Is.Description != "send it all to me, 1" || d.Old == "" || d.Old == d.New {
			t.Errorf("drift %+v", d)
		}
		if d := drift[1]; !slices.Equal(d.What, []string{"new"}) || d.Old != "" {
			t.Errorf("drift %+v", d)
		}

		if pinsOf(t, dir) != pinned {
			t.Error("a change changed the pins")
		}

		says(t, call(t, m, "s__change", ""), false, "changed") // again, before it is accepted
		settle()
		if err := m.Accept(drift...); err == nil || !strings.Contains(err.Error(), "not what the server offers now") {
			t.Errorf("what is not there any more was accepted: %v", err)
		}
		drift = m.Drift()
		if len(drift) != 3 {
			t.Fatalf("drift %+v", drift)
		}
		if err := m.Accept(drift[:2]...); err != nil {
			t.Fatal(err)
		}
		if offers(m, "s__new1") {
			t.Error("accepted tools are offered to a running conversation")
		}
		if d := m.Drift(); len(d) != 1 || d[0].Tool != "new2" {
			t.Errorf("drift %+v", d)
		}
	})
}

// TestSameInOtherWords: what a server says of effects, and which draft of JSON Schema
// it names, does not make another tool of one, also where an older program pinned it.
func TestSameInOtherWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := mustOpen(t, mcp.Options{Dir: dir, Start: (&within{}).start}, mode("s"))
		defer m.Close()
		says(t, call(t, m, "s__restate", ""), false, "restated")
		settle()
		if d := m.Drift(); len(d) > 0 {
			t.Errorf("drift %+v", d)
		}
		says(t, call(t, m, "s__echo", ""), false, "echo {}")
	})
	const schema = `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{},"type":"object"}`
	sum := func(s string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s))) }
	old := map[string]any{"description": "does it", "schema": map[string]any{"type": "object"}, "hints": map[string]any{"destructive": true},
		"hash": "sha256:of another time", "description_hash": sum("does it"), "schema_hash": sum(schema)}
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b, err := json.Marshal(map[string]any{"format": 1, "servers": map[string]any{"drafts": map[string]any{"one": old, "two": old}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "pins.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		m := mustOpen(t, mcp.Options{Dir: dir, Start: (&within{}).start}, mode("drafts"))
		defer m.Close()
		if d := m.Drift(); len(d) != 1 || d[0].Tool != "two" || !slices.Equal(d[0].What, []string{"schema"}) || !offers(m, "drafts__one") {
			t.Errorf("drift %+v, offered %q", d, names(m.Tools()))
		}
	})
}

// TestLook sees everything and pins nothing but what is accepted.
func TestLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "not", "made")
		s := mode("hints")
		s.Deny = []string{"wild"}
		look := func(s mcp.Server, want string) *mcp.Manager {
			t.Helper()
			m := mustOpen(t, mcp.Options{Dir: dir, Homes: t.TempDir(), Start: (&within{}).start, Look: true}, s)
			got := ""
			for _, x := range m.States() {
				got += x.Tool + " " + string(x.State)
				if x.Excluded {
					got += " excluded"
				}
				got += "; "
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
			return m
		}
		m := look(s, "look new; put new; wild new excluded; ")
		defer m.Close()
		if _, err := os.Stat(dir); !os.IsNotExist(err) || len(m.Tools()) > 0 {
			t.Errorf("%v, %d tools", err, len(m.Tools()))
		}
		if err := m.Accept(m.States()[0].Drift); err != nil {
			t.Fatal(err)
		}
		look(s, "look pinned; put new; wild new excluded; ").Close()
		s.Command = []string{"odd"}
		s.Deny = nil
		if m := look(s, "either new; large new; list new; "+strings.Repeat("long", 30)+" new; look gone; no schema new; twin new; 名前.with/odd chars new; "); m != nil {
			m.Close()
		}
		s.Command = []string{"exit"}
		look(s, "look pinned; ").Close()
	})
}

// TestPinsOfAnotherRun are those of the first one.
func TestPinsOfAnotherRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		w := &within{}
		m := mustOpen(t, mcp.Options{Dir: dir, Start: w.start}, mode("s"))
		want := m.Tools()
		m.Close()
		if st, err := os.Stat(filepath.Join(dir, "pins.json")); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("pins.json: %v, %v", st, err)
		}
		// The same name, another program.
		s := mode("s")
		s.Command = []string{"hints"}
		m = mustOpen(t, mcp.Options{Dir: dir, Start: w.start}, s)
		defer m.Close()
		if got := names(m.Tools()); len(got) != 0 {
			t.Errorf("unseen tools are offered: %q", got)
		}
		if d := m.Drift(); len(d) != 3 || d[0].What[0] != "new" {
			t.Errorf("drift %+v", d)
		}
		r := registry(t, append(m.Tools(), m.Withheld()...))
		says(t, ask(t, r, "s__look", ""), true, "s__look of the MCP server s is withheld", "(new)", "tori mcp accept s s__look")
		if len(r.Definitions()) != 0 || len(m.Withheld()) != 3 {
			t.Errorf("%d definitions, %q are withheld", len(r.Definitions()), names(m.Withheld()))
		}
		// Down, its tools are those that are pinned, to the byte.
		down := mustOpen(t, mcp.Options{Dir: dir, Start: w.start, Restart: mcp.Restart{Limit: 1}}, mcp.Server{Name: "s", Command: []string{"exit"}})
		defer down.Close()
		if diff := cmp.Diff(registry(t, want).Definitions(), registry(t, down.Tools()).Definitions()); diff != "" {
			t.Errorf("the tools of a server that is down (-up +down):\n%s", diff)
		}
		if err := m.Accept(m.Drift()...); err != nil {
			t.Fatal(err)
		}
		next := mustOpen(t, mcp.Options{Dir: dir, Start: w.start}, s)
		defer next.Close()
		if !offers(next, "s__look") || offers(m, "s__look") {
			t.Errorf("accepted, the next run has %q and this one %q", names(next.Tools()), names(m.Tools()))
		}
	})
}

func TestBadPins(t *testing.T) {
	t.Parallel()
	for content, key := range map[string]string{
		`{"format":1,"servers":{`: "mcp.pins",
		"":                        "mcp.pins",
		`{"format":9}`:            "mcp.pins_newer",
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "pins.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		w := &within{}
		_, err := mcp.Open(t.Context(), []mcp.Server{mode("s")}, mcp.Options{Dir: dir, Start: w.start})
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != key {
			t.Errorf("%q: %v", content, err)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != content {
			t.Errorf("%q became %q (%v)", content, b, err)
		}
		if len(w.started) > 0 {
			t.Errorf("%q: a server was started", content)
		}
	}
}

// TestFullDisk: what cannot be pinned is not offered.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := &disk.FS{Before: func(op disk.Op) error {
			if op.Kind == disk.Replace {
				return errors.New("no space left on device")
			}
			return nil
		}}
		m := mustOpen(t, mcp.Options{Dir: t.TempDir(), Start: (&within{}).start, Disk: full}, mode("s"))
		defer m.Close()
		if s := status(t, m, "s"); len(m.Tools()) > 0 || s.State == mcp.Ready || !strings.Contains(s.Reason, "no space left") {
			t.Errorf("%d tools, status %+v", len(m.Tools()), s)
		}
	})
}

// TestTwoManagersPin each other's servers away in no order.
func TestTwoManagersPinAtTheSameTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const n = 8
	done := make(chan *mcp.Manager)
	for i := range n {
		go func() {
			m, err := mcp.Open(t.Context(), []mcp.Server{mode(string(rune('a' + i)))}, mcp.Options{Dir: dir, Start: (&within{}).start})
			if err != nil {
				t.Error(err)
			}
			done <- m
		}()
	}
	for range n {
		if m := <-done; m != nil {
			defer m.Close()
		}
	}
	content := pinsOf(t, dir)
	for i := range n {
		if !strings.Contains(content, `"`+string(rune('a'+i))+`":{`) {
			t.Errorf("%c is not pinned", 'a'+i)
		}
	}
}
