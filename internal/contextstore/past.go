package contextstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"

	"toritsugi/internal/contextstore/jsonl"
)

// Past is a context as it was before one of its messages: what the window of
// that moment was assembled of. It is read from outside, without lock or index,
// also while an owner goes on; a line that cannot be read is passed over and told
// by Damaged. It is used by one goroutine, and closed by who opened it.
type Past struct {
	dir       string
	messages  disk.Plain // nil where there are none
	window    disk.Plain
	summaries disk.Plain
	before    int64 // the first message that came later
	event     *WindowEvent
	damaged   Damages
}

// Damage is a line that could not be read, or something that is missing.
type Damage struct {
	File   string
	Offset int64 // in bytes, where the line begins; -1 where there is none
	Why    error
}

// Damages are those that were found, each once, and of very many the first.
type Damages []Damage

// maxDamage is how many damaged lines are told.
const maxDamage = 100

// Add notes damage.
func (all *Damages) Add(file string, at int64, why error) {
	known := slices.ContainsFunc(*all, func(d Damage) bool { return d.File == file && d.Offset == at && d.Why.Error() == why.Error() })
	if len(*all) < maxDamage && !known {
		*all = append(*all, Damage{file, at, why})
	}
}

// Past opens the context as it was before the message numbered before, which was
// written at a time. It finds the decision about the window that was in force.
func (v View) Past(before int64, written Time) (*Past, error) {
	p := &Past{dir: v.Dir, before: before}
	var errs []error
	for _, f := range []struct {
		file *disk.Plain
		name string
	}{{&p.messages, Messages}, {&p.window, Window}, {&p.summaries, Summaries}} {
		var err error
		*f.file, err = openExisting(v.Dir, f.name)
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err == nil {
		err = p.find(written)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the past of %s: %w", v.Metadata.UUID, err), p.Close())
	}
	return p, nil
}

// Close releases the files.
func (p *Past) Close() error {
	var errs []error
	for _, f := range []disk.Plain{p.messages, p.window, p.summaries} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Damaged is what could not be read so far; of very much the first.
func (p *Past) Damaged() []Damage { return slices.Clone(p.damaged) }

// each calls f with the lines of a file from an offset on, until it returns
// false. What f finds damaged is noted, but for a last line that lacks its end:
// somebody may be writing it.
func (p *Past) each(file disk.Plain, name string, offset int64, f func(at int64, line []byte) (more bool, err error)) error {
	if file == nil {
		return nil
	}
	st, err := file.Stat()
	if err != nil {
		return err
	}
	size := st.Size()
	return jsonl.Each(io.NewSectionReader(file, offset, max(size-offset, 0)), func(at int64, line []byte) bool {
		at += offset
		more, err := f(at, line)
		if err != nil && at+int64(len(line)) < size {
			p.damaged.Add(name, at, err)
		}
		return more
	})
}

// find settles which decision was in force. Each says after which message it was
// made; of lines that do not, as an earlier version wrote them, the clock tells.
func (p *Past) find(written Time) error {
	err := p.Decisions(func(e WindowEvent) bool { p.event = &e; return true }, written)
	if err != nil || p.event == nil {
		return err
	}
	at, seq := p.event.Offset, int64(0)
	if err := p.each(p.messages, Messages, at, func(_ int64, line []byte) (bool, error) {
		if m, err := DecodeMessage(line); err == nil {
			seq = m.Seq
		}
		return false, nil
	}); err != nil {
		return err
	}
	if seq == p.event.FromSeq {
		return nil
	}
	p.damaged.Add(Window, -1, i18n.E("contextstore.past_offset", p.event.ID, p.event.FromSeq, at))
	l := &MessageLog{file: p.messages}
	p.event.Offset, err = l.OffsetOf(p.event.FromSeq)
	return err
}

// Decisions calls f for each decision about the window that had been made,
// oldest first, until it returns false. written is as in View.Past.
func (p *Past) Decisions(f func(WindowEvent) bool, written Time) error {
	return p.each(p.window, Window, 0, func(_ int64, line []byte) (bool, error) {
		var e WindowEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return true, err
		}
		if !p.made(e, written) {
			return true, nil
		}
		return f(e), nil
	})
}

// made reports whether a decision was made before the message that Past was
// opened for.
func (p *Past) made(e WindowEvent, written Time) bool {
	if e.AtSeq > 0 {
		return e.AtSeq < p.before
	}
	if max(e.FromSeq, e.MaskSeq, e.ClipSeq) >= p.before {
		return false
	}
	return written.IsZero() || !e.Timestamp.After(written.Time)
}

// Messages is Context.Messages, of the messages that there were.
func (p *Past) Messages(offset int64, f func(m Message) bool) error {
	after := int64(0)
	return p.each(p.messages, Messages, offset, func(at int64, line []byte) (bool, error) {
		m, err := DecodeMessage(line)
		switch {
		case err != nil && after > 0:
			return true, i18n.E("contextstore.past_after", after, err)
		case err != nil:
			return true, err
		case m.Seq >= p.before:
			return false, nil
		}
		m.Offset, after = at, m.Seq
		return f(m), nil
	})
}

// ReadImage is Context.ReadImage.
func (p *Past) ReadImage(i Image) ([]byte, error) {
	data, err := readImage(p.dir, i)
	if err != nil {
		p.damaged.Add(i.Path, -1, err)
	}
	return data, err
}

// LastWindow is the decision that was in force, nil where there was none.
func (p *Past) LastWindow() (*WindowEvent, error) {
	if p.event == nil {
		return nil, nil
	}
	e := *p.event
	return &e, nil
}

// SummaryOf is Context.SummaryOf. One that is not there any more is damage.
func (p *Past) SummaryOf(id int64) (s *Summary, err error) {
	if p.summaries != nil {
		if s, err = summaryIn(p.summaries, func(s Summary) bool { return s.ID == id }); err != nil {
			return nil, err
		}
	}
	if s == nil {
		p.damaged.Add(Summaries, -1, i18n.E("contextstore.past_summary", id))
	}
	return s, nil
}
