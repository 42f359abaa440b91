package terminal

import "strings"

// row cuts a row of a table into its cells.
func row(l string) (all []string) {
	l = strings.TrimPrefix(strings.TrimSpace(l), "|")
	from := 0
	for i := 0; i < len(l); i++ {
		switch l[i] {
		case '\\':
			i++
		case '|':
			all = append(all, strings.TrimSpace(l[from:i]))
			from = i + 1
		}
	}
	if from < len(l) {
		all = append(all, strings.TrimSpace(l[from:]))
	}
	return all
}

// isTable reports whether a row of heads stands there above a rule of as many columns.
func isTable(all []string) bool {
	if len(all) < 2 || !strings.Contains(all[0], "|") || !strings.Contains(all[1], "-") {
		return false
	}
	columns := row(all[1])
	for _, c := range columns {
		if c = strings.TrimSuffix(strings.TrimPrefix(c, ":"), ":"); c == "" || strings.Trim(c, "-") != "" {
			return false
		}
	}
	return len(columns) == len(row(all[0]))
}

// table lays out a table; where it is too wide its widest columns are wrapped.
func (p *page) table(all []string, first, rest line, _ int) (n int) {
	rows := [][]line{nil}
	var widths []int
	for _, head := range row(all[0]) {
		l := inline(head, bold)
		rows[0], widths = append(rows[0], l), append(widths, max(l.width(), 1))
	}
	for n = 2; n < len(all) && strings.TrimSpace(all[n]) != "" && strings.Contains(all[n], "|"); n++ {
		r := make([]line, len(widths))
		for i, c := range row(all[n]) {
			if i < len(widths) {
				r[i] = inline(strings.ReplaceAll(c, `\|`, "|"), 0)
				widths[i] = max(widths[i], r[i].width())
			}
		}
		rows = append(rows, r)
	}
	narrow(widths, p.width-rest.width()-3*(len(widths)-1))
	p.laid(rows[0], widths, first, rest)
	rule := append(line{}, rest...)
	for i, w := range widths {
		if i > 0 {
			rule = append(rule, span{faint, "─┼─"})
		}
		rule = append(rule, span{faint, strings.Repeat("─", w)})
	}
	p.rows = append(p.rows, fit(rule, p.width))
	for _, r := range rows[1:] {
		p.laid(r, widths, rest, rest)
	}
	return n
}

// narrow takes from the widest columns until all fit.
func narrow(widths []int, room int) {
	for {
		sum, widest := 0, 0
		for i, w := range widths {
			if sum += w; w > widths[widest] {
				widest = i
			}
		}
		if sum <= room || widths[widest] <= 4 {
			return
		}
		widths[widest] -= min(sum-room, max(widths[widest]/8, 1))
	}
}

// laid lays out one row of a table.
func (p *page) laid(r []line, widths []int, first, rest line) {
	wrapped, tall := make([][]line, len(widths)), 1
	for i, w := range widths {
		wrapped[i] = wrap(r[i], nil, nil, w)
		tall = max(tall, len(wrapped[i]))
	}
	for k := range tall {
		out := append(line{}, first...)
		first = rest
		for i, w := range widths {
			var c line
			if k < len(wrapped[i]) {
				c = wrapped[i][k]
			}
			if out = append(out, c...); i < len(widths)-1 {
				out = append(out, span{0, strings.Repeat(" ", max(w-c.width(), 0))}, span{faint, " │ "})
			}
		}
		p.rows = append(p.rows, fit(out, p.width))
	}
}
