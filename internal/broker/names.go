package broker

import (
	"path"
	"strconv"
	"strings"
)

// nameSecrets finds a secret in the names that a patch gives to files, also to
// those that it adds no line to: empty ones, binary ones, ones that only move.
// It is looked for in each name, over the directories of it, and over the names
// of files in their order. A name that goes away is none.
func (f *Filter) nameSecrets(patch string) []Finding {
	names := namesOf(patch)
	if len(names) == 0 {
		return nil
	}
	last := make([]string, len(names))
	for i, n := range names {
		last[i] = path.Base(n)
	}
	all := strings.Join(names, "\n")
	for _, text := range []string{all, strings.ReplaceAll(all, "/", ""), strings.Join(last, "\n")} {
		if found := f.codeSecrets(text); len(found) > 0 {
			return []Finding{{FoundSecret, found[0].Excerpt, "the name of a file"}}
		}
	}
	return nil
}

// namesOf lists the names that a patch gives to files.
func namesOf(patch string) (names []string) {
	if !strings.Contains(patch, "\nrename to ") && !strings.Contains(patch, "\ncopy to ") && !strings.Contains(patch, "\nnew file mode ") {
		return nil
	}
	head := ""
	for line := range strings.Lines(patch) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "diff --git "); ok {
			head = name
			continue
		}
		name, ok := strings.CutPrefix(line, "rename to ")
		if !ok {
			name, ok = strings.CutPrefix(line, "copy to ")
		}
		if !ok && strings.HasPrefix(line, "new file mode ") && head != "" {
			// a/NAME b/NAME, each in quotes where need be.
			name, ok = head[(len(head)+1)/2:], true
		}
		if plain, err := strconv.Unquote(name); err == nil {
			name = plain
		}
		if ok {
			names = append(names, strings.TrimPrefix(name, "b/"))
		}
	}
	return names
}
