// Package ops is for people who look after runs: the viewer of one context and
// the list of all. It reads the files alone, in bounded memory, and works on a
// read-only disk and without tasks.db (store-v2 §9.1).
package ops

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

// ShowOptions choose what Show prints of a context.
type ShowOptions struct {
	Messages  bool
	Summaries bool
	Tools     bool
	Effects   bool // what left the house or was refused, with the reason
	Plan      bool
	History   string // planning.HistoryFile's answer for the run
	Last      int    // lines of each log; -1 for the default: 10 in the overview, else all
	JSON      bool
	Lang      i18n.Lang
	Now       time.Time
	Stale     time.Duration // age at which an owner's heartbeat counts as stale; 0 for never
}

// overviewLines is how many messages and summaries the overview shows.
const overviewLines = 10

// Show prints the overview of a context, or the logs that are asked for.
func Show(w io.Writer, v contextstore.View, o ShowOptions) error {
	out := &printer{w: w}
	last := o.Last
	if o.Plan {
		if err := plan(out, v, o); err != nil || !o.Messages && !o.Summaries && !o.Tools && !o.Effects {
			return err
		}
	}
	if !o.Messages && !o.Summaries && !o.Tools && !o.Effects {
		if last < 0 {
			last = overviewLines
		}
		if o.JSON {
			return overviewJSON(out, v)
		}
		overview(out, v, o)
		out.slimmed(v, o)
		out.section(v, contextstore.Messages, "Messages", last, messageLine)
		out.section(v, contextstore.Summaries, "Summaries", last, summaryLine())
		return out.err
	}
	if o.Messages || o.Tools {
		out.slimmed(v, o)
	}
	effects := &effectTable{lang: o.Lang}
	for _, log := range []struct {
		wanted bool
		name   string
		line   func([]byte) (string, error)
	}{
		{o.Messages, contextstore.Messages, fullMessage},
		{o.Summaries, contextstore.Summaries, fullSummary()},
		{o.Tools, contextstore.Tools, fullTool},
		{o.Effects, contextstore.RequestLog, effects.line},
	} {
		if !log.wanted {
			continue
		}
		err := v.Tail(log.name, last, func(b []byte) error {
			if o.JSON {
				out.raw(string(b) + "\n")
				return out.err
			}
			s, err := log.line(b)
			if err != nil {
				s = "  " + clean(string(b)) + " (" + err.Error() + ")\n"
			}
			out.printf("%s", s)
			return out.err
		})
		if err != nil {
			return err
		}
	}
	if o.Effects && !o.JSON && effects.rows == 0 {
		out.printf("%s\n", o.Lang.T("ops.no_effects"))
	}
	return out.err
}

// printer remembers the first error of a writer.
type printer struct {
	w   io.Writer
	err error
}

// printf prints for people: whatever strangers said in it cannot steer a terminal.
func (p *printer) printf(format string, args ...any) {
	p.raw(redact.Printable(fmt.Sprintf(format, args...)))
}

// raw prints for programs.
func (p *printer) raw(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s)
	}
}

// overview prints the head of store-v2 §9.1's example.
func overview(p *printer, v contextstore.View, o ShowOptions) {
	k := v.Metadata.TaskKey
	p.printf("Task UUID: %s\nStatus: %s\n", v.Metadata.UUID, status(v, o.Lang))
	if age, stale := v.Stale(o.Now, o.Stale); stale {
		p.printf("%s\n", o.Lang.T("ops.stale", contextstore.Short(v.Metadata.UUID), v.Owner.ProcessID, clean(v.Owner.Hostname), duration(o.Lang, age)))
	}
	p.printf("Repository: %s/%s/%s\nTask: %s %s\n", k.Source, clean(k.Owner), clean(k.Repo), strings.ReplaceAll(k.Type, "_", " "), clean(k.Number()))
	if v.Metadata.Title != "" {
		p.printf("Title: %s\n", fit(v.Metadata.Title, 72))
	}
	end := o.Now
	if !v.State.StartedAt.IsZero() {
		p.printf("Started: %s\n", stamp(v.State.StartedAt))
	}
	if !v.State.CompletedAt.IsZero() {
		p.printf("Completed: %s\n", stamp(v.State.CompletedAt))
		end = v.State.CompletedAt.Time
	}
	if !v.State.StartedAt.IsZero() {
		p.printf("Duration: %s\n", duration(o.Lang, end.Sub(v.State.StartedAt.Time)))
	}
	if v.State.Error != nil {
		label := "Error"
		if v.Status() == task.AwaitingApproval {
			label = "Waiting"
		}
		p.printf("%s: %s\n", label, clean(*v.State.Error))
	}
	p.printf("Files: %s\n", v.Dir)
	if contextstore.IsKept(v.Dir) {
		p.printf("%s\n", o.Lang.T("show.kept", contextstore.Short(v.Metadata.UUID)))
	}
	if v.Edition != 0 {
		p.printf("%s\n", o.Lang.T("ops.edition", v.Edition))
	}
	p.printf("\nStatistics:\n  LLM calls: %s\n  Tool calls: %s\n  Total tokens: %s\n",
		thousands(v.State.LLMCallCount), thousands(v.State.ToolCallCount), thousands(v.State.TotalTokensUsed))
	for _, s := range spending(v.State, v.Metadata.Config.Provider == "script", o.Lang) {
		p.printf("  %s\n", s)
	}
	p.printf("  Compressions: %s\n", thousands(v.State.CompressionCount))
}

func status(v contextstore.View, l i18n.Lang) string {
	s := string(v.Status())
	switch {
	case v.Interrupted():
		return s + " (" + l.T("ops.interrupted", contextstore.Short(v.Metadata.UUID)) + ")"
	case v.Edition != 0 && v.Status() == task.Running:
		return s + " (" + l.T("ops.ancestor", v.State.ProcessID, clean(v.State.Hostname)) + ")"
	case v.Held:
		return s + fmt.Sprintf(" (pid %d, %s)", v.Owner.ProcessID, clean(v.Owner.Hostname))
	case v.State.Unverified:
		return s + " (" + l.T("ops.unverified") + ")"
	}
	return s
}

// slimmed tells people that retention removed messages and tool calls.
func (p *printer) slimmed(v contextstore.View, o ShowOptions) {
	if !o.JSON && contextstore.Slimmed(v.Dir) {
		p.printf("%s\n", o.Lang.T("show.slimmed"))
	}
}

func (p *printer) section(v contextstore.View, log, title string, last int, line func([]byte) (string, error)) {
	total, err := v.Last(log, seqOf)
	p.err = cmp.Or(p.err, err)
	p.printf("\n%s: %s", title, thousands(total))
	if int64(last) < total {
		p.printf(" (showing last %d)", last)
	}
	p.printf("\n")
	err = v.Tail(log, last, func(b []byte) error {
		s, err := line(b)
		if err != nil {
			s = clean(string(b)) + " (" + err.Error() + ")"
		}
		p.printf("  %s\n", fit(s, 78))
		return p.err
	})
	p.err = cmp.Or(p.err, err)
}

// seqOf is a line's number: seq, or id of a summary.
func seqOf(b []byte) int64 {
	var l struct {
		Seq, ID   int64
		SummaryID int64 `json:"summary_id"`
	}
	if json.Unmarshal(b, &l) != nil {
		return 0
	}
	return max(l.Seq, l.ID, l.SummaryID)
}

func messageLine(b []byte) (string, error) {
	m, err := contextstore.DecodeMessage(b)
	if err != nil {
		return "", err
	}
	text := m.Content
	if m.Role == "tool" {
		text = m.ToolName + " -> " + text
	}
	for _, c := range m.ToolCalls {
		text += fmt.Sprintf(" {%s %s}", c.Name, c.Arguments)
	}
	return fmt.Sprintf("[%d] %s: %s", m.Seq, m.Role, strings.TrimSpace(text)), nil
}

// summaryLine writes the summaries of a run in a line each.
func summaryLine() func([]byte) (string, error) {
	final := finals()
	return func(b []byte) (string, error) {
		s, err := contextstore.DecodeSummary(b)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("[%d] seq %d-%d%s: %s", s.ID, s.StartSeq, s.EndSeq, final(s), s.Summary), nil
	}
}

// finals says of a summary whether it is a final one, of which the last counts: a
// model's takes the place of what was written at once.
func finals() func(contextstore.Summary) string {
	said := ""
	return func(s contextstore.Summary) string {
		switch {
		case !s.Final:
			return ""
		case said == "":
			said = " (final)"
		default:
			said = " (final, replaces it)"
		}
		return said
	}
}

func fullMessage(b []byte) (string, error) {
	m, err := contextstore.DecodeMessage(b)
	if err != nil {
		return "", err
	}
	head := fmt.Sprintf("[%d] %s", m.Seq, m.Role)
	if m.ToolName != "" {
		head += " " + m.ToolName
	}
	s := fmt.Sprintf("%s  %s  %d tokens\n%s", head, stamp(m.Timestamp), m.Tokens, indent(m.Content))
	for _, c := range m.ToolCalls {
		s += fmt.Sprintf("    -> %s %s\n", clean(c.Name), c.Arguments)
	}
	return s + "\n", nil
}

func fullSummary() func([]byte) (string, error) {
	final := finals()
	return func(b []byte) (string, error) {
		s, err := contextstore.DecodeSummary(b)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("[%d] seq %d-%d%s  %s  %d -> %d tokens\n%s\n", s.ID, s.StartSeq, s.EndSeq, final(s), stamp(s.Timestamp), s.OriginalTokens, s.SummaryTokens, indent(s.Summary)), nil
	}
}

func fullTool(b []byte) (string, error) {
	t, err := contextstore.DecodeToolRun(b)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("[%d] %s  %s  %s  %d ms\n    %s\n%s\n", t.Seq, clean(t.Tool), t.Status, stamp(t.Timestamp), t.DurationMS,
		t.Args, indent(t.Result+t.Error)), nil
}

func overviewJSON(p *printer, v contextstore.View) error {
	messages, err := v.Last(contextstore.Messages, seqOf)
	if err != nil {
		return err
	}
	summaries, err := v.Last(contextstore.Summaries, seqOf)
	if err != nil {
		return err
	}
	all := map[string]any{"metadata": v.Metadata, "state": v.State, "status": v.Status(), "directory": v.Dir,
		"owned": v.Held, "kept": contextstore.IsKept(v.Dir), "messages": messages, "summaries": summaries}
	if v.Edition != 0 {
		all["edition"] = v.Edition
	}
	p.json(all)
	return p.err
}

// stamp is a time as people read it, in UTC like the files.
func stamp(t contextstore.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// duration is 15分23秒 or 15m23s.
func duration(l i18n.Lang, d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h > 0:
		return l.T("ops.hours", h, m, s)
	case m > 0:
		return l.T("ops.minutes", m, s)
	}
	return l.T("ops.seconds", s)
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// clean makes a stranger's text one line that cannot steer a terminal.
func clean(s string) string {
	return strings.Join(strings.Fields(redact.Printable(s)), " ")
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ") + "\n"
}

// fit cuts a line to a number of terminal columns; wide characters take two.
func fit(s string, columns int) string {
	s = clean(s)
	used := 0
	for i, r := range s {
		n := 1
		if wide(r) {
			n = 2
		}
		room := columns
		if i+len(string(r)) < len(s) {
			room-- // for the mark of the cut, should the next one not fit
		}
		if used+n > room {
			return s[:i] + "…"
		}
		used += n
	}
	return s
}

// wide reports whether a character takes two columns (Unicode TR11 W and F,
// without the rarest blocks).
func wide(r rune) bool {
	return r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd)
}
