package contextstore

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

func TestToolRuns(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := begin(t, s)
	if runs, err := c.LastTools(3); len(runs) != 0 || err != nil || c.CountToolCalls() != 0 {
		t.Error(runs, err)
	}
	err := c.AppendTools(
		ToolRun{Tool: "shell", Args: json.RawMessage(`{"a": "` + "\xff" + `"}`), Result: "bytes \xff", Status: "success"},
		ToolRun{Tool: "", Args: json.RawMessage(`not JSON`), Error: "no such tool", Status: "error"})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := c.LastTools(9)
	if err != nil || len(runs) != 2 || runs[0].Seq != 2 || string(runs[0].Args) != `"not JSON"` || string(runs[1].Args) != `{"a":"`+"\ufffd"+`"}` {
		t.Errorf("%+v %v", runs, err)
	}
	for _, n := range []int{-1, 0, 1} {
		if runs, err := c.LastTools(n); len(runs) != max(n, 0) || err != nil {
			t.Errorf("LastTools(%d) = %v, %v", n, runs, err)
		}
	}
	p := filepath.Join(c.Dir(), Tools)
	b, err := readFile(p)
	if err != nil || !utf8.Valid(b) {
		t.Errorf("%q %v", b, err)
	}
	v, err := Find(s.BaseDir, c.UUID(), Viewer{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := v.CountToolCalls(); n != 2 || c.CountToolCalls() != 2 || err != nil {
		t.Errorf("view %d, owner %d, %v", n, c.CountToolCalls(), err)
	}
	if err := kernel.WriteFile(p, append(b, `{"seq":3,"tool":"sh`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := v.CountToolCalls(); n != 2 || err != nil {
		t.Errorf("with a torn line: %d, %v", n, err)
	}
	if err := kernel.Remove(p); err != nil {
		t.Fatal(err)
	}
	if n, err := v.CountToolCalls(); n != 0 || err != nil {
		t.Errorf("without the file: %d, %v", n, err)
	}
}
