package policy

import "strings"

// The limits of what Judge looks into; a script past one of them is opaque.
const (
	MaxScript   = 128 << 10 // bytes of one script
	MaxNesting  = 200       // brackets, lists and clauses within each other
	MaxScripts  = 8         // scripts within scripts: sh -c, eval, watch …
	MaxCommands = 2000      // simple commands of one script, nested ones included

	maxParsed = 4 * MaxScript // bytes parsed for one script, nested ones each time they are met
	maxValues = 8 << 20       // bytes of the values of all words
	maxGroups = 16            // {a,b} in one word
	maxWords  = 4096          // words of one command after brace expansion
	maxText   = 200           // bytes of a command in a finding
)

// Word is one word of a command line as far as it is known without running it.
type Word struct {
	Value string // its value where Known, a pattern where Glob, else how it begins as far as that is known
	Known bool   // the word is Value, whole
	Glob  bool   // it becomes the names of files that Value fits
	Many  bool   // it may become any number of words
}

// lit returns the word of a known text.
func lit(s string) Word { return Word{Value: s, Known: true} }

// Text returns the word's value where that is known.
func (w Word) Text() (string, bool) { return w.Value, w.Known }

// is reports whether f holds for the word.
func (w Word) is(f func(string) bool) truth {
	if !w.Known {
		return maybe
	}
	return known(f(w.Value))
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

	dir      string // where it runs; "" where not known
	function bool   // Name is a function of the script, which was looked into
}

// Opaque is a kind of command that cannot be known without running it.
type Opaque string

// The kinds of opaque commands.
const (
	OpaqueName    Opaque = "name"     // the command word is computed
	OpaqueScript  Opaque = "script"   // a computed text is run as a script
	OpaqueInput   Opaque = "input"    // what another command prints is run as a script
	OpaqueAlias   Opaque = "alias"    // the script changes what a command word means
	OpaqueLooks   Opaque = "looks"    // letters that look like others, or that change how the text is shown
	OpaqueSyntax  Opaque = "syntax"   // shells disagree about how to read it
	OpaqueTooMuch Opaque = "too_much" // past a limit
)

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
