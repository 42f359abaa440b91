package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
)

func TestName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 40)
	for _, tc := range []struct{ server, tool, want string }{
		{"github", "create_issue", "github__create_issue"},
		{"github", "get-me", "github__get-me"},
		{"a", "_b", "a___b"},
		{"a_", "b", "a___b_x"},
		{"a__b", "c", "a__b__c_x"},
		{"a", "b__c", "a__b__c"},
		{"a", "b.c", "a__b_c_x"},
		{"a", "b_c", "a__b_c"},
		{"a", "b_c_x0123456789", "a__b_c_x0123456789_x"},
		{"日本", "語", "____" + "__" + "___x"},
		{long, long, (long + "__" + long)[:52] + "_x"},
	} {
		got := Name(tc.server, tc.tool)
		if strings.HasSuffix(tc.want, "_x") || strings.Contains(tc.want, "___x") {
			if !marked().MatchString(got) || !strings.HasPrefix(got, tc.want) && sanitise(tc.server) == tc.server {
				t.Errorf("%q %q is %q, want %q and a mark", tc.server, tc.tool, got, tc.want)
			}
			continue
		}
		if got != tc.want {
			t.Errorf("%q %q is %q, want %q", tc.server, tc.tool, got, tc.want)
		}
	}
}

// TestNamesTellToolsApart: two tools never share a name, and providers take
// every name.
func TestNamesTellToolsApart(t *testing.T) {
	t.Parallel()
	word := rapid.OneOf(rapid.StringMatching(`[ab_]{1,4}`), rapid.StringMatching(`[ab_.é-]{1,4}(_x[0-9a-f]{10})?`), rapid.String().Filter(func(s string) bool { return s != "" }))
	rapid.Check(t, func(t *rapid.T) {
		a, b := [2]string{word.Draw(t, "server"), word.Draw(t, "tool")}, [2]string{word.Draw(t, "server"), word.Draw(t, "tool")}
		x, y := Name(a[0], a[1]), Name(b[0], b[1])
		if a != b && x == y {
			t.Fatalf("%q and %q are both %s", a, b, x)
		}
		if len(x) > maxToolName || refused().MatchString(x) {
			t.Fatalf("%q is %q", a, x)
		}
	})
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\n":                     "plain\ttext\n",
		"a\r\nb\rc":                         "a\nbc",
		"\x1b]0;title\a":                    "]0;title",
		"zero\u200bwidth\ufeff\u2060":       "zerowidth",
		"\u202eright\u2066to\u2069left":     "righttoleft",
		"\U000E0068\U000E0069 tags":         " tags",
		"variation\ufe0f\U000E0101":         "variation",
		"filler\u3164\u115f\uffa0\u2800":    "filler",
		"bad\xff\xfeutf\x00":                "badutf",
		"private\ue000\U000F0000":           "private",
		"lines\u2028and\u2029more":          "lines\nand\nmore",
		"日本語、émoji 🎉":                       "日本語、émoji 🎉",
		strings.Repeat("あ", 40):             strings.Repeat("あ", 32) + "...",
		strings.Repeat("\u200b", 500) + "a": "...",
	} {
		got := plain(in, 99)
		if strings.HasPrefix(in, "\u200b") { // more of nothing than is looked at
			if got != "" {
				t.Errorf("%q", got)
			}
			continue
		}
		if got != want {
			t.Errorf("plain(%q) is %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in, limit := rapid.String().Draw(t, "s"), rapid.IntRange(3, 50).Draw(t, "limit")
		got := plain(in, limit)
		if len(got) > limit || !utf8.ValidString(got) || plain(got, limit) != got {
			t.Fatalf("plain(%q, %d) is %q", in, limit, got)
		}
	})
}

func TestTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var k tail
		var all []byte
		for range rapid.IntRange(0, 20).Draw(t, "writes") {
			p := []byte(strings.Repeat(rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "text"), rapid.IntRange(0, 1000).Draw(t, "times")))
			all = append(all, p...)
			if n, err := k.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		if want := string(all[max(0, len(all)-maxTail):]); k.String() != want {
			t.Fatalf("%d bytes are kept of %d", len(k.String()), len(all))
		}
	})
}

// TestSaidOnce: structured content that says what the text says is not told again.
func TestSaidOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		structured, want string
		texts            []string
	}{
		{`{"a":1}`, `{ "a": 1 }`, []string{`{ "a": 1 }`}},
		{`{"content":"hello\nyou"}`, "hello\nyou\n", []string{"hello\nyou\n"}},
		{`{"result":["a","b"]}`, "a\n\nb", []string{"a", "b"}},
		{`{"result":"a\nb"}`, "a\n\nb", []string{"a", "b"}},
		{`{"result":[{"x":1},2]}`, "{\"x\":1}\n\n2", []string{`{"x":1}`, "2"}},
		{`{"result":{"value":42}}`, "42", []string{"42"}},
		{`{"result":["a","a"]}`, "a\n\n" + `{"result":["a","a"]}`, []string{"a"}},
		{`{"result":[]}`, "none\n\n" + `{"result":[]}`, []string{"none"}},
		{`{"a":"x","b":"x"}`, "x\n\n" + `{"a":"x","b":"x"}`, []string{"x"}},
		{`{"temperature":21}`, "It is warm.\n\n" + `{"temperature":21}`, []string{"It is warm."}},
		{`{"a":1}`, `{"a":1}`, nil},
	} {
		res := &sdk.CallToolResult{}
		if err := json.Unmarshal([]byte(tc.structured), &res.StructuredContent); err != nil {
			t.Fatal(err)
		}
		for _, text := range tc.texts {
			res.Content = append(res.Content, &sdk.TextContent{Text: text})
		}
		if got := render(res).Text; got != tc.want {
			t.Errorf("%q with %s is %q, want %q", tc.texts, tc.structured, got, tc.want)
		}
	}
}

func TestOfferedSchema(t *testing.T) {
	t.Parallel()
	deep := `{"type":"object","properties":{"a":` + strings.Repeat(`{"items":`, 60) + `{}` + strings.Repeat(`}`, 60) + `}}`
	var laughs strings.Builder // each definition stands for ten of the next
	laughs.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"},"b":{"type":"string"}},"$defs":{`)
	for i := range 9 {
		ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		fmt.Fprintf(&laughs, `"d%d":{"allOf":[%s]},`, i, strings.TrimSuffix(strings.Repeat(ref+",", 10), ","))
	}
	laughs.WriteString(`"d9":{"type":"string"}}}`)
	var all, long, short []string
	for i := range 4000 {
		all = append(all, fmt.Sprintf(`"name%05d":{}`, i))
	}
	for i := range 100 {
		long = append(long, fmt.Sprintf(`"%03d":{"description":"%s","type":"string"}`, i, strings.Repeat("x", 900)))
		short = append(short, fmt.Sprintf(`"%03d":{"description":"%s...","type":"string"}`, i, strings.Repeat("x", maxBriefText-3)))
	}
	names, texts, brief := strings.Join(all, ","), strings.Join(long, ","), strings.Join(short, ",")
	cuts := map[string]bool{"deep": true, "not a schema": true, "wrong keyword": true, "large": true, "many laughs": true, "large texts": true, "large parts": true, "large in all": true}
	for name, tc := range map[string]struct {
		in, want string
		wrap     bool
	}{
		"plain":          {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`, false},
		"no type":        {`{"properties":{}}`, `{"properties":{},"type":"object"}`, false},
		"missing":        {`null`, openSchema, false},
		"a boolean":      {`true`, openSchema, false},
		"a string":       {`{"type":"string"}`, `{"properties":{"value":{"type":"string"}},"required":["value"],"type":"object"}`, true},
		"known draft":    {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, false},
		"unknown draft":  {`{"$schema":"http://evil/","$id":"http://evil/","type":"object"}`, `{"type":"object"}`, false},
		"names":          {`{"type":"object","properties":{"$id":{"type":"string"},"type":{"$ref":"#/$defs/x"},"$ref":{"type":"integer"}},"$defs":{"x":{}}}`, `{"$defs":{"x":{}},"properties":{"$id":{"type":"string"},"$ref":{"type":"integer"},"type":{"$ref":"#/$defs/x"}},"type":"object"}`, false},
		"outside":        {`{"type":"object","properties":{"a":{"$ref":"http://evil/"},"b":{"$ref":"#/$defs/none"},"c":{"$ref":"#"},"d":{"$ref":7}}}`, `{"properties":{"a":{},"b":{},"c":{},"d":{}},"type":"object"}`, false},
		"itself":         {`{"type":"object","allOf":[{"$ref":"#"}]}`, `{"allOf":[{}],"type":"object"}`, false},
		"circle":         {`{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `{"$defs":{"a":{},"b":{"$ref":"#/$defs/a"}},"allOf":[{"$ref":"#/$defs/a"}],"type":"object"}`, false},
		"tree":           {`{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"kids":{"items":{"$ref":"#/$defs/n"}}}}}}`, `{"$defs":{"n":{"properties":{"kids":{"items":{}}}}},"properties":{"n":{"$ref":"#/$defs/n"}},"type":"object"}`, false},
		"look ahead":     {`{"type":"object","properties":{"a":{"pattern":"(?=x)"},"b":{"pattern":"^x$"}}}`, `{"properties":{"a":{},"b":{"pattern":"^x$"}},"type":"object"}`, false},
		"deep":           {deep, `{"properties":{"a":` + strings.Repeat(`{"items":`, 39) + `{}` + strings.Repeat(`}`, 39) + `},"type":"object"}`, false},
		"not a schema":   {`{"type":"object","properties":7}`, openSchema, false},
		"wrong keyword":  {`{"type":"object","minProperties":"many"}`, `{"properties":{},"type":"object"}`, false},
		"large":          {`{"type":"object","properties":{"a":{"enum":["` + strings.Repeat(`x","`, 20_000) + `"]},"b":{"type":"string"}},"required":["b"]}`, `{"properties":{"a":{},"b":{"type":"string"}},"required":["b"],"type":"object"}`, false},
		"many laughs":    {laughs.String(), `{"properties":{"a":{},"b":{"type":"string"}},"type":"object"}`, false},
		"large texts":    {`{"type":"object","properties":{` + texts + `}}`, `{"properties":{` + brief + `},"type":"object"}`, false},
		"large parts":    {`{"type":"object","properties":{"a":{"type":"array","items":{"properties":{` + names + `}}}},"additionalProperties":false}`, `{"properties":{"a":{"type":"array"}},"type":"object"}`, false},
		"large in all":   {`{"type":"object","properties":{` + names + `}}`, openSchema, false},
		"hidden in text": {`{"type":"object","properties":{"a\u200b":{},"b":{"description":"\u202ehid"}}}`, `{"properties":{"b":{"description":"hid"}},"type":"object"}`, false},
		"a bad default":  {`{"type":"object","properties":{"a":{"type":"string","default":7}}}`, `{"properties":{"a":{"default":7,"type":"string"}},"type":"object"}`, false},
	} {
		var v any
		if err := json.Unmarshal([]byte(tc.in), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, wrap, cut := offeredSchema(v)
		if diff := cmp.Diff(tc.want, string(got)); diff != "" || wrap != tc.wrap || cut != cuts[name] {
			t.Errorf("%s: wrapped %t, cut %t, (-want +got)\n%s", name, wrap, cut, diff)
		}
	}
}

// FuzzOfferedSchema: whatever a server sends, what is offered is bounded, is
// the same every time, and checks arguments without end or panic.
func FuzzOfferedSchema(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}`,
		`{"type":["object","null"],"dependentSchemas":{"a":{"not":{"$ref":"#"}}},"unevaluatedProperties":false}`,
		`{"type":"object","patternProperties":{"(":{},"^a":{"$dynamicRef":"#x"}},"definitions":{"x":{"$anchor":"x"}}}`,
		`{"type":"array","items":[{"$ref":"#/definitions/a~1b"}],"definitions":{"a/b":{"enum":[1,null,{}]}}}`,
	} {
		f.Add(s, `{"a":{"a":[1,"x",null]}}`)
	}
	f.Fuzz(func(t *testing.T, schema, instance string) {
		defer disktest.Bounded(t, len(schema))()
		var v any
		if json.Unmarshal([]byte(schema), &v) != nil {
			return
		}
		got, _, _ := offeredSchema(v)
		if len(got) > maxSchema {
			t.Fatalf("%d bytes", len(got))
		}
		if again, _, _ := offeredSchema(v); string(again) != string(got) {
			t.Fatalf("%s and %s", got, again)
		}
		s := new(jsonschema.Schema)
		if err := json.Unmarshal(got, s); err != nil || s.Type != "object" {
			t.Fatalf("%s: %v", got, err)
		}
		r, err := s.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		var args map[string]any
		if json.Unmarshal([]byte(instance), &args) == nil {
			_ = r.Validate(args) // ends
		}
	})
}
