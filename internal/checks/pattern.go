package checks

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first asked for:
// every start of the program would pay for it otherwise, those as the helper of
// a sandbox included.
func pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}
