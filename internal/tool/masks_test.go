package tool_test

import (
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/redact"
	"toritsugi/internal/tool"
)

// masking lets the tools see what the model sees.
func masking(e *tool.Env) {
	z := redact.New([]string{"hunter2hunter2"}, nil)
	e.Masks = redact.ContainsMask
	e.Limits.Filter = func(w io.Writer) io.WriteCloser { return z.Writer(w) }
}

func TestTokensAreRestored(t *testing.T) {
	t.Parallel()
	book := "ann: ann@example.com\nbob: bob@example.org # bob's\n# [EMAIL] is how we hide them\npassword = hunter2hunter2\nteam: ann@example.com, ann@example.com\n"
	one := "name: Ann\nmail: ann@example.com\ncity: Kyoto\n"
	key := "a\n-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7bq9uXv2k8Rr5cD1TzWmQp0sLhYgJfNnVxKaEiOuBt3C6dMw\n", 20) + "-----END RSA PRIVATE KEY-----\nb\n"
	for name, c := range map[string]struct {
		file, tool string
		args       obj
		want       string // what the file holds then; "" for a refusal
	}{
		"the line around":        {one, "edit_file", obj{"old_text": "mail: [EMAIL]\ncity: Kyoto", "new_text": "mail: [EMAIL]\ncity: Nara"}, strings.Replace(one, "Kyoto", "Nara", 1)},
		"its own line":           {one, "edit_file", obj{"old_text": "mail: [EMAIL]", "new_text": "e-mail: <[EMAIL]>"}, strings.Replace(one, "mail: ann@example.com", "e-mail: <ann@example.com>", 1)},
		"left out":               {one, "edit_file", obj{"old_text": "mail: [EMAIL]\n", "new_text": ""}, "name: Ann\ncity: Kyoto\n"},
		"once more":              {one, "edit_file", obj{"old_text": "mail: [EMAIL]", "new_text": "mail: [EMAIL]\ncc: [EMAIL]"}, ""},
		"from nowhere":           {one, "edit_file", obj{"old_text": "Kyoto", "new_text": "[EMAIL]"}, ""},
		"another token":          {one, "edit_file", obj{"old_text": "mail: [EMAIL]", "new_text": "mail: [REDACTED]"}, ""},
		"lines that stay":        {book, "edit_file", obj{"old_text": "ann: [EMAIL]\nbob: [EMAIL] # bob's", "new_text": "ann: [EMAIL]\n\nbob: [EMAIL] # bob's"}, strings.Replace(book, "\nbob", "\n\nbob", 1)},
		"lines in another order": {book, "edit_file", obj{"old_text": "ann: [EMAIL]\nbob: [EMAIL] # bob's", "new_text": "bob: [EMAIL] # bob's\nann: [EMAIL]"}, "bob: bob@example.org # bob's\nann: ann@example.com" + book[strings.Index(book, "\n# [E"):]},
		"one of two changed":     {book, "edit_file", obj{"old_text": "ann: [EMAIL]\nbob: [EMAIL] # bob's", "new_text": "ann: [EMAIL]\nrobert: [EMAIL]"}, strings.Replace(book, "bob: bob@example.org # bob's", "robert: bob@example.org", 1)},
		"two changed":            {book, "edit_file", obj{"old_text": "ann: [EMAIL]\nbob: [EMAIL] # bob's", "new_text": "Ann: [EMAIL]\nBob: [EMAIL]"}, ""},
		"two that are the same":  {book, "edit_file", obj{"old_text": "team: [EMAIL], [EMAIL]", "new_text": "team: [EMAIL] and [EMAIL]"}, strings.Replace(book, "com, ann", "com and ann", 1)},
		"the file's own token":   {book, "edit_file", obj{"old_text": "# [EMAIL] is how", "new_text": "# [EMAIL]: how"}, strings.Replace(book, "[EMAIL] is how", "[EMAIL]: how", 1)},
		"a password":             {book, "edit_file", obj{"old_text": "password = [REDACTED]", "new_text": "secret = [REDACTED]"}, strings.Replace(book, "password =", "secret =", 1)},
		"lines that end in CRLF": {strings.ReplaceAll(one, "\n", "\r\n"), "edit_file", obj{"old_text": "mail: [EMAIL]\ncity", "new_text": "mail: [EMAIL]\ntown"}, strings.ReplaceAll(strings.Replace(one, "city", "town", 1), "\n", "\r\n")},
		"several lines":          {key, "edit_file", obj{"old_text": "[REDACTED]\nb", "new_text": "[REDACTED]\nc"}, strings.Replace(key, "\nb\n", "\nc\n", 1)},
		"not there":              {one, "edit_file", obj{"old_text": "mall: [EMAIL]", "new_text": "x"}, ""},
		"half a token":           {one, "edit_file", obj{"old_text": "mail: [EMA", "new_text": "x"}, ""},
		"every place":            {"a: x@example.com;\nb: y@example.com;\n", "edit_file", obj{"old_text": ": [EMAIL];", "new_text": " = [EMAIL]", "replace_all": true}, "a = x@example.com\nb = y@example.com\n"},
		"the whole file":         {book, "write_file", obj{"content": "bob: [EMAIL] # bob's\nann: [EMAIL]\nend\n"}, "bob: bob@example.org # bob's\nann: ann@example.com\nend\n"},
		"the whole, unclear":     {book, "write_file", obj{"content": "both: [EMAIL]\n"}, ""},
		"the whole, clear":       {one, "write_file", obj{"content": "to: [EMAIL]\n"}, "to: ann@example.com\n"},
		"the whole, too many":    {one, "write_file", obj{"content": "to: [EMAIL]\nto: [EMAIL]\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, map[string]string{"f": c.file}, masking)
			c.args["path"] = "f"
			res := w.call(c.tool, c.args)
			want := c.want
			if want == "" {
				want = c.file
			}
			if got := w.get("f"); got != want || res.IsError != (c.want == "") {
				t.Errorf("the file holds\n%s\nanswer: %s", got, res.Text)
			}
		})
	}
	w := newWorkspace(t, nil, masking)
	if res := w.call("write_file", obj{"path": "new", "content": "to: [EMAIL]\n"}); !res.IsError || !strings.HasPrefix(res.Text, "new was not written: the new text contains [EMAIL]") {
		t.Error(res.Text)
	}
}

// Whatever is edited through the mask: the file is what it would be without
// one, or unchanged.
func TestMaskedEditsAreRightOrRefused(t *testing.T) {
	t.Parallel()
	z := redact.New(nil, nil)
	w := newWorkspace(t, nil, masking)
	done := 0
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a@example.com", "bob@example.org", "x", " ", ", ", "\n", "to: ", ".", "[EMAIL]", "\xff", "日本", "<", ">"})
		content := strings.Join(rapid.SliceOfN(piece, 1, 14).Draw(t, "content"), "")
		lines := strings.SplitAfter(content, "\n")
		from := rapid.IntRange(0, len(lines)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(lines)).Draw(t, "to")
		before, old, after := strings.Join(lines[:from], ""), strings.Join(lines[from:to], ""), strings.Join(lines[to:], "")
		seen := z.String(content)
		maskedOld := z.String(old)
		if strings.ToValidUTF8(old, "") != old || old == "" || strings.Count(seen, maskedOld) != 1 || z.String(before)+maskedOld+z.String(after) != seen {
			return
		}
		replace := func(s string) string { return "// " + strings.ReplaceAll(s, "<", "{") }
		w.put("f", content, 0o600)
		res := w.call("edit_file", obj{"path": "f", "old_text": maskedOld, "new_text": replace(maskedOld)})
		got := w.get("f")
		switch want := before + replace(old) + after; {
		case res.IsError && got != content:
			t.Fatalf("refused and changed: %s", res.Text)
		case !res.IsError && got != want:
			t.Fatalf("%q became %q, want %q", content, got, want)
		case !res.IsError && maskedOld != old:
			done++
		}
	})
	if done == 0 {
		t.Error("no masked edit was made: the test tests nothing")
	}
}

// A file's name can be a secret as well: none is made, one that is there cannot
// be reached by what stands for it, and none is shown in part.
func TestNamesThatHoldSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	w := newWorkspace(t, map[string]string{"keys/" + secret + ".txt": "x", "odd/[REDACTED].txt": "y", "f": "ann@example.com\n"}, masking)
	for _, c := range []struct {
		tool string
		args obj
		want string // part of the refusal; "" for success
	}{
		{"read_file", obj{"path": "keys/[REDACTED].txt"}, "The path holds [REDACTED], which stands for a part of the real name"},
		{"list_files", obj{"path": "keys/[REDACTED]"}, "The path holds [REDACTED]"},
		{"edit_file", obj{"path": "keys/[REDACTED].txt", "old_text": "x", "new_text": "z"}, "The path holds [REDACTED]"},
		{"write_file", obj{"path": "new/[REDACTED].txt", "content": "z"}, "The path holds [REDACTED]"},
		{"write_file", obj{"path": "new/" + secret, "content": "z"}, "The path new/[REDACTED] holds what looks like a secret"},
		{"write_file", obj{"path": "api_key-" + secret + "/x", "content": "z"}, "holds what looks like a secret"},
		{"read_file", obj{"path": "odd/[REDACTED].txt"}, ""},
		{"write_file", obj{"path": "keys/" + secret + ".txt", "content": "z"}, ""},
		{"write_file", obj{"path": "ann@example.com", "content": "z"}, ""},
	} {
		res := w.call(c.tool, c.args)
		if res.IsError != (c.want != "") || !strings.Contains(res.Text, c.want) {
			t.Errorf("%s %v: %+v", c.tool, c.args, res)
		}
		if c.want != "" && strings.Contains(res.Text, secret) {
			t.Errorf("%s: the secret is in %q", c.tool, res.Text)
		}
	}
}
