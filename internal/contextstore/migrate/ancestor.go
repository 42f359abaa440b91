package migrate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Note is something about a run of an older edition that its reader should know.
type Note struct {
	UUID string `json:"uuid"`
	Kind string `json:"kind"`
}

// The kinds of a Note.
const (
	Ended       = "ended"        // it had not ended, and is failed now
	NoRow       = "no_row"       // tasks.db tells nothing of it: it is failed now
	NoDirectory = "no_directory" // only its row was there
	NoUUID      = "no_uuid"      // a row whose uuid is none: it was left where it is
)

// logs are those of its files whose lines are masked.
var logs = []string{contextstore.Messages, contextstore.Summaries, contextstore.Tools}

// alive is how old a heartbeat of store-v2 may be, at the most, of an owner that lives (store-v2 §3.6).
const alive = time.Minute

// brought is a run of an older edition as it is to stand here: the fields that it lacks are made, its
// own fields and lines stay, but for what is masked. It has ended. What is written does not depend on
// when that is done.
func (o Options) brought(r *Report, v contextstore.View) (s source, area string, err error) {
	if v.Edition == contextstore.StoreV2 && v.Status() == task.Running && time.Since(v.Owner.HeartbeatAt.Time) < alive {
		return s, "", i18n.E("migrate.held", v.Dir)
	}
	s = source{dir: v.Dir, put: map[string][]byte{}, clean: o.Redact}
	c, err := count(v)
	if err != nil {
		return s, "", fmt.Errorf("read %s: %w", v.Dir, err)
	}
	st := o.ended(r, v, c)
	v.Metadata.Format = contextstore.Format
	if err = s.object(contextstore.MetadataFile, v.Metadata); err == nil {
		err = s.object(contextstore.StateFile, st)
	}
	if err == nil && c.summary != nil && !c.summary.Final {
		text := o.Redact(c.summary.Summary)
		tokens := int64(contextstore.CountTokens(text))
		s.more, err = jsonl.Append(nil, contextstore.Summary{ID: c.summary.ID + 1, StartSeq: min(1, c.seq), EndSeq: c.seq, Summary: text, OriginalTokens: c.tokens, SummaryTokens: tokens,
			Ratio: math.Round(1000*float64(tokens)/float64(max(c.tokens, 1))) / 1000, Timestamp: st.CompletedAt, Final: true, Outcome: st.Status, Extractive: true})
	}
	if err == nil && c.seq > 0 && !disk.Exists(filepath.Join(v.Dir, contextstore.RequestLog)) {
		s.put[contextstore.RequestLog], err = jsonl.Append(nil, contextstore.EffectRecord{Seq: 1, Type: contextstore.EffectFact, Timestamp: st.CompletedAt,
			Leg: "untrusted", Fact: "stranger_text", Detail: "what it read was not put on record"})
	}
	return s, contextstore.DirOf(st.TaskStatus), err
}

// ended is the state of a run of an older edition, which cannot go on here: its messages have no ids
// of calls, and its workspace is gone.
func (o Options) ended(r *Report, v contextstore.View, c counted) contextstore.State {
	s, told := v.State, v.State.Status != ""
	s.TaskStatus = v.Status()
	why := ""
	switch {
	case v.Edition == contextstore.StoreV3 && !told:
		s.TaskStatus = task.Failed
		why = "Its row in tasks.db was missing when it was migrated from store-v3: nothing tells what became of it"
		r.note(v.Metadata.UUID, NoRow)
	case s.TaskStatus == task.Running:
		s.TaskStatus = task.Failed
		why = fmt.Sprintf("It had not ended when it was migrated from store-v%d (process %d on %s had it then), and cannot go on here: its messages have no ids of tool calls, and its workspace is gone",
			v.Edition, s.ProcessID, s.Hostname)
		r.note(v.Metadata.UUID, Ended)
	}
	if why = o.Redact(why); why != "" && s.Error != nil && *s.Error != "" {
		why += ": " + *s.Error
	}
	if why != "" {
		s.Error = &why
	}
	if s.Status != contextstore.Timeout || s.TaskStatus != task.Failed {
		s.Status = string(s.TaskStatus)
	}
	for _, t := range []contextstore.Time{s.UpdatedAt, c.last, s.StartedAt, v.Metadata.CreatedAt} {
		if s.CompletedAt.IsZero() {
			s.CompletedAt = t
		}
	}
	if s.UpdatedAt.IsZero() {
		s.UpdatedAt = s.CompletedAt
	}
	s.LastActivity, s.CurrentContextTokens = cmp.Or(s.LastActivity, "migrated"), cmp.Or(s.CurrentContextTokens, c.tokens)
	if !s.StartedAt.IsZero() {
		s.ActiveMS = max(s.CompletedAt.Sub(s.StartedAt.Time).Milliseconds(), 0)
	}
	s.Generation, s.MessageCount, s.Bytes, s.Files = 1, c.seq, c.bytes, map[string]contextstore.Mark{}
	return s
}

// counted is what the logs of a run tell.
type counted struct {
	seq, tokens, bytes int64 // of messages; bytes also of tools
	last               contextstore.Time
	summary            *contextstore.Summary
}

func count(v contextstore.View) (c counted, err error) {
	err = v.Tail(contextstore.Messages, -1, func(b []byte) error {
		c.bytes += int64(len(b)) + 1
		if m, err := contextstore.DecodeMessage(b); err == nil {
			c.seq, c.tokens, c.last = m.Seq, c.tokens+int64(m.Tokens), m.Timestamp
		}
		return nil
	})
	err = errors.Join(err, v.Tail(contextstore.Tools, -1, func(b []byte) error { c.bytes += int64(len(b)) + 1; return nil }))
	err = errors.Join(err, v.Tail(contextstore.Summaries, 1, func(b []byte) error {
		if s, err := contextstore.DecodeSummary(b); err == nil { // behind what is torn nothing may stand
			c.summary = &s
		}
		return nil
	}))
	return c, err
}

// object puts a file of one JSON object in the place of another, whose further fields it keeps.
func (s source) object(name string, v any) error {
	line, err := jsonl.Marshal(v)
	if path := filepath.Join(s.dir, name); err == nil && s.dir != "" && disk.Exists(path) {
		var old []byte
		if old, err = disk.Read(path, disk.MaxWhole); err == nil && jsonl.Check(bytes.TrimSpace(old)) == nil {
			line, err = jsonl.Keep(line, old)
		}
	}
	if err == nil {
		line, err = jsonl.Redact(line, s.clean)
	}
	s.put[name] = append(line, '\n')
	return err
}

// lines writes a log of an older edition: each line as it is, but for what is masked, and with its
// newline; what is no line as it is.
func (s source) lines(name string, r io.Reader, w io.Writer) error {
	var werr error
	whole := true
	err := jsonl.Scan(r, math.MaxInt, func(l jsonl.Line) bool {
		line := bytes.Clone(l.Text)
		if whole = jsonl.Check(line) == nil; whole && utf8.Valid(line) {
			line, werr = jsonl.Redact(line, s.clean)
		} else {
			line = []byte(s.clean(string(line)))
		}
		if whole || l.Newline {
			line = append(line, '\n')
		}
		if werr == nil {
			_, werr = w.Write(line)
		}
		return werr == nil
	})
	if name == contextstore.Summaries && whole && errors.Join(err, werr) == nil {
		_, werr = w.Write(s.more)
	}
	return errors.Join(err, werr)
}

// rows brings the runs of which only the row in tasks.db is left.
func (o Options) rows(ctx context.Context, r *Report) error {
	a, err := index.OpenAncestor(ctx, o.From)
	if err != nil {
		return err
	}
	err = a.Each(ctx, func(row index.Row) error {
		if id, err := uuid.Parse(row.UUID); err != nil || id.String() != row.UUID {
			r.note(row.UUID, NoUUID)
			return nil
		}
		if _, err := contextstore.FindDir(o.From, row.UUID); err == nil {
			return nil
		}
		r.note(row.UUID, NoDirectory)
		v := contextstore.View{Edition: contextstore.StoreV3, State: contextstore.StateOf(row), Metadata: contextstore.Metadata{UUID: row.UUID, TaskKey: row.Key, CreatedAt: row.CreatedAt,
			ProcessID: int(row.ProcessID), Hostname: row.Hostname, User: row.User, Format: contextstore.Format,
			Config: contextstore.MetadataConfig{Provider: row.Provider, Model: row.Model, ContextLength: int(row.ContextLength)}}}
		s := source{put: map[string][]byte{}, clean: o.Redact}
		st := o.ended(r, v, counted{})
		if err := errors.Join(s.object(contextstore.MetadataFile, v.Metadata), s.object(contextstore.StateFile, st)); err != nil {
			return err
		}
		return o.one(r, s, filepath.Join(o.To, contextstore.DirOf(st.TaskStatus), row.UUID))
	})
	return errors.Join(err, a.Close())
}
