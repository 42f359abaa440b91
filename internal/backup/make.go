package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"toritsugi/internal/bucket"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Source is what Make copies, and how.
type Source struct {
	Base  string   // base directory
	Plans string   // planning.history.directory, absolute; "" where histories lie with their runs
	FS    *disk.FS // of the base directory
	Keep  int      // how many generations stay; 0 for all
	// Fresh doubts what is at the place: everything is written anew, over what is damaged there.
	Fresh bool
	// Progress is told how many runs and conversations are done, and how many bytes were written; may be nil.
	Progress func(units, written int64)
}

// Report is what Make did.
type Report struct {
	Generation
	Place   string
	Removed int   // generations
	Unswept error // why it could not be seen what no generation needs: it stays until the next time
	Failed  error // of the first unit that could not be read, nil if all could
}

// maker is one call of Make.
type maker struct {
	*Repository
	Source
	tmp     string
	first   map[string]result // what was copied before all the rest
	lists   [listed][]string  // units of some shards
	report  *Report
	storing singleflight.Group
	written atomic.Int64
	done    int64
}

type result struct {
	unit
	err error
}

// identityFile says of a base directory by which name its backups know it, and has the key with
// which it reads those that are encrypted.
const identityFile = "backup.json"

type identity struct {
	House string `json:"house"`
	Key   string `json:"key,omitempty"`
}

// tmpDir is where databases are copied to before they are stored.
const tmpDir = ".backup-tmp"

// Make adds a generation and removes those that are too many. A unit that cannot be read is as it
// was in the generation before, or missing: Report.Failed. Any other error leaves what was there
// before as it was, and what was written so far is used by the next call. filelock.ErrLocked,
// wrapped: another process is at it.
func (r *Repository) Make(ctx context.Context, s Source) (report Report, err error) {
	report.Place = r.Place()
	m := &maker{Repository: r, Source: s, report: &report}
	if m.FS == nil {
		m.FS = &disk.FS{}
	}
	if m.Base, err = filepath.Abs(s.Base); err != nil {
		return report, err
	}
	if _, err := disk.Stat(filepath.Join(m.Base, contextstore.DirCompleted)); err != nil {
		return report, i18n.E("contextstore.no_base", m.Base, err)
	}
	if d, ok := r.place.(*bucket.Directory); ok {
		if in, err := d.Inside(m.Base); err != nil || in {
			return report, &RefusedError{errors.Join(i18n.E("backup.inside", d, m.Base), err)}
		}
	}
	release, err := alone(m.Base)
	if errors.Is(err, filelock.ErrLocked) {
		return report, i18n.E("backup.busy", m.Base).Of(err)
	}
	if err != nil {
		return report, err
	}
	defer release()
	if err := m.makeTmp(); err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.tmp)) }() // what a kill leaves, the next one removes
	err = m.make(ctx)
	return report, err
}

// makeTmp makes an empty directory for copies of databases, elsewhere where the base directory
// cannot be written.
func (m *maker) makeTmp() (err error) {
	m.tmp = filepath.Join(m.Base, tmpDir)
	err = m.FS.RemoveAll(m.tmp)
	if err == nil {
		err = m.FS.MkdirAll(m.tmp)
	}
	if readOnly(err) {
		m.tmp, err = os.MkdirTemp("", "tori-backup-")
	}
	return err
}

func (m *maker) make(ctx context.Context) error {
	id, err := m.identify()
	if err != nil {
		return err
	}
	all, err := m.Generations(ctx)
	if err != nil {
		return err
	}
	last, number := Generation{}, 0
	for _, g := range all {
		number = max(number, g.Number)
		if newer := (*NewerError)(nil); errors.As(g.Err, &newer) {
			return g.Err
		}
		if g.Err == nil {
			last = g
		}
	}
	if last.House != "" && last.House != id.House {
		return &RefusedError{i18n.E("backup.other_house", m.Place(), m.Base)}
	}
	now := Manifest{Format: Format, Number: number + 1, MadeAt: contextstore.Time{Time: m.now().UTC()}, House: id.House, Encrypted: len(m.to) > 0, Whose: m.whose}
	if m.whose != "" {
		now.Whose = bucket.Hash([]byte(m.whose + m.own))
	}
	m.Fresh = m.Fresh || last.Name != "" && last.Whose != now.Whose
	m.first = map[string]result{}
	for _, path := range files {
		was := map[string]unit{}
		if last.Name != "" {
			if err := m.before(ctx, last.Lists[shardOf(path)], was); err != nil {
				return err
			}
		}
		u, err := m.pack(ctx, path, was[path])
		m.first[path] = result{u, err}
	}
	for shard := range shards {
		list, err := m.shard(ctx, shard, last, &now)
		if err != nil {
			return fmt.Errorf("back up %s to %s: %w", m.Base, m.Place(), err)
		}
		now.Lists = append(now.Lists, list)
	}
	now.Added = m.written.Load()
	raw, err := json.MarshalIndent(now, "", " ")
	if err != nil {
		return err
	}
	g := Generation{Name: generationName(now.Number, now.MadeAt.Time, raw), Number: now.Number, Manifest: now}
	if err := m.store(ctx, g.Name, raw); err != nil {
		return fmt.Errorf("back up %s to %s: %w", m.Base, m.Place(), err)
	}
	m.report.Generation = g
	return m.prune(ctx, append(all, g))
}

// identify reads or makes the name and, where backups are encrypted, the key of the base directory.
func (m *maker) identify() (id identity, err error) {
	path := filepath.Join(m.Base, identityFile)
	id, err = readIdentity(m.Base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return id, i18n.E("backup.own_identity", path, err)
	}
	was := id
	id.House = cmp.Or(id.House, uuid.NewString())
	if id.Key == "" && len(m.to) > 0 {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			return id, err
		}
		id.Key = key.String()
	}
	if id != was {
		raw, err := jsonl.Append(nil, id)
		if err == nil {
			err = m.FS.Replace(path, raw, true)
		}
		if err != nil && !readOnly(err) {
			return id, err
		}
	}
	return id, m.Know(m.Base)
}

func readIdentity(base string) (id identity, err error) {
	raw, err := disk.Read(filepath.Join(base, identityFile), maxSmall)
	if err != nil {
		return id, err
	}
	return id, json.Unmarshal(raw, &id)
}

// Know lets the repository read what the base directory wrote, and write so that it can. Without a
// base directory, or one that never made a backup, nothing changes.
func (r *Repository) Know(base string) error {
	id, err := readIdentity(base)
	if errors.Is(err, fs.ErrNotExist) || err == nil && id.Key == "" {
		return nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return i18n.E("backup.no_directory", base)
	}
	var key *age.X25519Identity
	if err == nil {
		key, err = age.ParseX25519Identity(id.Key)
	}
	if err != nil && len(r.with) > 0 { // who brings a key needs none of a damaged base directory
		return nil
	}
	if err != nil {
		return i18n.E("backup.own_identity", filepath.Join(base, identityFile), err)
	}
	if r.own == id.Key {
		return nil
	}
	r.own, r.with = id.Key, append(r.with, key)
	if len(r.to) > 0 {
		r.to = append(r.to, key.Recipient())
	}
	return nil
}

// before adds the units of a list of the generation before. Those of one that is damaged, or that
// nobody can decrypt, count as not there.
func (m *maker) before(ctx context.Context, list []chunk, all map[string]unit) error {
	err := m.units(ctx, list, func(u unit) error { all[u.Path] = u; return nil })
	if locked := (*LockedError)(nil); errors.As(err, &locked) || IsDamage(err) {
		return nil
	}
	return err
}

// shard copies the units of a shard and stores their list.
func (m *maker) shard(ctx context.Context, shard int, last Generation, now *Manifest) (list []chunk, err error) {
	list = []chunk{}
	paths, err := m.paths(shard)
	if err != nil {
		return nil, err
	}
	was, had := map[string]unit{}, map[string]chunk{}
	if last.Name != "" {
		if err := m.before(ctx, last.Lists[shard], was); err != nil {
			return nil, err
		}
		had = known(last.Lists[shard])
	}
	var line []byte
	cut := cutter{emit: func(piece []byte) error {
		c, err := m.put(ctx, piece, had)
		list = append(list, c)
		return err
	}}
	var ahead []result // of paths from at on
	for at, path := range paths {
		if at%packedAhead == 0 {
			if ahead = m.packAll(ctx, paths[at:min(at+packedAhead, len(paths))], was); ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		got := ahead[at%packedAhead]
		u := got.unit
		switch wrote := (*putError)(nil); {
		case errors.Is(got.err, fs.ErrNotExist) && !errors.As(got.err, &wrote):
			continue // retention removed it, or there never was one
		case errors.As(got.err, &wrote) || ctx.Err() != nil:
			return nil, got.err
		case got.err != nil:
			now.Failed++
			m.report.Failed = cmp.Or(m.report.Failed, fmt.Errorf("%s: %w", path, got.err))
			if u = was[path]; u.Path == "" {
				continue
			}
			if m.Fresh {
				u.Chunks, err = m.again(ctx, u.Chunks)
				if locked := (*LockedError)(nil); errors.As(err, &locked) || IsDamage(err) {
					continue // it cannot be brought back
				}
				if err != nil {
					return nil, err
				}
			}
		}
		now.Bytes += u.Bytes
		switch {
		case strings.HasPrefix(path, contextstore.DirCompleted+"/"):
			now.Runs++
		case u.Dir:
			now.Sessions++
		}
		if line, err = jsonl.Append(line[:0], u); err != nil {
			return nil, err
		}
		if _, err := cut.Write(line); err != nil {
			return nil, err
		}
		if m.done++; m.Progress != nil {
			m.Progress(m.done, m.written.Load())
		}
	}
	return list, cut.flush()
}

// packedAhead is how many units are packed before the first of them is listed, packers how many at a
// time: each waits for the disk or the network most of the time, and holds a chunk and its object.
const (
	packedAhead = 256
	packers     = 8
)

// packAll packs units, some of them at the same time; what was copied first is packed already.
func (m *maker) packAll(ctx context.Context, paths []string, was map[string]unit) []result {
	all := make([]result, len(paths))
	var g errgroup.Group
	g.SetLimit(packers)
	for i, path := range paths {
		if got, early := m.first[path]; early {
			all[i] = got
			continue
		}
		g.Go(func() error {
			if all[i].err = ctx.Err(); all[i].err == nil {
				all[i].unit, all[i].err = m.pack(ctx, path, was[path])
			}
			return nil
		})
	}
	_ = g.Wait() // each has its own
	return all
}

// again stores chunks of the generation before anew, for those who are to read this one.
func (m *maker) again(ctx context.Context, was []chunk) (all []chunk, err error) {
	for _, c := range was {
		piece, err := m.get(ctx, c)
		if err != nil {
			return nil, err
		}
		if c, err = m.put(ctx, piece, nil); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// putError is an error of the place of the backups, not of what is copied.
type putError struct{ error }

func (e *putError) Unwrap() error { return e.error }

// put stores a piece of a unit or list, once where several units have it at the same time.
func (m *maker) put(ctx context.Context, piece []byte, had map[string]chunk) (chunk, error) {
	v, err, _ := m.storing.Do(bucket.Hash(piece), func() (any, error) {
		c, wrote, err := m.Repository.put(ctx, piece, had, m.Fresh)
		m.written.Add(wrote)
		return c, err
	})
	if err != nil {
		err = &putError{err}
	}
	return v.(chunk), err
}

// prune removes the generations that are too many, the oldest first, and then what none of the
// others needs. One that is damaged does not count, and goes once it is older than all that stay.
// That is told from their lists: while one of them cannot be read, nothing is removed.
func (m *maker) prune(ctx context.Context, all []Generation) error {
	stay, whole := len(all), 0 // where those that stay begin
	for stay > 0 && whole < m.Keep {
		if stay--; all[stay].Err == nil {
			whole++
		}
	}
	if m.Keep == 0 || stay == 0 || whole < m.Keep {
		return nil
	}
	gone := all[:stay]
	for _, g := range gone {
		if err := m.place.Remove(ctx, g.Name); err != nil {
			return err
		}
		m.report.Removed++
	}
	err := m.sweep(ctx, all[len(gone):])
	if locked := (*LockedError)(nil); errors.As(err, &locked) || IsDamage(err) {
		m.report.Unswept, err = err, nil
	}
	return err
}

// perPass is how many units' objects are held in memory at a time while what is needed is told
// from what is not.
const perPass = 500_000

// spared is how old an object must be that is taken for not needed: another machine may have just
// written it for a generation that is not there yet.
const spared = 24 * time.Hour

func (m *maker) sweep(ctx context.Context, keep []Generation) error {
	most := int64(0)
	for _, g := range keep {
		if g.Err != nil {
			return g.Err
		}
		most = max(most, g.Runs+g.Sessions)
	}
	passes := min(int(most/perPass)+1, 256)
	old := m.now().Add(-spared)
	for pass := range passes {
		mine := func(object string) bool { return len(object) == 64 && int(first(object))%passes == pass }
		needed, read := map[[16]byte]bool{}, map[string]bool{}
		need := func(chunks []chunk) {
			for _, c := range chunks {
				if mine(c.Object) {
					needed[[16]byte([]byte(c.Object[:16]))] = true
				}
			}
		}
		for _, g := range keep {
			for _, list := range g.Lists {
				need(list)
				name := bucket.Hash(fmt.Append(nil, list))
				if read[name] { // another generation has the same
					continue
				}
				read[name] = true
				if err := m.units(ctx, list, func(u unit) error { need(u.Chunks); return nil }); err != nil {
					return err
				}
			}
		}
		err := m.place.Each(ctx, dataDir, func(o bucket.Object) error {
			object, ok := objectOf(o.Name)
			if !ok || !mine(object) || needed[[16]byte([]byte(object[:16]))] && !leftover(o.Name) || !o.At.Before(old) {
				return nil
			}
			return m.place.Remove(ctx, o.Name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// first is the first byte of a hash in hexadecimal.
func first(object string) byte {
	const digits = "0123456789abcdef"
	return byte(strings.IndexByte(digits, object[0])<<4 | strings.IndexByte(digits, object[1])) //nolint:gosec // checked by objectOf, or of our own list
}

// leftover reports whether a name is that of a write that was cut short.
func leftover(name string) bool { return strings.HasSuffix(name, ".tmp") }

// objectOf is the object that lies, or was to lie, under a name; false where it is nothing of ours.
func objectOf(name string) (object string, ok bool) {
	dir, file, _ := strings.Cut(strings.TrimPrefix(name, dataDir), "/")
	if rest, tmp := strings.CutSuffix(file, ".tmp"); tmp {
		file = strings.TrimPrefix(rest, ".")
	}
	if len(file) != 64 || file[:2] != dir || strings.Trim(file, "0123456789abcdef") != "" {
		return "", false
	}
	return file, true
}
