// Package lazyregexp compiles patterns when they are first used: every start of the program
// would pay for all of them otherwise, those as the helper of a sandbox included.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns what gives the regular expression of a pattern, compiled by the first call. A
// pattern that is none panics then.
func New(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
