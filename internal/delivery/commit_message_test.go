package delivery

import (
	"strings"
	"testing"

	"toritsugi/internal/progress"
)

func TestParseMessage(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]Message{
		"": {},
		"Return an error for empty input\n\nparse(\"\") panicked.": {"Return an error for empty input", `parse("") panicked.`},
		"**Return an error.**\r\n\r\nBody.":                        {"Return an error", "Body."},
		"# Return an error\n\nBody.":                               {"Return an error", "Body."},
		"Subject: Return an error\n\nBody.":                        {"Return an error", "Body."},
		"件名: 空の入力でエラーを返す。\n\n本文です。":                                {"空の入力でエラーを返す", "本文です。"},
		"```\nReturn an error\n\nBody.\n```":                       {"Return an error", "Body."},
		"```\nReturn an error\n```\n\nBody.":                       {"Return an error", "Body."},
		"Return an error\n\nReturn an error\n\nBody.":              {"Return an error", "Body."},
		"Escape pipes in cells":                                    {"Escape pipes in cells", ""},
		"All tests pass.":                                          {"", "All tests pass."},
		"I mended it.\nAll tests pass.":                            {"", "I mended it.\nAll tests pass."},
		"What I did:\n\n- one":                                     {"", "What I did:\n\n- one"},
		strings.Repeat("x", 101) + "\n\nBody.":                     {"", strings.Repeat("x", 101) + "\n\nBody."},
		`{"phase": "completion", "done": true}`:                    {},
		"```json\n{\"done\": true}\n```":                           {},
		"```go\na\n```\n\nand\n\n```go\nb\n```":                    {"", "```go\na\n```\n\nand\n\n```go\nb\n```"},
	} {
		if got := ParseMessage(said); got != want {
			t.Errorf("%q: %+v, want %+v", said, got, want)
		}
	}
}

func TestWrapped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 30)
	text := long + "\n\n- " + long + "\n```\n" + long + "\n```\n    " + long + "\n" + strings.Repeat("空の入力でエラーを返すようにしました。", 8) + "\n" + strings.Repeat("x", 90)
	got := wrapped(text)
	for i, line := range strings.Split(got, "\n") {
		if w := progress.Width(line); w > wrapAt && !strings.HasPrefix(line, "    ") && w != 149 && !strings.HasPrefix(line, "x") {
			t.Errorf("line %d is %d columns wide: %s", i, w, line)
		}
		if strings.HasPrefix(line, "。") {
			t.Errorf("line %d begins with a full stop", i)
		}
	}
	if !strings.Contains(got, "\n  word ") {
		t.Errorf("the second line of a list's item is not indented:\n%s", got)
	}
	flat := func(s string) string { return strings.Join(strings.Fields(s), "") }
	if flat(got) != flat(text) {
		t.Errorf("it says something else:\n%s", got)
	}
	if got := wrapped("It is\n" + strings.Repeat("w ", 38) + "\ngoes on\n- and ends"); got != "It is\n"+strings.TrimSpace(strings.Repeat("w ", 36))+"\nw w goes on\n- and ends" {
		t.Errorf("a paragraph is torn:\n%s", got)
	}
	if again := wrapped(got); again != got {
		t.Errorf("wrapped twice it is\n%s", again)
	}
}
