package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"toritsugi/internal/i18n"
)

// OneLine is a text on one line, with one blank between its words.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Clock is a time as people read it, UTC.
func Clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// Cut shortens a text to n characters.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return s
}

// Head is the beginning of a text, of at most n bytes, with a note of what is missing.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s\n[%d more bytes are not shown]", s[:n], len(s)-n)
}

// Tail is the end of a text, of at most n bytes, with a note of what is missing.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return fmt.Sprintf("[%d earlier bytes are not shown]\n%s", i, s[i:])
}

// Quote is a text as a quotation in Markdown.
func Quote(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n> ")
}

// Fenced is a text as a block of code in Markdown.
func Fenced(s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(s, "\n") + "\n" + fence + "\n"
}

// First are the first n of all, and how many more there are.
func First[T any](all []T, n int) (shown []T, more int) {
	n = min(n, len(all))
	return all[:n], len(all) - n
}

// Some are the first n of some texts, and behind them one that says how many are left.
func Some(all []string, n int, says func(left int) string) []string {
	shown, left := First(all, n)
	if left > 0 {
		shown = append(slices.Clip(shown), says(left))
	}
	return shown
}

// More says how many are left in a list.
func More(l i18n.Lang) func(left int) string {
	return func(left int) string { return l.T("agent.comment_more", left) }
}
