package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/tool"
)

// planSchema has what the schemas of tools have: nested objects, lists, words,
// bounds, and a nullable value.
const planSchema = `{"type":"object","properties":{` +
	`"path":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":100},"ratio":{"type":"number"},"all":{"type":"boolean"},` +
	`"kind":{"type":"string","enum":["in_progress","done"]},"files":{"type":"array","items":{"type":"string"}},` +
	`"note":{"anyOf":[{"type":"integer"},{"type":"null"}]},` +
	`"tasks":{"type":"array","maxItems":3,"items":{"type":"object","properties":{"id":{"type":"string"},"size":{"type":"integer","minimum":0},"after":{"type":"array","items":{"type":"string"}}},"required":["id"],"additionalProperties":false}}},` +
	`"required":["path"],"additionalProperties":false}`

func reader(t *testing.T, readOnly bool) *tool.Arguments {
	t.Helper()
	a, err := tool.NewArguments(tool.Definition{Schema: json.RawMessage(planSchema), ReadOnly: readOnly, Aliases: map[string]string{"file_path": "path", "reason": "-", "key": "id"}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What a weak model means is done; what is valid is not touched, to the byte.
func TestArgumentsAsMeant(t *testing.T) {
	t.Parallel()
	a := reader(t, false)
	for raw, want := range map[string]string{
		`{ "path" : "a", "note": null }`: `{ "path" : "a", "note": null }`,
		// types
		`{"path":3}`:                                                `{"path":"3"}`,
		`{"path":["a"]}`:                                            `{"path":"a"}`,
		`{"path":"a","limit":"3"}`:                                  `{"limit":3,"path":"a"}`,
		`{"path":"a","limit":" 12 "}`:                               `{"limit":12,"path":"a"}`,
		`{"path":"a","limit":["7"]}`:                                `{"limit":7,"path":"a"}`,
		`{"path":"a","limit":"line 36"}`:                            `{"limit":36,"path":"a"}`,
		`{"path":"a","limit":"L36"}`:                                `{"limit":36,"path":"a"}`,
		`{"path":"a","note":"#12"}`:                                 `{"note":12,"path":"a"}`,
		`{"path":"a","ratio":"0.50"}`:                               `{"path":"a","ratio":0.50}`,
		`{"path":"a","all":"false"}`:                                `{"all":false,"path":"a"}`,
		`{"path":"a","all":"True"}`:                                 `{"all":true,"path":"a"}`,
		`{"path":"a","all":1}`:                                      `{"all":true,"path":"a"}`,
		`{"path":"a","note":"4"}`:                                   `{"note":4,"path":"a"}`,
		`{"path":"a","files":"x.go"}`:                               `{"files":["x.go"],"path":"a"}`,
		`{"path":"a","files":"[\"x\",\"y\"]"}`:                      `{"files":["x","y"],"path":"a"}`,
		`{"path":"a","files":[1,true]}`:                             `{"files":["1","true"],"path":"a"}`,
		`{"path":"a","kind":"In Progress"}`:                         `{"kind":"in_progress","path":"a"}`,
		`{"path":"a","tasks":{"id":1,"size":"2"}}`:                  `{"path":"a","tasks":[{"id":"1","size":2}]}`,
		`{"path":"a","tasks":"[{'key': 'x'}]"}`:                     `{"path":"a","tasks":[{"id":"x"}]}`,
		`{"path":"a","tasks":[{"id":"x","after":"y","size":null}]}`: `{"path":"a","tasks":[{"after":["y"],"id":"x"}]}`,
		// absent
		`{"path":"a","limit":null,"all":"","files":null}`: `{"path":"a"}`,
		`{"path":"a","other":null,"reason":"to see"}`:     `{"path":"a"}`,
		// names
		`{"file_path":"a"}`:       `{"path":"a"}`,
		`{"Path":"a","LIMIT":2}`:  `{"limit":2,"path":"a"}`,
		`{"path":"a","taskS":[]}`: `{"path":"a","tasks":[]}`,
		// wrapped and encoded twice
		`"{\"path\":\"a\"}"`:                             `{"path":"a"}`,
		"\"```json\\n{\\\"path\\\":\\\"a\\\"}\\n```\"":   `{"path":"a"}`,
		`[{"path":"a"}]`:                                 `{"path":"a"}`,
		`{"arguments":{"path":"a"}}`:                     `{"path":"a"}`,
		`{"input":"{\"path\":\"a\",\"limit\":\"2\"}"}`:   `{"limit":2,"path":"a"}`,
		`{"name":"plan","parameters":{"file_path":"a"}}`: `{"path":"a"}`,
		// broken
		`{'path': 'a', 'all': True,}`: `{"path": "a", "all": true}`,
		// nothing is lost on the way
		`{"path":"<a & b>","limit":"9"}`:                         `{"limit":9,"path":"<a & b>"}`,
		`{"path":"a","ratio":123456789012345678901,"limit":"1"}`: `{"limit":1,"path":"a","ratio":123456789012345678901}`,
	} {
		args, _, problem := a.Read(raw)
		if string(args) != want || problem != "" {
			t.Errorf("%s:\n got %s %s\nwant %s", raw, args, problem, want)
		}
		again, notes, problem := a.Read(string(args))
		if string(again) != string(args) || len(notes) > 0 || problem != "" {
			t.Errorf("%s: again it is %s, %v %s", raw, again, notes, problem)
		}
	}
}

// What changes the meaning of a call is said.
func TestArgumentsSayWhatWasChanged(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"path":"a","limit":5000}`:                   "limit 5000 was too large; 100 was used",
		`{"path":"a","limit":"5000","reason":"x"}`:    "limit 5000 was too large; 100 was used",
		`{"path":"a","limit":-1}`:                     "limit -1 was too small and was taken as not given",
		`{"path":"a","tasks":[{"id":"x","size":-2}]}`: "tasks[0].size -2 was too small and was taken as not given",
		`{"path":"a","encoding":"utf-8"}`:             "encoding is not known and was ignored",
		`{"path":"a",}`:                               "",
		`{"path":"a"`:                                 "",
	} {
		_, notes, problem := reader(t, true).Read(raw)
		if got := strings.Join(notes, "; "); got != want || problem != "" {
			t.Errorf("%s: %q %s", raw, got, problem)
		}
	}
	if _, notes, problem := reader(t, false).Read(`{"path":"a",}`); problem != "" || len(notes) != 1 || !strings.Contains(notes[0], `read as {"path":"a"}`) {
		t.Errorf("a repair of what changes something: %v %s", notes, problem)
	}
}

// What cannot be told is refused, all of it at once, with what was expected.
func TestArgumentsNameEveryMistake(t *testing.T) {
	t.Parallel()
	a := reader(t, false)
	for raw, want := range map[string]string{
		`{}`: "path is missing (string)",
		`{"limit":"ten","all":"maybe","kind":"open","paths":["a","b"]}`:      `path is missing (string); all must be boolean, not "maybe"; kind must be "in_progress"|"done", not "open"; limit must be integer 1..100, not "ten"; there is no paths (did you mean path?)`,
		`{"path":"a","tasks":[{"size":"big"},{"id":"x","owner":"me"}]}`:      `tasks[0].id is missing (string); tasks[0].size must be integer >= 0, not "big"; there is no tasks[1].owner`,
		`{"path":"a","tasks":[{"id":"1"},{"id":"2"},{"id":"3"},{"id":"4"}]}`: `tasks: maxItems: array length 4 is greater than 3`,
		`{"path":"a","limit":"5 minutes"}`:                                   `limit must be integer 1..100, not "5 minutes"`,
		`{"path":"a","limit":"36-38"}`:                                       `limit must be integer 1..100, not "36-38"`,
		`{"path":["a","b"]}`:                                                 `path must be string, not ["a","b"]`,
		`{"path":null}`:                                                      `path must be string, not null`,
		// What is left out is one mark behind a word, and the quotation ends.
		`{"path":"a","limit":"空白だけのタグは nil, nil を返す (tags.go:118-120)"}`:            "limit must be integer 1..100, not \"空白だけのタグは nil, nil を返す…\".\n",
		`{"path":"a","limit":"` + strings.Repeat("a word... ", 9) + `"}`:            "limit must be integer 1..100, not \"a word... a word... a word... a word... a word... a word…\".\n",
		`{"path":"a","limit":"` + strings.Repeat("x", 80) + `"}`:                    `limit must be integer 1..100, not "` + strings.Repeat("x", 59) + "…\".\n",
		`{"path":["a file of a long name","another file of a very long name","b"]}`: `path must be string, not ["a file of a long name","another file of a very long…` + ".\n",
		`{"path":"a","file_path":"b"}`:                                              "there is no file_path",
		`{"path":"a","append":true}`:                                                "there is no append", // ignoring it would lose the file
		`{"path":"a","limit":2.5}`:                                                  "limit must be integer 1..100, not 2.5",
		`{"path":"a","content":"package a`:                                          "they are not JSON",
		"{\"path\":\"\xff\"}":                                                       "they are not valid UTF-8",
		`"a"`:                                                                       "they must be a JSON object, not a string",
		`[{"path":"a"},{"path":"b"}]`:                                               "they must be a JSON object, not an array",
		`{"arguments":"a"}`:                                                         "path is missing (string); there is no arguments",
	} {
		args, _, problem := a.Read(raw)
		if args != nil || !strings.HasPrefix(problem, want) || !strings.Contains(problem, "\nExpected: {\"path\": string") {
			t.Errorf("%s: %s\n got %s\nwant %s", raw, args, problem, want)
		}
	}
}

// A tool that says nothing of itself but its schema, as one of a stranger's server,
// gets what it was sent where its schema takes that.
func TestArgumentsOfAnOpenSchema(t *testing.T) {
	t.Parallel()
	a, err := tool.NewArguments(tool.Definition{Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]string{
		`{"n":1,"file_path":"a","x":null}`:   `{"n":1,"file_path":"a","x":null}`,
		`{"n":"1","file_path":"a","x":null}`: `{"file_path":"a","n":1,"x":null}`,
		`{"params":{"n":1}}`:                 `{"n":1}`,
	} {
		if args, notes, problem := a.Read(raw); string(args) != want || len(notes) > 0 || problem != "" {
			t.Errorf("%s: %s %v %s", raw, args, notes, problem)
		}
	}
}

// Whatever a model writes, what a tool gets fits its schema and is read again as
// it is.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"path":["a"],"limit":"3"}`, `"{\"path\":1}"`, `{"args":[{"path":{}}]}`, `{'path': "x`, `{"path":"a","tasks":"[{}]"}`, `{"path":"a","limit":1e999,"note":[[]]}`} {
		f.Add(s, true)
	}
	read := map[bool]*tool.Arguments{}
	for _, readOnly := range []bool{true, false} {
		a, err := tool.NewArguments(tool.Definition{Schema: json.RawMessage(planSchema), ReadOnly: readOnly, Aliases: map[string]string{"file_path": "path", "reason": "-"}})
		if err != nil {
			f.Fatal(err)
		}
		read[readOnly] = a
	}
	f.Fuzz(func(t *testing.T, raw string, readOnly bool) {
		defer disktest.Bounded(t, len(raw))()
		args, _, problem := read[readOnly].Read(raw)
		if problem != "" {
			if args != nil {
				t.Fatalf("%q: %s, and %s", raw, args, problem)
			}
			return
		}
		again, notes, problem := read[readOnly].Read(string(args))
		if string(again) != string(args) || len(notes) > 0 || problem != "" {
			t.Fatalf("%q: %s became %s, %v %s", raw, args, again, notes, problem)
		}
	})
}

// The builtin tools know the words of other assistants for what they take.
func TestWordsOfOthers(t *testing.T) {
	t.Parallel()
	shell := &fakeShell{run: prints("", tool.ShellExit{})}
	w := newWorkspace(t, map[string]string{"a.go": "package a\n\nvar x = 1\n"}, func(e *tool.Env) { e.Shell = shell })
	for _, c := range []struct{ name, args, want string }{
		{"read_file", `{"file_path":"a.go","offset":"3","explanation":"look"}`, "a.go: lines 3-3 of 3"},
		{"read_file", `{"filename":"a.go","end_line":-1}`, "a.go: 3 lines"},
		{"edit_file", `{"file_path":"a.go","old_string":"x = 1","new_string":"x = 2","replace_all":"false"}`, "Edited a.go"},
		{"write_file", `{"target_file":"b.go","contents":"package a\n"}`, "b.go"},
		{"grep", `{"query":"x","include":"*.go","-i":true,"-n":true,"head_limit":"5","output_mode":"content"}`, "a.go\n3: var x = 2"},
		{"list_files", `{"dir_path":".","max_depth":"1"}`, "a.go\nb.go\n"},
		{"glob", `{"query":"*.go","path":null}`, "a.go\nb.go\n"},
		{"shell", `{"cmd":["ls"],"timeout":"5","description":"List"}`, "exit code 0"},
		{"shell", `{"command":["bash","-c","npm test"]}`, "exit code 0"},
	} {
		if res := w.call(c.name, c.args); res.IsError || !strings.Contains(res.Text, c.want) {
			t.Errorf("%s %s: %s", c.name, c.args, res.Text)
		}
	}
	if want := "eval 'bash -c '\\''npm test'\\'''"; !strings.HasSuffix(shell.script, want) {
		t.Errorf("a command line as a list of words: %q, want %q", shell.script, want)
	}
	res := w.call("grep", obj{"pattern": "x", "limit": 5000})
	if want := "\n[limit 5000 was too large; 1000 was used]"; !strings.HasSuffix(res.Text, want) || string(res.Args) != `{"limit":1000,"pattern":"x"}` {
		t.Errorf("%s with %s", res.Text, res.Args)
	}
}
