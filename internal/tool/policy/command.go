package policy

import (
	"slices"
	"strings"
)

// The limits of what Judge looks into; a script past one of them is opaque.
const (
	MaxScript   = 128 << 10 // bytes of one script
	MaxNesting  = 200       // brackets, lists and clauses within each other
	MaxScripts  = 8         // scripts within scripts: sh -c, eval, watch …
	MaxCommands = 2000      // simple commands of one script, nested ones included

	maxParsed = 4 * MaxScript // bytes parsed for one script, nested ones each time they are met
	maxValue  = 2 * MaxScript // bytes of the values of one word
	maxValues = 8 << 20       // of all words
	maxKnown  = 4 << 10       // bytes of a variable's value that is remembered
	maxAlts   = 64            // values that one word may be known to have
	maxGroups = 16            // {a,b} in one word
	maxWords  = 4096          // words of one command after brace expansion
	maxDirs   = 8             // directories that a command may run in
	maxText   = 200           // bytes of a command in a finding
)

// Word is one word of a command line as far as it is known without running it.
type Word struct {
	// Alts holds the values it may have: one for a plain word, several for the
	// variable of a loop, none where nothing is known.
	Alts []string
	// Exact says that the word is one of Alts, whole. Else Alts, if any, are
	// patterns (a glob) that tell where its paths lie and nothing more.
	Exact bool
	// Prefix is how a word without Alts begins, as far as that is known.
	Prefix string
	// Many says that it may become any number of words.
	Many bool
	// rough is a word without a value as a script would have it; see raw.
	rough string
}

// lit returns the word of a known text.
func lit(s string) Word { return Word{Alts: []string{s}, Exact: true} }

// Text returns the word's value where it has exactly one.
func (w Word) Text() (string, bool) {
	if w.Exact && len(w.Alts) == 1 {
		return w.Alts[0], true
	}
	return "", false
}

// pattern reports a word that becomes file names.
func (w Word) pattern() bool { return !w.Exact && len(w.Alts) > 0 }

// is reports whether f holds for the word.
func (w Word) is(f func(string) bool) truth {
	if !w.Exact || len(w.Alts) == 0 {
		return maybe
	}
	n := 0
	for _, a := range w.Alts {
		if f(a) {
			n++
		}
	}
	switch n {
	case 0:
		return no
	case len(w.Alts):
		return yes
	}
	return maybe
}

// Assign is a variable given for a command or for what follows it.
type Assign struct {
	Name  string // "" where it is not known
	Value Word
}

// Command is one simple command that a script would run.
type Command struct {
	Path   string   // the command word; "" where there is none
	Name   string   // its last element: the program
	Args   []Word   // what follows the command word
	Env    []Assign // variables set for it, or by it
	Config []Assign // git's settings given with -c and --config-env
	Writes []Word   // files that its redirections write
	Reads  []Word   // files that its redirections read
	Via    []string // the wrappers it was found in, outermost first
	From   []string // the programs whose output it runs as code
	Opaque Opaque   // why nobody can tell what it runs; "" where it can be told
	Line   int      // in the script given to Judge, from 1
	Text   string   // as written, one line, at most 200 bytes

	dirs     []string // the directories it may run in; nil where not known
	quiet    bool     // its standard output goes to a file
	function bool     // Name is a function of the script, which was looked into
}

// Opaque is a kind of command that cannot be known without running it.
type Opaque string

// The kinds of opaque commands.
const (
	OpaqueName    Opaque = "name"     // the command word is computed
	OpaqueScript  Opaque = "script"   // a computed text is run as a script
	OpaqueInput   Opaque = "input"    // what another command prints is run as a script
	OpaqueHidden  Opaque = "hidden"   // a command is hidden where arithmetic or prompts are expanded
	OpaqueAlias   Opaque = "alias"    // the script changes what a command word means
	OpaqueLooks   Opaque = "looks"    // letters that look like others, or that change how the text is shown
	OpaqueSyntax  Opaque = "syntax"   // shells disagree about how to read it
	OpaqueTooMuch Opaque = "too_much" // past a limit
)

// quoted returns the words of a command line for a reader.
func quoted(words []string) string {
	var b strings.Builder
	for i, s := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`;&|<>()*?[]{}#~") {
			b.WriteString(s)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(s, "'", `'\''`) + "'")
	}
	return b.String()
}

// texts returns the words where each has exactly one value.
func texts(words []Word) ([]string, bool) {
	all := make([]string, len(words))
	for i, w := range words {
		s, ok := w.Text()
		if !ok {
			return nil, false
		}
		all[i] = s
	}
	return all, true
}

// leading returns the words up to the first that is not known: the part of a
// joined script that is certain.
func leading(words []Word) []string {
	var all []string
	for _, w := range words {
		s, ok := w.Text()
		if !ok {
			break
		}
		all = append(all, s)
	}
	return all
}

// oneLine makes s fit for a finding: one line, at most max bytes, valid UTF-8.
func oneLine(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	s = strings.Map(func(r rune) rune {
		if reorders(r) {
			return '\uFFFD'
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}

// reorders reports a character that changes the order in which text is shown.
func reorders(r rune) bool {
	return r >= '\u202A' && r <= '\u202E' || r >= '\u2066' && r <= '\u2069' || r == '\u200E' || r == '\u200F'
}

// join returns the union of two sets of directories; nil is "any directory".
func join(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	all := slices.Clone(a)
	for _, d := range b {
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	if len(all) > maxDirs {
		return nil
	}
	if all == nil {
		all = []string{}
	}
	return all
}
