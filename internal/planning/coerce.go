package planning

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// coerce puts v into the form of the schema where its meaning is beyond doubt:
// "0.8" is a number, a text is a list of one, "Partially done" one of the words
// that are known. Fields that the schema does not know are left out, and so is
// what is optional and cannot be understood. ok says that v has the form now.
func (s *shape) coerce(v any) (_ any, ok bool) {
	switch s.Type {
	case "object":
		return s.toObject(v)
	case "array":
		return s.toList(v)
	case "string":
		return s.toText(v)
	case "number", "integer":
		return s.toNumber(v)
	case "boolean":
		return toBool(v)
	default:
		return v, true
	}
}

// toObject names the fields of an object as the schema does and coerces them.
func (s *shape) toObject(v any) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		if m = fromText(s.name, v); m == nil {
			return v, false
		}
	}
	m = s.rename(m)
	mend(s.name, m)
	required := map[string]bool{}
	for _, key := range s.Required {
		required[key] = true
	}
	out := make(map[string]any, len(m))
	for key, p := range s.Properties {
		if p.Const != "" {
			out[key] = p.Const // what kind it is, is decided already
			continue
		}
		value := m[key]
		if value == nil {
			// A list that is not there says nothing, but in a change: there it
			// says that the list stays.
			if p.Type == "array" && !required[key] && s.name != "revised_subtask" {
				out[key] = []any{}
			}
			continue
		}
		if value, ok := p.coerce(value); ok || required[key] {
			out[key] = value
		}
	}
	if s.name == "subtask" && out["complexity"] == nil { // not said, or in no word that is known
		out["complexity"] = "medium"
	}
	return out, true
}

// rename returns m with its fields named as the schema does: goalUnderstanding
// and "Goal Understanding" are goal_understanding. A field that has its right
// name wins over one that has nearly that.
func (s *shape) rename(m map[string]any) map[string]any {
	names := make(map[string]string, len(s.Properties))
	for name := range s.Properties {
		names[plain(name)] = name
	}
	for alias, name := range aliases[s.name] {
		names[plain(alias)] = name
	}
	out := make(map[string]any, len(m))
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		name := key
		if s.Properties[key] == nil {
			if known, ok := names[plain(key)]; ok {
				name = known
			}
		}
		if _, taken := out[name]; name == key || !taken && m[name] == nil {
			out[name] = m[key]
		}
	}
	return out
}

// plain is a name without what names are written differently in.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// toList makes a list of what stands for one.
func (s *shape) toList(v any) (any, bool) {
	var items []any
	switch v := v.(type) {
	case []any:
		items = v
	case string:
		if items = s.split(v); items == nil {
			return []any{}, true
		}
	case bool:
		return []any{}, true
	default:
		items = []any{v}
	}
	out := make([]any, 0, len(items))
	for _, item := range items {
		if inner, ok := item.([]any); ok && s.Items.Type == "string" { // groups
			for _, item := range inner {
				out = append(out, s.item(item))
			}
			continue
		}
		if text, ok := item.(string); item == nil || ok && s.name == idList && isNothing(text) {
			continue
		}
		out = append(out, s.item(item))
	}
	return out, true
}

// item coerces an entry of a list; one that cannot be stays as it is, for the
// validation to name.
func (s *shape) item(v any) any {
	v, _ = s.Items.coerce(v)
	return v
}

// bullet is what a line of a list begins with.
var bullet = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*(?:[-*•・]|\d+[.)])\s+`) })

// split makes the entries of a list out of a text: its lines, or ids with
// commas or arrows between them. It returns nil for "none".
func (s *shape) split(text string) []any {
	text = strings.TrimSpace(text)
	if isNothing(text) {
		return nil
	}
	var items []any
	add := func(part string) {
		if part = strings.TrimSpace(bullet().ReplaceAllString(part, "")); part != "" {
			items = append(items, part)
		}
	}
	if s.name == idList {
		for _, part := range strings.FieldsFunc(strings.ReplaceAll(text, "->", ","), func(r rune) bool { return strings.ContainsRune(",、，;→> \n\t", r) }) {
			add(part)
		}
		return items
	}
	lines := strings.Split(text, "\n")
	if len(lines) > 1 && !slices.ContainsFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" && !bullet().MatchString(l) }) {
		for _, line := range lines {
			add(line)
		}
		return items
	}
	return []any{text}
}

// isNothing reports whether a text says that there is nothing.
func isNothing(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .。-()[]\n\t")) {
	case "", "none", "null", "nil", "n/a", "nothing", "no", "なし", "無し", "特になし", "ありません":
		return true
	}
	return false
}

// toText makes a text of what stands for one.
func (s *shape) toText(v any) (any, bool) {
	text := ""
	switch v := v.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	case bool:
		text = strconv.FormatBool(v)
	case map[string]any:
		text = gist(v)
	case []any:
		lines := make([]string, 0, len(v))
		for _, item := range v {
			line, _ := (&shape{}).toText(item)
			lines = append(lines, line.(string))
		}
		text = strings.Join(lines, "\n")
	}
	if len(s.Enum) > 0 {
		return s.toWord(text)
	}
	return text, true
}

// gist is what an object says where a text was asked for: its one telling
// field, else all of it.
func gist(m map[string]any) string {
	for _, key := range []string{"description", "criterion", "text", "name", "issue", "item", "question", "title", "id", "task_id", "path", "location", "summary", "reason"} {
		if text, ok := m[key].(string); ok && (len(m) == 1 || key != "id" && key != "task_id" || m["description"] == nil) {
			return text
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	return string(data)
}

// toWord finds the word of the enumeration that a text stands for.
func (s *shape) toWord(text string) (any, bool) {
	word := strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" -_.!\t\n", r) }), "_")
	for _, known := range []string{word, synonyms[word], strings.TrimSuffix(word, "_action"), strings.TrimSuffix(word, "_subtask"), strings.TrimSuffix(word, "_task")} {
		if slices.Contains(s.Enum, known) {
			return known, true
		}
	}
	if known := enumSynonyms[s.Enum[0]][word]; slices.Contains(s.Enum, known) {
		return known, true
	}
	return text, false
}

// toNumber reads a number; one that should be a share of one or a percentage
// and is the other is converted.
func (s *shape) toNumber(v any) (any, bool) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSpace(v)
	default:
		return v, false
	}
	if s.Maximum == 1 {
		if share, ok := shares[strings.ToLower(text)]; ok {
			return share, true
		}
	}
	text, percent := trimPercent(text)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0.0, false // what it was is no use, and may be too long to compute with
	}
	switch {
	case s.Maximum == 1 && (percent || f > 1 && f <= 100):
		f /= 100
	case s.Maximum == 100 && !percent && f > 0 && f < 1:
		f *= 100
	}
	if s.Type == "integer" {
		if f != math.Trunc(f) || math.Abs(f) > 1<<31 {
			return f, false
		}
		return int(f), true
	}
	return f, true
}

// trimPercent takes the sign of a percentage, or the words around a level, off
// a number.
func trimPercent(text string) (number string, percent bool) {
	for _, sign := range []string{"%", "％", "percent"} {
		if before, ok := strings.CutSuffix(strings.ToLower(text), sign); ok {
			return strings.TrimSpace(before), true
		}
	}
	text = strings.TrimPrefix(text, "+")
	if after, ok := strings.CutPrefix(strings.ToLower(text), "level"); ok {
		text = strings.Trim(after, " _-:")
	}
	if before, ok := strings.CutSuffix(text, "/100"); ok {
		return before, true
	}
	return strings.TrimSuffix(text, "/1.0"), false
}

// toBool reads a truth value.
func toBool(v any) (any, bool) {
	text := ""
	switch v := v.(type) {
	case bool:
		return v, true
	case json.Number:
		text = v.String()
	case string:
		text = strings.ToLower(strings.Trim(v, " .!"))
	}
	switch text {
	case "true", "yes", "y", "1", "はい", "pass", "passed", "met", "satisfied", "done", "ok", "✅", "達成":
		return true, true
	case "false", "no", "n", "0", "いいえ", "none", "fail", "failed", "not met", "unmet", "not satisfied", "not done", "partial", "partially met", "❌", "未達成":
		return false, true
	}
	return v, false
}
