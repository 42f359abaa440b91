package ops

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/redact"
)

// page writes a run for people, as Markdown or as HTML that loads nothing and runs nothing.
// What models and strangers wrote stands in it as plain text.
type page struct {
	w      *bufio.Writer
	html   bool
	redact func(string) string
}

const pageHead = `<!doctype html>
<html lang="%s"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>%s</title>
<style>body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#8882;padding:.6rem;font-size:.85rem}
td,th{text-align:left;vertical-align:top;padding:.1rem 1rem .1rem 0}summary{cursor:pointer}h3{font-size:1rem;margin-bottom:.3rem}:root{color-scheme:light dark}</style></head><body>
`

// plain is a text as it may stand in the page: secrets masked, nothing that steers.
func (p *page) plain(s string) string { return redact.Printable(p.redact(s)) }

// inline is a text of one line in which nothing is markup.
func (p *page) inline(s string) string {
	s = strings.Join(strings.Fields(p.plain(s)), " ")
	if p.html {
		return html.EscapeString(s)
	}
	return markdownSigns.Replace(s)
}

var markdownSigns = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `&lt;`, ">", `&gt;`, "|", `\|`, "#", `\#`, "&", "&amp;", "!", `\!`)

func (p *page) title(level int, text string) {
	if p.html {
		_, _ = fmt.Fprintf(p.w, "<h%d>%s</h%d>\n", level, p.inline(text), level)
		return
	}
	_, _ = fmt.Fprintf(p.w, "\n%s %s\n\n", strings.Repeat("#", level), p.inline(text))
}

// facts writes a table of two columns, of what is not empty.
func (p *page) facts(rows [][2]string) {
	head, row, end := "| | |\n|---|---|\n", "| %s | %s |\n", "\n"
	if p.html {
		head, row, end = "<table>\n", "<tr><th>%s</th><td>%s</td></tr>\n", "</table>\n"
	}
	_, _ = p.w.WriteString(head)
	for _, r := range rows {
		if r[1] != "" {
			_, _ = fmt.Fprintf(p.w, row, p.inline(r[0]), p.inline(r[1]))
		}
	}
	_, _ = p.w.WriteString(end)
}

// text writes a text as it is; folded, where it is long and seldom read, in HTML under
// its name.
func (p *page) text(name, s string, folded bool) {
	s = strings.TrimRight(p.plain(s), "\n")
	if s == "" {
		return
	}
	if p.html {
		body := "<pre>" + html.EscapeString(s) + "</pre>\n"
		if folded {
			body = "<details><summary>" + p.inline(name) + "</summary>" + body + "</details>\n"
		}
		_, _ = p.w.WriteString(body)
		return
	}
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	_, _ = p.w.WriteString(fence + "text\n" + s + "\n" + fence + "\n\n")
}

// exportPage writes a run as one readable page.
func exportPage(w *bufio.Writer, v opened, o ExportOptions) error {
	p := &page{w: w, html: o.Format == FormatHTML, redact: o.Redact}
	m, st, t := v.Metadata, v.State, o.Lang.T
	title := cmp.Or(m.Title, m.TaskKey.String())
	if p.html {
		_, _ = fmt.Fprintf(w, pageHead, o.Lang, p.inline(title))
	}
	p.title(1, title)
	rows := [][2]string{{"UUID", m.UUID}, {t("ops.export_status"), status(v.View, o.Lang)}, {t("ops.export_task"), m.TaskKey.String()}, {t("ops.export_user"), m.User}, {t("ops.export_model"), modelOf(v.View)}}
	for _, at := range []struct {
		key string
		at  contextstore.Time
	}{{"ops.export_started", st.StartedAt}, {"ops.export_completed", st.CompletedAt}} {
		if !at.at.IsZero() {
			rows = append(rows, [2]string{t(at.key), stamp(at.at) + " UTC"})
		}
	}
	if !st.StartedAt.IsZero() && !st.CompletedAt.IsZero() {
		rows = append(rows, [2]string{t("ops.export_duration"), duration(o.Lang, st.CompletedAt.Sub(st.StartedAt.Time))})
	}
	if st.Error != nil {
		rows = append(rows, [2]string{t("ops.export_reason"), *st.Error})
	}
	rows = append(rows, [2]string{t("ops.export_calls"), fmt.Sprintf("%s / %s", thousands(st.LLMCallCount), thousands(st.ToolCallCount))},
		[2]string{t("ops.export_tokens"), thousands(st.TotalTokensUsed)}, [2]string{t("ops.export_cost"), cost(st, o.Lang)}, [2]string{t("ops.export_commit"), st.Commit})
	p.facts(rows)
	for _, part := range []struct {
		key, file string
		line      func([]byte) error
	}{
		{"ops.export_summaries", contextstore.Summaries, func(b []byte) error {
			s, err := contextstore.DecodeSummary(b)
			if err == nil {
				p.text(fmt.Sprintf("[%d] seq %d-%d", s.ID, s.StartSeq, s.EndSeq), s.Summary, !s.Final)
			}
			return err
		}},
		{"ops.export_checks", contextstore.Checks, p.check},
		{"ops.export_conversation", contextstore.Messages, p.message},
		{"ops.export_effects", contextstore.RequestLog, p.effects(o)},
	} {
		told := false
		err := v.lines(part.file, func(line []byte) error {
			if !told {
				told = true
				p.title(2, t(part.key))
			}
			if err := part.line(line); err != nil {
				p.text("", string(line)+" ("+err.Error()+")", false)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if p.html {
		_, _ = w.WriteString("</body></html>\n")
	}
	return nil
}

func (p *page) message(b []byte) error {
	m, err := contextstore.DecodeMessage(b)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("[%d] %s", m.Seq, m.Role)
	if m.ToolName != "" {
		head += " " + m.ToolName
	}
	p.title(3, head+" · "+stamp(m.Timestamp))
	p.text(fit(m.Content, 100), m.Content, m.Role == llm.RoleSystem || m.Role == llm.RoleTool)
	for _, c := range m.ToolCalls {
		p.text("", "→ "+c.Name+" "+c.Arguments, false)
	}
	return nil
}

func (p *page) check(b []byte) error {
	c, err := checkOf(b)
	if err != nil {
		return err
	}
	became := "passed"
	if !c.Passed() {
		became = "failed"
	}
	head := fmt.Sprintf("%s: %s (round %d, exit %d, %d ms)", became, c.Command, c.Round, c.ExitCode, c.DurationMS)
	p.text(head, head+"\n\n"+c.Output, true)
	return nil
}

// effects prints what was to leave the house, as tori show does.
func (p *page) effects(o ExportOptions) func([]byte) error {
	table := &effectTable{lang: o.Lang}
	return func(b []byte) error {
		s, err := table.line(b)
		if err == nil {
			p.text("", s, false)
		}
		return err
	}
}
