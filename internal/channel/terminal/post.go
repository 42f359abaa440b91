package terminal

import (
	"fmt"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// shownDiff is how many lines of a proposal's diff are shown at once (spec/chat §7).
const shownDiff = 60

// show lays out a post in rows of at most width columns.
func show(l i18n.Lang, p channel.Post, width int) []line {
	switch {
	case p.Kind == channel.Request && p.Approval != nil:
		return request(l, p, width)
	case p.Kind == channel.Answer:
		return markdown(p.Text, width)
	}
	mark := span{faint | cyan, "* "}
	if p.Kind == channel.Decided {
		mark = span{yellow, "= "}
	}
	rows := markdown(p.Text, width-2)
	for i, r := range rows {
		lead := span{0, "  "}
		if i == 0 {
			lead = mark
		}
		rows[i] = append(line{lead}, r...)
	}
	return rows
}

// request is a proposal as its approvers see it: what is irreversible first.
func request(l i18n.Lang, p channel.Post, width int) (rows []line) {
	a := p.Approval
	bar, text := line{{yellow, "┃ "}}, func(parts ...span) {
		for i := range parts {
			parts[i].text = channel.Clean(parts[i].text)
		}
		rows = append(rows, wrap(parts, line{{yellow, "┃ "}}, line{{yellow, "┃ "}}, width)...)
	}
	for _, r := range a.Rows(l, func(t time.Time) string { return t.Local().Format("2006-01-02 15:04 MST") }) {
		how := map[channel.RowKind]style{channel.TitleRow: bold | yellow, channel.SmallRow: faint, channel.CommandRow: cyan}[r.Kind]
		if r.Risky {
			how = red
		}
		switch r.Kind {
		case channel.FileRow:
			text(span{how, "  " + r.Text + " " + r.File.Name()}, span{green, fmt.Sprintf("  +%d", r.File.Added)}, span{red, fmt.Sprintf(" -%d", r.File.Removed)})
		case channel.CommandRow:
			text(span{how, "  $ " + r.Text})
		case channel.ItemRow:
			text(span{how, "  - " + r.Text})
		default:
			text(span{how, r.Text})
		}
	}
	if a.Diff == "" {
		return rows
	}
	rows = append(rows, bar)
	diff := diffLines(a.Diff)
	for _, d := range diff[:min(len(diff), shownDiff)] {
		rows = append(rows, hard(d, bar, bar, width)...)
	}
	if more := len(diff) - shownDiff; more > 0 {
		text(span{faint, l.T("terminal.more_diff", more)})
	}
	return rows
}

// said is a message of a person, as it stands above the answer.
func said(text string, width int) []line {
	var l line
	for i, part := range strings.Split(strings.TrimRight(channel.Clean(text), "\n"), "\n") {
		if i > 0 {
			l = append(l, span{0, "\n"})
		}
		l = append(l, span{bold, part})
	}
	return wrap(l, line{{bold | cyan, "> "}}, plain("  "), width)
}
