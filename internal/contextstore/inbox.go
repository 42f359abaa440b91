package contextstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"toritsugi/internal/contextstore/database"
)

// Incoming is an event of a channel in house.db, as its vendor sent it.
type Incoming struct {
	Seq                int64 // the order in which they came, from 1
	Channel, ID, Queue string
	Body               []byte
	ReceivedAt         Time
}

// Settled is an event that nobody will work on any more.
type Settled struct {
	Seq    int64
	Failed string // why it was given up, "" where it was worked on
}

// ChangeInbox adds events and settles others, all in one transaction that is on the disk when it
// returns. fresh are the added ones with their numbers; one whose id is known in its channel
// adds nothing. What is settled keeps its id, and loses its body.
func (s *Store) ChangeInbox(ctx context.Context, add []Incoming, settle []Settled) (fresh []Incoming, err error) {
	now := s.now().String()
	gave := map[int]int64{} // the numbers of an attempt before, which may have been committed though nobody was told
	err = s.inHouse(ctx, func(tx *sql.Tx) error {
		fresh = fresh[:0]
		for n, e := range add {
			err := tx.QueryRowContext(ctx, `INSERT INTO inbox (channel, id, queue, body, received_at) VALUES (?,?,?,?,?) ON CONFLICT (channel, id) DO NOTHING RETURNING seq`,
				e.Channel, e.ID, e.Queue, e.Body, e.ReceivedAt.String()).Scan(&e.Seq)
			if errors.Is(err, sql.ErrNoRows) { // it is known
				err = tx.QueryRowContext(ctx, `SELECT seq FROM inbox WHERE channel=? AND id=?`, e.Channel, e.ID).Scan(&e.Seq)
				if err == nil && e.Seq != gave[n] {
					continue
				}
			}
			if err != nil {
				return err
			}
			gave[n] = e.Seq
			fresh = append(fresh, e)
		}
		for _, d := range settle {
			if _, err := tx.ExecContext(ctx, `UPDATE inbox SET body='', done_at=?, failed=? WHERE seq=? AND done_at IS NULL`, now, s.Redact(d.Failed), d.Seq); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("write to the inbox: %w", err)
	}
	return fresh, nil
}

// WaitingInbox returns what waits in the inbox in the order in which it came, without the
// bodies.
func (s *Store) WaitingInbox(ctx context.Context) (all []Incoming, err error) {
	all, err = list(ctx, s.houseDB, func(rows *sql.Rows) (e Incoming, err error) {
		var at string
		if err = rows.Scan(&e.Seq, &e.Channel, &e.ID, &e.Queue, &at); err == nil {
			e.ReceivedAt.Time, err = time.Parse(time.RFC3339, at)
		}
		return e, err
	}, `SELECT seq, channel, id, queue, received_at FROM inbox WHERE done_at IS NULL ORDER BY seq`)
	if err != nil {
		return nil, fmt.Errorf("read the inbox: %w", err)
	}
	return all, nil
}

// InboxBody is the body of an event that waits; sql.ErrNoRows where none of that number does.
func (s *Store) InboxBody(ctx context.Context, seq int64) (body []byte, err error) {
	err = s.houseDB.use(ctx, func(h *database.Handles) error {
		return h.R.QueryRowContext(ctx, `SELECT body FROM inbox WHERE seq=? AND done_at IS NULL`, seq).Scan(&body)
	})
	if err != nil {
		return nil, fmt.Errorf("read event %d of the inbox: %w", seq, err)
	}
	return body, nil
}

// ForgetInbox removes the ids of what was settled before a time: an event that is sent again
// after that is a new one.
func (s *Store) ForgetInbox(ctx context.Context, before time.Time) error {
	if err := s.exec(ctx, `DELETE FROM inbox WHERE done_at IS NOT NULL AND done_at<?`, Time{Time: before}.String()); err != nil {
		return fmt.Errorf("clear the inbox: %w", err)
	}
	return nil
}
