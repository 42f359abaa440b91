package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/disk"
)

// Part is a kind of text of a run.
type Part int

// The parts, in the order in which they are looked through.
const (
	Title Part = iota
	Request
	SummaryPart
	Plan
	MessagesPart
	ToolsPart
	parts
)

// names are the columns of the parts.
var names = [parts]string{"title", "request", "summary", "plan", "messages", "tools"}

func (p Part) String() string { return names[p] }

// most is how much of a part is kept of one line and of a run, in bytes: what comes later is not
// found.
var most = [parts]struct{ line, run int }{
	Title: {1 << 10, 1 << 10}, Request: {8 << 10, 8 << 10}, SummaryPart: {16 << 10, 16 << 10}, Plan: {8 << 10, 16 << 10},
	MessagesPart: {4 << 10, 48 << 10}, ToolsPart: {1 << 10, 24 << 10},
}

// maxLine is the longest line of a file that is looked at, in bytes.
const maxLine = 1 << 20

// Line is a text of a run that can be found.
type Line struct {
	Part   Part
	File   string // in the run's directory, or the planning history's path
	Number int64  // seq of a message or tool call, id of a summary, line of the planning history; 0 of a title
	Text   string
}

// reader reads the texts of runs.
type reader struct {
	plans string // planning.history.directory, absolute; "" where the histories lie in their contexts
}

// eachLine calls f for the lines of the parts of a run that are wanted, part by part, until f
// returns false. Files that are missing have none, and lines that cannot be read are passed over.
func (r reader) eachLine(ctx context.Context, v contextstore.View, wanted func(Part) bool, f func(Line) bool) error {
	var left [parts]int
	for p := range parts {
		left[p] = most[p].run
	}
	more := true
	put := func(p Part, file string, number int64, text string) bool {
		text = clip(text, min(most[p].line, left[p]))
		left[p] -= len(text)
		if strings.TrimSpace(text) != "" && wanted(p) {
			more = f(Line{p, file, number, text})
		}
		return more && ctx.Err() == nil
	}
	if !put(Title, contextstore.MetadataFile, 0, v.Metadata.Title) {
		return ctx.Err()
	}
	if wanted(SummaryPart) {
		s, err := v.LastFinal()
		if err = readable(err); err != nil {
			return err
		}
		if s != nil && !put(SummaryPart, contextstore.Summaries, s.ID, s.Summary) {
			return ctx.Err()
		}
	}
	var err error
	if wanted(Plan) {
		err = readable(r.planning(ctx, v, func(n int64, text string) bool { return put(Plan, r.history(v), n, text) && left[Plan] > 0 }))
	}
	if err == nil && more && (wanted(Request) || wanted(MessagesPart)) {
		err = readable(conversation(v, func(p Part, n int64, text string) bool {
			return put(p, contextstore.Messages, n, text) && wanted(MessagesPart) && left[MessagesPart] > 0
		}))
	}
	if err == nil && more && wanted(ToolsPart) {
		err = readable(eachOf(v, contextstore.Tools, func(line []byte) bool {
			t, err := contextstore.DecodeToolRun(line)
			return err != nil || put(ToolsPart, contextstore.Tools, t.Seq, t.Tool+" "+clip(texts(t.Args, 0), most[ToolsPart].line/2)+"\n"+t.Error+"\n"+t.Result) && left[ToolsPart] > 0
		}))
	}
	return errors.Join(err, ctx.Err())
}

// readable is an error of reading a file of a run, nil where that file is damaged or no plain file:
// the run is found by its other files.
func readable(err error) error {
	if errors.Is(err, contextstore.ErrDamaged) || errors.Is(err, disk.ErrNotPlain) || errors.Is(err, disk.ErrLink) {
		return nil
	}
	return err
}

// history is where the planning history of a run lies, as Line.File.
func (r reader) history(v contextstore.View) string {
	name := v.Metadata.UUID + ".jsonl"
	if r.plans != "" {
		return filepath.Join(r.plans, name)
	}
	return filepath.Join("planning", name)
}

// planning calls f for what the plans of a run say, and the number of the line, until f returns false.
func (r reader) planning(ctx context.Context, v contextstore.View, f func(n int64, text string) bool) error {
	return contextstore.ReadJournal(ctx, v.Dir, r.history(v), func(l contextstore.JournalLine) bool {
		var kind struct {
			Type string `json:"type"`
		}
		if len(l.Text) > maxLine || json.Unmarshal(l.Text, &kind) != nil || kind.Type != "plan" && kind.Type != "revision" {
			return true
		}
		return f(l.Line, texts(l.Text, 2))
	})
}

// conversation calls f for what people and models said in a run, until f returns false: the request
// first, which is the first that a user said. What tools answered is no part of it, nor is what was
// inherited.
func conversation(v contextstore.View, f func(p Part, n int64, text string) bool) error {
	asked := false
	return eachOf(v, contextstore.Messages, func(line []byte) bool {
		if bytes.Contains(line[:min(len(line), 64)], []byte(`"role":"tool"`)) { // they are the most, and the longest
			return true
		}
		m, err := contextstore.DecodeMessage(line)
		switch {
		case err != nil, m.Role != "user" && !m.IsAnswer():
			return true
		case m.Role == "user" && !asked:
			asked = true
			return f(Request, m.Seq, m.Content)
		}
		return f(MessagesPart, m.Seq, m.Content)
	})
}

// eachOf calls f for the lines of a log, or of its compressed form, that are not too long.
func eachOf(v contextstore.View, name string, f func(line []byte) bool) error {
	log, _, err := contextstore.OpenLog(v.Dir, name)
	if log == nil || err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // only read from
	return jsonl.Scan(log, maxLine, func(l jsonl.Line) bool { return l.Long || f(l.Text) })
}

// texts are the strings in a JSON value that lie so many levels deep or deeper, in their order, a
// line each; of what is no JSON nothing.
func texts(raw []byte, level int) string {
	var b strings.Builder
	d := json.NewDecoder(bytes.NewReader(raw))
	var walk func(at int) error
	walk = func(at int) error {
		t, err := d.Token()
		if err != nil {
			return err
		}
		open, nested := t.(json.Delim)
		if text, ok := t.(string); ok && at >= level {
			b.WriteString(text + "\n")
		}
		if !nested {
			return nil
		}
		if at == maxNested {
			return errNested
		}
		for d.More() {
			if open == '{' { // its name
				_, err = d.Token()
			}
			if err = errors.Join(err, walk(at+1)); err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	}
	if walk(0) != nil {
		return ""
	}
	return b.String()
}

// maxNested is how deep JSON is looked into.
const maxNested = 100

var errNested = errors.New("nested too deeply")
