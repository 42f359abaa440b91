package contextstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"toritsugi/internal/contextstore/jsonl"
)

// The types of the lines of effects.jsonl.
const (
	EffectRequest = "request" // something was to leave the house, and was judged
	EffectFact    = "fact"    // what the run has come into touch with
)

// EffectRecord is a line of effects.jsonl.
type EffectRecord struct {
	Seq       int64  `json:"seq"`
	Type      string `json:"type"` // request or fact
	Timestamp Time   `json:"timestamp"`

	Leg    string `json:"leg,omitempty"`    // of a fact: untrusted, sensitive or outward
	Fact   string `json:"fact,omitempty"`   // which one
	Detail string `json:"detail,omitempty"` // what it is about

	Kind     string          `json:"kind,omitempty"` // of a request: comment, push …
	Key      string          `json:"key,omitempty"`  // its idempotency key; requests of one key count once
	Target   string          `json:"target,omitempty"`
	Decision string          `json:"decision,omitempty"` // allow, refuse or ask
	Reason   string          `json:"reason,omitempty"`   // where it was not allowed
	Legs     []string        `json:"legs,omitempty"`     // which of untrusted, sensitive and outward met
	Findings []EffectFinding `json:"findings,omitempty"`
	Title    string          `json:"title,omitempty"`
	Text     string          `json:"text,omitempty"`   // as it may go out, perhaps cut
	Bytes    int64           `json:"bytes,omitempty"`  // of title, text and patch, before anything was changed
	Digest   string          `json:"digest,omitempty"` // SHA-256 of what may go out, in hexadecimal
}

// EffectFinding is something that was changed in a request before it was
// allowed, or why it was not.
type EffectFinding struct {
	Kind    string `json:"kind"`    // secret, hidden, link, image …
	Excerpt string `json:"excerpt"` // masked
	Place   string `json:"place"`   // e.g. "text, line 3"
}

// EffectLog is effects.jsonl of one run: what was to leave the house and how it
// was judged. It is in its owner's hands. The file is opened for each call: it
// is short and rarely written.
type EffectLog struct {
	c     *Context
	guest bool // c was made for the log alone
	mark  Mark // how far this log has written
}

// Effects is the log of an open context.
func (c *Context) Effects() *EffectLog { return &EffectLog{c: c} }

// EffectsOf is the log of a run that nobody works on, for those who hold its
// locks: Options.Ended, and who calls it.
func (s *Store) EffectsOf(v View) *EffectLog {
	return &EffectLog{c: &Context{store: s, dir: v.Dir, meta: v.Metadata}, guest: true}
}

// Append adds a line, with its number, its time and its texts redacted; it is
// on disk when Append returns.
func (l *EffectLog) Append(r EffectRecord) error {
	c := l.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !l.guest {
		if err := c.usable(); err != nil {
			return err
		}
	}
	f, err := c.openLog(RequestLog, l.mark.Bytes, l.mark.Seq, numbered, nil)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if f.Size() == 0 && !c.store.NoSync {
		// The file may be new; see openSummaries.
		if err := c.store.FS.SyncDir(c.dir); err != nil {
			return err
		}
	}
	r.Seq, r.Timestamp = f.seq+1, c.store.now()
	line, err := jsonl.Append(nil, c.redactEffect(r))
	if err != nil {
		return err
	}
	if err := c.write(f.logFile, line, true); err != nil {
		return err
	}
	l.mark = Mark{f.Size(), r.Seq}
	return nil
}

func (c *Context) redactEffect(r EffectRecord) EffectRecord {
	for _, s := range []*string{&r.Detail, &r.Target, &r.Reason, &r.Title, &r.Text} {
		*s = c.clean(*s)
	}
	findings := make([]EffectFinding, len(r.Findings))
	for i, f := range r.Findings {
		findings[i] = EffectFinding{c.clean(f.Kind), c.clean(f.Excerpt), c.clean(f.Place)}
	}
	r.Findings = findings
	return r
}

// Each calls f for every line, oldest first, until f returns false. A run
// without the file has none.
func (l *EffectLog) Each(f func(EffectRecord) bool) error {
	c := l.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return eachEffect(c.dir, f)
}

// Effects calls f for every line of a run's effects.jsonl, oldest first, until f
// returns false.
func (v View) Effects(f func(EffectRecord) bool) error { return eachEffect(v.Dir, f) }

func eachEffect(dir string, f func(EffectRecord) bool) error {
	file, err := openExisting(dir, RequestLog)
	if file == nil {
		return err
	}
	defer func() { _ = file.Close() }()
	st, err := file.Stat()
	if err != nil {
		return err
	}
	var derr error
	err = jsonl.Each(io.NewSectionReader(file, 0, st.Size()), func(at int64, b []byte) bool {
		var r EffectRecord
		if err := json.Unmarshal(b, &r); err != nil {
			if at+int64(len(b)) < st.Size() { // a torn end is mended by the next who writes
				derr = fmt.Errorf("%s at byte %d: %w", RequestLog, at, err)
			}
			return derr == nil
		}
		return f(r)
	})
	return errors.Join(err, derr)
}
