package folder

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"toritsugi/internal/document"
	"toritsugi/internal/i18n"
)

// frontMatter reads the block between two "---" lines at the very start, if
// there is one, and returns the text after it. It is strict: a key or a type
// that is not known is an error with its line, because a label that is
// silently ignored is a rule that is silently not applied.
func (i *Issue) frontMatter(path, text string) (body string, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return text, nil
	}
	var block []string
	closed := false
	for l := range strings.SplitSeq(rest, "\n") {
		if t := strings.TrimRight(l, " \t"); t == "---" || t == "..." {
			closed = true
			break
		}
		block = append(block, l)
	}
	if !closed {
		if looksLikeRule(block) {
			return text, nil
		}
		return "", problem(path, 1, "folder.fm_open")
	}
	lines := strings.SplitAfterN(rest, "\n", len(block)+2)
	body = ""
	if len(lines) == len(block)+2 {
		body = lines[len(lines)-1]
	}
	if strings.TrimSpace(strings.Join(block, "")) == "" {
		return body, nil
	}
	return body, i.readYAML(path, strings.Join(block, "\n"))
}

// looksLikeRule tells a document that begins with a Markdown rule from front
// matter that somebody forgot to close.
func looksLikeRule(block []string) bool {
	for _, l := range block {
		if strings.TrimSpace(l) != "" {
			key, _, ok := strings.Cut(l, ":")
			return !ok || strings.ContainsAny(strings.TrimSpace(key), " #")
		}
	}
	return true
}

// maxFrontMatter is the longest front matter, in bytes.
const maxFrontMatter = 16 << 10

// readYAML fills i from a mapping. Line numbers count from the file's first
// line, which is the "---" above.
func (i *Issue) readYAML(path, text string) error {
	if len(text) > maxFrontMatter {
		return problem(path, 1, "folder.fm_large", maxFrontMatter>>10)
	}
	file, err := document.Parse([]byte(text))
	if at := new(document.Error); errors.As(err, &at) {
		return problem(path, at.Line+1, "folder.fm_yaml", at.Why)
	}
	if len(file.Docs) != 1 {
		return problem(path, 2, "folder.fm_mapping")
	}
	var pairs []*ast.MappingValueNode
	switch m := file.Docs[0].Body.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return nil
	case *ast.MappingNode:
		pairs = m.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{m}
	default:
		return problem(path, 2, "folder.fm_mapping")
	}
	seen := map[string]bool{}
	for _, p := range pairs {
		key, at := p.Key.GetToken().Value, p.Key.GetToken().Position.Line+1
		if seen[key] {
			return problem(path, at, "folder.fm_twice", key)
		}
		seen[key] = true
		if err := i.setField(path, key, at, p.Value); err != nil {
			return err
		}
	}
	return nil
}

func (i *Issue) setField(path, key string, at int, value ast.Node) error {
	text, isText := scalar(value)
	switch key {
	case "id":
		n, isInt := value.(*ast.IntegerNode)
		if isInt { // as written: 007 is not 7
			text = n.GetToken().Value
		}
		if !isInt && !isText || strings.TrimSpace(text) == "" {
			return problem(path, at, "folder.fm_type", key, i18n.E("folder.type_id"))
		}
		i.ID = cleanID(strings.TrimSpace(text))
	case "title", "author":
		if !isText {
			return problem(path, at, "folder.fm_type", key, i18n.E("folder.type_text"))
		}
		text = strings.Join(strings.Fields(text), " ")
		if key == "title" {
			i.Title = text
		} else {
			i.Author = text
		}
	case "labels":
		list, ok := value.(*ast.SequenceNode)
		if !ok {
			return problem(path, at, "folder.fm_type", key, i18n.E("folder.type_list"))
		}
		for _, v := range list.Values {
			l, ok := scalar(v)
			if l = strings.TrimSpace(l); !ok || l == "" {
				return problem(path, v.GetToken().Position.Line+1, "folder.fm_type", key, i18n.E("folder.type_list"))
			}
			i.Labels = append(i.Labels, l)
		}
	default:
		return problem(path, at, "folder.fm_key", key)
	}
	return nil
}

// scalar returns a string of YAML, in any of its styles.
func scalar(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	}
	return "", false
}
