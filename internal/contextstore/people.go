package contextstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/i18n"
)

// Link says that somebody in a chat is one person with an account.
type Link struct {
	Who     string `json:"who"`     // slack:U123
	Account string `json:"account"` // github:hanako, or terminal:hanako
	At      Time   `json:"linked_at,omitzero"`
}

// The most of what is kept to link people, and of wrong codes of one person within TriesWithin.
const (
	maxCodes    = 100
	MaxTries    = 5
	TriesWithin = time.Hour
)

// Errors of TakeLink.
var (
	ErrNoCode       = errors.New("no such code, or its time is over")
	ErrTooManyTries = errors.New("too many wrong codes")
)

// linksKept is how long who is linked is known without asking house.db: what another process
// changes counts within that time, what this one does at once.
const linksKept = 2 * time.Second

// links are those who are linked, as they were read last.
type links struct {
	sync.Mutex
	all []Link
	at  time.Time // zero: they are not known
}

// forget has the next who asks read them.
func (l *links) forget() {
	l.Lock()
	defer l.Unlock()
	l.at = time.Time{}
}

// Links lists who was linked by a code, by their ids. The list is the store's.
func (s *Store) Links(ctx context.Context) ([]Link, error) {
	s.links.Lock()
	defer s.links.Unlock()
	if age := s.Now().Sub(s.links.at); age >= 0 && age < linksKept {
		return s.links.all, nil
	}
	s.links.at = time.Time{}
	all, err := s.houseDB.Links(ctx)
	if err == nil {
		s.links.all, s.links.at = all, s.Now()
	}
	return all, err
}

// Links is Store.Links as house.db has it now.
func (d *HouseDB) Links(ctx context.Context) (all []Link, err error) {
	all, err = list(ctx, d, func(rows *sql.Rows) (l Link, err error) {
		var at string
		if err = rows.Scan(&l.Who, &l.Account, &at); err == nil {
			l.At.Time, err = time.Parse(time.RFC3339, at)
		}
		return l, err
	}, `SELECT who, account, linked_at FROM links ORDER BY who`)
	if err != nil {
		return nil, fmt.Errorf("read who is linked: %w", err)
	}
	return all, nil
}

// LinksAt is Links for who has not opened the store: nobody is linked where there is no
// house.db, or it may not be read.
func LinksAt(ctx context.Context, dir string) ([]Link, error) {
	if database.ServerOf(dir) != nil {
		d, err := ReadHouseDB(ctx, dir)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = d.Close() }() // only read from
		return d.Links(ctx)
	}
	path := filepath.Join(dir, HouseDBFile)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_ = f.Close()
	base, err := database.Enter(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	d, err := OpenHouseDB(ctx, dir, base)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // only read from
	return d.Links(ctx)
}

// OfferLink has a code, known by its hash, link whoever says it to an account, once and until
// its time is over.
func (s *Store) OfferLink(ctx context.Context, code, account string, until time.Time) error {
	now := s.now().String()
	err := s.inHouse(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM link_codes WHERE until<=?`, now); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM link_codes`).Scan(&n); err != nil {
			return err
		}
		if n >= maxCodes {
			return i18n.E("contextstore.codes", maxCodes)
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO link_codes (code, account, until) VALUES (?,?,?)`, code, account, Time{Time: until.UTC()}.String())
		return err
	})
	if err != nil {
		return fmt.Errorf("keep a code: %w", err)
	}
	return nil
}

// TakeLink links who said a code of a hash, whose time it uses up; they may have been linked by
// that very code before. The error is ErrNoCode for one that there is not, and ErrTooManyTries
// for whoever said several of those.
func (s *Store) TakeLink(ctx context.Context, code, who string) (l Link, err error) {
	now := s.now()
	var refused error
	err = s.inHouse(ctx, func(tx *sql.Tx) error {
		l, refused = Link{Who: who, At: now}, nil
		err := tx.QueryRowContext(ctx, `SELECT account FROM links WHERE who=? AND code=?`, who, code).Scan(&l.Account)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM link_tries WHERE tried_at<=?`, Time{Time: now.Add(-TriesWithin)}.String()); err != nil {
			return err
		}
		var tries int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM link_tries WHERE who=?`, who).Scan(&tries); err != nil {
			return err
		}
		if tries >= MaxTries {
			refused = ErrTooManyTries
			return nil
		}
		err = tx.QueryRowContext(ctx, `DELETE FROM link_codes WHERE code=? AND until>? RETURNING account`, code, now.String()).Scan(&l.Account)
		if errors.Is(err, sql.ErrNoRows) {
			refused = ErrNoCode
			_, err = tx.ExecContext(ctx, `INSERT INTO link_tries (who, tried_at) VALUES (?,?)`, who, now.String())
			return err
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO links (who, account, code, linked_at) VALUES (?,?,?,?)
			ON CONFLICT(who) DO UPDATE SET account=excluded.account, code=excluded.code, linked_at=excluded.linked_at`, who, l.Account, code, now.String())
		return err
	})
	s.links.forget()
	if err != nil {
		return l, fmt.Errorf("link %s: %w", who, err)
	}
	return l, refused
}

// RemoveLink has somebody be linked to nobody; was is false where they were not by a code.
func (s *Store) RemoveLink(ctx context.Context, who string) (was bool, err error) {
	err = s.inHouse(ctx, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, `DELETE FROM links WHERE who=?`, who)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		was = n > 0
		return err
	})
	s.links.forget()
	if err != nil {
		return false, fmt.Errorf("remove the link of %s: %w", who, err)
	}
	return was, nil
}

// Follower is a conversation that is told of a run of a forge.
type Follower struct {
	UUID, Session string
	ReplyTo       string // the message that asked there
	Language      string // that the conversation is spoken with in
}

// Follow has a conversation be told of a run until Unfollow. One that is told already stays as
// it is.
func (s *Store) Follow(ctx context.Context, f Follower) error {
	err := s.exec(ctx, `INSERT INTO followers (uuid, session, reply_to, language) VALUES (?,?,?,?) ON CONFLICT DO NOTHING`, f.UUID, f.Session, f.ReplyTo, f.Language)
	if err != nil {
		return fmt.Errorf("follow %s: %w", f.UUID, err)
	}
	return nil
}

// Unfollow ends what Follow began.
func (s *Store) Unfollow(ctx context.Context, f Follower) error {
	if err := s.exec(ctx, `DELETE FROM followers WHERE uuid=? AND session=?`, f.UUID, f.Session); err != nil {
		return fmt.Errorf("follow %s no more: %w", f.UUID, err)
	}
	return nil
}

// Followers lists the conversations that are told of runs.
func (s *Store) Followers(ctx context.Context) (all []Follower, err error) {
	all, err = list(ctx, s.houseDB, func(rows *sql.Rows) (f Follower, err error) {
		return f, rows.Scan(&f.UUID, &f.Session, &f.ReplyTo, &f.Language)
	}, `SELECT uuid, session, reply_to, language FROM followers ORDER BY uuid, session`)
	if err != nil {
		return nil, fmt.Errorf("read who follows runs: %w", err)
	}
	return all, nil
}
