package search

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/task"
)

// Vectors is a model for embeddings, by which runs are found that are alike in meaning. The zero value is none.
type Vectors struct {
	Model string // its name; vectors of another one are thrown away
	// Embed makes a vector of each text; its errors are its own to tell, and cost what vectors would find. Nil
	// makes none: those that are there count.
	Embed func(ctx context.Context, texts []string) ([][]float32, error)
	May   func(contextstore.View) bool // whether what a run was asked may be given to Embed; nil is always
}

// What is embedded and compared: of the request so many characters, so many runs at once, and the newest so
// many of a repository; how long a look-up waits for the vector of what it looks for.
const (
	embeddedRunes = 300
	embeddedRuns  = 8
	nearestOf     = 20_000
	embedWait     = 15 * time.Second
)

// fewVectors is the number below which the distances within a repository tell nothing of what is far in it.
const fewVectors = 8

func (l Like) text() string {
	body := l.Body
	if utf8.RuneCountInString(body) > embeddedRunes {
		body = string([]rune(clip(body, embeddedRunes*utf8.UTFMax))[:embeddedRunes])
	}
	return strings.TrimSpace(l.Title + "\n" + body)
}

// placeOf is where runs lie that are compared.
func placeOf(k task.Key) string { return facet("place", k.Source+" "+k.Owner+" "+k.Repo) }

// embed makes the vectors that are missing, of the newest runs first.
func (d *DB) embed(ctx context.Context) error {
	if d.vectors.Model == "" || d.vectors.Embed == nil || d.readOnly != nil {
		return nil
	}
	for {
		missing, err := database.List(ctx, d.file, refOf, `SELECT id, uuid FROM runs WHERE NOT EXISTS (SELECT 1 FROM search_meta JOIN vectors ON vectors.id = runs.id
			WHERE key='vectors' AND value=?) ORDER BY id DESC LIMIT ?`, d.vectors.Model, embeddedRuns)
		if err != nil || len(missing) == 0 {
			return err
		}
		made, err := d.vectorsOf(ctx, missing)
		if err != nil || made == nil {
			return err
		}
		if err := d.change(ctx, func(tx *sql.Tx) error { return d.keep(ctx, tx, made) }); err != nil {
			return err
		}
	}
}

// vectorOf is a vector of a run, as it is kept.
type vectorOf struct {
	ref
	place  string
	vector []byte
}

// vectorsOf makes the vectors of runs; nil where the model cannot be called. One without a text, that cannot be read,
// may not be given away, or that the model refuses gets an empty one: it is not looked at again until it changes.
func (d *DB) vectorsOf(ctx context.Context, runs []ref) ([]vectorOf, error) {
	made := make([]vectorOf, len(runs))
	var texts []string
	var of []int
	for i, r := range runs {
		made[i] = vectorOf{ref: r, vector: []byte{}}
		v, err := contextstore.ReadView(filepath.Join(d.dir, contextstore.DirCompleted, r.uuid))
		if err != nil {
			continue // it is gone, or damaged
		}
		made[i].place = placeOf(v.Metadata.TaskKey)
		if d.vectors.May != nil && !d.vectors.May(v) {
			continue
		}
		l, err := LikeOf(v)
		if text := l.text(); err == nil && text != "" {
			texts, of = append(texts, text), append(of, i)
		}
	}
	if len(texts) == 0 {
		return made, nil
	}
	all := d.embedded(ctx, texts)
	if all == nil {
		return nil, ctx.Err()
	}
	for n, i := range of {
		made[i].vector = packed(all[n])
	}
	return made, nil
}

// taken is a text that any model takes.
const taken = "text"

// embedded has a vector for each text, nil for one that the model refuses; it is nil where the model cannot be called.
// Of several texts one that is refused fails all; so does a model that is down, which takes no other text, either.
func (d *DB) embedded(ctx context.Context, texts []string) [][]float32 {
	all, err := d.vectors.Embed(ctx, texts)
	if err == nil && len(all) == len(texts) {
		return all
	}
	if all = nil; ctx.Err() != nil {
		return nil
	}
	for _, t := range texts {
		one, err := d.vectors.Embed(ctx, []string{t})
		if err != nil || len(one) != 1 {
			if one, err = d.vectors.Embed(ctx, []string{taken}); err != nil || len(one) != 1 {
				return nil
			}
			one[0] = nil
		}
		all = append(all, one[0])
	}
	return all
}

// keep puts vectors in, of runs that are still there, in the place of those of another model.
func (d *DB) keep(ctx context.Context, tx *sql.Tx, made []vectorOf) error {
	r, err := tx.ExecContext(ctx, `INSERT INTO search_meta VALUES ('vectors', ?) ON CONFLICT DO UPDATE SET value=excluded.value WHERE value <> excluded.value`, d.vectors.Model)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		if _, derr := tx.ExecContext(ctx, `DELETE FROM vectors`); err != nil || derr != nil {
			return cmp.Or(err, derr)
		}
	}
	for _, m := range made {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO vectors SELECT ?, id, ? FROM runs WHERE id=? AND uuid=?`, m.place, m.vector, m.id, m.uuid); err != nil {
			return err
		}
	}
	return nil
}

// packed is a vector with a byte for each number.
func packed(v []float32) []byte {
	most := float32(0)
	for _, x := range v {
		most = max(most, x, -x)
	}
	b := make([]byte, len(v))
	for i, x := range v {
		if most > 0 {
			b[i] = byte(int8(math.Round(float64(x / most * math.MaxInt8))))
		}
	}
	return b
}

// cosine is that of two vectors of the same length, -1 to 1; 0 where one has no direction.
func cosine(a, b []byte) float64 {
	var dot, aa, bb int64
	for i, x := range a {
		x, y := int64(int8(x)), int64(int8(b[i]))
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return float64(dot) / math.Sqrt(float64(aa)*float64(bb))
}

// nearness is how near runs of a repository are, by id: the standard deviations by which the cosine is above the
// mean of the repository, nearFull of them being 1.
type nearness map[int64]float64

const nearFull = 6 // decision 086

// near compares what is asked for with the newest runs of its repository, and returns the nearest of them. Without a
// model, a vector of what is asked for, or enough to compare with there is nothing.
func (d *DB) near(ctx context.Context, l Like) (n nearness, nearest []ref, err error) {
	mine, err := d.mine(ctx, l)
	if err != nil || len(mine) == 0 {
		return nil, nil, err
	}
	type one struct {
		id  int64
		cos float64
	}
	var all []one
	var sum, squares float64
	err = d.file.Use(func(h *database.Handles) error {
		var o one
		var raw sql.RawBytes
		return database.Each(ctx, h.R, func(rows *sql.Rows) error {
			if err := rows.Scan(&o.id, &raw); err != nil {
				return err
			}
			if len(raw) == len(mine) {
				o.cos = cosine(mine, raw)
				all, sum, squares = append(all, o), sum+o.cos, squares+o.cos*o.cos
			}
			return nil
		}, `SELECT id, vector FROM vectors WHERE place=? AND EXISTS (SELECT 1 FROM search_meta WHERE key='vectors' AND value=?) ORDER BY id DESC LIMIT ?`,
			placeOf(l.Key), d.vectors.Model, nearestOf)
	})
	count := float64(len(all))
	mean := sum / count
	deviation := math.Sqrt(max(squares/count-mean*mean, 0))
	if err != nil || len(all) < fewVectors || deviation < 1e-6 {
		return nil, nil, err
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Compare(b.cos, a.cos) })
	n = nearness{}
	for _, o := range all {
		n[o.id] = min(max((o.cos-mean)/deviation/nearFull, 0), 1)
	}
	var ids []int64
	for _, o := range all[:min(len(all), candidates)] {
		ids = append(ids, o.id)
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, nil, err
	}
	nearest, err = database.List(ctx, d.file, refOf, `SELECT id, uuid FROM runs WHERE id IN (SELECT value FROM json_each(?))`, string(list))
	return n, nearest, err
}

// mine is the vector of what is asked for: that of the run which it is, or one that is made now.
func (d *DB) mine(ctx context.Context, l Like) ([]byte, error) {
	if d.vectors.Model == "" {
		return nil, nil
	}
	if l.UUID != "" {
		kept, err := database.List(ctx, d.file, func(rows *sql.Rows) (v []byte, err error) {
			err = rows.Scan(&v)
			return v, err
		}, `SELECT vector FROM vectors JOIN runs USING (id) JOIN search_meta ON key='vectors' AND value=? WHERE uuid=?`, d.vectors.Model, l.UUID)
		if err != nil {
			return nil, err
		}
		if len(kept) > 0 {
			return kept[0], nil
		}
	}
	text := l.text()
	if d.vectors.Embed == nil || text == "" {
		return nil, nil
	}
	in, cancel := context.WithTimeout(ctx, embedWait)
	defer cancel()
	made, err := d.vectors.Embed(in, []string{text})
	if err != nil || len(made) != 1 {
		return nil, ctx.Err()
	}
	return packed(made[0]), nil
}
