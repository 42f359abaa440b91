// Package backup copies what a base directory cannot be made from again into a directory or bucket,
// in generations, and brings it back (store-v2 §8.4; docs/format.md). Nothing is written twice, and
// nothing counts as whole whose every byte was not compared with its hash.
package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"filippo.io/age"

	"toritsugi/internal/bucket"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Format is the version of what is written to a place of backups; a newer one is refused.
const Format = 1

// Options say where backups lie and who can read them.
type Options struct {
	Place      string       // a directory, s3://BUCKET/PREFIX or azure://CONTAINER/PREFIX
	S3         bucket.S3    // of s3://
	Azure      bucket.Azure // of azure://
	Recipients []string     // age's public keys; without any nothing is encrypted
	Identity   string       // a file of age's secret keys; "" for none
	FS         *disk.FS     // of a directory; nil for a new one
	HTTP       *http.Client
	Now        func() time.Time
}

// Repository is a place of backups.
type Repository struct {
	place bucket.Place
	to    []age.Recipient
	with  []age.Identity
	own   string // the key of the base directory, if it is among these
	whose string // hash of the recipients of the settings, "" for none
	now   func() time.Time

	zips, unzips sync.Pool // *gzip.Writer, *gzip.Reader
}

// Open names a place of backups, which need not be there; nothing of it is read or written yet.
func Open(o Options) (*Repository, error) {
	r := &Repository{now: o.Now}
	if r.now == nil {
		r.now = time.Now
	}
	for _, s := range o.Recipients {
		to, err := age.ParseRecipients(strings.NewReader(s))
		if err != nil {
			return nil, i18n.E("backup.recipient", s, err)
		}
		r.to = append(r.to, to...)
	}
	if len(o.Recipients) > 0 {
		sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(o.Recipients)), "\n")))
		r.whose = hex.EncodeToString(sum[:])
	}
	if o.Identity != "" {
		raw, err := disk.Read(o.Identity, maxSmall)
		if err == nil {
			r.with, err = age.ParseIdentities(strings.NewReader(string(raw)))
		}
		if err != nil {
			return nil, i18n.E("backup.identity", o.Identity, err)
		}
	}
	if o.Place == "" {
		return r, i18n.E("backup.no_place")
	}
	var err error
	r.place, err = bucket.Open(bucket.Options{Place: o.Place, S3: o.S3, Azure: o.Azure, FS: o.FS, HTTP: o.HTTP, Now: r.now})
	if d, ok := r.place.(*bucket.Directory); ok {
		if st, serr := os.Stat(d.String()); serr == nil && !st.IsDir() || errors.Is(serr, syscall.ENOTDIR) {
			return r, i18n.E("backup.no_directory", d)
		}
	}
	return r, err
}

// Place is where backups lie, for people.
func (r *Repository) Place() string { return r.place.String() }

// maxSmall is the longest file that says something of a backup or of its keys, in bytes.
const maxSmall = 1 << 20

// Manifest is a generation: when it was made, and where what it holds is listed.
type Manifest struct {
	Format    int               `json:"format"`
	Number    int               `json:"number"` // counts up, whatever the clock says
	MadeAt    contextstore.Time `json:"made_at"`
	House     string            `json:"house"` // which base directory it is of
	Encrypted bool              `json:"encrypted"`
	Whose     string            `json:"whose,omitempty"` // hash of the recipients and the own key: for others everything is written anew
	Runs      int64             `json:"runs"`
	Sessions  int64             `json:"sessions"`
	Bytes     int64             `json:"bytes"`       // of the files, as they lie in the base directory
	Added     int64             `json:"added_bytes"` // of what was written for it, lists included
	Failed    int64             `json:"failed"`      // that could not be read, and are as they were before or not in it
	Lists     [][]chunk         `json:"lists"`       // one for each shard
}

// Generation is a manifest by its name, which holds the hash of its bytes.
type Generation struct {
	Name   string
	Number int
	Manifest
	Err error // why it cannot be read
}

const generationsDir = "generations/"

// generationName is where a manifest lies.
func generationName(number int, at time.Time, raw []byte) string {
	return fmt.Sprintf("%s%08d-%s-%s.json", generationsDir, number, at.UTC().Format("20060102T150405Z"), bucket.Hash(raw))
}

// numberOf is the number in the name of a manifest, 0 where it is none.
func numberOf(name string) int {
	name, ok := strings.CutPrefix(name, generationsDir)
	number, _, dashed := strings.Cut(name, "-")
	n, err := strconv.Atoi(number)
	if !ok || !dashed || err != nil || n < 1 || !strings.HasSuffix(name, ".json") {
		return 0
	}
	return n
}

// Generations returns what the place holds, the oldest first; one that is damaged has its Err.
func (r *Repository) Generations(ctx context.Context) (all []Generation, err error) {
	err = r.place.Each(ctx, generationsDir, func(o bucket.Object) error {
		if n := numberOf(o.Name); n > 0 {
			all = append(all, Generation{Name: o.Name, Number: n})
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Generation) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name))
	})
	for i := range all {
		if err := r.load(ctx, &all[i]); err != nil {
			if !IsDamage(err) {
				return nil, err
			}
			all[i].Err = err
		}
	}
	return all, nil
}

// IsDamage reports that an error is of what lies at the place, not of reaching it.
func IsDamage(err error) bool {
	d, n := (*DamagedError)(nil), (*NewerError)(nil)
	return errors.As(err, &d) || errors.As(err, &n)
}

func (r *Repository) load(ctx context.Context, g *Generation) error {
	raw, err := r.place.Get(ctx, g.Name, maxSmall)
	if err != nil {
		return orDamaged(g.Name, err)
	}
	if !strings.HasSuffix(g.Name, "-"+bucket.Hash(raw)+".json") {
		return damaged(g.Name, errHash)
	}
	if err := json.Unmarshal(raw, &g.Manifest); err != nil {
		return damaged(g.Name, err)
	}
	if g.Format > Format {
		return &NewerError{i18n.E("backup.newer", g.Name, g.Format, Format)}
	}
	if len(g.Lists) != shards {
		return damaged(g.Name, fmt.Errorf("%d lists", len(g.Lists)))
	}
	return nil
}

// Latest is the generation of the highest number; its error is also that it cannot be read.
func (r *Repository) Latest(ctx context.Context) (Generation, error) {
	all, err := r.Generations(ctx)
	if err != nil {
		return Generation{}, err
	}
	if len(all) == 0 {
		return Generation{}, i18n.E("backup.none", r.Place())
	}
	g := all[len(all)-1]
	return g, g.Err
}

// Find is the generation of a number, for 0 the latest that can be read.
func (r *Repository) Find(ctx context.Context, number int) (Generation, error) {
	all, err := r.Generations(ctx)
	if err != nil {
		return Generation{}, err
	}
	for _, g := range slices.Backward(all) {
		if number == 0 && g.Err == nil || number != 0 && g.Number == number {
			return g, g.Err
		}
	}
	if number == 0 {
		for _, g := range all {
			err = cmp.Or(err, g.Err)
		}
		if err != nil {
			return Generation{}, err
		}
		return Generation{}, i18n.E("backup.none", r.Place())
	}
	return Generation{}, i18n.E("backup.no_generation", r.Place(), number)
}

// DamagedError says that something at a place of backups is missing or is not what was written.
type DamagedError struct{ error }

func (e *DamagedError) Unwrap() error { return e.error }

// errHash is why something is damaged whose bytes are not those that its name promises.
var errHash = errors.New("its SHA-256 is another")

func damaged(name string, why error) error {
	return &DamagedError{i18n.E("backup.damaged", name).Of(why)}
}

// RefusedError says that what was named does not fit, and that nothing was begun.
type RefusedError struct{ error }

func (e *RefusedError) Unwrap() error { return e.error }

// orDamaged is an error of reading: what is missing, or longer than anything that was written, is damaged.
func orDamaged(name string, err error) error {
	if long := (*disk.TooLargeError)(nil); errors.Is(err, fs.ErrNotExist) || errors.As(err, &long) {
		return damaged(name, err)
	}
	return err
}

// NewerError says that a newer program wrote something.
type NewerError struct{ error }

func (e *NewerError) Unwrap() error { return e.error }
