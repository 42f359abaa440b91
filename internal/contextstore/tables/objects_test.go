package tables

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/disk"
)

// objects is a bucket in memory.
type objects map[string][]byte

func (o objects) put(data []byte) (string, error) {
	name := fmt.Sprintf("house/run/%d", len(o))
	o[name] = bytes.Clone(data)
	return name, nil
}

func (o objects) get(_ context.Context, name string, most int64) ([]byte, error) {
	b, there := o[name]
	if !there || int64(len(b)) > most {
		return nil, fs.ErrNotExist
	}
	return b, nil
}

// eachEnded runs a test with each engine, about the directory of a run that ended.
func eachEnded(t *testing.T, f func(t *testing.T, db *DB, dir string, d *disk.FS)) {
	t.Helper()
	eachEngine(t, func(t *testing.T, open func(Options) *DB) {
		db, d := open(Options{}), &disk.FS{}
		dir := filepath.Join(db.Base, "completed", "r")
		ok(t, d.MkdirAll(dir))
		f(t, db, dir, d)
	})
}

// Large files that no SQL looks into are read from objects as from the tables, at any place; what
// takes their names, or takes them away, refers to the objects no more.
func TestMoveOut(t *testing.T) {
	t.Parallel()
	eachEnded(t, func(t *testing.T, db *DB, dir string, d *disk.FS) {
		bucket := objects{}
		db.Object = bucket.get
		ok(t, d.MkdirAll(filepath.Join(dir, "spill")))
		random := rand.NewChaCha8([32]byte{1})
		files := map[string][]byte{}
		for name, size := range map[string]int{"messages.jsonl.gz": 20_000, "spill/1.txt": 2*objectBytes + 1000, "spill/2.txt": movedFrom, "small.txt": movedFrom - 1, "tools.jsonl": 20_000, "metadata.json": 20_000} {
			b := make([]byte, size)
			_, _ = random.Read(b)
			files[name] = b
			ok(t, d.Replace(filepath.Join(dir, name), b, true))
		}
		f, err := disk.OpenPlain(filepath.Join(dir, "spill/1.txt"))
		ok(t, err)
		b := make([]byte, 10)
		_, err = f.ReadAt(b, 3)
		ok(t, err)
		for range 2 { // the second time there is nothing left to move
			err := db.MoveOut(dir, time.Hour, bucket.put)
			moved := 0
			for _, b := range bucket {
				moved += len(b)
			}
			if want := 20_000 + 2*objectBytes + 1000 + movedFrom; err != nil || moved != want || len(bucket) != 5 {
				t.Fatalf("moved %d of %d into %d objects: %v", moved, want, len(bucket), err)
			}
		}
		for name, want := range files {
			if got := read(t, filepath.Join(dir, name)); got != string(want) {
				t.Errorf("%s is not what it was", name)
			}
		}
		want := files["spill/1.txt"] // as it was opened before
		for range 50 {
			off := rand.IntN(len(want))
			p := make([]byte, rand.IntN(100_000))
			got, err := f.ReadAt(p, int64(off))
			if !bytes.Equal(p[:got], want[off:min(off+len(p), len(want))]) || got < len(p) && !errors.Is(err, io.EOF) {
				t.Fatalf("%d at %d: %d, %v", len(p), off, got, err)
			}
		}
		ok(t, f.Close())
		if names, err := db.Objects(dir); err != nil || len(names) != 5 {
			t.Errorf("refers to %q: %v", names, err)
		}

		ok(t, d.Replace(filepath.Join(dir, "spill/2.txt"), []byte("new"), true))
		ok(t, d.Rename(filepath.Join(dir, "small.txt"), filepath.Join(dir, "spill/1.txt")))
		if got := read(t, filepath.Join(dir, "spill/2.txt")); got != "new" {
			t.Errorf("replaced: %q", got)
		}
		names, err := db.Objects(dir)
		if err != nil || len(names) != 1 {
			t.Errorf("refers to %q: %v", names, err)
		}
		delete(bucket, names[0])
		if _, err := disk.Read(filepath.Join(dir, "messages.jsonl.gz"), disk.MaxWhole); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "bucket") {
			t.Errorf("an object that is gone: %v", err)
		}
		db.Object = nil
		if _, err := disk.Read(filepath.Join(dir, "messages.jsonl.gz"), disk.MaxWhole); err == nil || !strings.Contains(err.Error(), "context_storage.blobs") {
			t.Errorf("without a bucket: %v", err)
		}
		ok(t, d.Remove(filepath.Join(dir, "messages.jsonl.gz")))
		if names, err := db.Objects(dir); err != nil || len(names) > 0 {
			t.Errorf("refers to %q: %v", names, err)
		}
	})
}

// What is written while a file is moved wins.
func TestMoveOutWhileItIsReplaced(t *testing.T) {
	t.Parallel()
	eachEnded(t, func(t *testing.T, db *DB, dir string, d *disk.FS) {
		path := filepath.Join(dir, "a.gz")
		ok(t, d.Replace(path, bytes.Repeat([]byte("x\n"), movedFrom), true))
		bucket := objects{}
		err := db.MoveOut(dir, time.Hour, func(data []byte) (string, error) {
			ok(t, d.Replace(path, bytes.Repeat([]byte("y\n"), movedFrom), true))
			return bucket.put(data)
		})
		if !errors.Is(err, errSize) {
			t.Errorf("%v", err)
		}
		if got := read(t, path); got != strings.Repeat("y\n", movedFrom) {
			t.Errorf("%.20q", got)
		}
	})
}

// A move that comes too late, by the database's clock, refers to nothing: its objects may be gone.
func TestMoveOutTooLate(t *testing.T) {
	t.Parallel()
	eachEnded(t, func(t *testing.T, db *DB, dir string, d *disk.FS) {
		path, want := filepath.Join(dir, "a.gz"), strings.Repeat("x\n", movedFrom)
		ok(t, d.Replace(path, []byte(want), true))
		if err := db.MoveOut(dir, -time.Millisecond, objects{}.put); !errors.Is(err, errLate) {
			t.Errorf("%v", err)
		}
		if got := read(t, path); got != want {
			t.Errorf("%.20q", got)
		}
	})
}

// A database that the version before made is brought up to date, and keeps what it has.
func TestTablesOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	h, err := sql.Open("sqlite", "file:"+filepath.Join(base, File))
	ok(t, err)
	_, err = h.ExecContext(t.Context(), strings.ReplaceAll(schemaSQL, "{json}", sqliteJSON)+`
		PRAGMA user_version=1;
		INSERT INTO contexts VALUES (7, 'completed', 'r', 1);
		INSERT INTO files VALUES (8, 7, 'a.txt', 6, 1, 1);
		INSERT INTO lines VALUES (8, 0, CAST('hello' || char(10) AS BLOB))`)
	ok(t, errors.Join(err, h.Close()))
	d := openSQLite(t, base)
	mount(t, d)
	path := filepath.Join(base, "completed", "r", "a.txt")
	if got := read(t, path); got != "hello\n" {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("x", movedFrom)
	ok(t, (&disk.FS{}).Replace(path, []byte(long), true))
	bucket := objects{}
	d.Object = bucket.get
	if err := d.MoveOut(filepath.Dir(path), time.Hour, bucket.put); err != nil || read(t, path) != long {
		t.Errorf("%v", err)
	}
	var has []string
	ok(t, d.query(`SELECT name FROM pragma_table_info('lines')`, nil, func(scan func(...any) error) error {
		has = append(has, "")
		return scan(&has[len(has)-1])
	}))
	if !slices.Contains(has, "object") {
		t.Errorf("%q", has)
	}
}
