package folder

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/task"
)

// SetLabels implements forge.Tracker. Of the file only the lines of its labels
// change. Where somebody writes to it at the same time it is read again; after a
// few times that is a Conflict.
func (f *Forge) SetLabels(ctx context.Context, k task.Key, add, remove []string) error {
	e, err := f.findToWrite(ctx, k)
	if err != nil {
		return err
	}
	unlock, err := lockDir(ctx, f.o.Dir)
	if err != nil {
		return failed(forge.Unavailable, i18n.E("folder.unwritable", e.path, err))
	}
	defer unlock()
	const tries = 5
	for range tries {
		data, err := readIn(e.path)
		if err != nil {
			return failed(forge.Unavailable, err)
		}
		now, err := editLabels(e.path, data, add, remove)
		if err != nil {
			return failed(forge.Invalid, err)
		}
		if bytes.Equal(now, data) {
			return nil
		}
		err = replace(e.path, now, func() error {
			if again, err := readIn(e.path); err != nil || !bytes.Equal(again, data) {
				return errors.Join(errChanged, err)
			}
			return nil
		})
		if err == nil {
			return f.tookAway(ctx, e.id, slices.DeleteFunc(slices.Clone(remove), func(l string) bool { return in(add, l) }))
		}
		if !errors.Is(err, errChanged) {
			return failed(forge.Unavailable, i18n.E("folder.unwritable", e.path, err))
		}
	}
	return failed(forge.Conflict, i18n.E("folder.changing", e.path))
}

// lockDir keeps other processes of ours from editing issues in a folder.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(lockTimeout); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = d.Close() }, nil // which unlocks it
		}
		if cerr := ctx.Err(); cerr != nil {
			err = cerr
		}
		if ctx.Err() != nil || time.Now().After(end) {
			_ = d.Close()
			return nil, err
		}
	}
}

// errChanged says that somebody else wrote to a file meanwhile.
var errChanged = errors.New("it changed meanwhile")

// replace puts a file with that content in the place of path, whole and with the
// same mode, where still says so at the last moment.
func replace(path string, data []byte, still func() error) error {
	b, err := besideOf(path)
	if err != nil {
		return err
	}
	defer b.close()
	st, err := b.dir.Lstat(b.name)
	if err != nil {
		return err
	}
	err = b.swap(st.Mode().Perm(), func(f *os.File) error {
		_, err := f.Write(data)
		return errors.Join(err, f.Sync())
	}, still)
	return errors.Join(err, b.sync())
}

// editLabels returns the file with some labels added and others taken out. What
// it would do to anything but the labels is an error.
func editLabels(path string, data []byte, add, remove []string) ([]byte, error) {
	before, err := parseIssue(path, path, data)
	if err != nil {
		return nil, err
	}
	want := labelsAfter(before.Labels, add, remove)
	if slices.Equal(want, before.Labels) {
		return data, nil
	}
	text := string(bytes.TrimPrefix(data, []byte(mark)))
	now := data[:len(data)-len(text)]
	now = append(slices.Clone(now), rewrite(text, before.Labels, want)...)
	after, err := parseIssue(path, path, now)
	if err != nil || !slices.Equal(after.Labels, want) || after.ID != before.ID || after.Title != before.Title || after.Author != before.Author || after.Body != before.Body {
		return nil, i18n.E("folder.labels_unwritable", path)
	}
	return now, nil
}

// in reports whether a label is among some.
func in(all []string, l string) bool {
	return slices.ContainsFunc(all, func(o string) bool { return strings.EqualFold(strings.TrimSpace(o), l) })
}

func labelsAfter(have, add, remove []string) []string {
	var want []string
	for _, l := range have {
		if !in(remove, l) || in(add, l) {
			want = append(want, l)
		}
	}
	for _, l := range add {
		if l = strings.TrimSpace(l); l != "" && !in(want, l) {
			want = append(want, l)
		}
	}
	return want
}

var (
	oneLine  = lazyregexp.New(`[^\r\n]*(?:\r\n|\r|\n|$)`)
	labelKey = lazyregexp.New(`^(?:labels|"labels"|'labels')[ \t]*:`)
	// plainLabel needs no quotes in YAML, unless it is a word with a meaning.
	plainLabel = lazyregexp.New(`^\p{L}[\p{L}\p{N}_./+]*(?:[ -][\p{L}\p{N}_./+]+)*$`)
	meaning    = lazyregexp.New(`(?i)^(?:true|false|null|yes|no|on|off|y|n|nan|inf)$`)
)

func quoted(l string) string {
	if plainLabel().MatchString(l) && !meaning().MatchString(l) {
		return l
	}
	return strconv.Quote(l)
}

func flow(labels []string) string {
	q := make([]string, len(labels))
	for i, l := range labels {
		q[i] = quoted(l)
	}
	return "[" + strings.Join(q, ", ") + "]"
}

// rewrite changes the labels in a text that may have front matter.
func rewrite(text string, have, want []string) string {
	lines := oneLine().FindAllString(text, -1)
	eol := "\n"
	if len(lines) > 0 && strings.HasSuffix(lines[0], "\r\n") {
		eol = "\r\n"
	}
	end, ok := block(lines)
	if !ok {
		return "---" + eol + "labels: " + flow(want) + eol + "---" + eol + text
	}
	for n := 1; n < end; n++ {
		at := labelKey().FindStringIndex(lines[n])
		if at == nil {
			continue
		}
		start := len(strings.Join(lines[:n], "")) + at[1]
		if rest := strings.TrimLeft(text[start:], " \t"); strings.HasPrefix(rest, "[") {
			open := len(text) - len(rest)
			if size := flowLength(rest); size > 0 {
				return text[:open] + flow(want) + rest[size:]
			}
			return text
		}
		return strings.Join(lines[:n], "") + items(lines[n], lines[n+1:end], at[1], have, want, eol) + strings.Join(lines[end:], "")
	}
	return strings.Join(lines[:end], "") + "labels: " + flow(want) + eol + strings.Join(lines[end:], "")
}

// block finds the line that ends the front matter.
func block(lines []string) (end int, ok bool) {
	if len(lines) == 0 || strings.TrimRight(lines[0], " \t\r\n") != "---" {
		return 0, false
	}
	for n, l := range lines[1:] {
		if t := strings.TrimRight(l, " \t\r\n"); t == "---" || t == "..." {
			return n + 1, true
		}
	}
	return 0, false
}

// flowLength is how long the list is that text begins with, 0 where it does not end.
func flowLength(text string) int {
	var quote byte
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && strings.ContainsRune("[, \t\r\n", rune(text[i-1])):
			quote = c
		case c == '#' && strings.ContainsRune(" \t\r\n", rune(text[i-1])):
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case c == ']':
			return i + 1
		}
	}
	return 0
}

var dash = lazyregexp.New(`^([ \t]*)-(?:[ \t]|\r?\n|$)`)

// items rewrites a list of one label a line: of a label that goes its line goes,
// one that comes is put after the last.
func items(key string, rest []string, colon int, have, want []string, eol string) string {
	starts, indent := listed(rest, len(have))
	if len(starts) != len(have) {
		return key + strings.Join(rest, "") // what it is the check will tell
	}
	var b strings.Builder
	if len(want) == 0 {
		key = key[:colon] + " []" + key[colon:]
	}
	b.WriteString(key)
	kept, at := 0, 0
	for i, l := range have {
		b.WriteString(strings.Join(rest[at:starts[i]], ""))
		at = starts[i] + 1
		for at < len(rest) && strings.TrimSpace(rest[at]) != "" && len(rest[at])-len(strings.TrimLeft(rest[at], " \t")) > len(indent) {
			at++
		}
		if kept < len(want) && want[kept] == l {
			kept++
			b.WriteString(strings.Join(rest[starts[i]:at], ""))
		}
	}
	for _, l := range want[kept:] {
		b.WriteString(indent + "- " + quoted(l) + eol)
	}
	return b.String() + strings.Join(rest[at:], "")
}

// listed finds the line of each of n labels, and how far the list is indented.
func listed(lines []string, n int) (starts []int, indent string) {
	for at, l := range lines {
		if m := dash().FindStringSubmatch(l); m != nil && len(starts) < n && (starts == nil || m[1] == indent) {
			indent = m[1]
			starts = append(starts, at)
		}
	}
	return starts, indent
}
