package scan

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// calls lists the words of each call in a command; one that is no shell script is
// a call as it stands.
func calls(command string) (all [][]string) {
	file, err := syntax.NewParser().Parse(strings.NewReader(command), "")
	if err != nil {
		return [][]string{strings.Fields(command)}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			var words []string
			for _, w := range call.Args {
				words = append(words, plain(w))
			}
			all = append(all, words)
		}
		return true
	})
	return all
}

// named lists the files that a check command names, or that its tools take their
// orders from, sorted. Paths are as they would be in the top directory; whether
// they exist is not looked at.
func named(command string) []string {
	var all []string
	for _, words := range calls(command) {
		all = append(all, filesOf(words)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// plain is a word without its quotes; "" where it depends on something.
func plain(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, p := range part.Parts {
				lit, ok := p.(*syntax.Lit)
				if !ok {
					return ""
				}
				b.WriteString(lit.Value)
			}
		default:
			return ""
		}
	}
	return b.String()
}

// filesOf are the files of one call. What a command only looks at decides
// nothing, and tests are judged as such.
func filesOf(words []string) []string {
	var all []string
	if len(words) == 0 {
		return nil
	}
	if tool, _ := toolOf(path.Base(words[0])); tool == nobody {
		return nil
	}
	for _, w := range words {
		if _, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(w, "-") {
			w = value
		}
		if w == "" || strings.HasPrefix(w, "-") || strings.HasPrefix(w, "/") || strings.ContainsAny(w, "*?\x00\n") || strings.HasSuffix(w, "...") {
			continue
		}
		if p := path.Clean(w); p != "." && !strings.HasPrefix(p, "..") && (strings.Contains(p, "/") || strings.Contains(p, ".")) && !testPath(p) {
			all = append(all, p)
		}
	}
	return all
}
