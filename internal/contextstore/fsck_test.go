package contextstore_test

import (
	"context"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
)

func init() {
	contextstore.CheckBase = func(ctx context.Context, base string, repair bool) (c contextstore.Checked, err error) {
		r, err := fsck.Check(ctx, base, fsck.Options{Repair: repair, StateLockTimeout: 50 * time.Millisecond})
		c = contextstore.Checked{Contexts: r.Contexts, Found: r.Found, Mended: r.Mended, Left: r.Left}
		for _, f := range r.Findings {
			c.Findings = append(c.Findings, contextstore.Found{Kind: f.Kind, Args: f.Args, What: f.What, Does: f.Does})
		}
		return c, err
	}
	contextstore.ReindexBase = func(ctx context.Context, base string) error {
		_, err := fsck.Reindex(ctx, base, nil)
		return err
	}
}
