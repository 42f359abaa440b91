package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"toritsugi/internal/i18n"
)

// DefaultBranchPattern is the branch of a task where nothing else is configured.
const DefaultBranchPattern = "tori/issue-{id}-{slug}"

// maxSlug is the length of a slug, and maxBranch that of a whole name, in
// bytes: a ref is a file name, of at most 255 with ".lock".
const (
	maxSlug   = 40
	maxBranch = 200
)

// BranchName fills {id} and {slug} in pattern ("" for DefaultBranchPattern).
// The slug is the title's ASCII letters and digits, lower-case, joined by
// dashes; a title without any has none. The result is always a valid branch
// name (git-check-ref-format(1)), whatever the arguments.
func BranchName(pattern, id, title string) string {
	if pattern == "" {
		pattern = DefaultBranchPattern
	}
	name := strings.NewReplacer("{id}", cleanID(id), "{slug}", slug(title, maxSlug)).Replace(pattern)
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		if part = refPart(part); part != "" {
			parts = append(parts, part)
		}
	}
	name = strings.Join(parts, "/")
	if len(name) > maxBranch {
		name = strings.TrimRight(strings.ToValidUTF8(name[:maxBranch-9], ""), "-./") + "-" + shortHash(name)
	}
	if name == "" || name == "HEAD" || name == "@" {
		return "tori-" + shortHash(pattern+"\x00"+id)
	}
	return name
}

// cleanID keeps what a name may hold; an id without any of it is hashed, so
// that two ids do not become one branch.
func cleanID(id string) string {
	if clean := slug(id, 60); clean != "" {
		return clean
	}
	return shortHash(id)
}

// slug joins the runs of ASCII letters and digits of s by dashes. Over the
// limit it ends with a whole word where that leaves at least half.
func slug(s string, limit int) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(s) {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			gap = b.Len() > 0
			continue
		}
		if b.Len() >= limit && !gap {
			if i := strings.LastIndexByte(b.String(), '-'); i >= limit/2 {
				return b.String()[:i]
			}
			break
		}
		if b.Len() >= limit || gap && b.Len()+1 >= limit {
			break
		}
		if gap {
			b.WriteByte('-')
			gap = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// refPart makes one component of a ref name valid: none of the characters
// and sequences that git-check-ref-format(1) forbids.
func refPart(s string) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r == '\uFFFD' || strings.ContainsRune("~^:?*[\\@{}", r) {
			return '-'
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	for {
		before := s
		s = strings.ReplaceAll(strings.ReplaceAll(s, "..", "."), "--", "-")
		s = strings.Trim(s, "-.")
		s = strings.TrimSuffix(s, ".lock")
		if s == before {
			return s
		}
	}
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// FreeBranch returns name, or name with -2, -3 … where the source already has
// such a branch. If a branch stands where name needs a directory ("tori" for
// "tori/x"), the slashes become dashes. Of the source's branches only those
// that matter are kept in memory.
func FreeBranch(ctx context.Context, s *Source, name string) (string, error) {
	taken := map[string]bool{} // name, name-N and directories of that name
	flat := strings.ReplaceAll(name, "/", "-")
	blocked := false
	err := records(ctx, s.repo(), call{args: []string{"for-each-ref", "--format=%(refname)%00", "refs/heads/"}}, func(rec []byte) error {
		b := strings.TrimPrefix(strings.TrimPrefix(string(rec), "\n"), "refs/heads/")
		blocked = blocked || strings.HasPrefix(name, b+"/")
		for _, n := range []string{name, flat} {
			if rest, ok := strings.CutPrefix(b, n); ok && (rest == "" || rest[0] == '-' || rest[0] == '/') {
				first, _, _ := strings.Cut(rest, "/")
				taken[n+first] = true
			}
		}
		return nil
	})
	if err != nil {
		return "", i18n.E("workspace.unreadable", s.Path, err)
	}
	// The branch of an unborn or empty HEAD exists only by name.
	taken[s.Branch] = true
	if blocked {
		name = flat
	}
	free := name
	for n := 2; taken[free]; n++ {
		free = name + "-" + itoa(n)
	}
	return free, nil
}
