package broker

import (
	"strings"

	"toritsugi/internal/redact"
)

// nameSecrets finds a secret in the names that a patch gives to files, also to
// those that it adds no line to: empty ones, binary ones, ones that only move. A
// name that goes away is none.
func (f *Filter) nameSecrets(patch string) []Finding {
	if !strings.Contains(patch, "\nrename to ") && !strings.Contains(patch, "\ncopy to ") && !strings.Contains(patch, "\nnew file mode ") {
		return nil
	}
	var names strings.Builder
	head := ""
	for line := range strings.Lines(patch) {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			head = line
		case strings.HasPrefix(line, "new file mode ") && head != "":
			names.WriteString(head)
		case strings.HasPrefix(line, "rename to "), strings.HasPrefix(line, "copy to "):
			names.WriteString(line)
		}
	}
	text := names.String()
	name := ""
	if found := f.o.Sanitizer.FindSecrets(text); len(found) > 0 {
		if name = found[0].Token; name == redact.Redacted {
			name = found[0].Kind // says more
		}
	} else if len(f.known(nil, joinedLines(decoded(text)))) > 0 {
		name = redact.Redacted
	}
	if name == "" {
		return nil
	}
	return []Finding{{FoundSecret, name, "the name of a file"}}
}
