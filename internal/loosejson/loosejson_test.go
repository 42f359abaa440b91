package loosejson

import (
	"encoding/json"
	"testing"

	"toritsugi/internal/disk/disktest"
)

func TestRepair(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		`{"a": 1}`:                               `{"a": 1}`,
		`{'path': 'a.go', 'replace_all': True,}`: `{"path": "a.go", "replace_all": true}`,
		`{"path": "a.go", start_line: 3}`:        `{"path": "a.go", "start_line": 3}`,
		"{\"content\":\"one\ntwo\t3\n\"}":        `{"content":"one\ntwo\t3\n"}`,
		`{"command": "grep -n "foo" a.go"}`:      `{"command": "grep -n \"foo\" a.go"}`,
		`{"a": "b" "c": 1}`:                      `{"a": "b", "c": 1}`,
		`{"a": 'it\'s'}`:                         `{"a": "it's"}`,
		"```json\n{\"path\":\"a\",}\n```":        `{"path":"a"}`,
		`{"a": 1}}`:                              `{"a": 1}`,
		`{"a": {"b": [1, 2}`:                     `{"a": {"b": [1, 2]}}`,
		`{"old_text": "a \d+ b"}`:                "", // the expression would become d+
		`{"a": "b"} and this is prose`:           "",
		"":                                       "",
		"```":                                    "",
		`[{"t":"alert(\"x\`:                      "", // panicked once
	} {
		fixed, _, ok := Repair(s)
		if fixed != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", s, fixed, ok)
		}
	}
}

// A text that was cut off is told from one that only lacks a comma.
func TestRepairTellsWhatWasCutOff(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		`{"path": "a", "content": "x",}`:            true,
		`{"path": "a", "all": True}`:                true,
		`{"path": "a", "content": ["x", "y",]}`:     true,
		`{"path": "a"`:                              false,
		`{"path": "a", "content": "package a`:       false,
		"{\"path\": \"a\", \"content\": \"f() {\n}": false,
		`{"path": "a", "limit": 1`:                  false,
	} {
		if fixed, whole, ok := Repair(s); ok && whole != want || !ok && want {
			t.Errorf("%q: %q, whole %v, %v", s, fixed, whole, ok)
		}
	}
}

// Whatever is read is JSON, and JSON is never changed.
func FuzzRepair(f *testing.F) {
	f.Add(`{'a': "b\`)
	f.Add("```json\n[1,2")
	f.Add("{\"a\":\"\\u00e")
	f.Fuzz(func(t *testing.T, s string) {
		defer disktest.Bounded(t, len(s))()
		fixed, _, ok := Repair(s)
		if ok && !json.Valid([]byte(fixed)) {
			t.Errorf("%q became %q", s, fixed)
		}
		if json.Valid([]byte(s)) && fixed != s {
			t.Errorf("the valid %q became %q", s, fixed)
		}
	})
}
