package ops

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/llm"
	"toritsugi/internal/task"
	"toritsugi/internal/telemetry"
	"toritsugi/internal/turn"
)

// LogsOptions say how Logs and TailRuns print.
type LogsOptions struct {
	Follow bool // go on until the run has ended
	JSON   bool // one object per line
	Redact func(string) string
	Every  time.Duration // between two looks at the files
	Viewer contextstore.Viewer
}

// handler writes records as the log of a run has them, or as objects.
func (o LogsOptions) handler(w io.Writer) slog.Handler {
	if !o.JSON {
		return telemetry.NewLogger(w, slog.LevelInfo, o.Redact).Handler()
	}
	return slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindString {
			a.Value = slog.StringValue(o.Redact(a.Value.String()))
		}
		return a
	}})
}

// Logs prints what the log of a run says of it. The log belongs to the process that
// worked on the run, so the lines are made from the run's files, which have all of them
// but warnings (decision 079).
func Logs(ctx context.Context, w io.Writer, base string, v contextstore.View, o LogsOptions) error {
	t := tracked{uuid: v.Metadata.UUID, sources: sources()}
	h := o.handler(w)
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		v, err := t.open(base)
		if err != nil {
			return err
		}
		if ended, err := t.tell(ctx, h, v); err != nil || ended || !o.Follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// TailRuns prints what happens to all runs from now on, until ctx ends. What it holds of
// a run is where it has read its files up to, until the run has ended.
func TailRuns(ctx context.Context, w io.Writer, base string, o LogsOptions) error {
	h := o.handler(w)
	runs := map[string]*tracked{}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for first := true; ; first = false {
		err := contextstore.Walk(base, []string{contextstore.DirRunning}, func(dir string) error {
			uuid := filepath.Base(dir)
			if runs[uuid] != nil {
				return nil
			}
			m, err := contextstore.ReadMetadata(dir)
			if err != nil || !o.Viewer.MaySee(m) {
				return nil //nolint:nilerr // it moves, or tori check tells of it
			}
			t := &tracked{uuid: uuid, sources: sources()}
			// What was begun before is told of from now on.
			if st, err := contextstore.ReadState(dir); err == nil && (first || st.Generation > 1) {
				if t.skip(dir, st); !first {
					t.generation-- // it goes on just now
				}
				if _, err := disk.Stat(dir); err != nil {
					return nil //nolint:nilerr // it has left, before anything of it was told
				}
			}
			runs[uuid] = t
			return nil
		})
		for uuid, t := range runs {
			if err != nil || ctx.Err() != nil {
				break
			}
			v, oerr := t.open(base)
			ended := oerr != nil // it was removed, or tori check tells of it
			if !ended {
				ended, err = t.tell(ctx, h, v)
			}
			if ended {
				delete(runs, uuid)
			}
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// event is a record of a run's log as its files tell it.
type event struct {
	at    time.Time
	level slog.Level
	text  string
	attrs []any
}

// source is a file of a run and how far it was read.
type source struct {
	name   string
	event  func(t *tracked, line []byte) (e event, ok bool)
	offset int64
	whole  bool // it was compressed, and read as a whole

	r    *bufio.Reader // while the run is looked at
	next *event
}

func sources() []*source {
	return []*source{
		{name: contextstore.Messages, event: (*tracked).message}, {name: contextstore.Tools, event: (*tracked).tool},
		{name: contextstore.Checks, event: (*tracked).check}, {name: contextstore.Window, event: (*tracked).window},
		{name: contextstore.Summaries, event: (*tracked).summary},
	}
}

// tracked is a run whose files are read as they grow.
type tracked struct {
	uuid    string
	sources []*source
	calls   int64 // of the model, so far

	begun      bool        // that it was queued was told
	generation int64       // of the owner that was told of last
	status     task.Status // that was told of last
	gone       bool        // that its owner is gone was told
}

// skip begins behind all that there is now.
func (t *tracked) skip(dir string, st contextstore.State) {
	for _, s := range t.sources {
		if f, err := disk.OpenPlain(filepath.Join(dir, s.name)); err == nil {
			if info, err := f.Stat(); err == nil {
				s.offset = info.Size()
			}
			_ = f.Close()
		}
	}
	t.begun, t.generation, t.status, t.calls = true, st.Generation, st.TaskStatus, st.LLMCallCount
}

// tell writes what is new of a run that open opened, and closes it. Its state was read
// before its logs: a run that is over then has written all of them. ended: there will
// be nothing more.
func (t *tracked) tell(ctx context.Context, h slog.Handler, v opened) (ended bool, err error) {
	defer func() {
		for _, s := range t.sources {
			s.r = nil
		}
		err = errors.Join(err, v.Close())
	}()
	st, status := v.State, v.Status()
	before := []event{}
	if !t.begun {
		before = append(before, event{at: v.Metadata.CreatedAt.Time, text: "Task queued: " + v.Metadata.TaskKey.String(), attrs: []any{"by", v.Metadata.User}})
		t.begun = true
	}
	if st.Generation > t.generation && !st.StartedAt.IsZero() {
		at, text := v.Owner.AcquiredAt.Time, "Task started: "
		if t.generation == 0 {
			at = st.StartedAt.Time // of the first one
		} else if at.IsZero() {
			at = st.UpdatedAt.Time
		}
		before = append(before, event{at: at, text: text + v.Metadata.TaskKey.String(), attrs: []any{"generation", st.Generation}})
		t.generation, t.status, t.gone = st.Generation, task.Running, false
	}
	if err := t.merge(ctx, h, before); err != nil {
		return false, err
	}
	if v.Interrupted() && !t.gone {
		t.gone = true
		if err := t.write(ctx, h, event{at: st.UpdatedAt.Time, level: slog.LevelWarn, text: "The owner of the run is gone", attrs: []any{"pid", st.ProcessID}}); err != nil {
			return false, err
		}
	}
	if v.Held && !status.Final() || st.Phase != "" || status == t.status || status == task.Running {
		return false, nil
	}
	t.status = status
	e := event{at: st.UpdatedAt.Time, text: "Task " + string(status)}
	if status == task.Completed {
		e.text += " successfully"
	}
	if status == task.Failed {
		e.level = slog.LevelError
	}
	if st.Error != nil {
		e.text += ": " + *st.Error
	}
	if status == task.Queued && st.Generation == 0 {
		return false, nil // that was told
	}
	return status.Final(), t.write(ctx, h, e)
}

// opened is a run as it lay in one directory, with files of it open.
type opened struct {
	contextstore.View
	files map[string]io.ReadCloser // those that are there
	gz    map[string]bool          // of them, the compressed ones
}

// openRun finds a run and opens files of it. A run may be moved meanwhile: what was not
// found is looked for where it is then. The caller closes what it returns without an error.
func openRun(base, uuid string, names func(dir string) ([]string, error)) (opened, error) {
	return contextstore.InDir(base, uuid, func(dir string) (opened, error) {
		o, err := openDir(dir, names)
		if now, ferr := contextstore.FindDir(base, uuid); ferr == nil && now != dir {
			err = fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
		}
		if err != nil {
			err = errors.Join(err, o.Close())
		}
		return o, err
	})
}

func openDir(dir string, names func(dir string) ([]string, error)) (o opened, err error) {
	o = opened{files: map[string]io.ReadCloser{}, gz: map[string]bool{}}
	if o.View, err = contextstore.ReadView(dir); err != nil {
		return o, err
	}
	all, err := names(dir)
	if err != nil {
		return o, err
	}
	for _, name := range all {
		r, gz, err := contextstore.OpenLog(dir, name)
		if err != nil {
			return o, err
		}
		if r != nil {
			o.files[name], o.gz[name] = r, gz
		}
	}
	return o, nil
}

// Close closes the files.
func (o opened) Close() (err error) {
	for _, f := range o.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// open opens the files where they were read up to.
func (t *tracked) open(base string) (opened, error) {
	o, err := openRun(base, t.uuid, func(string) (all []string, err error) {
		for _, s := range t.sources {
			if s.r, s.next = nil, nil; !s.whole {
				all = append(all, s.name)
			}
		}
		return all, nil
	})
	for _, s := range t.sources {
		r := o.files[s.name]
		switch {
		case err != nil || r == nil:
			continue
		case o.gz[s.name]:
			s.whole = true
			if s.offset > 0 {
				continue // it had ended when it was compressed
			}
		default:
			f, ok := r.(io.Seeker)
			if !ok {
				continue
			}
			if _, err := f.Seek(s.offset, io.SeekStart); err != nil {
				return o, errors.Join(err, o.Close())
			}
		}
		s.r = bufio.NewReader(r)
	}
	return o, err
}

// pull reads on to the next event of a source; next stays nil where there is none.
// A line without its end is read the next time.
func (t *tracked) pull(s *source) error {
	s.next = nil
	for s.r != nil {
		line, err := s.r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s of %s: %w", s.name, t.uuid, err)
		}
		s.offset += int64(len(line))
		if e, ok := s.event(t, line); ok {
			s.next = &e
			return nil
		}
	}
	return nil
}

// merge writes what is new of all files in the order of time. It holds one line of each.
func (t *tracked) merge(ctx context.Context, h slog.Handler, before []event) error {
	for _, s := range t.sources {
		if err := t.pull(s); err != nil {
			return err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil //nolint:nilerr // whoever looks has seen enough
		}
		var first *source
		for _, s := range t.sources {
			if s.next != nil && (first == nil || s.next.at.Before(first.next.at)) {
				first = s
			}
		}
		if len(before) > 0 && (first == nil || !first.next.at.Before(before[0].at)) {
			if err := t.write(ctx, h, before[0]); err != nil {
				return err
			}
			before = before[1:]
			continue
		}
		if first == nil {
			return nil
		}
		if err := t.write(ctx, h, *first.next); err != nil {
			return err
		}
		if err := t.pull(first); err != nil {
			return err
		}
	}
}

func (t *tracked) write(ctx context.Context, h slog.Handler, e event) error {
	r := slog.NewRecord(e.at.Local(), e.level, e.text, 0)
	r.Add(append([]any{"uuid", t.uuid}, e.attrs...)...)
	return h.Handle(context.WithoutCancel(ctx), r)
}

func (t *tracked) message(line []byte) (event, bool) {
	m, err := contextstore.DecodeMessage(line)
	if err != nil || m.Role != llm.RoleAssistant || !m.IsAnswer() {
		return event{}, false
	}
	t.calls++
	e := event{at: m.Timestamp.Time, text: fmt.Sprintf("LLM call #%d: %d tokens", t.calls, m.Usage.Sum())}
	if said, _, _ := strings.Cut(strings.TrimSpace(turn.Words(m.Content)), "\n"); said != "" {
		e.attrs = []any{"said", said}
	}
	return e, true
}

func (t *tracked) tool(line []byte) (event, bool) {
	r, err := contextstore.DecodeToolRun(line)
	return event{at: r.Timestamp.Time, text: "Tool execution: " + r.Tool, attrs: []any{"status", r.Status, "ms", r.DurationMS}}, err == nil
}

func (t *tracked) check(line []byte) (event, bool) {
	c, err := checkOf(line)
	what, became := "Check", "passed"
	if c.Setup {
		what = "Setup"
	}
	if !c.Passed() {
		became = "failed"
	}
	return event{at: c.Timestamp.Time, text: what + " " + became + ": " + c.Command, attrs: []any{"round", c.Round, "exit", c.ExitCode, "ms", c.DurationMS}}, err == nil
}

func checkOf(line []byte) (c contextstore.CheckRun, err error) {
	err = json.Unmarshal(line, &c)
	return c, err
}

func (t *tracked) window(line []byte) (event, bool) {
	var e contextstore.WindowEvent
	err := json.Unmarshal(line, &e)
	return event{at: e.Timestamp.Time, text: "The window was rewritten: " + e.Type, attrs: []any{"reason", e.Reason, "from_seq", e.FromSeq}}, err == nil
}

func (t *tracked) summary(line []byte) (event, bool) {
	s, err := contextstore.DecodeSummary(line)
	return event{at: s.Timestamp.Time, text: fmt.Sprintf("Compression completed: %d -> %d tokens", s.OriginalTokens, s.SummaryTokens)}, err == nil && !s.Final
}
