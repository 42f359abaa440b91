package contextstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/i18n"
)

// PlanningRecord is the name in a record of the history of planning, wherever that lies.
const PlanningRecord = "planning.jsonl"

// importPrefix begins the name, in the base directory, of a base directory in which a run is put
// together before it counts.
const importPrefix = ".import-"

// Import puts a run back from its record, as tori export --format json writes it: with its uuid, as
// it ended. What it still owed the world is taken off: nothing goes out. verify is given a base
// directory that holds the run alone, before the run counts. Wherever it is cut short the run is
// there whole or not at all. In memory is one line of it. A run that is there already, that had not
// ended, or that was written as something else than a record, is an error.
func (s *Store) Import(ctx context.Context, record io.Reader, verify func(base string) error) (v View, err error) {
	if err := s.room(); err != nil {
		return v, err
	}
	alone, err := s.Alone("import")
	if err != nil {
		return v, err
	}
	defer alone.Release()
	left, err := filepath.Glob(filepath.Join(escapeGlob(s.BaseDir), importPrefix+"*"))
	for _, dir := range left {
		err = errors.Join(err, s.FS.RemoveAll(dir))
	}
	if err != nil {
		return v, err
	}
	base := filepath.Join(s.BaseDir, importPrefix+s.NewUUID())
	defer func() { _ = s.FS.RemoveAll(base) }() // what stays the next import removes
	m := &importer{store: s, ctx: ctx, dir: filepath.Join(base, "new"), files: map[string]bool{}}
	if err := m.read(record); err != nil {
		return v, err
	}
	if err := m.whole(); err != nil {
		return v, err
	}
	made, to := filepath.Join(base, DirCompleted, m.meta.UUID), filepath.Join(s.BaseDir, DirCompleted, m.meta.UUID)
	if err := s.FS.MkdirAll(filepath.Dir(made)); err != nil {
		return v, err
	}
	if err := s.FS.Rename(m.dir, made); err != nil {
		return v, err
	}
	if err := verify(base); err != nil {
		return v, err
	}
	// Where a kill leaves no row the next opener finds the mark.
	mark := index.Mark(s.BaseDir, m.meta.UUID)
	if err := errors.Join(s.FS.MkdirAll(filepath.Dir(mark)), s.FS.Replace(mark, nil, true)); err != nil {
		return v, err
	}
	if _, err := s.dir(m.meta.UUID); err == nil {
		return v, m.there()
	}
	if err := s.FS.Rename(made, to); err != nil {
		return v, fmt.Errorf("import %s: %w", m.meta.UUID, err)
	}
	_ = s.putRow(ctx, m.meta, m.state) // it was told, and the mark stays
	return ReadView(to)
}

// importer reads one record into a directory.
type importer struct {
	store *Store
	ctx   context.Context //nolint:containedctx // of the one call that the importer lives for
	dir   string
	uuid  string // of the record's head
	meta  Metadata
	state State
	files map[string]bool
}

func (m *importer) there() error { return i18n.E("contextstore.import_there", m.meta.UUID) }

// otherFormat tells what else a text may be, by how it begins.
func otherFormat(head []byte) error {
	head = bytes.TrimLeft(head, " \t\r\n\ufeff")
	is := "?"
	switch {
	case bytes.HasPrefix(head, []byte("<")):
		is = "html"
	case bytes.HasPrefix(head, []byte("#")):
		is = "md"
	case bytes.HasPrefix(head, []byte(`{"schema_version"`)):
		is = "atif"
	case bytes.HasPrefix(head, []byte(`{"instance_id"`)):
		is = "swebench"
	case bytes.HasPrefix(head, []byte("{")):
		return nil
	}
	return i18n.E("contextstore.import_format", is)
}

// read reads the record and writes its files.
func (m *importer) read(record io.Reader) error {
	if err := m.store.FS.MkdirAll(m.dir); err != nil {
		return err
	}
	head := make([]byte, 512)
	n, err := io.ReadFull(record, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if err := otherFormat(head[:n]); err != nil {
		return err
	}
	d := json.NewDecoder(io.MultiReader(bytes.NewReader(head[:n]), record))
	if err = m.object(d, m.member); err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.Join(err, errors.New("something follows its end"))
	}
	var said *i18n.Error
	var path *os.PathError
	if errors.As(err, &said) || errors.As(err, &path) || m.ctx.Err() != nil {
		return err
	}
	return i18n.E("contextstore.import_broken", d.InputOffset(), err)
}

// object calls f with the name of each member of an object, whose value f reads.
func (m *importer) object(d *json.Decoder, f func(d *json.Decoder, name string) error) error {
	if err := expect(d, '{'); err != nil {
		return err
	}
	for d.More() {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // the key of an object is one
		if err := f(d, name); err != nil {
			return err
		}
	}
	return expect(d, '}')
}

func expect(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err == nil && t != want {
		err = fmt.Errorf("found %v where %v was expected", t, want)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// member reads a member of the record.
func (m *importer) member(d *json.Decoder, name string) (err error) {
	switch name {
	case "format":
		var n int
		if err = d.Decode(&n); err == nil && n > Format {
			return i18n.E("contextstore.newer_format", "-", n, Format)
		}
	case "uuid":
		err = d.Decode(&m.uuid)
	case "metadata":
		if err = m.value(d, MetadataFile, &m.meta); err == nil && m.meta.Format > Format {
			return i18n.E("contextstore.newer_format", MetadataFile, m.meta.Format, Format)
		}
	case "state":
		err = d.Decode(&m.state)
	case "files":
		return m.object(d, m.file)
	default: // status, which the state tells
		var skipped json.RawMessage
		err = d.Decode(&skipped)
	}
	return err
}

// value reads a JSON object, and writes it to a file of its own.
func (m *importer) value(d *json.Decoder, name string, v any) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	line, err := m.line(raw)
	if err == nil {
		err = json.Unmarshal(line, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return m.store.FS.Replace(filepath.Join(m.dir, name), append(line, '\n'), true)
}

// line is a JSON object as it is kept in a line: without breaks and secrets.
func (m *importer) line(raw json.RawMessage) ([]byte, error) {
	if bytes.ContainsAny(raw, "\r\n") {
		var b bytes.Buffer
		if err := json.Compact(&b, raw); err != nil {
			return nil, err
		}
		raw = b.Bytes()
	}
	if err := jsonl.Check(raw); err != nil {
		return nil, err
	}
	return jsonl.Redact(raw, m.store.Redact)
}

// file reads one of the files of the record.
func (m *importer) file(d *json.Decoder, name string) error {
	ext := filepath.Ext(name)
	plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.") == "" && !strings.HasPrefix(name, ".")
	if !plain || ext != ".json" && ext != ".jsonl" || name == MetadataFile || name == StateFile || m.files[name] {
		return i18n.E("contextstore.import_file", name)
	}
	m.files[name] = true
	if ext == ".json" {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil || string(raw) == "null" || name == requestFile { // nobody asks anything of a run that ended
			return err
		}
		line, err := m.line(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return m.store.FS.Replace(filepath.Join(m.dir, name), append(line, '\n'), true)
	}
	if err := expect(d, '['); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	n := 0
	err := m.store.FS.Write(filepath.Join(m.dir, name), func(w io.Writer) error {
		for ; d.More(); n++ {
			if err := m.ctx.Err(); err != nil {
				return err
			}
			var raw json.RawMessage
			if err := d.Decode(&raw); err != nil {
				return err
			}
			line, err := m.line(raw)
			if err != nil {
				return err
			}
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return expect(d, ']')
}

// whole sees that the record is one of a run that has ended and is not there, and writes what is
// left of it.
func (m *importer) whole() error {
	id, err := uuid.Parse(m.meta.UUID)
	if err != nil || id.String() != m.meta.UUID || m.uuid != m.meta.UUID {
		return i18n.E("contextstore.import_uuid", m.meta.UUID, m.uuid)
	}
	if !m.state.TaskStatus.Final() {
		return i18n.E("contextstore.import_live", m.meta.UUID, string(m.state.TaskStatus))
	}
	if _, err := m.store.dir(m.meta.UUID); err == nil {
		return m.there()
	}
	m.state.Outbox, m.state.Phase = nil, ""
	line, err := jsonl.Append(nil, m.state)
	if err == nil {
		line, err = m.line(bytes.TrimSpace(line))
	}
	if err != nil {
		return err
	}
	fs := m.store.FS
	if err := fs.Replace(filepath.Join(m.dir, StateFile), append(line, '\n'), true); err != nil {
		return err
	}
	if !m.files[PlanningRecord] {
		return nil
	}
	to := filepath.Join(m.dir, "planning")
	if err := fs.MkdirAll(to); err != nil {
		return err
	}
	return fs.Rename(filepath.Join(m.dir, PlanningRecord), filepath.Join(to, m.meta.UUID+".jsonl"))
}
