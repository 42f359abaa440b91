package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"toritsugi/internal/channel"
)

const (
	menuRows  = 6
	jobRows   = 3
	prompt    = "> "
	tailBytes = 16 << 10 // of an answer that is being written, which are laid out
)

// room is how many columns the editor has.
func (c *chat) room() int { return max(c.columns()-len(prompt), 4) }

// View implements tea.Model: what may still change, at most c.most() rows.
func (c *chat) View() tea.View {
	if c.quitting || c.width == 0 {
		return tea.NewView("")
	}
	below := c.below()
	box, x, y := c.editor(max((c.most()-len(below))/2, 1))
	if c.start.Once {
		box = nil
	}
	above := c.above(c.most() - len(below) - len(box))
	rows := append(append(above, box...), below...)
	painted := make([]string, len(rows))
	for i, r := range rows {
		painted[i] = fit(r, c.columns()).paint(c.colour)
	}
	v := tea.NewView(strings.Join(painted, "\n"))
	if len(box) > 0 && c.focus != deciding && c.focus != picking {
		v.Cursor = tea.NewCursor(x, len(above)+y)
		v.Cursor.Blink = false
	}
	return v
}

// above is the answer that is being written, and what waits; its last n rows.
func (c *chat) above(n int) (rows []line) {
	l := c.t.opt.Lang
	if c.tail != "" {
		tail := c.tail
		if cut := len(tail) - tailBytes; cut > 0 {
			tail = tail[cut:]
			tail = tail[strings.IndexByte(tail, '\n')+1:]
		}
		rows = append(append(rows, nil), markdown(tail, c.columns())...)
	}
	if c.turn != nil {
		state := fmt.Sprintf("%c %s", `-\|/`[c.ticks%4], l.T("terminal.busy_for", c.t.opt.Now().Sub(c.turn.since).Round(time.Second)))
		if c.turn.stopped {
			state = l.T("terminal.stopping")
		}
		rows = append(rows, styled(faint|cyan, state))
	}
	for _, o := range c.queue {
		rows = append(rows, styled(faint, l.T("terminal.queued", channel.Clean(strings.Join(strings.Fields(o.text), " ")))))
	}
	if len(rows) == 0 && !c.start.Once {
		rows = append(rows, nil)
	}
	return rows[max(len(rows)-max(n, 0), 0):]
}

// editor is what is being written, around the cursor, in at most n rows.
func (c *chat) editor(n int) (rows []line, x, y int) {
	label := map[focus]string{reasoning: "terminal.reason", changing: "terminal.what_change"}[c.focus]
	if label != "" && n > 1 {
		rows = append(rows, styled(yellow, c.t.opt.Lang.T(label)))
		n--
	}
	all, y, x := c.ed.layout(c.room())
	from := max(0, min(y-n+1, len(all)-n))
	if y < from {
		from = y
	}
	for i, r := range all[from:min(from+n, len(all))] {
		lead := span{bold | cyan, prompt}
		if i+from > 0 {
			lead = span{0, "  "}
		}
		rows = append(rows, line{lead, {0, c.ed.text[r.from:r.to]}})
	}
	if label != "" {
		y++
	}
	return rows, x + len(prompt), y - from
}

// below is the menu, what is to be decided, the jobs, and what keys do.
func (c *chat) below() (rows []line) {
	l := c.t.opt.Lang
	switch {
	case c.focus == picking:
		rows = c.picked()
	case len(c.menu.choices) > 0:
		n := min(menuRows, max(c.most()/2, 1))
		from := max(0, min(c.menu.at-n/2, len(c.menu.choices)-n))
		for i, ch := range c.menu.choices[from:min(from+n, len(c.menu.choices))] {
			how := style(0)
			if i+from == c.menu.at {
				how = reverse
			}
			rows = append(rows, line{{0, "  "}, {how, ch.text}, {faint, "  " + channel.Clean(ch.help)}})
		}
	}
	if c.focus != picking {
		rows = append(rows, c.waiting()...)
	}
	shown := slices.DeleteFunc(slices.Clone(c.jobs), func(j job) bool { return j.text == "" })
	for i, j := range shown {
		if i == jobRows {
			rows = append(rows, styled(faint, l.T("terminal.more_jobs", len(shown)-i)))
			break
		}
		rows = append(rows, behind(styled(cyan, "~ "), append(markdown(j.text, c.columns()-2), nil)[0]))
	}
	switch {
	case c.note != "":
		rows = append(rows, wrap(styled(yellow, channel.Clean(c.note)), nil, nil, c.columns())...)
	case c.height >= 8 && len(rows) == 0 && !c.start.Once:
		hint := styled(faint, l.T("terminal.hint"))
		if hint.width() > c.columns() {
			hint = styled(faint, l.T("terminal.hint_short"))
		}
		rows = append(rows, hint)
	}
	return rows[:min(len(rows), max(c.most()-1, 1))]
}

// picked is the list of sessions.
func (c *chat) picked() (rows []line) {
	some := c.picker.found(c.name)
	rows = append(rows, styled(faint, c.t.opt.Lang.T("terminal.pick", c.picker.word)))
	n := max(c.most()-4, 1)
	from := max(0, min(c.picker.at-n/2, len(some)-n))
	for i, s := range some[from:min(from+n, len(some))] {
		how := style(0)
		if i+from == c.picker.at {
			how = reverse
		}
		rows = append(rows, line{{0, "  "}, {how, c.name(s.ID)}, {faint, fmt.Sprintf("  %s  ", s.Last.Local().Format("01-02 15:04"))}, {0, channel.Clean(s.Title)}})
	}
	return rows
}

// waiting names the proposal that is decided about, or that Tab would choose.
func (c *chat) waiting() (rows []line) {
	l, p := c.t.opt.Lang, c.chosen
	key := "terminal.keys"
	switch {
	case c.focus == reasoning || c.focus == changing:
		return []line{{{yellow, "? " + channel.Clean(p.Title)}}}
	case len(c.pending) == 0:
		return nil
	case c.focus != deciding:
		p, key = c.latest(), "terminal.tab"
	}
	title := fit(line{{bold | yellow, "? "}, {yellow, channel.Clean(p.Title)}}, c.columns())
	if n := len(c.pending); n > 1 && c.focus == deciding {
		title = append(title, span{faint, l.T("terminal.nth", c.at()+1, n)})
	} else if n > 1 {
		title = append(title, span{faint, l.T("terminal.of", n)})
	}
	return wrap(append(title, span{0, "  "}, span{bold, l.T(key)}), nil, plain("  "), c.columns())
}
