package fsck

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/task"

	"toritsugi/internal/contextstore/jsonl"
)

// maxOpenCalls bounds the memory for calls whose results are still to come.
const maxOpenCalls = 4096

// numbering checks that lines are numbered from 1 without gaps.
type numbering struct {
	i     *inspection
	file  string
	last  int64
	extra int64 // numbers that unreadable lines may have taken
	lossy bool  // a line was lost: what follows from it is not told again
}

// next takes the number of a line; false where the line repeats an earlier one.
func (n *numbering) next(at spot, seq int64) bool {
	switch {
	case seq <= n.last:
		n.i.find(n.file, at, "again", seq, n.last)
		n.i.logs[n.file].broken = true
		n.lossy = true
		return false
	case seq > n.last+1+n.extra:
		n.i.find(n.file, at, "gap", seq, n.last+1)
		n.i.logs[n.file].broken = true
		n.lossy = true
	}
	n.last, n.extra = seq, 0
	return true
}

func (n *numbering) lost(lines int64) {
	n.extra += lines
	n.lossy = true
}

// openCall is a call of an assistant message that has no result yet.
type openCall struct {
	at  spot
	seq int64
	n   int // calls with this id
}

// messageCheck is what is known of messages.jsonl while it is read.
type messageCheck struct {
	numbering
	m        contextstore.Message // the line at hand
	sum      int64
	sumKnown bool
	open     map[string]openCall
	last     contextstore.Message // its head, without the text
	images   map[string]bool      // by path: those that are whole
	answer   int64                // number of the last assistant message

	first    contextstore.Time
	answers  int64
	reported int64 // tokens that the provider reported
	spent    contextstore.Spending
}

func (c *messageCheck) decode(line []byte) (int64, error) {
	var err error
	c.m, err = contextstore.DecodeMessage(line)
	return c.m.Seq, err
}

func (c *messageCheck) lost(lines int64) {
	c.numbering.lost(lines)
	c.sumKnown = false
}

func (c *messageCheck) note(at spot) {
	m := c.m
	if !c.next(at, m.Seq) {
		return
	}
	if c.first.IsZero() {
		c.first = m.Timestamp
	}
	c.checkSum(at)
	c.checkImages(at)
	switch m.Role {
	case "assistant":
		if m.IsAnswer() {
			c.answers++
		}
		c.reported += m.Usage.Sum()
		c.spent.Add(m.Usage.Spending())
		c.asked(at)
	case "tool":
		c.answered(at)
	case "system", "user":
	default:
		c.i.find(c.file, at, "role", m.Role)
		c.i.logs[c.file].broken = true
	}
	m.Content, m.Reasoning, m.ToolCalls, m.Images = "", "", nil, nil
	c.last = m
}

// checkSum compares the running total with the tokens up to this line. Trees
// of the older edition have none.
func (c *messageCheck) checkSum(at spot) {
	c.sum += int64(c.m.Tokens)
	if c.m.Sum == 0 {
		c.sumKnown = c.sumKnown && c.sum == 0
		return
	}
	if c.sumKnown && c.m.Sum != c.sum {
		c.i.find(c.file, at, "sum", c.m.Sum, c.sum)
		c.i.logs[c.file].broken = true
	}
	c.sum, c.sumKnown = c.m.Sum, true
}

func (c *messageCheck) asked(at spot) {
	if len(c.open) > maxOpenCalls {
		c.tellOpen(false)
		clear(c.open)
	}
	c.answer = c.m.Seq
	for _, call := range c.m.ToolCalls {
		id := string(call.ID)
		if id == "" {
			continue
		}
		o, ok := c.open[id]
		if !ok {
			o = openCall{at: at, seq: c.m.Seq}
		}
		o.n++
		c.open[strings.Clone(id)] = o
	}
}

func (c *messageCheck) answered(at spot) {
	id := string(c.m.ToolCallID)
	if id == "" { // of the older edition, which has no ids
		return
	}
	o, ok := c.open[id]
	switch {
	case !ok && !c.lossy:
		c.i.find(c.file, at, "orphan", short(id))
		c.i.logs[c.file].broken = true
	case o.n > 1:
		o.n--
		c.open[id] = o
	default:
		delete(c.open, id)
	}
}

// tellOpen reports calls without a result. With lastToo also those of the last
// assistant message, which the next owner of a live run closes, and which the
// end of a stopped or failed run may leave.
func (c *messageCheck) tellOpen(lastToo bool) {
	if c.lossy {
		return
	}
	ids := slices.SortedFunc(maps.Keys(c.open), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.open[a].seq, c.open[b].seq), cmp.Compare(a, b))
	})
	for _, id := range ids {
		if o := c.open[id]; o.seq != c.answer || lastToo {
			c.i.find(c.file, o.at, "open", short(id), o.seq)
			c.i.logs[c.file].broken = true
		}
	}
}

// short makes a stranger's id fit into a line.
func short(id string) string {
	if r := []rune(id); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return id
}

func (c *messageCheck) judge(completed bool) judge {
	return judge{decode: c.decode, note: c.note, lost: c.lost, end: func() { c.tellOpen(completed) }}
}

// checkLogs reads every log of the context once.
func (i *inspection) checkLogs(plans []string) {
	i.messages = &messageCheck{numbering: numbering{i: i, file: contextstore.Messages}, sumKnown: true, open: map[string]openCall{}}
	completed := i.stateErr == nil && i.state.TaskStatus == task.Completed
	i.scan(contextstore.Messages, i.messages.judge(completed && !i.held))
	for _, name := range []string{contextstore.Tools, contextstore.Checks, contextstore.RequestLog} {
		n := &numbering{i: i, file: name}
		var seq int64
		i.scan(name, judge{lost: n.lost, note: func(at spot) { n.next(at, seq) }, end: func() {}, decode: func(b []byte) (int64, error) {
			var l struct {
				Seq    int64  `json:"seq"`
				Commit string `json:"commit"` // of checks
			}
			err := jsonl.Decode(b, &l)
			seq, i.commit = l.Seq, cmp.Or(l.Commit, i.commit)
			return seq, err
		}})
	}
	i.scan(contextstore.Summaries, i.summaryJudge()) // after messages and tools, which it refers to
	i.scan(contextstore.Window, i.windowJudge())
	for _, name := range plans {
		i.scan(name, judge{lost: func(int64) {}, note: func(spot) {}, end: func() {}, decode: func(b []byte) (int64, error) { return 0, roomLine(name, b) }})
	}
}

// roomLine says whether b is a line of a file that another room keeps.
func roomLine(name string, b []byte) error {
	if name == "approvals.jsonl" {
		return jsonl.Check(b)
	}
	var l struct {
		Type string `json:"type"`
	}
	if err := jsonl.Decode(b, &l); err != nil {
		return err
	}
	if l.Type == "" {
		return errors.New("no type")
	}
	return nil
}

// scan reads one log, of a context in use up to its checkpoint; what was not
// checkpointed may change at this moment.
func (i *inspection) scan(name string, j judge) {
	limit := int64(-1)
	if i.held {
		limit = i.state.Files[name].Bytes
	}
	if l, err := i.scanLog(name, limit, j); err != nil && i.c.ctx.Err() == nil {
		l.broken = true
		i.find(name, spot{}, "unreadable", err)
	}
}

// tally sums up calls to models.
type tally struct {
	calls, tokens int64
	spent         contextstore.Spending
}

func (t *tally) add(calls, tokens int64, spent contextstore.Spending) {
	t.calls, t.tokens = t.calls+calls, t.tokens+tokens
	t.spent.Add(spent)
}

// summaryJudge checks summaries.jsonl: ids ascend, ranges lie within the
// messages (store-v3 §3.3).
func (i *inspection) summaryJudge() judge {
	var s contextstore.Summary
	var last int64
	note := func(at spot) {
		if !s.Final {
			i.compressions++
		}
		i.summaries.add(s.Took())
		if s.Outcome != "" && (i.outcome == "" || s.Extractive) {
			i.outcome, i.ended = s.Outcome, s.Timestamp
		}
		if s.ID <= last {
			i.find(contextstore.Summaries, at, "again", s.ID, last)
			i.logs[contextstore.Summaries].broken = true
			return
		}
		last = s.ID
		first := int64(1)
		if s.Final {
			first = 0 // of a run that had no message
		}
		m := i.logs[contextstore.Messages]
		if s.StartSeq < first || s.EndSeq < s.StartSeq || s.EndSeq > m.seq && !m.broken && !m.short && !i.slim() && !i.held {
			i.find(contextstore.Summaries, at, "range", s.StartSeq, s.EndSeq, m.seq)
			i.logs[contextstore.Summaries].broken = true
		}
	}
	return judge{lost: func(int64) {}, note: note, end: func() {}, decode: func(b []byte) (int64, error) {
		err := jsonl.Check(b)
		if err == nil {
			s, err = contextstore.DecodeSummary(b)
		}
		return s.ID, err
	}}
}

// windowJudge checks that the events of window.jsonl refer to messages that
// are there, at the byte they say.
func (i *inspection) windowJudge() judge {
	n := &numbering{i: i, file: contextstore.Window}
	var e contextstore.WindowEvent
	note := func(at spot) {
		if !n.next(at, e.ID) {
			return
		}
		m := i.logs[contextstore.Messages]
		if m.broken || m.short || i.slim() || i.held {
			return
		}
		if e.FromSeq < 1 || e.FromSeq > m.seq || !m.gz && !i.messageAt(e.Offset, e.FromSeq) {
			i.find(contextstore.Window, at, "window", e.FromSeq, e.Offset)
			i.logs[contextstore.Window].broken = true
		}
	}
	return judge{lost: n.lost, note: note, end: func() {}, decode: func(b []byte) (int64, error) {
		e = contextstore.WindowEvent{}
		err := jsonl.Decode(b, &e)
		return e.ID, err
	}}
}

// messageAt reports whether the line of message seq begins at a byte.
func (i *inspection) messageAt(offset, seq int64) bool {
	if i.reader == nil {
		f, err := disk.OpenPlain(filepath.Join(i.dir, contextstore.Messages))
		if err != nil {
			return false
		}
		i.reader = f
	}
	want := fmt.Sprintf("\n{\"seq\":%d,", seq)
	if offset <= 0 {
		want, offset = want[1:], 1
	}
	got := make([]byte, len(want))
	_, err := io.ReadFull(io.NewSectionReader(i.reader, offset-1, int64(len(want))), got)
	return err == nil && string(got) == want
}

// slim reports that retention has dropped the messages and tools of an ended
// run: a run that had an owner always has both files (spec/README "retention vs inheritance").
func (i *inspection) slim() bool {
	if contextstore.Slimmed(i.dir) { // it may have been cut short
		return true
	}
	for _, name := range []string{contextstore.Messages, contextstore.Tools} {
		if l := i.logs[name]; l != nil && !l.missing {
			return false
		}
	}
	return filepath.Base(filepath.Dir(i.dir)) == contextstore.DirCompleted
}

// maxSeenImages bounds the memory for images that were found to be whole.
const maxSeenImages = 4096

// checkImages checks that each image that the message at hand refers to is there
// as it was written. It reads each once.
func (c *messageCheck) checkImages(at spot) {
	for _, img := range c.m.Images {
		if img.Path == "" || c.images[img.Path] {
			continue
		}
		err := contextstore.CheckImage(c.i.dir, img)
		c.i.c.read(img.Bytes)
		switch {
		case err == nil:
			if c.images == nil || len(c.images) >= maxSeenImages {
				c.images = map[string]bool{}
			}
			c.images[img.Path] = true
		case errors.Is(err, os.ErrNotExist):
			c.i.find(c.file, at, "image_missing", img.Path)
		case errors.Is(err, contextstore.ErrImageDiffers):
			c.i.find(c.file, at, "image_differs", img.Path)
		default:
			c.i.find(c.file, at, "image_unreadable", short(img.Path), err)
		}
	}
}
