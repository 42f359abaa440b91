package contextstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"toritsugi/internal/contextstore/database"
)

// forgetAfter is how long house.db knows of a run after the time at which all of it is removed: a
// backup may bring it back, and what it delivered is not to be delivered again.
const forgetAfter = 30 * 24 * time.Hour

// forgetBatch is how many runs are looked at, and forgotten, at once.
const forgetBatch = 500

// oldRuns are runs of which nothing was noted since a time, by uuid. A scope of marks may be another
// thing than a run.
const oldRuns = `SELECT uuid FROM (SELECT uuid FROM outbox_acks GROUP BY uuid HAVING max(acked_at) < ?
	UNION SELECT scope FROM marks WHERE length(scope) = 36 GROUP BY scope HAVING max(marked_at) < ?) AS old WHERE uuid > ? ORDER BY uuid LIMIT ?`

// Forget removes from house.db what it knows of runs that are gone and that retention would have
// removed a month ago or earlier: the deliveries of their effects, and marks. Without that it would
// grow with each run that ever was, and so would each backup.
func (s *Store) Forget(ctx context.Context, r Retention) error {
	longest := r.Delete
	for _, rule := range r.Rules {
		longest = max(longest, rule.Delete)
	}
	if longest == 0 { // none is removed for its age
		return nil
	}
	before := Time{Time: s.Now().Add(-longest - forgetAfter)}.String()
	for after := ""; ; {
		old, err := list(ctx, s.houseDB, database.Text, oldRuns, before, before, after, forgetBatch)
		var gone []string
		for _, id := range old {
			if _, ferr := s.dir(id); errors.Is(ferr, ErrNotFound) && uuid.Validate(id) == nil {
				gone = append(gone, id)
			}
		}
		if err == nil && len(gone) > 0 {
			err = s.inHouse(ctx, func(tx *sql.Tx) error { return forgetThem(ctx, tx, gone) })
		}
		if err != nil {
			return fmt.Errorf("forget runs that are gone: %w", err)
		}
		if len(old) < forgetBatch {
			return nil
		}
		after = old[len(old)-1]
	}
}

func forgetThem(ctx context.Context, tx *sql.Tx, gone []string) error {
	for _, id := range gone {
		for _, query := range []string{`DELETE FROM outbox_acks WHERE uuid=?`, `DELETE FROM marks WHERE scope=?`} {
			if _, err := tx.ExecContext(ctx, query, id); err != nil {
				return err
			}
		}
	}
	return nil
}
