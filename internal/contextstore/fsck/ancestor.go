package fsck

import (
	"errors"
	"path/filepath"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/index"
)

// ancestor checks the tree of an older edition, and changes nothing there. What the documents of
// that edition do not ask for is no damage: checkpoints, rows and locks of ours, one live run of a key,
// who may read the files.
func (c *checker) ancestor() (Report, error) {
	c.opt.Repair = false
	note := func(kind string, args ...any) {
		c.tell(&Finding{Path: c.base, Kind: kind, Args: args, Note: true})
	}
	note("edition", c.edition)
	err := c.statusDirs()
	if c.edition == contextstore.StoreV3 && err == nil {
		c.ancestorRows()
	}
	if c.open > 0 {
		note("open_files", c.open)
	}
	return c.report, errors.Join(err, c.look.Close(), c.ctx.Err())
}

// ancestorRows finds rows without a directory.
func (c *checker) ancestorRows() {
	a, err := index.OpenAncestor(c.ctx, c.base)
	if err == nil {
		err = a.Each(c.ctx, func(r index.Row) error {
			if !isUUID(r.UUID) || len(c.places(r.UUID)) == 0 {
				c.tell(&Finding{Path: index.File, UUID: r.UUID, Kind: "row_alone"})
			}
			return nil
		})
		err = errors.Join(err, a.Close())
	}
	if err != nil && c.ctx.Err() == nil {
		c.tell(&Finding{Path: index.File, Kind: "rows_unreadable", Args: []any{err}})
	}
}

// readAncestor reads what became of an ancestor's run. That there is no state.json is as it should be
// where tasks.db tells.
func (i *inspection) readAncestor() {
	v, err := i.c.look.View(i.dir)
	if err != nil || v.Edition != contextstore.StoreV3 || i.c.edition != contextstore.StoreV3 {
		return
	}
	i.state, i.stateErr = v.State, nil
	if v.State.Status == "" {
		i.find("", spot{}, "no_row_v3", filepath.Join(i.c.base, index.File))
	}
}
