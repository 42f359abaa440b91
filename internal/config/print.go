package config

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/redact"
)

// hidden stands where a secret would.
const hidden = "********"

// Print writes the effective configuration as YAML in the order of the keys,
// each with the place its value came from. Secrets are hidden; all else, read
// by Parse, gives the same values again.
func (c *Config) Print(w io.Writer) error {
	pr := &printer{schema: newSchema(), config: c, secrets: redact.New(c.meta.secrets, c.Security.Regexps())}
	pr.section("", 0)
	if _, err := w.Write(pr.out.Bytes()); err != nil {
		return fmt.Errorf("print configuration: %w", err)
	}
	return nil
}

type printer struct {
	schema  *schema
	config  *Config
	secrets *redact.Sanitizer
	out     bytes.Buffer
}

// text is a text of the settings as YAML, without the secrets that are known, or
// look like one, wherever in it they stand; expand undoes what reading it would do.
func (pr *printer) text(s string, expand bool) string {
	s = pr.secrets.Hide(s, hidden)
	if expand {
		s = strings.ReplaceAll(s, "${", "$${")
	}
	return quote(s)
}

func (pr *printer) section(section string, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, name := range pr.schema.children[section] {
		path := join(section, name)
		if f, ok := pr.schema.byPath[path]; ok {
			pr.field(f, name, indent)
			continue
		}
		fmt.Fprintf(&pr.out, "%s%s:\n", indent, name)
		pr.section(path, depth+1)
	}
}

func (pr *printer) field(f *field, name, indent string) {
	v := reflect.ValueOf(pr.config).Elem().FieldByIndex(f.index)
	from := "  # " + pr.origin(f.path) + "\n"
	switch {
	case f.kind.scalar():
		fmt.Fprintf(&pr.out, "%s%s: %s%s", indent, name, pr.scalar(f, v), from)
	case v.Len() == 0 && f.kind == kindMap:
		fmt.Fprintf(&pr.out, "%s%s: {}%s", indent, name, from)
	case v.Len() == 0:
		fmt.Fprintf(&pr.out, "%s%s: []%s", indent, name, from)
	default:
		fmt.Fprintf(&pr.out, "%s%s:%s", indent, name, from)
		pr.all(f, v, indent+"  ")
	}
}

// all writes what a list or a map holds.
func (pr *printer) all(f *field, v reflect.Value, indent string) {
	switch all := v.Interface().(type) {
	case []string:
		for _, s := range all {
			fmt.Fprintf(&pr.out, "%s- %s\n", indent, pr.text(s, f.expand))
		}
	case map[string]string:
		for _, k := range slices.Sorted(maps.Keys(all)) {
			text := pr.text(hideLogin(all[k]), f.expand) // DATABASE_URL and its like
			if (f.secret || secretName(k) || f.path == "env" && secretValue(all[k])) && all[k] != "" {
				text = quote(hidden)
			}
			fmt.Fprintf(&pr.out, "%s%s: %s\n", indent, pr.text(k, false), text)
		}
	default:
		items := itemSchema(v.Type().Elem(), f.kind == kindServers)
		for i := range v.Len() {
			from := pr.out.Len()
			pr.item(items, v.Index(i), "", indent+"  ")
			copy(pr.out.Bytes()[from+len(indent):], "- ")
		}
	}
}

// item writes the section of an item of a list, without what is empty.
func (pr *printer) item(items *schema, v reflect.Value, section, indent string) {
	for _, name := range items.children[section] {
		f, ok := items.byPath[join(section, name)]
		if !ok {
			from := pr.out.Len()
			fmt.Fprintf(&pr.out, "%s%s:\n", indent, name)
			head := pr.out.Len()
			if pr.item(items, v, join(section, name), indent+"  "); pr.out.Len() == head {
				pr.out.Truncate(from)
			}
			continue
		}
		switch at := v.FieldByIndex(f.index); {
		case at.IsZero() && f.kind != kindBool:
		case f.kind.scalar():
			fmt.Fprintf(&pr.out, "%s%s: %s\n", indent, name, pr.scalar(f, at))
		case at.Len() > 0:
			fmt.Fprintf(&pr.out, "%s%s:\n", indent, name)
			pr.all(f, at, indent+"  ")
		}
	}
}

// origin is the comment behind a value.
func (pr *printer) origin(path string) string {
	o := pr.config.meta.origins[path]
	switch {
	case o.env != "":
		return "env " + o.env
	case o.line > 0:
		return fmt.Sprintf("%s:%d", strings.Map(oneLine, pr.config.meta.file), o.line)
	}
	return "default"
}

// oneLine keeps a file's odd name from ending the comment it stands in.
func oneLine(c rune) rune {
	if c < ' ' || c == 0x7f || c == 0x85 || c == 0x2028 || c == 0x2029 {
		return '?'
	}
	return c
}

func (pr *printer) scalar(f *field, v reflect.Value) string {
	switch v.Kind() {
	case reflect.Int:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		// Without an exponent, which YAML readers do not agree on.
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	text := v.String()
	if f.secret && text != "" {
		return quote(hidden)
	}
	if f.rules.isURL() {
		text = hideParameters(hideLogin(text))
	}
	return pr.text(text, f.expand)
}

// hideParameters hides the secrets among the parameters of an address.
func hideParameters(address string) string {
	head, query, ok := strings.Cut(address, "?")
	if !ok {
		return address
	}
	query, fragment, marked := strings.Cut(query, "#")
	all := strings.Split(query, "&")
	for i, parameter := range all {
		if name, value, _ := strings.Cut(parameter, "="); value != "" && secretParameter(name) {
			all[i] = name + "=" + hidden
		}
	}
	head += "?" + strings.Join(all, "&")
	if marked {
		head += "#" + fragment
	}
	return head
}

// hideLogin hides the password of an address.
func hideLogin(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@')
	user, _, ok := strings.Cut(rest[:max(at, 0)], ":")
	if !ok {
		return address
	}
	return scheme + "://" + user + ":" + hidden + rest[at:]
}

// quote writes a text as YAML: plain where every reader takes it for a text,
// else in double quotes, whose escapes YAML shares with Go.
func quote(s string) string {
	plain := s != "" && (s[0] == '/' || 'a' <= s[0] && s[0] <= 'z' || 'A' <= s[0] && s[0] <= 'Z')
	for _, c := range []byte(s) {
		plain = plain && (c == '/' || c == '.' || c == '-' || c == '_' || c == '@' ||
			'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9')
	}
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		plain = false
	}
	if plain {
		return s
	}
	return strconv.Quote(s)
}

// Example returns config.example.yaml: every key with its documentation and
// default, commented out, so that a copy of it changes nothing.
func Example() []byte {
	s := newSchema()
	var b bytes.Buffer
	b.WriteString("# Every setting with its default. Remove the # before a key to set it.\n" +
		"# ${NAME} in a text stands for a variable of the environment, $${ for ${ itself.\n")
	example(&b, s, "", 0)
	return b.Bytes()
}

func example(b *bytes.Buffer, s *schema, section string, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, name := range s.children[section] {
		path := join(section, name)
		if depth == 0 {
			b.WriteString("\n")
		}
		if doc, ok := s.sections[path]; ok {
			fmt.Fprintf(b, "%s# %s\n%s%s:\n", indent, doc, indent, name)
			example(b, s, path, depth+1)
			continue
		}
		f := s.byPath[path]
		fmt.Fprintf(b, "%s# %s\n", indent, f.doc)
		if len(f.rules.enum) > 0 {
			fmt.Fprintf(b, "%s# One of: %s.\n", indent, strings.Join(f.rules.enum, ", "))
		}
		if f.rules.recommend {
			fmt.Fprintf(b, "%s# Recommended: %s to %s.\n", indent, show(f.rules.low), show(f.rules.high))
		}
		if names := f.envNames(); len(names) > 0 {
			fmt.Fprintf(b, "%s# Environment: %s\n", indent, strings.Join(names, ", "))
		}
		fmt.Fprintf(b, "%s#%s: %s\n", indent, name, f.defaultYAML())
	}
}
