package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/spelling"
)

// maxToolName is the longest name of a tool that all providers take.
const maxToolName = 64

var (
	refused = lazyregexp.New(`[^a-zA-Z0-9_-]`)
	// marked is the end of a name that does not say its origin by itself.
	marked = lazyregexp.New(`_x[0-9a-f]{10}$`)
)

// sanitise puts _ for every character that providers refuse.
func sanitise(s string) string { return refused().ReplaceAllString(s, "_") }

// short is a hash of s, ten digits long.
func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:5])
}

// Name returns the name under which a tool of a server is offered:
// server__tool. It depends on the two alone, so that it is the same whatever
// else is there. Two that would get the same name this way, or one that would
// be too long, end in a mark made from both: a name says which tool it means.
func Name(server, tool string) string {
	name := sanitise(server) + "__" + sanitise(tool)
	if name == server+"__"+tool && server != "" && tool != "" && len(name) <= maxToolName &&
		!strings.Contains(server, "__") && !strings.HasSuffix(server, "_") && !marked().MatchString(name) {
		return name
	}
	mark := "_x" + short(server+"\x00"+tool)
	return name[:min(len(name), maxToolName-len(mark))] + mark
}

// matches reports whether name fits one of the patterns, in which * stands for
// any characters and ? for one.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return spelling.Fits(p, name) })
}
