package planning

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
)

// Evidence is what is known about the work from others than the model.
type Evidence struct {
	Checks   []CheckEvidence
	Changed  []string // files
	Findings []string // of the scan of the change
	Diff     string   // of the change, bounded by whoever made it
	Added    []string // names of the tests that it adds, by whoever bounds them

	Tests        bool     // tests are among what is changed
	Placeholders []string // of Findings, those of work that was not done
}

// green reports whether there were checks, and all passed.
func (e Evidence) green() bool {
	return len(e.Checks) > 0 && !slices.ContainsFunc(e.Checks, func(c CheckEvidence) bool { return c.ExitCode != 0 || c.TimedOut })
}

// Shows reports whether the checks can say anything of what was asked for: one was
// red before, or tests came or changed.
func (e Evidence) Shows() bool {
	return e.Tests || len(e.Added) > 0 || slices.ContainsFunc(e.Checks, func(c CheckEvidence) bool {
		return c.HasBase && c.BaseExitCode != 0 || c.Ran > c.BaseRan && c.BaseRan > 0
	})
}

// idleTests reports that tests were added, and that checks which count tests ran no more
// of them than before.
func (e Evidence) idleTests() bool {
	return len(e.Added) > 0 && len(e.Checks) > 0 && !slices.ContainsFunc(e.Checks, func(c CheckEvidence) bool {
		return c.Ran == 0 || c.BaseRan == 0 || c.Ran > c.BaseRan
	})
}

// names are what people can look at in the change: its files, and the tests that it adds.
func (e Evidence) names() (all []string) {
	named := slices.Concat(e.Changed, e.Added) // also where the diff is cut off before it
	for line := range strings.Lines(e.Diff) {
		if strings.HasPrefix(line, "+") {
			named = append(named, testName().FindAllString(line, -1)...)
		}
	}
	for _, name := range named {
		all = appendNew(all, brief(name, maxIssue))
	}
	return all[:min(len(all), maxEntries)]
}

// testName finds what tests are called.
var testName = lazyregexp.New(`\b(?:(?:Test|Fuzz|Example)_?[A-Z0-9]\w*|test(?:_|[A-Z])\w*|\w+(?:_test|Test))\b`)

// idle are the commands of the checks where all passed before any change as well, and
// no test came or changed: they show nothing of what is new.
func (e Evidence) idle() (commands []string) {
	if !e.green() || e.Shows() || slices.ContainsFunc(e.Checks, func(c CheckEvidence) bool { return !c.HasBase }) {
		return nil
	}
	return e.commands()
}

func (e Evidence) commands() (all []string) {
	for _, c := range e.Checks {
		all = append(all, brief(c.Command, maxIssue))
	}
	return all
}

// outcome is a text that names one of the commands that ended well, with that
// outcome; "" where it names none.
func outcome(text string, ran []string) string {
	named := func(c string) bool { // not behind another one that may have failed
		before, _, found := strings.Cut(text, c)
		before = strings.TrimSpace(before)
		return found && !strings.HasSuffix(before, ";") && !strings.HasSuffix(before, "||")
	}
	switch low := strings.ToLower(text); {
	case !slices.ContainsFunc(ran, named):
		return ""
	case strings.Contains(low, "exit") || strings.Contains(low, "終了"):
		return text
	}
	return i18n.Recorded("ended_well", text)
}

// shown is the evidence that reports gave for each criterion, be it a command among its own
// words that ended well; "" for none that can be looked at.
func (co *Coordinator) shown(ran []string) []string {
	criteria := co.criteria()
	all := make([]string, len(criteria))
	for i, c := range pair(criteria, co.s.Shows) {
		if c != nil {
			if all[i] = outcome(c.Criterion, ran); co.s.evident(c.Evidence, ran) {
				all[i] = c.Evidence
			}
		}
	}
	return all
}

// without are those commands that run none of others.
func without(commands, others []string) []string {
	return slices.DeleteFunc(slices.Clone(commands), func(c string) bool {
		return slices.ContainsFunc(others, func(o string) bool { return strings.Contains(c, o) })
	})
}

// evident reports whether a text names something that can be looked at: a place in a
// file, what of the change has a name, or a command that ended well after the last edit.
func (s *state) evident(text string, ran []string) bool {
	said := tokens(text)
	return place().MatchString(text) || slices.ContainsFunc(said, func(w string) bool {
		return slices.ContainsFunc(s.Names, func(n string) bool {
			return n == w || strings.HasSuffix(n, "/"+w) || strings.HasPrefix(w, n+"/")
		})
	}) || slices.ContainsFunc(ran, func(c string) bool { return sharesWords(said, tokens(c)) })
}

// sharesWords reports whether a text has two words of a command in a row, the only one
// that it has, or one that is no plain word, such as a path.
func sharesWords(said, command []string) bool {
	for i, w := range said {
		j := slices.Index(command, w)
		if j >= 0 && (len(command) == 1 || i+1 < len(said) && j+1 < len(command) && said[i+1] == command[j+1] ||
			len(w) > 3 && strings.ContainsFunc(w, func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' })) {
			return true
		}
	}
	return false
}

// tokens are the words of a text as commands and names are made of them.
func tokens(text string) []string {
	all := strings.FieldsFunc(text, func(r rune) bool {
		return r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._/-=", r)
	})
	for i, w := range all {
		all[i] = strings.TrimRight(w, ".")
	}
	return slices.DeleteFunc(all, func(w string) bool { return w == "" })
}
