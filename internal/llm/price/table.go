package price

import (
	"bytes"
	"cmp"
	_ "embed" // the built-in prices
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

//go:embed prices.yaml
var builtin []byte

// Table holds the prices of models. It does not change once it was made.
type Table struct {
	asOf    string
	header  []string // comments at the head of the file, with their marks
	footer  []string // and behind the last entry
	entries map[string]entry
	order   []string // the keys of entries, as the files list them
}

// entry is the price of one model, or of all whose names begin alike.
type entry struct {
	name     string // as the file writes it
	price    Price
	comments []string
}

// Builtin returns the prices that were known when this program was made.
func Builtin() *Table {
	t, err := Parse("prices.yaml", builtin)
	if err != nil {
		panic(err) // the file is part of the program, and a test parses it
	}
	return t
}

// Load reads the table at path; see Parse.
func Load(path string) (*Table, error) {
	data, err := disk.Read(path, maxFile)
	if errors.As(err, new(*disk.TooLargeError)) {
		return nil, i18n.E("price.too_large", path, maxFile>>10)
	}
	if err != nil {
		return nil, i18n.E("price.read", err)
	}
	return Parse(path, data)
}

// AsOf is the day whose prices these are, YYYY-MM-DD, "" where the file does
// not say.
func (t *Table) AsOf() string { return t.asOf }

// Merge returns a table with the entries of both; where both have one of the
// same name, that of over counts. Either may be nil.
func Merge(over, under *Table) *Table {
	over, under = cmp.Or(over, &Table{}), cmp.Or(under, &Table{})
	t := &Table{asOf: cmp.Or(over.asOf, under.asOf), header: under.header, footer: slices.Clone(under.footer),
		entries: make(map[string]entry, len(over.entries)+len(under.entries)), order: slices.Clone(under.order)}
	if !slices.Equal(over.footer, under.footer) { // as of a file that began as a print of the other
		t.footer = append(t.footer, over.footer...)
	}
	if len(under.header) == 0 {
		t.header = over.header
	}
	maps.Copy(t.entries, under.entries)
	for _, key := range over.order {
		e := over.entries[key]
		old, known := under.entries[key]
		if !known {
			t.order = append(t.order, key)
		} else if len(e.comments) == 0 {
			e.comments = old.comments
		}
		t.entries[key] = e
	}
	return t
}

// Price returns the price of a model and whether it is known: that of its own
// entry, or else of the longest beginning that ends in *. A model of a local
// endpoint costs nothing unless the table prices it.
func (t *Table) Price(provider, model string, local bool) (Price, bool) {
	name := canonical(provider, model)
	if e, ok := t.entries[name]; ok && !strings.HasSuffix(name, "*") {
		return e.price, true
	}
	for n := len(name); n > 0; n-- {
		if e, ok := t.entries[name[:n]+"*"]; ok {
			return e.price, true
		}
	}
	return Price{}, local
}

// canonical is the one form of a model's name in which names are compared. A
// model is often named with its provider once more (ollama/ollama/x), and a
// Claude both by its product name (claude-sonnet-4.5) and by the API's
// (claude-sonnet-4-5).
func canonical(provider, model string) string {
	for {
		rest, doubled := strings.CutPrefix(model, provider+"/")
		if !doubled || provider == "" {
			break
		}
		model = rest
	}
	if strings.HasPrefix(model, "claude-") {
		model = strings.ReplaceAll(model, ".", "-")
	}
	return provider + "/" + model
}

// Write writes the table as Parse reads it, with its comments.
func (t *Table) Write(w io.Writer) error {
	b := new(bytes.Buffer)
	for _, line := range t.header {
		fmt.Fprintln(b, line)
	}
	if t.asOf != "" {
		fmt.Fprintf(b, "as_of: %q\n", t.asOf)
	}
	if len(t.order) == 0 {
		fmt.Fprintln(b, "models: {}")
	} else {
		fmt.Fprintln(b, "models:")
	}
	for _, key := range t.order {
		e := t.entries[key]
		if len(e.comments) > 0 {
			fmt.Fprintln(b)
		}
		for _, line := range e.comments {
			fmt.Fprintln(b, "  "+line)
		}
		fmt.Fprintf(b, "  %q: {%s}\n", e.name, e.price) // names hold only what is shown as it is
	}
	if len(t.footer) > 0 {
		fmt.Fprintln(b)
	}
	for _, line := range t.footer {
		fmt.Fprintln(b, "  "+line)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// String is the price as the fields of a YAML mapping.
func (p Price) String() string {
	s := p.Rates.String()
	if p.Above > 0 {
		s += fmt.Sprintf(", %s: {%s: %d, %s}", keyLong, keyAbove, p.Above, p.Long)
	}
	return s
}

// String is the rates as the fields of a YAML mapping, without those that are
// as the price of input.
func (r Rates) String() string {
	s := keyInput + ": " + number(r.Input)
	if r.CachedInput != r.Input {
		s += ", " + keyCached + ": " + number(r.CachedInput)
	}
	if r.CacheWrite != r.Input {
		s += ", " + keyWrite + ": " + number(r.CacheWrite)
	}
	return s + ", " + keyOutput + ": " + number(r.Output)
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
