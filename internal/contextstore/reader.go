package contextstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"toritsugi/internal/i18n"
)

// openReader opens tasks.db for reading only, also on a disk that cannot be
// written and without the house: list, stats, open and pendingOutbox work. An
// error where there is none, or one of another version: then the directories
// tell.
func openReader(ctx context.Context, base string) (*index, error) {
	i := newIndex(base, nil, nil)
	if _, err := os.Stat(i.path); err != nil {
		return nil, i18n.E("ledger.no_index", i.path, err)
	}
	h, err := i.openToRead(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the index for reading: %w", err)
	}
	i.h = h
	return i, nil
}

// openToRead opens the file, which must exist, for reading only.
func (d *database) openToRead(ctx context.Context) (*handles, error) {
	h, err := d.connectReader(ctx, "mode", "ro")
	if err != nil && !errors.Is(err, errBroken) && !errors.Is(err, errLacks) && !errors.Is(err, errNewer) && !errors.Is(err, errOlder) {
		// A WAL needs a file beside it that can be written. Without a WAL the file
		// can be read as it is.
		if st, serr := os.Stat(d.path + "-wal"); serr == nil && st.Size() > 0 {
			return nil, because(err, "ledger.stale_index", d.path, d.file+"-wal")
		}
		h, err = d.connectReader(ctx, "immutable", "1")
	}
	return h, err
}

func (d *database) connectReader(ctx context.Context, key, value string) (*handles, error) {
	if err := regular(d.path); err != nil {
		return nil, d.explain(err)
	}
	r, err := sql.Open("sqlite", dsn(d.path, map[string][]string{"mode": {"ro"}, key: {value},
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", openingBusy), "query_only(1)"}}))
	if err != nil {
		return nil, err
	}
	r.SetMaxOpenConns(4)
	h := &handles{r: r}
	v, err := d.version(ctx, r)
	if err == nil {
		err = d.expect(v)
	}
	if err != nil {
		return nil, errors.Join(d.explain(err), h.close())
	}
	return h, nil
}
