package ollama

import (
	"strings"

	"toritsugi/internal/i18n"
)

// Argv splits a configured command into the program and its arguments, at
// spaces outside of quotes; a backslash keeps the character after it, except
// within single quotes. Nothing is expanded, since no shell runs it: what only
// a shell understands is an i18n error. An empty command gives none.
func Argv(command string) ([]string, error) {
	var all []string
	var word strings.Builder
	in, quote, escaped := false, rune(0), false
	for _, r := range command {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			in, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			in, quote = true, r
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if in {
				all = append(all, word.String())
				word.Reset()
				in = false
			}
		case strings.ContainsRune("|&;<>$`()", r) || r == 0:
			return nil, i18n.E("ollama.command", command, string(r))
		default:
			in = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, i18n.E("ollama.command_open", command)
	}
	if in {
		all = append(all, word.String())
	}
	if len(all) > 0 && all[0] == "" {
		return nil, i18n.E("ollama.command_open", command)
	}
	return all, nil
}
