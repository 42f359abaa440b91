// Package blobs keeps in a bucket the workspaces of runs, as packs of git, so that another machine goes
// on with them, and the large files of ended runs whose contexts lie in a database. An object is named
// by its hash; what refers to it is a file or a row of its context.
package blobs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"toritsugi/internal/bucket"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/workspace"
)

// Store keeps the blobs of the runs of a ledger. An object is HOUSE/UUID/GENERATION/SHA256: what one
// owner wrote no later one refers to anew, so that to remove what is not referred to races with nobody.
type Store struct {
	Place    bucket.Place
	Contexts *contextstore.Store
	Warn     func(text string) // tells the log that the place fails, and that it is back
}

// Snapshot says what is kept of a run's workspace.
type Snapshot struct {
	workspace.Stored
	Seq    int64             `json:"seq"` // of the run's last message then
	At     contextstore.Time `json:"at"`
	Pieces []Piece           `json:"pieces"` // of the pack, in their order
}

// Piece is an object, without the house in its name.
type Piece struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// pieceBytes is how much one object holds at most; as much is held in memory.
const pieceBytes = 4 << 20

// Unreachable is an error of the place, which may be mended; nothing that is kept is lost by it.
type Unreachable struct{ Err error }

func (e *Unreachable) Error() string { return e.Err.Error() }
func (e *Unreachable) Unwrap() error { return e.Err }

// Passing reports whether an error may be over when it is tried again.
func Passing(err error) bool { return errors.As(err, new(*Unreachable)) }

// reached is an error of the place as Unreachable, unless it tells what the place has.
func reached(err error) error {
	if long := (*disk.TooLargeError)(nil); err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) || errors.As(err, &long) {
		return err
	}
	return &Unreachable{err}
}

// Read is what is kept of the workspace of a run, by the directory of its context; nil for nothing.
func Read(dir string) (*Snapshot, error) {
	raw, err := disk.Read(filepath.Join(dir, contextstore.SnapshotFile), disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s := &Snapshot{}
	if err == nil {
		err = json.Unmarshal(raw, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read what is kept of the workspace: %w", err)
	}
	return s, nil
}

// houseMark is the mark of the name that all objects of a ledger begin with: several may share a place.
const houseMark = "blobs"

func (s *Store) house(ctx context.Context) (string, error) {
	return s.Contexts.MarkOnce(ctx, houseMark, "house", uuid.NewString)
}

// keep stores a snapshot of the workspace of a context that the caller owns, and then has the context
// refer to it, in place of the one before.
func (s *Store) keep(ctx context.Context, c *contextstore.Context, ws *workspace.Workspace, snap workspace.Snapshot, seq int64) error {
	of, err := ws.Stored(ctx, snap)
	if err != nil {
		return err
	}
	last, err := Read(c.Dir())
	if err != nil {
		return err
	}
	if last == nil {
		last = &Snapshot{}
		base, err := ws.CommittedTree(ctx, of.Base)
		if err != nil || base == of.Tree && of.Head == of.Base && of.Onto == "" {
			return err // a new workspace is that already
		}
	}
	if was := last.Stored; was.Tree == of.Tree && was.Head == of.Head && was.Base == of.Base && was.Onto == of.Onto {
		return nil
	}
	house, err := s.house(ctx)
	if err != nil {
		return err
	}
	of.Label = s.Contexts.Redact(of.Label)
	now := Snapshot{Stored: of, Seq: seq, At: contextstore.Time{Time: s.Contexts.Now()}}
	r, to := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := ws.Pack(ctx, of, to)
		_ = to.CloseWithError(err)
		packed <- err
	}()
	now.Pieces, err = s.put(ctx, house, fmt.Sprintf("%s/%d/", c.UUID(), c.State().Generation), r)
	_ = r.CloseWithError(err)
	if perr := <-packed; err == nil {
		err = perr
	}
	if err != nil {
		return err
	}
	raw, err := json.Marshal(now)
	if err == nil {
		err = s.Contexts.FS.Replace(filepath.Join(c.Dir(), contextstore.SnapshotFile), append(raw, '\n'), !s.Contexts.NoSync)
	}
	if err != nil {
		return err
	}
	for _, p := range last.Pieces {
		if !slices.Contains(now.Pieces, p) {
			_ = s.Place.Remove(ctx, house+"/"+p.Name) // what stays the night removes
		}
	}
	return nil
}

// put stores what r has in pieces, those that are not there yet.
func (s *Store) put(ctx context.Context, house, under string, r io.Reader) (all []Piece, err error) {
	for {
		b, err := io.ReadAll(io.LimitReader(r, pieceBytes))
		if err != nil || len(b) == 0 {
			return all, err
		}
		p := Piece{under + bucket.Hash(b), int64(len(b))}
		there, err := s.Place.Has(ctx, house+"/"+p.Name, p.Bytes)
		if err == nil && !there {
			err = s.Place.Put(ctx, house+"/"+p.Name, b)
		}
		if err != nil {
			return nil, &Unreachable{err}
		}
		all = append(all, p)
	}
}

// Write writes the pack of a snapshot, each piece once it is proved by its hash.
func (s *Store) Write(ctx context.Context, of *Snapshot, to io.Writer) error {
	house, err := s.house(ctx)
	if err != nil {
		return err
	}
	for _, p := range of.Pieces {
		b, err := Get(ctx, s.Place, house+"/"+p.Name, min(p.Bytes, pieceBytes))
		if err != nil {
			return reached(err)
		}
		if _, err := to.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// errDamaged is an object that is not what its name says.
var errDamaged = errors.New("it is not what was written")

// Get reads an object, and proves it by its hash.
func Get(ctx context.Context, place bucket.Place, name string, most int64) ([]byte, error) {
	b, err := place.Get(ctx, name, most)
	if err == nil && path.Base(name) != bucket.Hash(b) {
		err = errDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", name, place, err)
	}
	return b, nil
}

// mover keeps contexts, and can have objects hold the large files of one (tables.DB).
type mover interface {
	MoveOut(dir string, within time.Duration, put func(data []byte) (name string, err error)) error
	Objects(dir string) ([]string, error)
}

// MoveOut has objects hold the large files of an ended run, where its context lies in a database.
func (s *Store) MoveOut(ctx context.Context, dir string) error {
	at, ok := disk.At(dir).(mover)
	if !ok {
		return nil
	}
	house, err := s.house(ctx)
	if err != nil {
		return err
	}
	under := house + "/" + filepath.Base(dir) + "/" + rand.Text() + "/" // no other attempt refers to what is there
	return at.MoveOut(dir, sweepAge/2, func(data []byte) (string, error) {
		name := under + bucket.Hash(data)
		err := s.Place.Put(ctx, name, data)
		if err == nil { // it will be all that there is
			if _, rerr := Get(ctx, s.Place, name, int64(len(data))); rerr != nil {
				err = &i18n.Error{Key: "ledger.not_stored", Args: []any{rerr}} // the run itself is not missing
			}
		}
		if err != nil {
			return "", &Unreachable{err}
		}
		return name, nil
	})
}

// sweepAge is how old an object is before it may go: what refers to it may be on its way.
const sweepAge = 24 * time.Hour

// Sweep removes the objects that no context refers to. Those of a run that is worked on stay.
func (s *Store) Sweep(ctx context.Context) (removed int, err error) {
	house, err := s.house(ctx)
	if err != nil {
		return 0, err
	}
	of, stays := "", func(string) bool { return false }
	err = s.Place.Each(ctx, house+"/", func(o bucket.Object) error {
		name := strings.TrimPrefix(o.Name, house+"/")
		id, _, _ := strings.Cut(name, "/")
		if s.Contexts.Now().Sub(o.At) < sweepAge {
			return ctx.Err()
		}
		if id != of {
			refers, err := s.referred(house, id)
			if err != nil {
				return err
			}
			of, stays = id, refers
		}
		if stays(name) {
			return ctx.Err()
		}
		removed++
		return s.Place.Remove(ctx, o.Name)
	})
	return removed, err
}

// referred tells which objects of a run stay.
func (s *Store) referred(house, id string) (func(name string) bool, error) {
	all := func(string) bool { return true }
	dir, err := contextstore.FindDir(s.Contexts.BaseDir, id)
	if errors.Is(err, contextstore.ErrNotFound) {
		return func(string) bool { return false }, nil
	}
	if err != nil || filepath.Base(filepath.Dir(dir)) == contextstore.DirRunning {
		return all, err
	}
	of, err := Read(dir)
	var names []string
	if at, ok := disk.At(dir).(mover); ok && err == nil {
		names, err = at.Objects(dir)
	}
	if err != nil || !disk.Exists(dir) { // it is moved just now
		return all, nil
	}
	if of != nil {
		for _, p := range of.Pieces {
			names = append(names, house+"/"+p.Name)
		}
	}
	return func(name string) bool { return slices.Contains(names, house+"/"+name) }, nil
}
