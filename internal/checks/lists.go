package checks

import (
	"maps"
	"slices"
)

// sorted returns the keys of m in order, so that what is made of them is the
// same each time.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
