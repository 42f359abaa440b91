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
	if runs, err := c.LastTools(3); len(runs) != 0 || err != nil {
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
}
