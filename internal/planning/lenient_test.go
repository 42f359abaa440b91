package planning

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"toritsugi/internal/disk/disktest"
)

func TestLenient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"json", `{"a": [1, -2.5e3, true, null, "x\n\u00e9\\\"/"], "b": {}}`, `{"a": [1, -2.5e3, true, null, "x\n\u00e9\\\"/"], "b": {}}`},
		{"trailing commas", `{"a": [1, 2,], "b": 1,}`, `{"a":[1,2],"b":1}`},
		{"missing commas", "{\"a\": \"x\"\n \"b\": 1 \"c\": [\"x\" \"y\"\n\"z\"]}", `{"a":"x","b":1,"c":["x","y","z"]}`},
		{"comments", "{// one\n\"a\": 1, /* two */ \"b\": 2 // three\n, # four\n\"c\": \"x\" // five\n}", `{"a":1,"b":2,"c":"x"}`},
		{"addresses are no comments", `{"a": "https://x.y//z", "b": "a /* b */ c", 'c': 'http://d # e'}`, `{"a":"https://x.y//z","b":"a /* b */ c","c":"http://d # e"}`},
		{"single quotes", `{'a': 'it\'s "x"', 'b': ['c', 'd'], 'e': 'don't'}`, `{"a":"it's \"x\"","b":["c","d"],"e":"don't"}`},
		{"typographic quotes", `{“a”: “b”, ‘c’: ‘d’, “e”: “f "g" h”}`, `{"a":"b","c":"d","e":"f \"g\" h"}`},
		{"quotes in text of another kind", `{"a": "says “hi”, then ‘ho’"}`, `{"a":"says “hi”, then ‘ho’"}`},
		{"triple quotes", "{\"a\": \"\"\"one \"x\",\n two\"\"\", 'b': '''c'''}", `{"a":"one \"x\",\n two","b":"c"}`},
		{"back quotes", "{\"a\": `x \"y\"\nz`}", `{"a":"x \"y\"\nz"}`},
		{"words of Python", `{"a": True, "b": False, "c": None, "d": NaN, "e": undefined}`, `{"a":true,"b":false,"c":null,"d":null,"e":null}`},
		{"line breaks", "{\"a\": \"x\n\ty\r\", \"b\": \"\x00\x1b\"}", `{"a":"x\n\ty\r","b":"\u0000\u001b"}`},
		{"no character", "{\"a\": \"\xff\xfe\"}", `{"a":"��"}`},
		{"quotes within", `{"a": "say "hi" to him", "b": ["the "x" and "y"", "z"]}`, `{"a":"say \"hi\" to him","b":["the \"x\" and \"y\"","z"]}`},
		{"a call within", `{"a": "call f("x", 1)", "b": 1}`, `{"a":"call f(\"x\", 1)","b":1}`},
		{"escapes of other languages", `{"a": "C:\dir", "b": "\d+\.\w", "c": "\u12zz", "d": "x\
y"}`, `{"a":"C:\\dir","b":"\\d+\\.\\w","c":"\\u12zz","d":"x\ny"}`},
		{"keys without quotes", `{a: 1, b_c: "x", d-e: [f, g h]}`, `{"a":1,"b_c":"x","d-e":["f","g h"]}`},
		{"wide punctuation", `{"a"：1，"b"：["x"，"y"]}`, `{"a":1,"b":["x","y"]}`},
		{"cut after a value", `{"a": {"b": [{"c": "d"`, `{"a":{"b":[{"c":"d"}]}}`},
		{"cut in a text", `{"a": "b", "c": "d e`, `{"a":"b","c":"d e"}`},
		{"cut in an escape", `{"a": "b\u12`, `{"a":"b"}`},
		{"cut before a value", `{"a": 1, "b":`, `{"a":1}`},
		{"cut in a word", `{"a": 1, "b": tr`, `{"a":1}`},
		{"cut in a key", `{"a": 1, "b`, `{"a":1}`},
		{"missing brackets in between", `{"a": ["x", "y", "b": {"c": [1, 2}, "d": 3}`, `{"a":["x","y"],"b":{"c":[1,2]},"d":3}`},
		{"a list that is not closed", `{"a": {"b": ["x", "y"}, "c": 1}`, `{"a":{"b":["x","y"]},"c":1}`},
		{"an object that is not closed", `{"a": [{"b": 1], "c": 2}`, `{"a":[{"b":1}],"c":2}`},
		{"an object that is not closed before the next", `{"a": [{"b": 1, "c": {"d": 2}, {"b": 3}]}`, `{"a":[{"b":1,"c":{"d":2}},{"b":3}]}`},
		{"a bracket too many", `{"a": {"b": 1}}, "c": 2}`, `{"a":{"b":1},"c":2}`},
		{"an end of line for a quote", "{\"a\": \"x,\n \"b\": \"y\n}", `{"a":"x","b":"y\n}"}`},
		{"left out", `{"a": [1, 2, ...], "b": {...}, "c": …}`, `{"a":[1,2],"b":{}}`},
		{"nothing for a value", `{"a": , "b": 1}`, `{"b":1}`},
		{"the end of a fence", "{\"a\": 1\n```\n and {more}", `{"a":1}`},
		{"a tag", `{"a": {"b": "c"</answer>`, `{"a":{"b":"c"}}`},
		{"prose after it", "{\"a\": \"b\"\n\nHope this helps!", `{"a":"b"}`},
		{"a quote that is escaped", `{"a": ["\": \"x", "y"]}`, `{"a": ["\": \"x", "y"]}`},
		{"prose within", "{\"a\": 1,\n and so on\n\"b\": 2}", `{"a":1,"b":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, _ := readObject(c.in)
			var got, want any
			if err := json.Unmarshal(r.out, &got); err != nil {
				t.Fatalf("%s is no JSON: %v", r.out, err)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %s\nwant %s", r.out, c.want)
			}
		})
	}
}

// FuzzLenient: whatever comes in, what comes out is JSON; and valid JSON keeps
// its meaning.
func FuzzLenient(f *testing.F) {
	for _, s := range []string{
		`{"a": [1, "x", {"b": null}], "c": "\ud83d\ude00"}`, `{"a":"b" "c":'d',}`, `{a: “b”, // c`, "{\"a\":\"\n\"b\":1}", `{"a":"x"}}, "b": 2}`,
		`{"a":["b" : 1}`, "{\"\": \"\\", `{"a":"","b":["",""]}`, `{"a":"x","b":-0.0E+1}`, `{"a":"\"","b":"'"}`, "{\"a\":```", `{"a": "b"   ,   "c" :1}`, `{"a":["\": \"b"]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		defer disktest.Bounded(t, len(in))()
		at := strings.IndexByte(in, '{')
		if at < 0 {
			return
		}
		r, used := readObject(in[at:])
		if used < 1 || used > len(in)-at {
			t.Fatalf("%d bytes of %d were used", used, len(in)-at)
		}
		if r.bad() {
			return
		}
		var got, want map[string]any
		if err := exactly(string(r.out), &got); err != nil {
			t.Fatalf("%q became %q: %v", in, r.out, err)
		}
		if exactly(in[at:], &want) != nil || !utf8.ValidString(in) {
			return
		}
		if !reflect.DeepEqual(got, want) || r.cut {
			t.Fatalf("%q became %q", in, r.out)
		}
	})
}

// exactly decodes JSON, numbers as they stand.
func exactly(text string, v any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more follows")
	}
	return nil
}
