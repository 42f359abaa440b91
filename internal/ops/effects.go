package ops

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

// The columns of the table of effects: with two spaces between, they leave a
// line of 80 columns to the target.
const (
	tableWidth    = 80
	effectNumber  = 4
	effectTime    = 19
	effectKind    = 12
	effectVerdict = 8
	effectTarget  = tableWidth - effectNumber - effectTime - effectKind - effectVerdict - 4*2
	effectIndent  = effectNumber + 2
	maxFindings   = 10 // of one request that are told
)

// effectTable prints lines of effects.jsonl, the head before the first.
type effectTable struct {
	lang i18n.Lang
	rows int
}

func (t *effectTable) line(b []byte) (string, error) {
	var r contextstore.EffectRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return "", err
	}
	head := ""
	if t.rows++; t.rows == 1 {
		head = effectRow("#", t.lang.T("ops.effect_head_time"), t.lang.T("ops.effect_head_what"), t.lang.T("ops.effect_head_end"), t.lang.T("ops.effect_head_where"))
	}
	if r.Type == contextstore.EffectFact {
		return head + t.row(r, t.known(r.Leg), t.lang.T("ops.effect_met"), strings.TrimSpace(r.Fact+" "+r.Detail)), nil
	}
	text := head + t.row(r, r.Kind, t.known(r.Decision), r.Target)
	if r.Reason != "" {
		text += detail(t.lang.T("ops.effect_why", r.Reason))
	}
	for i, f := range r.Findings {
		if i == maxFindings {
			text += detail(t.lang.T("ops.effect_more", len(r.Findings)-i))
			break
		}
		text += detail(t.lang.T("ops.effect_changed", f.Kind, f.Place, f.Excerpt))
	}
	return text, nil
}

// known is the word for a decision or leg; one of a later version stays as it is.
func (t *effectTable) known(name string) string {
	switch name {
	case "allow", "refuse", "ask", "untrusted", "sensitive", "outward":
		return t.lang.T("ops.effect_" + name)
	}
	return name
}

// row is the row of r. A target that is too long follows below, in full.
func (t *effectTable) row(r contextstore.EffectRecord, kind, verdict, target string) string {
	below := ""
	if target = clean(target); columns(target) > effectTarget {
		target, below = "", detail(target)
	}
	return effectRow(strconv.FormatInt(r.Seq, 10), stamp(r.Timestamp), kind, verdict, cmp.Or(target, "-")) + below
}

func effectRow(number, time, kind, verdict, target string) string {
	return strings.TrimRight(fmt.Sprintf("%*s  %s  %s  %s  %s", effectNumber, number, pad(time, effectTime), pad(kind, effectKind), pad(verdict, effectVerdict),
		fit(target, effectTarget)), " ") + "\n"
}

// pad is s in exactly so many columns.
func pad(s string, n int) string {
	s = fit(s, n)
	return s + strings.Repeat(" ", max(0, n-columns(s)))
}

// columns is how many columns of a terminal s takes.
func columns(s string) int {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if wide(r) {
			n++
		}
	}
	return n
}

// detail is a text below its row, broken into lines at spaces where there are
// any.
func detail(s string) string { return detailAt(effectIndent, s) }

// detailAt is detail behind so many blanks.
func detailAt(blanks int, s string) string {
	room := tableWidth - blanks
	var b strings.Builder
	for rest := clean(s); rest != ""; {
		end, space, used := len(rest), 0, 0
		for i, r := range rest {
			if used += columns(string(r)); used > room {
				end = cmp.Or(space, i)
				break
			}
			if r == ' ' {
				space = i
			}
		}
		b.WriteString(strings.Repeat(" ", blanks) + rest[:end] + "\n")
		rest = strings.TrimPrefix(rest[end:], " ")
	}
	return b.String()
}
