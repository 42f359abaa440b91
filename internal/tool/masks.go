package tool

import (
	"context"
	"fmt"
	"strings"
)

// What the model sees is masked, what the files hold is not (DESIGN §2 law 7).
// A token that a model copies back would destroy the real text, so it is never
// written: the file's own text is put back where what is replaced tells which
// that is, and the call is refused where it does not.

// masked is a text as the model sees it, and what stands for each token.
type masked struct {
	text  string
	marks []mark
}

// mark is a masking token in text[start:end] that stands for from to to of what
// the file holds. sure is false where that cannot be told.
type mark struct {
	token      string
	start, end int
	from, to   int
	sure       bool
}

// tokens returns the places of the masking tokens of s.
func (w *workspaceFiles) tokens(s string) (marks []mark) {
	for at := 0; w.masks != nil; {
		token, ok := w.masks(s[at:])
		i := strings.Index(s[at:], token)
		if !ok || len(token) < 2 || i < 0 {
			break
		}
		at += i
		marks = append(marks, mark{token: token, start: at, end: at + len(token), from: at, to: at + len(token), sure: true})
		at += len(token)
	}
	return marks
}

// mask returns content as the model sees it. Without a filter that is content.
func (w *workspaceFiles) mask(content string) masked {
	m := masked{text: content}
	if w.filter != nil {
		var b strings.Builder
		f := w.filter(&b)
		_, err := f.Write([]byte(content))
		if f.Close() == nil && err == nil {
			m.text = b.String()
		}
	}
	m.marks = w.tokens(m.text)
	if m.text != content {
		m.align(content)
	}
	return m
}

// align finds what each token stands for. All between the tokens is the file's
// own, so it is laid on content once from the left, as far to the left as it
// goes, and once from the right: a place is sure where both agree.
func (m *masked) align(content string) {
	n := len(m.marks)
	between := make([]string, n+1) // before, between and behind the tokens
	at := 0
	for i, k := range m.marks {
		between[i], at = m.text[at:k.start], k.end
	}
	between[n] = m.text[at:]
	bad := !strings.HasPrefix(content, between[0]) || !strings.HasSuffix(content, between[n])
	for i, at := 0, len(between[0]); i < n && !bad; i++ {
		end := len(content) - len(between[n])
		if i+1 < n && at+1 <= len(content) {
			end = strings.Index(content[at+1:], between[i+1])
			bad = end < 0
			end += at + 1
		}
		bad = bad || end <= at
		m.marks[i].from, m.marks[i].to = at, end
		at = end + len(between[i+1])
	}
	for i, end := n-1, len(content)-len(between[n]); i >= 0 && !bad; i-- {
		start := len(between[0])
		if i > 0 && end > 0 {
			start = strings.LastIndex(content[:end-1], between[i])
			bad = start < 0
			start += len(between[i])
		}
		k := &m.marks[i]
		k.sure = k.from == start && k.to == end && start < end
		end = start - len(between[i])
	}
	for i := range m.marks {
		m.marks[i].sure = m.marks[i].sure && !bad
	}
}

// region is a part of a masked text: where it lies in the file, and the marks
// in it, with their places in the part.
type region struct {
	from, to int
	marks    []mark
}

// region returns the part of m from start to end; false where a token is cut in
// two or it cannot be told where in the file it lies.
func (m *masked) region(start, end int) (r region, ok bool) {
	r.from, r.to = start, end
	for _, k := range m.marks {
		switch {
		case k.end <= start:
			r.from = start - k.end + k.to
			r.to = end - k.end + k.to
			ok = k.sure
			if !ok {
				return r, false
			}
		case k.start >= end:
			return r, true
		case k.start < start || k.end > end || !k.sure:
			return r, false
		default:
			r.to = end - k.end + k.to
			k.start, k.end = k.start-start, k.end-start
			r.marks = append(r.marks, k)
		}
	}
	return r, true
}

// restore returns text, which is to replace old, with the file's own text for
// each token; was says what the tokens of old stand for. problem is why that
// cannot be told.
func (w *workspaceFiles) restore(content, old string, was []mark, text string) (restored, problem string) {
	now := w.tokens(text)
	if len(now) == 0 {
		return text, ""
	}
	own := make([]string, len(now))
	used := make([]bool, len(was))
	meant := func(i int, fits func(mark) bool) bool {
		found := -1
		for j, k := range was {
			if used[j] || k.token != now[i].token || !fits(k) {
				continue
			}
			if found >= 0 && content[k.from:k.to] != content[was[found].from:was[found].to] {
				return false // two that differ
			}
			if found < 0 {
				found = j
			}
		}
		if found >= 0 {
			used[found] = true
			own[i] = content[was[found].from:was[found].to]
		}
		return found >= 0
	}
	// A line that stayed as it was keeps what it has; then what is left has to
	// be the same wherever it could come from.
	var open []int
	lines := make(map[mark]string, len(was))
	for j, k := range was {
		lines[k] = lineKey(old, was, j)
	}
	for i := range now {
		line := lineKey(text, now, i)
		if !meant(i, func(o mark) bool { return lines[o] == line }) {
			open = append(open, i)
		}
	}
	for _, i := range open {
		if !meant(i, func(mark) bool { return true }) {
			return "", why(now[i].token, was)
		}
	}
	var b strings.Builder
	at := 0
	for i, k := range now {
		b.WriteString(text[at:k.start])
		b.WriteString(own[i])
		at = k.end
	}
	b.WriteString(text[at:])
	return b.String(), ""
}

// lineKey is the line of the i-th token of s, and which of its tokens it is.
func lineKey(s string, marks []mark, i int) string {
	k := marks[i]
	from := strings.LastIndexByte(s[:k.start], '\n') + 1
	to := len(s)
	if n := strings.IndexByte(s[k.end:], '\n'); n >= 0 {
		to = k.end + n
	}
	nth := 0
	for j := i - 1; j >= 0 && marks[j].start >= from; j-- {
		nth++
	}
	return fmt.Sprint(nth, s[from:to])
}

// why says why a token cannot be restored.
func why(token string, was []mark) string {
	n := 0
	for _, k := range was {
		if k.token == token {
			n++
		}
	}
	switch n {
	case 0:
		return fmt.Sprintf("the new text contains %s, which stands for text that was masked before you saw it, and what it replaces does not have it. "+
			"Writing it would destroy the real text. Leave the line with the original untouched, or take it into old_text of edit_file.", token)
	case 1:
		return fmt.Sprintf("the new text contains %s more often than what it replaces. It stands for text that was masked before you saw it, and only what the file has there can be put back.", token)
	}
	return fmt.Sprintf("the new text contains %s, which stands for text that was masked before you saw it, and in what it replaces it stands for different texts, "+
		"so that it cannot be told which is meant. Leave those lines as they are, or change them one at a time.", token)
}

func (w *workspaceFiles) maskRefused(shown, problem string) Result {
	return Failf("%s was not written: %s", shown, problem)
}

// ended returns ctx's error where it ended, which is the only error of a call.
func ended(ctx context.Context, problem string) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	return Failf("%s", problem), nil
}
