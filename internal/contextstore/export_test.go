package contextstore

import (
	"context"

	"toritsugi/internal/i18n"
)

// Checked is what the package fsck, which the tests of this one cannot import, finds.
type Checked struct {
	Contexts, Found, Mended, Left int64
	Findings                      []Found
}

// Found is a finding.
type Found struct {
	Kind string
	Args []any
	What func(i18n.Lang) string
	Does func(i18n.Lang) string
}

// The calls of the package fsck; fsck_test.go sets them.
var (
	CheckBase   func(ctx context.Context, base string, repair bool) (Checked, error)
	ReindexBase func(ctx context.Context, base string) error
)

// abandon leaves a context as a killed process does: its goroutines are gone,
// the kernel closes its files and drops the lock, and nothing is written.
func (c *Context) abandon() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.shut()
}
