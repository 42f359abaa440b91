package planning

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxViolations is how many violations the model is told at once.
const maxViolations = 20

// maxExcerpt is how much of an answer an error shows, in runes.
const maxExcerpt = 200

// ContractError says what is wrong with an answer of the model: it is no JSON,
// breaks its schema, or makes no sense as a plan.
type ContractError struct {
	Kind       AnswerKind
	Violations []Violation // at least one
	Excerpt    string      // how the answer begins
}

// Violation is one thing that is wrong.
type Violation struct {
	Path    string // JSON path: $.task_decomposition.subtasks[2].id
	Problem string // in English
}

func (v Violation) String() string {
	if v.Path == "" || v.Path == "$" {
		return v.Problem
	}
	return v.Path + ": " + v.Problem
}

// Error names the violations in one line, and how the answer begins.
func (e *ContractError) Error() string {
	all := make([]string, 0, len(e.Violations))
	for _, v := range e.listed() {
		all = append(all, v.String())
	}
	text := fmt.Sprintf("the answer is no %s: %s", strings.ReplaceAll(string(e.Kind), "_", " "), strings.Join(all, "; "))
	if e.Excerpt != "" {
		text += fmt.Sprintf(" (it begins %q)", e.Excerpt)
	}
	return text
}

// Retry lists the violations for the model that is to answer again, a line
// each.
func (e *ContractError) Retry() string {
	var b strings.Builder
	for _, v := range e.listed() {
		fmt.Fprintf(&b, "- %s\n", v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// listed returns the first violations, and how many there are beside them.
func (e *ContractError) listed() []Violation {
	if len(e.Violations) <= maxViolations {
		return e.Violations
	}
	more := Violation{Problem: fmt.Sprintf("and %d more", len(e.Violations)-maxViolations)}
	return append(e.Violations[:maxViolations:maxViolations], more)
}

// excerpt is how a text begins, on one line.
func excerpt(text string) string {
	text = text[:min(len(text), 8*maxExcerpt)]
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if utf8.RuneCountInString(text) > maxExcerpt {
		text = string([]rune(text)[:maxExcerpt]) + "…"
	}
	return text
}

// violations lists where v breaks the schema.
func (s *shape) violations(v any) []Violation {
	all := s.check(nil, "$", v)
	slices.SortStableFunc(all, func(a, b Violation) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// check appends what is wrong with v, which stands at path.
func (s *shape) check(all []Violation, path string, v any) []Violation {
	wrong := func(format string, args ...any) { all = append(all, Violation{path, fmt.Sprintf(format, args...)}) }
	if s.Const != "" && v != any(s.Const) {
		wrong("expected %q", s.Const)
		return all
	}
	if got := typeOf(v); s.Type != "" && got != s.Type && (s.Type != "number" || got != "integer") {
		wrong("expected %s, found %s", s.Type, got)
		return all
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				wrong("missing: %s", name)
			}
		}
		for name, p := range s.Properties {
			if value, ok := v[name]; ok {
				all = p.check(all, path+"."+name, value)
			}
		}
	case []any:
		if len(v) < s.MinItems {
			wrong("expected at least %d, found %d", s.MinItems, len(v))
		}
		if s.Items == nil {
			break
		}
		for i, item := range v {
			all = s.Items.check(all, fmt.Sprintf("%s[%d]", path, i), item)
		}
	case string:
		switch {
		case len(s.Enum) > 0 && !slices.Contains(s.Enum, v):
			wrong("expected one of %s, found %q", strings.Join(s.Enum, ", "), excerpt(v))
		case utf8.RuneCountInString(v) < s.MinLength:
			wrong("must not be empty")
		}
	case int:
		all = s.checkNumber(all, path, float64(v))
	case float64:
		all = s.checkNumber(all, path, v)
	}
	return all
}

func (s *shape) checkNumber(all []Violation, path string, f float64) []Violation {
	switch {
	case s.Minimum != nil && f < *s.Minimum:
		all = append(all, Violation{path, fmt.Sprintf("expected at least %g, found %g", *s.Minimum, f)})
	case s.Maximum != 0 && f > s.Maximum:
		all = append(all, Violation{path, fmt.Sprintf("expected at most %g, found %g", s.Maximum, f)})
	}
	return all
}

// typeOf is the type of a decoded value, in the words of JSON Schema.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case int:
		return "integer"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case json.Number:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}
