package conversation

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	_ "modernc.org/sqlite" // the driver

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/disk"
)

// analysesFile keeps what ANALYZE structured, beside the sessions (spec/chat §8).
const analysesFile = "analyses.db"

// Analysis is a record of ANALYZE.
type Analysis struct {
	ID       int64           `json:"id"`
	Session  string          `json:"session"`
	Message  string          `json:"message,omitempty"` // that it answers
	User     string          `json:"user"`
	Title    string          `json:"title"`
	DataType string          `json:"data_type"` // log, csv, json, text or mixed
	Record   json.RawMessage `json:"record"`    // the worker's result
	Source   string          `json:"source_hash"`
	Created  time.Time       `json:"created"`
}

// Analyses is the store of records. The file is opened when it is first needed; without
// one there are no records. Safe for concurrent use, and by several processes.
type Analyses struct {
	path string

	mu   sync.Mutex
	db   *sql.DB
	made bool // its tables are there
}

// NewAnalyses is the store below a base directory; nothing is opened.
func NewAnalyses(base string) *Analyses {
	return &Analyses{path: filepath.Join(contextstore.SessionsDir(base), analysesFile)}
}

const analysesSchema = `CREATE TABLE IF NOT EXISTS analyses (
	id INTEGER PRIMARY KEY,
	session TEXT NOT NULL,
	user TEXT NOT NULL,
	title TEXT NOT NULL,
	data_type TEXT NOT NULL,
	record TEXT NOT NULL,
	source_hash TEXT NOT NULL,
	created INTEGER NOT NULL,
	message TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS analyses_user ON analyses (user, created);
CREATE INDEX IF NOT EXISTS analyses_source ON analyses (source_hash);
CREATE INDEX IF NOT EXISTS analyses_created ON analyses (created);`

// open is the database; nil where there is no file and none is to be made.
func (a *Analyses) open(ctx context.Context, create bool) (*sql.DB, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.db != nil {
		return a.db, a.schema(ctx, create)
	}
	if _, err := os.Stat(a.path); errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil, nil
		}
		if err := os.MkdirAll(filepath.Dir(a.path), disk.DirMode); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(a.path, os.O_CREATE|os.O_RDWR, disk.FileMode) // SQLite would make it for all to read
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	// Its writes are few. A switch to WAL would fail where two processes make the file at once.
	query := url.Values{"_pragma": {"busy_timeout(5000)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: a.path}).EscapedPath(), RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2)
	a.db = db
	if err := a.schema(ctx, create); err != nil {
		a.db = nil
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// schema makes the tables before the first record is written, with the column that files of
// before have not. The caller holds mu.
func (a *Analyses) schema(ctx context.Context, wanted bool) error {
	if !wanted || a.made {
		return nil
	}
	_, err := a.db.ExecContext(ctx, analysesSchema)
	if err == nil {
		_, err = a.db.ExecContext(ctx, "ALTER TABLE analyses ADD COLUMN message TEXT NOT NULL DEFAULT ''")
	}
	if err != nil && !strings.Contains(err.Error(), "duplicate column name") {
		return fmt.Errorf("open %s: %w", a.path, err)
	}
	a.made = true
	return nil
}

// Close closes the database.
func (a *Analyses) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.db == nil {
		return nil
	}
	err := a.db.Close()
	a.db = nil
	return err
}

// Add keeps a record; its ID is filled in by the store.
func (a *Analyses) Add(ctx context.Context, r Analysis) error {
	db, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO analyses (session, message, user, title, data_type, record, source_hash, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		r.Session, r.Message, r.User, r.Title, r.DataType, string(r.Record), r.Source, r.Created.UnixMicro())
	if err != nil {
		return fmt.Errorf("keep an analysis: %w", err)
	}
	return nil
}

const analysisColumns = "SELECT id, session, user, title, data_type, record, source_hash, created FROM analyses "

// Find returns the records of a user (of everybody for "") that hold each of the words,
// the latest first, at most n.
func (a *Analyses) Find(ctx context.Context, user string, words []string, n int) ([]Analysis, error) {
	where, args := []string{"1"}, []any{}
	if user != "" {
		where, args = append(where, "user = ?"), append(args, user)
	}
	for _, w := range words {
		where, args = append(where, `(title LIKE ? ESCAPE '\' OR record LIKE ? ESCAPE '\')`), append(args, like(w), like(w))
	}
	return a.query(ctx, analysisColumns+"WHERE "+strings.Join(where, " AND ")+" ORDER BY created DESC, id DESC LIMIT ?", append(args, n)...)
}

func like(w string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(w) + "%"
}

// Same returns the latest record of a user about the same source, nil where there is none.
func (a *Analyses) Same(ctx context.Context, user, source string) (*Analysis, error) {
	all, err := a.query(ctx, analysisColumns+"WHERE source_hash = ? AND user = ? ORDER BY created DESC, id DESC LIMIT 1", source, user)
	if len(all) == 0 {
		return nil, err
	}
	return &all[0], err
}

// titlesBack is how many of a user's latest records a message is compared with.
const titlesBack = 200

// About returns the latest record of a user whose title shares a word with a message that
// is rare enough to tell something, nil where there is none.
func (a *Analyses) About(ctx context.Context, user, message string) (*Analysis, error) {
	words := telling(message)
	if len(words) == 0 {
		return nil, nil
	}
	db, err := a.open(ctx, false)
	if err != nil || db == nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT id, title FROM analyses WHERE user = ? ORDER BY created DESC, id DESC LIMIT ?", user, titlesBack)
	if err != nil {
		return nil, missing(err)
	}
	defer func() { _ = rows.Close() }()
	var best int64
	most := 0
	for rows.Next() {
		var id int64
		var title string
		if err := rows.Scan(&id, &title); err != nil {
			return nil, err
		}
		n := 0
		for _, w := range telling(title) {
			if slices.Contains(words, w) {
				n++
			}
		}
		if n > most {
			best, most = id, n
		}
	}
	if err := rows.Err(); err != nil || most < 2 {
		return nil, err
	}
	all, err := a.query(ctx, analysisColumns+"WHERE id = ?", best)
	if len(all) == 0 {
		return nil, err
	}
	return &all[0], err
}

// telling are the words of a text in lower case: of letters and digits four and more, of
// Japanese each two neighbours, which have no spaces between words.
func telling(text string) (words []string) {
	text = strings.ToLower(text)
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) || r >= 0x2E80 }) {
		if utf8.RuneCountInString(w) >= 4 {
			words = append(words, w)
		}
	}
	wide := func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Katakana) }
	var before rune
	for _, r := range text {
		if wide(r) && wide(before) {
			words = append(words, string([]rune{before, r}))
		}
		before = r
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// Withdraw removes what was kept of a message of a session.
func (a *Analyses) Withdraw(ctx context.Context, session, message string) error {
	db, err := a.open(ctx, false)
	if err != nil || db == nil {
		return err
	}
	_, err = db.ExecContext(ctx, "DELETE FROM analyses WHERE session = ? AND message = ?", session, message)
	if err != nil && strings.Contains(err.Error(), "no such column") { // a file of before, which knows of none
		return nil
	}
	return missing(err)
}

// Forget removes the records that are older than a time.
func (a *Analyses) Forget(ctx context.Context, before time.Time) error {
	db, err := a.open(ctx, false)
	if err != nil || db == nil {
		return err
	}
	_, err = db.ExecContext(ctx, "DELETE FROM analyses WHERE created < ?", before.UnixMicro())
	return missing(err)
}

func (a *Analyses) query(ctx context.Context, query string, args ...any) (all []Analysis, err error) {
	db, err := a.open(ctx, false)
	if err != nil || db == nil {
		return nil, err
	}
	all, err = database.Read(ctx, db, func(rows *sql.Rows) (r Analysis, err error) {
		var record string
		var created int64
		err = rows.Scan(&r.ID, &r.Session, &r.User, &r.Title, &r.DataType, &record, &r.Source, &created)
		r.Record, r.Created = json.RawMessage(record), time.UnixMicro(created).UTC()
		return r, err
	}, query, args...)
	return all, missing(err)
}

// missing is nil for a file that was made and has no table yet: it holds no records.
func missing(err error) error {
	if err != nil && strings.Contains(err.Error(), "no such table") {
		return nil
	}
	return err
}

// sourceHash stands for what was analysed, whatever space is around and between it.
func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(strings.Join(strings.Fields(text), " ")))
	return hex.EncodeToString(sum[:])
}
