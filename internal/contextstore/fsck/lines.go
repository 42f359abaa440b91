package fsck

import (
	"io"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
)

// maxCheckedLine is the longest line, in bytes, whose content is judged: it is
// held in memory. Of a longer one only its ends are known.
const maxCheckedLine = 256 << 20

// maxPerFile is how many findings of one file are told one by one.
const maxPerFile = 20

// spot is where in a file something was found: the line from 1, the byte from 0.
type spot struct{ line, byte int64 }

// judge looks at the lines of one kind of log. decode says whether a line is
// one of that log at all and returns its number, 0 where the log has none; note
// looks at what it says; lost hears of lines that could not be read, and end
// comes after the last.
type judge struct {
	decode func(line []byte) (seq int64, err error)
	note   func(at spot)
	lost   func(n int64)
	end    func()
}

// logCheck is what a log was found to be.
type logCheck struct {
	name    string
	missing bool
	gz      bool
	size    int64 // bytes, uncompressed; of a context in use: up to its checkpoint
	good    int64 // where its good lines end; size+1 where only the last newline is missing
	lines   int64 // good lines
	seq     int64 // number of the last good line
	tail    spot  // where the ends that is no line begins; line 0 for none
	broken  bool  // something was lost within it
	short   bool  // the checkpoint knows of more lines than there are
	atMark  bool  // a line ends where the checkpoint says
	markSeq int64 // and this many lines, or this number, stand before it
}

// scanLog reads a log once from its beginning to its end, or to limit where
// that is not negative, and reports what is wrong with its lines.
func (i *inspection) scanLog(name string, limit int64, j judge) (*logCheck, error) {
	l := &logCheck{name: name}
	i.logs[name] = l
	r, gz, err := contextstore.OpenLog(i.dir, name)
	if err != nil {
		return l, err
	}
	if r == nil {
		l.missing = true
		l.short = i.state.Files[name].Seq > 0
		return l, nil
	}
	defer func() { _ = r.Close() }()
	l.gz = gz
	in := i.c.counted(r)
	if limit >= 0 {
		in = io.LimitReader(in, limit)
	}
	s := &logScan{i: i, l: l, j: j, mark: i.state.Files[name]}
	if err := jsonl.Scan(in, i.c.maxLine, s.line); err != nil {
		return l, err
	}
	if err := i.c.ctx.Err(); err != nil {
		return l, err
	}
	s.finish()
	return l, nil
}

// logScan is the state of scanLog.
type logScan struct {
	i    *inspection
	l    *logCheck
	j    judge
	mark contextstore.Mark
	n    int64 // lines seen

	bad    spot // beginning of the bad lines just seen, line 0 for none
	badN   int64
	badNUL bool
}

func (s *logScan) line(r jsonl.Line) bool {
	s.n++
	at := spot{s.n, r.At}
	s.l.size = r.At + r.Bytes
	var seq int64
	err := error(nil)
	if !r.Long {
		seq, err = s.j.decode(r.Text)
	}
	// A whole object is no torn write, whatever it says.
	strange := err != nil && jsonl.Check(r.Text) == nil
	if r.NUL || err != nil && !strange {
		if s.bad.line == 0 {
			s.bad, s.badN, s.badNUL = at, 0, true
		}
		s.badN++
		s.badNUL = s.badNUL && r.NUL
		return s.i.c.ctx.Err() == nil
	}
	s.passed()
	s.l.good = r.At + r.Bytes
	if !r.Newline && !r.Long {
		s.l.good++
	}
	s.l.lines++
	s.l.seq = s.l.lines
	if seq > 0 {
		s.l.seq = seq
	}
	switch {
	case strange:
		s.i.find(s.l.name, at, "strange", err)
		s.l.broken = true
		s.j.lost(1)
	case r.Long:
		s.i.find(s.l.name, at, "long", r.Bytes)
		s.l.broken = true
		s.j.lost(1)
	case !utf8.Valid(r.Text):
		s.i.find(s.l.name, at, "utf8")
		s.l.broken = true
		s.j.note(at)
	default:
		s.j.note(at)
	}
	if s.l.good == s.mark.Bytes {
		s.l.atMark, s.l.markSeq = true, s.l.seq
	}
	return s.i.c.ctx.Err() == nil
}

// passed reports bad lines that good ones follow: they are within the file.
func (s *logScan) passed() {
	if s.bad.line == 0 {
		return
	}
	kind := "garbage"
	if s.badNUL {
		kind = "nul"
	}
	s.i.find(s.l.name, s.bad, kind, s.badN)
	s.l.broken = true
	s.j.lost(s.badN)
	s.bad = spot{}
}

// finish reports what the file ends in. Bad lines that were there at the last
// checkpoint are no torn write: somebody was told that they are on the disk.
func (s *logScan) finish() {
	switch {
	case s.bad.line > 0 && (s.bad.byte < s.mark.Bytes || s.l.gz):
		s.i.find(s.l.name, s.bad, "end_damaged", s.l.size-s.bad.byte)
		s.l.broken = true
		s.j.lost(s.badN)
	case s.bad.line > 0:
		s.l.tail = s.bad
		kind := "torn"
		if s.badNUL {
			kind = "nul_end"
		}
		f := s.i.find(s.l.name, s.bad, kind, s.l.size-s.bad.byte)
		s.i.repairable(f, "cut", s.l.name+".cut").mend = func() error { return s.i.mendEnd(s.l) }
	case s.l.good > s.l.size && !s.i.held && !s.l.gz && s.i.c.edition == 0:
		f := s.i.find(s.l.name, spot{s.n, s.l.size}, "newline")
		s.i.repairable(f, "newline").mend = func() error { return s.i.mendEnd(s.l) }
	}
	if s.mark.Bytes > s.l.good && s.mark.Seq > s.l.seq && !s.l.broken {
		s.l.short = true
		s.j.lost(s.mark.Seq - s.l.seq)
	}
	s.j.end()
}
