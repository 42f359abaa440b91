package price

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"toritsugi/internal/document"
	"toritsugi/internal/i18n"
)

const (
	maxFile = 1 << 20 // bytes
	maxName = 256     // bytes of a model's name
)

// The keys of a table.
const (
	keyAsOf   = "as_of"
	keyModels = "models"
	keyInput  = "input"
	keyCached = "cached_input"
	keyWrite  = "cache_write"
	keyOutput = "output"
	keyLong   = "long_prompt"
	keyAbove  = "above"
)

// Parse reads a table:
//
//	as_of: "YYYY-MM-DD"                      # the day of these prices; optional
//	models:
//	  "PROVIDER/MODEL": {input: 3, cached_input: 0.3, cache_write: 3.75, output: 15}
//	  "PROVIDER/BEGINNING*": {input: 1, output: 5,
//	    long_prompt: {above: 100000, input: 2, output: 10}}
//
// The prices are US dollars per million tokens, from 0 to 1,000,000, kept to
// six decimals; cached_input and cache_write are as input where they are not
// given. long_prompt, which is optional, are the prices of all tokens of a call
// whose prompt is longer than above tokens. name stands for the file in errors,
// which are i18n errors that name the line and the key. A file of more than
// 1 MiB, an unknown key and a model that is named twice are errors.
func Parse(name string, data []byte) (*Table, error) {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if len(data) > maxFile {
		return nil, i18n.E("price.too_large", name, maxFile>>10)
	}
	// The YAML parser's line numbers are wrong after a carriage return.
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	p := &parse{name: name, lines: strings.Split(string(data), "\n"), table: &Table{entries: map[string]entry{}}}
	body, err := p.document(data)
	if err != nil {
		return nil, err
	}
	p.table.header = p.comments(0)
	if body == nil {
		return p.table, nil
	}
	if err := p.top(body); err != nil {
		return nil, err
	}
	return p.table, nil
}

type parse struct {
	name  string
	lines []string
	table *Table
	last  int // the last line that a key stands on
}

// fail is an error on a line, from 1.
func (p *parse) fail(line int, key string, args ...any) error {
	return i18n.E("price.syntax", p.name, line, i18n.E(key, args...))
}

// document returns what the file holds, nil where that is nothing.
func (p *parse) document(data []byte) (ast.Node, error) {
	for i, line := range p.lines {
		if !utf8.ValidString(line) {
			return nil, p.fail(i+1, "price.encoding")
		}
	}
	file, err := document.Parse(data, parser.AllowDuplicateMapKey())
	if at := new(document.Error); errors.As(err, &at) {
		return nil, p.fail(at.Line, "price.yaml", at.Why)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc == nil || isNothing(doc.Body) {
			continue
		}
		if body != nil {
			return nil, p.fail(document.Line(doc.Body), "price.top")
		}
		body = doc.Body
	}
	return body, nil
}

func isNothing(n ast.Node) bool {
	switch n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode, *ast.DirectiveNode:
		return true
	}
	return false
}

// pair is a key of a mapping with its value.
type pair struct {
	key   string
	line  int
	value ast.Node
}

// pairs returns the pairs of a mapping whose keys are texts, each once, and
// false where n is no mapping. where names the mapping.
func (p *parse) pairs(n ast.Node, where string) (all []pair, ok bool, err error) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, false, nil
	}
	seen := map[string]int{}
	for _, v := range values {
		line := document.Line(v.Key)
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			return nil, true, p.fail(line, "price.key", where)
		}
		if first, twice := seen[key.Value]; twice {
			return nil, true, p.fail(line, "price.duplicate", shown(key.Value), first)
		}
		seen[key.Value] = line
		all = append(all, pair{key.Value, line, v.Value})
	}
	return all, true, nil
}

// top reads the outermost mapping.
func (p *parse) top(body ast.Node) error {
	pairs, ok, err := p.pairs(body, keyModels)
	if err != nil {
		return err
	}
	if !ok {
		return p.fail(document.Line(body), "price.top")
	}
	for _, kv := range pairs {
		p.last = max(p.last, kv.line)
		switch kv.key {
		case keyAsOf:
			text, ok := kv.value.(*ast.StringNode)
			if ok {
				_, err := time.Parse(time.DateOnly, text.Value)
				ok = err == nil
			}
			if !ok {
				return p.fail(kv.line, "price.date", keyAsOf)
			}
			p.table.asOf = text.Value
		case keyModels:
			if err := p.models(kv); err != nil {
				return err
			}
		default:
			return p.fail(kv.line, "price.unknown", shown(kv.key), keyAsOf+", "+keyModels)
		}
	}
	p.table.footer = p.comments(p.last)
	return nil
}

func (p *parse) models(models pair) error {
	if isNothing(models.value) {
		return nil
	}
	pairs, ok, err := p.pairs(models.value, keyModels)
	if err != nil {
		return err
	}
	if !ok {
		return p.fail(models.line, "price.models", keyModels)
	}
	lines := map[string]int{}
	for _, kv := range pairs {
		key, ok := entryKey(kv.key)
		if !ok {
			return p.fail(kv.line, "price.model", shown(kv.key))
		}
		if first, twice := lines[key]; twice {
			return p.fail(kv.line, "price.duplicate", shown(kv.key), first)
		}
		lines[key] = kv.line
		p.last = max(p.last, kv.line)
		price, err := p.price(kv)
		if err != nil {
			return err
		}
		p.table.entries[key] = entry{name: kv.key, price: price, comments: p.above(kv.line)}
		p.table.order = append(p.table.order, key)
	}
	return nil
}

// entryKey is the name of an entry as names are compared, false where it is
// none.
func entryKey(name string) (string, bool) {
	provider, model, ok := strings.Cut(name, "/")
	if !ok || provider == "" || model == "" || len(name) > maxName || strings.Contains(name[:len(name)-1], "*") {
		return "", false
	}
	for _, r := range name {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == utf8.RuneError {
			return "", false
		}
	}
	if model = strings.TrimPrefix(canonical(provider, model), provider+"/"); model == "" {
		return "", false
	}
	return provider + "/" + model, true
}

func (p *parse) price(model pair) (Price, error) {
	var price Price
	var long *pair
	where := shown(model.key)
	rest, err := p.rates(model, where, &price.Rates, keyLong)
	if err != nil {
		return price, err
	}
	for i := range rest {
		long = &rest[i]
	}
	if long == nil {
		return price, nil
	}
	where += ", " + keyLong
	rest, err = p.rates(*long, where, &price.Long, keyAbove)
	if err != nil {
		return price, err
	}
	if len(rest) == 0 {
		return price, p.fail(long.line, "price.missing", where, keyAbove)
	}
	n, ok := numberOf(rest[0].value)
	if !ok || n < 1 || n > math.MaxInt32 || n != math.Trunc(n) {
		return price, p.fail(rest[0].line, "price.above", where+", "+keyAbove)
	}
	price.Above = int(n)
	return price, nil
}

// rates reads the prices of a mapping and returns the pair named more, which is
// none of them.
func (p *parse) rates(from pair, where string, r *Rates, more string) (rest []pair, err error) {
	pairs, ok, err := p.pairs(from.value, where)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, p.fail(from.line, "price.entry", where, keyInput, keyOutput)
	}
	fields := map[string]*float64{keyInput: &r.Input, keyCached: &r.CachedInput, keyWrite: &r.CacheWrite, keyOutput: &r.Output}
	given := map[string]bool{}
	for _, kv := range pairs {
		p.last = max(p.last, kv.line)
		field, known := fields[kv.key]
		switch {
		case kv.key == more:
			rest = append(rest, kv)
			continue
		case !known:
			all := strings.Join([]string{keyInput, keyCached, keyWrite, keyOutput, more}, ", ")
			return nil, p.fail(kv.line, "price.unknown", where+", "+shown(kv.key), all)
		}
		n, ok := numberOf(kv.value)
		if !ok || !(n >= 0 && n <= maxRate) {
			return nil, p.fail(kv.line, "price.number", where+", "+kv.key, int(maxRate))
		}
		*field = math.Round(n*1e6) / 1e6
		given[kv.key] = true
	}
	for _, key := range []string{keyInput, keyOutput} {
		if !given[key] {
			return nil, p.fail(from.line, "price.missing", where, key)
		}
	}
	for _, key := range []string{keyCached, keyWrite} {
		if !given[key] {
			*fields[key] = r.Input
		}
	}
	return rest, nil
}

// numberOf is the number that a node is; a text is none.
func numberOf(n ast.Node) (float64, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		switch v := n.Value.(type) {
		case int64:
			return float64(v), true
		case uint64:
			return float64(v), true
		}
	case *ast.FloatNode:
		return n.Value, !math.IsInf(n.Value, 0) && !math.IsNaN(n.Value)
	}
	return 0, false
}

// shown is a key as errors show it: short and on one line.
func shown(key string) string {
	if len(key) > 80 {
		key = key[:80] + "…"
	}
	s := strconv.Quote(key)
	return s[1 : len(s)-1]
}

// comments returns the comments that follow line n, from 1 (0 for the head of
// the file), up to the first line that is something else.
func (p *parse) comments(n int) []string {
	var all []string
	for ; n < len(p.lines); n++ {
		line := strings.TrimSpace(p.lines[n])
		if line != "" && line[0] != '#' {
			break
		}
		if line != "" {
			all = append(all, line)
		}
	}
	return all
}

// above returns the comments on the lines before line n, from 1.
func (p *parse) above(n int) []string {
	first := n - 1
	for first > 0 {
		line := strings.TrimSpace(p.lines[first-1])
		if line == "" || line[0] != '#' {
			break
		}
		first--
	}
	var all []string
	for _, line := range p.lines[first : n-1] {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}
