package routing

import (
	"cmp"
	_ "embed" // the shipped dictionary
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"toritsugi/internal/document"
	"toritsugi/internal/i18n"
)

//go:embed dictionary.yaml
var shipped []byte

// The bounds of a dictionary.
const (
	maxRules = 1000
	maxWords = 5000 // of one item
	maxWord  = 200  // bytes
)

// maxFragment is the longest piece of a message in a Hit, in characters.
const maxFragment = 80

// Hit is the rule that a message meets.
type Hit struct {
	Rule, Label string
	Route       Route
	Fragment    string // of the message, at most 80 characters; "" where there is none to show
}

// Dictionary is a set of rules, immutable (spec/facts §2.4).
type Dictionary struct {
	rules []rule // by priority
	words matcher
}

// rule is one rule, ready to be tried.
type rule struct {
	name, label string
	route       Route
	all         bool // of its items; else any
	items       []item
	unless      []item // none of which may hold
}

// item is one test: a set of words, an expression or a kind.
type item struct {
	words  int // number of a set, -1 for none
	regexp *regexp.Regexp
	kind   func(*message) (fragment string, ok bool)
}

// The form of the file.
type (
	fileForm struct {
		Version any        `yaml:"version"`
		Notes   []string   `yaml:"notes"`
		Routes  []string   `yaml:"routes"`
		Rules   []ruleForm `yaml:"rules"`
	}
	ruleForm struct {
		Name     string     `yaml:"name"`
		Route    string     `yaml:"route"`
		Priority int        `yaml:"priority"`
		Match    matchForm  `yaml:"match"`
		Unless   []itemForm `yaml:"unless"`
		Label    string     `yaml:"evidence_label"`
	}
	matchForm struct {
		Any []itemForm `yaml:"any"`
		All []itemForm `yaml:"all"`
	}
	itemForm struct {
		Words  []string `yaml:"words"`
		Except []string `yaml:"except"` // longer words that the words do not count in
		Regexp string   `yaml:"regexp"`
		Kind   string   `yaml:"kind"`
	}
)

// ParseDictionary reads a dictionary; file names it in errors, which are *i18n.Error. Its
// routes are those that its rules may name; none are all.
func ParseDictionary(file string, data []byte) (*Dictionary, error) {
	f, err := readForm(file, data)
	if err != nil {
		return nil, err
	}
	if len(f.Rules) == 0 || len(f.Rules) > maxRules {
		return nil, i18n.E("routing.rules", file, maxRules, len(f.Rules))
	}
	d := &Dictionary{}
	slices.SortStableFunc(f.Rules, func(a, b ruleForm) int { return cmp.Compare(b.Priority, a.Priority) })
	seen := map[string]bool{}
	for i, form := range f.Rules {
		if form.Name == "" || seen[form.Name] {
			return nil, i18n.E("routing.rule_name", file, i+1, form.Name)
		}
		seen[form.Name] = true
		r, err := d.compile(form, f.Routes)
		if err != nil {
			return nil, i18n.E("routing.rule", file, form.Name, err)
		}
		d.rules = append(d.rules, r)
	}
	return d, nil
}

func readForm(file string, data []byte) (f fileForm, err error) {
	if !utf8.Valid(data) {
		return f, i18n.E("routing.syntax", file, 1, i18n.E("policy.not_utf8"))
	}
	tree, err := document.Parse(data)
	if at := new(document.Error); errors.As(err, &at) {
		return f, i18n.E("routing.syntax", file, at.Line, at.Why)
	}
	var body ast.Node
	if len(tree.Docs) == 1 {
		body = tree.Docs[0].Body
	}
	if body == nil {
		return f, i18n.E("routing.syntax", file, 1, i18n.E("routing.not_dictionary"))
	}
	if err := yaml.NodeToValue(body, &f, yaml.Strict()); err != nil {
		why := document.Explain(err)
		return f, i18n.E("routing.syntax", file, why.Line, fmt.Sprint(why.Why))
	}
	return f, nil
}

// compile makes a rule ready; its error says what is wrong with it.
func (d *Dictionary) compile(form ruleForm, allowed []string) (r rule, err error) {
	route, ok := ParseRoute(form.Route)
	if !ok || len(allowed) > 0 && !slices.Contains(allowed, string(route)) {
		return r, i18n.E("routing.rule_route", form.Route)
	}
	r = rule{name: form.Name, label: cmp.Or(form.Label, form.Name), route: route, all: len(form.Match.All) > 0}
	if r.all == (len(form.Match.Any) > 0) {
		return r, i18n.E("routing.rule_match")
	}
	for _, it := range slices.Concat(form.Match.Any, form.Match.All) {
		made, err := d.item(it)
		if err != nil {
			return r, err
		}
		r.items = append(r.items, made)
	}
	for _, it := range form.Unless {
		made, err := d.item(it)
		if err != nil {
			return r, err
		}
		r.unless = append(r.unless, made)
	}
	return r, nil
}

func (d *Dictionary) item(form itemForm) (item, error) {
	given := 0
	for _, is := range []bool{len(form.Words) > 0, form.Regexp != "", form.Kind != ""} {
		if is {
			given++
		}
	}
	if given != 1 || len(form.Except) > 0 && len(form.Words) == 0 {
		return item{}, i18n.E("routing.rule_item")
	}
	switch {
	case form.Kind != "":
		kind, ok := kinds[form.Kind]
		if !ok {
			return item{}, i18n.E("routing.rule_kind", form.Kind, strings.Join(Kinds(), ", "))
		}
		return item{-1, nil, kind}, nil
	case form.Regexp != "":
		re, err := regexp.Compile("(?m)" + form.Regexp)
		if err != nil {
			return item{}, i18n.E("routing.rule_regexp", form.Regexp, err)
		}
		if re.MatchString("") {
			return item{}, i18n.E("routing.rule_empty", form.Regexp)
		}
		return item{-1, re, nil}, nil
	}
	if len(form.Words) > maxWords || len(form.Except) > maxWords {
		return item{}, i18n.E("routing.rule_words", maxWords, maxWord)
	}
	for _, w := range slices.Concat(form.Words, form.Except) {
		if strings.TrimSpace(w) == "" || len(w) > maxWord {
			return item{}, i18n.E("routing.rule_words", maxWords, maxWord)
		}
	}
	return item{d.words.add(form.Words, form.Except), nil, nil}, nil
}

// Match returns the first rule that text meets, in the order of priority.
func (d *Dictionary) Match(text string) (Hit, bool) {
	m := newMessage(text)
	words := d.words.find(m.folded)
	for i := range d.rules {
		r := &d.rules[i]
		if fragment, ok := r.meets(m, words); ok && !r.excused(m, words) {
			return Hit{r.name, r.label, r.route, clipped(fragment)}, true
		}
	}
	return Hit{}, false
}

// meets reports whether a message meets a rule, and by what: of all the first.
func (r *rule) meets(m *message, words []span) (fragment string, ok bool) {
	for i := range r.items {
		piece, hit := r.items[i].meets(m, words)
		switch {
		case hit && !r.all:
			return piece, true
		case !hit && r.all:
			return "", false
		}
		fragment = cmp.Or(fragment, piece)
	}
	return fragment, r.all
}

// excused reports whether a rule that a message meets does not hold all the same.
func (r *rule) excused(m *message, words []span) bool {
	for i := range r.unless {
		if _, ok := r.unless[i].meets(m, words); ok {
			return true
		}
	}
	return false
}

func (t *item) meets(m *message, words []span) (string, bool) {
	switch {
	case t.kind != nil:
		return t.kind(m)
	case t.regexp != nil:
		at := t.regexp.FindStringIndex(m.plain)
		if at == nil {
			return "", false
		}
		return m.plain[at[0]:at[1]], true
	case words[t.words].end > 0:
		return m.piece(words[t.words]), true
	}
	return "", false
}

// clipped is the first line of a piece, in at most maxFragment characters.
func clipped(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return cutRunes(strings.TrimRight(s, "\r"), maxFragment)
}
