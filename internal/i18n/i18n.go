// Package i18n holds every text a user reads, in Japanese and English, and
// errors that carry such a text. Texts are found by key; a test asserts that
// each key exists in both languages with the same verbs.
package i18n

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Lang is a language that the program speaks.
type Lang string

// The languages.
const (
	English  Lang = "en"
	Japanese Lang = "ja"
)

// text is one message in both languages: fmt format strings with the same verbs.
type text struct{ en, ja string }

// Detect returns the language of a POSIX locale environment: the first of
// LC_ALL, LC_MESSAGES and LANG that is set decides; Japanese for ja*, else English.
func Detect(getenv func(string) string) Lang {
	l, _ := FromLocale(getenv)
	return l
}

// FromLocale is Detect, and says whether the locale names a language at all: C, POSIX and none
// do not.
func FromLocale(getenv func(string) string) (l Lang, named bool) {
	for _, k := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		v := getenv(k)
		if v == "" {
			continue
		}
		if strings.HasPrefix(strings.ToLower(v), "ja") {
			return Japanese, true
		}
		name, _, _ := strings.Cut(v, ".")
		return English, name != "C" && name != "POSIX"
	}
	return English, false
}

// T formats the text of key in l. An unknown key is shown as it is, so that a
// missing text is seen and nothing is lost.
func (l Lang) T(key string, args ...any) string {
	t, ok := find(key)
	if !ok {
		return strings.TrimSpace(key + " " + fmt.Sprintln(args...))
	}
	f := t.en
	if l == Japanese {
		f = t.ja
	}
	if len(args) == 0 {
		return f
	}
	shown := make([]any, len(args))
	for i, a := range args {
		shown[i] = a
		switch a := a.(type) {
		case error:
			shown[i] = l.Error(a)
		case []error:
			all := make([]string, len(a))
			for i, err := range a {
				all[i] = l.Error(err)
			}
			shown[i] = strings.Join(all, "; ")
		}
	}
	return fmt.Sprintf(f, shown...)
}

// Asked is why a run was paused or stopped (do): on whose request or, where by is the key of a
// text of dispatch, what happened.
func (l Lang) Asked(do, by string) string {
	if strings.HasPrefix(by, "dispatch.") {
		return l.T(by)
	}
	return l.T("agent.asked_"+do, by)
}

// Keys lists the keys of all texts, sorted.
func Keys() (all []string) {
	for i := range catalog {
		all = slices.AppendSeq(all, maps.Keys(catalog[i].all()))
	}
	slices.Sort(all)
	return all
}

// Error is an error that its reader understands in either language: what
// happened, to what, and what to do.
type Error struct {
	Key  string
	Args []any
	Err  error // the cause, if any; reachable by errors.Is and errors.As
}

// E returns an Error with the text of key. Arguments that are errors are
// rendered in the reader's language, and the first of them is the cause. What callers alone
// look for is no argument but the Error's kind (Of).
func E(key string, args ...any) *Error {
	e := &Error{Key: key, Args: args}
	for _, a := range args {
		if err, ok := a.(error); ok {
			e.Err = err
			break
		}
	}
	return e
}

// Of says what kind of error e is to errors.Is and errors.As. Nothing of kind is shown: the text says
// what it means, in its reader's language.
func (e *Error) Of(kind error) *Error {
	e.Err = kind
	return e
}

// Error is the English text.
func (e *Error) Error() string { return English.T(e.Key, e.Args...) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Error renders err in l. Of a chain, the outermost Error speaks. What was wrapped
// around it is English and stands before it there; in another language it speaks
// alone. An error that holds none keeps its own words.
func (l Lang) Error(err error) string {
	if err == nil {
		return ""
	}
	var e *Error
	switch {
	case !errors.As(err, &e):
		return err.Error()
	case error(e) == err: //nolint:errorlint // identity: a long chain is rendered once, not twice at each link
		return l.T(e.Key, e.Args...)
	}
	text, own := err.Error(), e.Error()
	if around, alone := strings.CutSuffix(text, own); alone && l != English && !strings.Contains(around, "\n") {
		return l.T(e.Key, e.Args...)
	}
	return strings.Replace(text, own, l.T(e.Key, e.Args...), 1)
}
