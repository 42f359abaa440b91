package workspace

import (
	"bytes"
	"path"
	"path/filepath"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// gitHead is git's header of a file that it calls the same before and after.
var gitHead = lazyregexp.New(`^diff --git (\S+) (\S+)\s*$`)

// noFile stands in a patch for a file that is not there.
const noFile = "/dev/null"

// Named is a patch that calls its files as git does, with a/ and b/ before their paths: models
// leave these out. A path without them is one of a file that is there, as git apply -p0 takes
// it, or of a new one, unless it begins with the name of the repository. Every other path stays
// as it is.
func Named(raw []byte, there func(path string) bool, repo string) []byte {
	if len(raw) > MaxPatch {
		return raw
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	bare := map[string]bool{}
	for i := 0; i+2 < len(lines); i++ {
		if !bytes.HasPrefix(lines[i], []byte("--- ")) || !bytes.HasPrefix(lines[i+1], []byte("+++ ")) || !bytes.HasPrefix(lines[i+2], []byte("@@ -")) {
			continue
		}
		before, after := headName(lines[i]), headName(lines[i+1])
		name := after
		if after == noFile {
			name = before
		}
		if !isBare(before, after, name, there, repo) {
			continue
		}
		bare[name] = true
		if before != noFile {
			lines[i] = append([]byte("--- a/"), lines[i][len("--- "):]...)
		}
		if after != noFile {
			lines[i+1] = append([]byte("+++ b/"), lines[i+1][len("+++ "):]...)
		}
	}
	if len(bare) == 0 {
		return raw
	}
	for i, line := range lines {
		if m := gitHead().FindSubmatch(line); m != nil && bytes.Equal(m[1], m[2]) && bare[string(m[1])] {
			lines[i] = []byte("diff --git a/" + string(m[1]) + " b/" + string(m[1]) + "\n")
		}
	}
	return bytes.Join(lines, nil)
}

// isBare reports whether the head of a file has its path with nothing before it.
func isBare(before, after, name string, there func(string) bool, repo string) bool {
	if !filepath.IsLocal(name) || path.Clean(name) != name {
		return false
	}
	if before == after {
		return there(name)
	}
	first, _, deep := strings.Cut(name, "/")
	marked := deep && len(first) == 1 && strings.ContainsAny(first, "abciow") // git's, and those of diff.mnemonicPrefix
	switch {
	case before != noFile && after != noFile, marked:
		return false
	case after == noFile:
		return there(name)
	}
	return !deep || first != repo || there(first)
}

// headName is the path in a line that begins with --- or +++: a tab and a time may follow it.
func headName(line []byte) string {
	name, _, _ := bytes.Cut(line[len("--- "):], []byte("\t"))
	return string(bytes.TrimRight(name, "\r\n"))
}
