package turn

import (
	"reflect"
	"testing"
)

// The log shows what an answer says to people, not the object that it is.
func TestSaid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"I look.\nThen more.": "I look.…",
		"":                    "",
		`{"phase":"planning","comment":"Two small steps."}`:                                     "Two small steps.",
		"```json\n{\"task_id\":\"a\",\"summary\":\"a.go is mended\"}\n```":                      "a.go is mended",
		`{"status":"done","summary":"first"} {"done":true,"comment":"All.","summary":{"a":[]}}`: "All.",
		`{"done":true,"summary":{"key_outcomes":["x"]}}`:                                        "",
		`{"broken`:                              "",
		`The map {"a":1} is wrong.`:             `The map {"a":1} is wrong.`,
		`{"comment":1,"summary":"of a number"}`: "",
	} {
		var exp []any
		if want != "" {
			exp = []any{"said", want}
		}
		if got := said(text); !reflect.DeepEqual(got, exp) {
			t.Errorf("said(%q) = %q, want %q", text, got, want)
		}
	}
}
