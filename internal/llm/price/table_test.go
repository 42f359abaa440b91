package price

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
)

func mustParse(t *testing.T, text string) *Table {
	t.Helper()
	table, err := Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestPriceOfAName(t *testing.T) {
	t.Parallel()
	table := mustParse(t, `
models:
  "p/model": {input: 1, output: 1}
  "p/model*": {input: 2, output: 2}
  "p/model-x*": {input: 3, output: 3}
  "p/*": {input: 4, output: 4}
  "q/q/deep": {input: 5, output: 5}
  "q/deep/q/x": {input: 6, output: 6}
  "a/claude-one-4.5": {input: 7, output: 7}
  "a/claude-two-4-5-20*": {input: 8, output: 8}
  "b/v1.5": {input: 9, output: 9}
`)
	for _, c := range []struct {
		provider, model string
		want            float64 // -1 is not known
	}{
		{"p", "model", 1}, {"p", "model2", 2}, {"p", "model-x", 3}, {"p", "model-xyz", 3}, {"p", "mode", 4}, {"p", "", 4},
		{"p", "p/model", 1}, {"p", "p/p/model-x1", 3}, {"p", "*", 4}, {"p", "model*", 2},
		{"q", "deep", 5}, {"q", "q/deep", 5}, {"q", "deep/q/x", 6}, {"q", "deeper", -1}, {"", "p/model", -1}, {"pp", "model", -1},
		{"a", "claude-one-4.5", 7}, {"a", "claude-one-4-5", 7}, {"a", "a/claude-one-4.5", 7}, {"a", "claude-two-4.5-20250929", 8}, {"a", "claude-two-4-5", -1},
		{"b", "v1.5", 9}, {"b", "v1-5", -1}, {"B", "v1.5", -1},
	} {
		p, ok := table.Price(c.provider, c.model, false)
		if ok != (c.want >= 0) || ok && p.Input != c.want {
			t.Errorf("%s %s: %v, %v; want %v", c.provider, c.model, p, ok, c.want)
		}
		q, ok := table.Price(c.provider, c.model, true)
		if !ok || q != p {
			t.Errorf("%s %s at a local endpoint: %v, %v", c.provider, c.model, q, ok)
		}
	}
	if p, ok := new(Table).Price("x", "y", true); !ok || p != (Price{}) {
		t.Errorf("%v, %v", p, ok)
	}
}

func TestBuiltin(t *testing.T) {
	t.Parallel()
	table := Builtin()
	if table.AsOf() == "" || len(table.entries) < 40 {
		t.Errorf("%d entries as of %q", len(table.entries), table.AsOf())
	}
	flat := func(in, cached, write, out float64) Price { return Price{Rates: Rates{in, cached, write, out}} }
	for _, c := range []struct {
		provider, model string
		want            Price
	}{
		{"openai", "gpt-4o", flat(2.5, 1.25, 2.5, 10)},
		{"openai", "gpt-4.1-2025-04-14", flat(2, 0.5, 2, 8)},
		{"openai", "gpt-5-mini", flat(0.25, 0.025, 0.25, 2)},
		{"anthropic", "claude-sonnet-4.5", flat(3, 0.3, 3.75, 15)},
		{"anthropic", "claude-sonnet-4-5", flat(3, 0.3, 3.75, 15)},
		{"anthropic", "claude-sonnet-4-5-20250929", flat(3, 0.3, 3.75, 15)},
		{"anthropic", "claude-sonnet-4-20250514", flat(3, 0.3, 3.75, 15)},
		{"anthropic", "claude-haiku-5.5", Price{Rates: Rates{0.1, 0.01, 0.125, 0.5}, Above: 100000, Long: Rates{0.5, 0.05, 0.625, 2.5}}},
	} {
		if p, ok := table.Price(c.provider, c.model, false); !ok || p != c.want {
			t.Errorf("%s %s: %v, %v", c.provider, c.model, p, ok)
		}
	}
	// What is sold at another price, or at none that is known.
	for _, name := range []string{
		"openai/gpt-4o-audio-preview", "openai/gpt-4o-2024-05-13", "openai/gpt-5-pro", "openai/gpt-5.5-pro", "openai/o3-pro", "openai/gpt-4",
		"openai/gpt-4.1-nano", "anthropic/claude-opus-4-9", "anthropic/claude-sonnet-6", "deepseek/deepseek-chat", "ollama/qwen3:30b", "openai/gpt-6.1-sol",
	} {
		provider, model, _ := strings.Cut(name, "/")
		if p, ok := table.Price(provider, model, false); ok {
			t.Errorf("%s costs %v", name, p)
		}
	}
	for key, e := range table.entries {
		for _, r := range []Rates{e.price.Rates, e.price.Long} {
			if r.CachedInput > r.Input || r.CacheWrite < r.Input || r.Output < r.Input || r.Output > 200 {
				t.Errorf("%s: %v is unlikely", key, r)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	under := mustParse(t, "# head\nas_of: \"2026-01-01\"\nmodels:\n  # one\n  \"p/a\": {input: 1, output: 1}\n  \"p/b\": {input: 1, output: 1}\n# foot")
	over := mustParse(t, "models:\n  \"p/p/b\": {input: 2, output: 2}\n  # mine\n  \"p/c\": {input: 2, output: 2}\n  \"p/a\": {input: 2, output: 2}\n")
	m := Merge(over, under)
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `# head
as_of: "2026-01-01"
models:

  # one
  "p/a": {input: 2, output: 2}
  "p/p/b": {input: 2, output: 2}

  # mine
  "p/c": {input: 2, output: 2}

  # foot
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	again := Merge(mustParse(t, want), m) // a print that is used as one's own
	if b.Reset(); again.Write(&b) != nil || b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	if len(under.entries) != 2 || under.entries["p/a"].price.Input != 1 || len(Merge(nil, under).entries) != 2 || len(Merge(over, nil).entries) != 3 || len(Merge(nil, nil).entries) != 0 {
		t.Error("a table was changed, or lost")
	}
	if got := Merge(mustParse(t, `as_of: 2026-02-02`), under).AsOf(); got != "2026-02-02" {
		t.Errorf("as of %q", got)
	}
}

// TestWriteKeepsAll: what is written reads as the same table, comments too.
func TestWriteKeepsAll(t *testing.T) {
	t.Parallel()
	for _, table := range []*Table{Builtin(), new(Table), mustParse(t, "models:\n  \"p/we\\\"ird\\\\*\": {input: 0, output: 0.000001}\n")} {
		checkWrite(t, table)
	}
	var b bytes.Buffer
	if err := Builtin().Write(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(builtin)) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(b.String(), line) {
			t.Errorf("missing: %s", line)
		}
	}
}

func checkWrite(t *testing.T, table *Table) {
	t.Helper()
	var first, second bytes.Buffer
	if err := table.Write(&first); err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yaml", first.Bytes())
	if err != nil {
		t.Fatalf("%v in\n%s", err, first.Bytes())
	}
	if err := again.Write(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() || again.asOf != table.asOf || len(again.entries) != len(table.entries) {
		t.Fatalf("written\n%s\nread and written\n%s", first.String(), second.String())
	}
	for key, e := range table.entries {
		if again.entries[key].price != e.price {
			t.Fatalf("%s: %v, then %v", key, e.price, again.entries[key].price)
		}
	}
}

func TestErrorsNameFileLineAndKey(t *testing.T) {
	t.Parallel()
	const head = "models:\n  \"p/m\": "
	for _, c := range []struct{ data, says string }{
		{"\xff", "t.yaml, line 1: the line is not UTF-8"},
		{"as_of: \"2026-01-01\"\n# \xff\n", "line 2: the line is not UTF-8"},
		{"models:\n  a: [\n", "line 2: this is not YAML"},
		{strings.Repeat("[", 100_000), "line 1: this is not YAML: what stands here is nested too deeply"},
		{"\n" + strings.Repeat("- ", 100_000), "line 2: this is not YAML: what stands here is nested too deeply"},
		{"- a", "line 1: one mapping"},
		{"models: {}\n---\nmodels: {}", "line 3: one mapping"},
		{"modles: {}", "line 1: the key modles is not known; these are: as_of, models"},
		{"models: {}\nmodels: {}", "line 2: models is named twice, before on line 1"},
		{"1: {}", "line 1: a key of models is not a text"},
		{"as_of: yesterday", "line 1: as_of must be a date"},
		{"as_of: \"2026-13-01\"", "line 1: as_of must be a date"},
		{"as_of: [1]", "line 1: as_of must be a date"},
		{"models: 5", "line 1: models must map"},
		{"models:\n  gpt-4o: {input: 1, output: 1}", "line 2: gpt-4o names no model"},
		{"models:\n  \"p/*x\": {input: 1, output: 1}", `line 2: p/*x names no model`},
		{"models:\n  \"p/\": {input: 1, output: 1}", "names no model"},
		{"models:\n  \"/m\": {input: 1, output: 1}", "names no model"},
		{"models:\n  \"p/p/\": {input: 1, output: 1}", "names no model"},
		{"models:\n  \"p/a b\": {input: 1, output: 1}", "names no model"},
		{"models:\n  \"p/\\x1b[31m\": {input: 1, output: 1}", `p/\x1b[31m names no model`},
		{"models:\n  \"p/" + strings.Repeat("x", 300) + "\": {input: 1, output: 1}", "x… names no model"},
		{head + "{input: 1, output: 1}\n\n  \"p/p/m\": {input: 1, output: 1}", "line 4: p/p/m is named twice, before on line 2"},
		{head + "3", "line 2: p/m must hold prices in the form {input: 3, output: 15}"},
		{head + "[1]", "p/m must hold prices"},
		{head + "{output: 1}", "line 2: p/m lacks the key input"},
		{head + "{input: 1}", "line 2: p/m lacks the key output"},
		{head + "\n    input: 1\n    outptu: 1", "line 4: the key p/m, outptu is not known; these are: input, cached_input, cache_write, output, long_prompt"},
		{head + "{input: 1, input: 2, output: 1}", "input is named twice"},
		{head + "\n    input: 1\n    output: -1", "line 4: p/m, output must be a number from 0 to 1000000"},
		{head + "{input: .nan, output: 1}", "p/m, input must be a number"},
		{head + "{input: .inf, output: 1}", "p/m, input must be a number"},
		{head + "{input: 1e300, output: 1}", "p/m, input must be a number"},
		{head + "{input: 1000001, output: 1}", "p/m, input must be a number"},
		{head + "{input: 99999999999999999999999, output: 1}", "p/m, input must be a number"},
		{head + "{input: \"3\", output: 1}", "p/m, input must be a number"},
		{head + "{input: , output: 1}", "p/m, input must be a number"},
		{head + "{input: &a 1, output: *a}", "p/m, input must be a number"},
		{head + "{input: 1, output: 1, long_prompt: 5}", "p/m, long_prompt must hold prices"},
		{head + "{input: 1, output: 1, long_prompt: {input: 1, output: 1}}", "p/m, long_prompt lacks the key above"},
		{head + "{input: 1, output: 1, long_prompt: {above: 1.5, input: 1, output: 1}}", "p/m, long_prompt, above must be a whole number"},
		{head + "{input: 1, output: 1, long_prompt: {above: 0, input: 1, output: 1}}", "above must be a whole number"},
		{head + "{input: 1, output: 1, long_prompt: {above: 5, output: 1}}", "p/m, long_prompt lacks the key input"},
		{head + "{input: 1, output: 1, above: 5}", "the key p/m, above is not known"},
		{"#" + strings.Repeat("x", maxFile), "larger than 1024 KiB"},
	} {
		_, err := Parse("t.yaml", []byte(c.data))
		var e *i18n.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "t.yaml") || strings.Contains(err.Error(), "%!") {
			t.Errorf("%.60q: got %v; want %s", c.data, err, c.says)
		} else if ja := i18n.Japanese.Error(err); strings.Contains(ja, "%!") || ja == err.Error() {
			t.Errorf("in Japanese: %s", ja)
		}
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "models:\n", "models: {}", "---\nmodels:\n...\n", "\uFEFFas_of: 2026-01-01\r\nmodels:\r\n"} {
		if table, err := Parse("t.yaml", []byte(text)); err != nil || len(table.entries) != 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
	table := mustParse(t, "{\"as_of\": \"2026-01-01\", \"models\": {\"p/m\": {\"input\": 1.23456789, \"output\": 2}}}")
	if p, _ := table.Price("p", "m", false); p != (Price{Rates: Rates{1.234568, 1.234568, 1.234568, 2}}) || table.AsOf() != "2026-01-01" {
		t.Errorf("as JSON: %v", p)
	}
	// Lines of signs in comments are no nesting.
	mustParse(t, "# "+strings.Repeat("-", 200)+"\nmodels: {}\n")
}

func TestLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "prices.yaml")
	_, err := Load(path)
	var e *i18n.Error
	if !errors.Is(err, os.ErrNotExist) || !errors.As(err, &e) || e.Key != "price.read" {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("#"), maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); !errors.As(err, &e) || e.Key != "price.too_large" {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, builtin, 0o600); err != nil {
		t.Fatal(err)
	}
	if table, err := Load(path); err != nil || len(table.entries) != len(Builtin().entries) {
		t.Errorf("got %v", err)
	}
	if _, err := Load("/dev/zero"); !errors.Is(err, disk.ErrNotPlain) || !errors.As(err, &e) || e.Key != "price.read" {
		t.Errorf("a device: %v", err)
	}
	if _, err := Load(t.TempDir()); !errors.As(err, &e) || e.Key != "price.read" {
		t.Errorf("a directory: %v", err)
	}
}

// FuzzParse: no input breaks the parser, its errors are texts, and what it takes
// is in range and writes as it reads.
func FuzzParse(f *testing.F) {
	f.Add(builtin[:600])
	f.Add([]byte("models:\n  # c\n  \"p/m*\": {input: 1, cached_input: 0.5, cache_write: 2, output: 3, long_prompt: {above: 7, input: 1, output: 2}}\n# end\n"))
	f.Add([]byte("as_of: 2026-01-01\nmodels: {\"a/b\": {input: 0x10, output: 1_000}}\n"))
	f.Add([]byte("models:\n  ? \"a/b\"\n  : {input: &x 1, output: *x}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer disktest.Bounded(t, len(data))()
		table, err := Parse("fuzz.yaml", data)
		if err != nil {
			var e *i18n.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), "fuzz.yaml") {
				t.Fatalf("%v", err)
			}
			return
		}
		for key, e := range table.entries {
			for _, r := range []Rates{e.price.Rates, e.price.Long} {
				for _, x := range []float64{r.Input, r.CachedInput, r.CacheWrite, r.Output} {
					if !(x >= 0 && x <= maxRate) {
						t.Fatalf("%s: %v", key, e.price)
					}
				}
			}
			provider, model, _ := strings.Cut(strings.TrimSuffix(key, "*"), "/")
			if _, ok := table.Price(provider, model, false); !ok {
				t.Fatalf("%s is not found", key)
			}
		}
		checkWrite(t, table)
	})
}
