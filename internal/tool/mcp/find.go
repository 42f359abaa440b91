package mcp

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"toritsugi/internal/tool"
)

//go:embed find_tools.md
var findPage string

//go:embed call_tool.md
var callPage string

// The names of the tools that stand for the deferred ones.
const (
	FindName = "find_tools"
	CallName = "call_tool"
)

const findSchema = `{"type":"object","properties":{` +
	`"query":{"type":"string","description":"Words that the name or description should have, or names of tools."},` +
	`"limit":{"type":"integer","minimum":1,"maximum":20,"description":"The most definitions to return; 5 if not given."}},` +
	`"required":["query"],"additionalProperties":false}`

const callSchema = `{"type":"object","properties":{` +
	`"name":{"type":"string","description":"Name of the tool, as find_tools gave it."},` +
	`"arguments":{"type":"object","description":"Its arguments, by its schema."}},` +
	`"required":["name"],"additionalProperties":false}`

// Tokens estimates what the definitions of tools cost in every request, at
// four bytes a token.
func Tokens(tools []tool.Tool) int {
	n := 0
	for _, t := range tools {
		d := t.Definition()
		n += len(d.Name) + len(d.Description) + len(d.Schema) + 40 // the words around them
	}
	return n / 4
}

// Defer defers those of tools whose names fit no pattern of core, where the
// definitions of those that rules allow cost more than budget tokens: they are
// callable and not told of; find_tools returns their definitions, and call_tool
// calls them. Within budget it returns tools as they are. What rules keep away is
// refused with the reason by the registry that gets the result, whose limits these
// are, and by call_tool. It fails where a registry would.
func Defer(limits tool.Limits, budget int, core []string, tools []tool.Tool, rules ...tool.Access) ([]tool.Tool, error) {
	var out, rest, allowed []tool.Tool
	for _, t := range tools {
		switch d := t.Definition(); {
		case matches(core, d.Name):
			out = append(out, t)
		default:
			rest = append(rest, t)
			if tool.Refusal(d, rules) == "" {
				allowed = append(allowed, t)
			}
		}
	}
	if len(allowed) == 0 || Tokens(allowed) <= budget {
		return tools, nil
	}
	reg, err := tool.NewRegistry(limits, rest...)
	if err == nil {
		reg, err = reg.Restrict(rules...)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range rest {
		out = append(out, deferred{t})
	}
	known := func(name string) bool {
		return slices.ContainsFunc(rest, func(t tool.Tool) bool { return t.Definition().Name == name })
	}
	return append(out, finder{index(reg.Definitions()), cmp.Or(limits.MaxOutput, tool.DefaultMaxOutput)}, caller{reg, known}), nil
}

// deferred is a tool that is called by its name and found by find_tools.
type deferred struct{ tool.Tool }

func (d deferred) Definition() tool.Definition {
	def := d.Tool.Definition()
	def.Deferred = true
	return def
}

type callArgs struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// caller is call_tool.
type caller struct {
	reg   *tool.Registry
	known func(name string) bool // also those that may not be called
}

func (c caller) Definition() tool.Definition {
	return tool.Definition{Name: CallName, Description: strings.TrimSpace(callPage), Schema: json.RawMessage(callSchema)}
}

func (c caller) Call(ctx context.Context, raw json.RawMessage) (tool.Result, error) {
	var a callArgs
	if err := json.Unmarshal(raw, &a); err != nil {
		return tool.Failf("The arguments of %s cannot be read: %v.", CallName, err), nil
	}
	if !c.known(a.Name) {
		return tool.Failf("There is no tool named %q here. Look for it with %s; tools that are listed are called by their own names.", clip(a.Name, 100), FindName), nil
	}
	return c.reg.Call(ctx, a.Name, string(a.Arguments))
}

// finder is find_tools.
type finder struct {
	entries []entry
	most    int // bytes of a result
}

// entry is a tool with the words it is found by.
type entry struct {
	def         tool.Definition
	name, words []string
}

func index(defs []tool.Definition) []entry {
	all := make([]entry, len(defs))
	for i, d := range defs {
		all[i] = entry{def: d, name: words(d.Name), words: words(d.Description + " " + string(d.Schema))}
	}
	return all
}

// words splits at everything but letters and digits, and at the humps of
// camelCase; each word is given in lower case, once.
func words(s string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			out = append(out, strings.ToLower(b.String()))
			b.Reset()
		}
	}
	low := false
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			low = false
			continue
		case low && unicode.IsUpper(r):
			flush()
		}
		low = unicode.IsLower(r)
		b.WriteRune(r)
	}
	flush()
	slices.Sort(out)
	return slices.Compact(out)
}

// score is how well the words of a query fit: a word of the name counts more
// than a part of it, and that more than a word of the description.
func (e entry) score(query []string) int {
	n := 0
	for _, q := range query {
		switch {
		case has(e.name, q):
			n += 8
		case len(q) > 2 && slices.ContainsFunc(e.name, func(w string) bool { return strings.Contains(w, q) || len(w) > 2 && strings.HasPrefix(q, w) }):
			n += 4
		}
		switch {
		case has(e.words, q):
			n += 2
		case len(q) > 3 && slices.ContainsFunc(e.words, func(w string) bool { return strings.HasPrefix(w, q) }):
			n++
		}
	}
	return n
}

func has(sorted []string, w string) bool {
	_, ok := slices.BinarySearch(sorted, w)
	return ok
}

// Definition implements tool.Tool.
func (f finder) Definition() tool.Definition {
	return tool.Definition{Name: FindName, Description: strings.TrimSpace(findPage), Schema: json.RawMessage(findSchema), ReadOnly: true}
}

const (
	defaultFound = 5
	maxQuery     = 50  // words
	maxNamed     = 200 // names told where nothing was found
	maxHead      = 100 // bytes of the line above what was found
)

// Call implements tool.Tool. The same query always gets the same answer.
func (f finder) Call(_ context.Context, raw json.RawMessage) (tool.Result, error) {
	var a struct {
		Query string  `json:"query"`
		Limit float64 `json:"limit"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return tool.Failf("The arguments of %s cannot be read: %v.", FindName, err), nil
	}
	found := f.search(a.Query)
	if len(found) == 0 {
		return tool.Text(f.names()), nil
	}
	show := min(cmp.Or(int(a.Limit), defaultFound), len(found))
	var b strings.Builder
	for i, d := range found[:show] {
		note := ""
		if d.ReadOnly {
			note = " (changes nothing)"
		}
		one := fmt.Sprintf("\n%s%s\n%s\nArguments: %s\n", d.Name, note, strings.TrimSpace(d.Description), d.Schema)
		if i > 0 && b.Len()+len(one) > f.most-maxHead {
			show = i
			break
		}
		b.WriteString(one)
	}
	head := fmt.Sprintf("%d of %d tools match", len(found), len(f.entries))
	if show < len(found) {
		head += fmt.Sprintf("; the best %d are shown", show)
	}
	return tool.Text(head + ". Call one with " + CallName + ".\n" + b.String()), nil
}

// search returns the definitions that fit, the best first.
func (f finder) search(query string) []tool.Definition {
	type hit struct {
		def   tool.Definition
		score int
	}
	exact := strings.FieldsFunc(query, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	wanted := words(query)
	wanted = wanted[:min(len(wanted), maxQuery)]
	var hits []hit
	for _, e := range f.entries {
		n := e.score(wanted)
		if slices.Contains(exact, e.def.Name) {
			n += 1000
		}
		if n > 0 {
			hits = append(hits, hit{e.def, n})
		}
	}
	// The entries are sorted by name, and stay so where they fit equally well.
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	defs := make([]tool.Definition, len(hits))
	for i, h := range hits {
		defs[i] = h.def
	}
	return defs
}

func (f finder) names() string {
	var b strings.Builder
	fmt.Fprintf(&b, "No tool matches. The %d tools are:\n", len(f.entries))
	for i, e := range f.entries {
		if i == maxNamed {
			fmt.Fprintf(&b, "and %d more; search with other words.\n", len(f.entries)-i)
			break
		}
		b.WriteString(e.def.Name + "\n")
	}
	return b.String()
}
