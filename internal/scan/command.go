package scan

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"toritsugi/internal/lazyregexp"
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

// plain is a word without its quotes. Of one that depends on something it is the
// path after that, as of "$(dirname "$0")/run.py"; "" where there is none.
func plain(w *syntax.Word) string {
	var b strings.Builder
	depends := func() { b.Reset(); b.WriteByte(0) }
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			b.WriteString(part.Value)
		case *syntax.SglQuoted:
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			for _, p := range part.Parts {
				if lit, ok := p.(*syntax.Lit); ok {
					b.WriteString(lit.Value)
				} else {
					depends()
				}
			}
		default:
			depends()
		}
	}
	if after, ok := strings.CutPrefix(b.String(), "\x00"); ok {
		if after, ok = strings.CutPrefix(after, "/"); !ok {
			return ""
		}
		return after
	}
	return b.String()
}

// filesOf are the files of one call. What a command only looks at decides
// nothing, and tests are judged as such, but for those that are the program.
func filesOf(words []string) []string {
	var all []string
	if len(words) == 0 {
		return nil
	}
	if tool, _ := toolOf(path.Base(words[0])); tool == nobody {
		return nil
	}
	for i, w := range words {
		if _, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(w, "-") {
			w = value
		}
		if w == "" || strings.HasPrefix(w, "-") || strings.HasPrefix(w, "/") || strings.ContainsAny(w, "*?\x00\n") || strings.HasSuffix(w, "...") {
			continue
		}
		by := i - 1 // what runs it, or ""
		for by > 0 && strings.HasPrefix(words[by], "-") && words[by] != "-m" {
			by--
		}
		if by >= 0 && words[by] == "-m" { // of Python
			all = append(all, strings.ReplaceAll(w, ".", "/")+".py")
			continue
		}
		if p := path.Clean(w); p != "." && !strings.HasPrefix(p, "..") && (strings.Contains(p, "/") || strings.Contains(p, ".")) &&
			(!IsTest(p) || i == 0 || shells[path.Base(words[by])] || !ownTest(p) && interpreter().MatchString(path.Base(words[by]))) {
			all = append(all, p)
		}
	}
	return all
}

var interpreter = lazyregexp.New(`^(python[\d.]*|node|ruby|perl|php|lua|Rscript|run)$`)

// shells run the file that is named next.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "source": true, ".": true}
