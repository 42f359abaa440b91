package planning

import (
	"cmp"
	"embed"
	"fmt"
	"strings"
	"sync"
	"text/template"

	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/redact"
)

// promptFiles are the templates of what the model is told, in both languages.
//
//go:embed prompts/*.md
var promptFiles embed.FS

// Prompts is what the model is told, in one language and manner. What System
// returns depends on these fields only, so that it is the same at every turn and
// in every run (DESIGN §3).
type Prompts struct {
	Lang               i18n.Lang // English for what is not Japanese
	Strategy           string    // chain_of_thought, direct or test_first; "" for the first
	Level              string    // coarse, moderate or fine; "" for moderate
	MaxSubtasks        int       // at least 1; 0 for 100
	ReflectionInterval int       // actions between two reflections; 0 where there are none
	MayAsk             bool      // somebody may answer questions
	Proposes           bool      // nothing is written or run: the tool Settings.Hands gives the change, for people to decide about
}

// System is the part of the system prompt that tells of planning: the phases,
// in the seed's own words (plan §3) where the language is Japanese, and the
// rules. The English text has no forms: the tools' definitions have them.
func (p Prompts) System() string {
	return p.render("planning", Ask{}) + "\n" + p.render("rules", Ask{})
}

// Ask is what a template says of a run. Each uses some of it; prompts/README.md says
// which.
type Ask struct {
	Lessons    []string  // what earlier runs showed of the like
	Done, Open []Subtask // of the plan
	Left       int       // changes of the plan after this one
	Gaps       []string  // what is not known and may not be assumed
	Criteria   []string
	Tool       string // that is called for, or to be done without
	Times      int    // that it failed, or What was done

	// plan
	Earlier       bool // a plan of an earlier run stands before
	Held          bool // and the files hold what that run committed
	Bare          bool // for the plan alone, without how the task is understood
	Given         bool // from what the model was given: nothing is to be looked up
	NoAssumptions bool // what is not known is an information gap

	// subtask
	K, N      int // it is the Kth of N
	Subtask   Subtask
	Last      bool // no other is left
	Small     bool // the plan is this one, and easy
	Uncertain bool // the task may be understood wrongly

	// reflection, revision, replan, nudge
	OnError bool     // something failed; else Actions were done
	Action  string   // the one that failed
	Actions int      // turns since the last reflection
	Reason  string   // for a revision
	Where   string   // the subtask that went wrong
	Errors  []string // what it said
	What    string   // is done again and again

	// verification
	Round, MaxRounds int
	Checks           []CheckEvidence
	Changed          []string // files, with what was done to them
	Diff             string   // of them
	Added            []string // tests that they add
	Unrun            bool     // and no more tests ran than before
	Idle             bool     // the checks passed before, too, and no test came or changed
	Unworded         bool     // no commit message was given
	Bodiless         bool     // but a subject
	Findings         []string // of the scan of what was added, weakened or touched

	// retry, answer, state, handover
	Problems       string   // what is wrong with the call, "" where there was none
	AsText         bool     // a call was written as text
	Question       Question // to people, and what became of it
	Answer         Answer
	Goal           string
	Constraints    []string
	Current        string   // the subtask at hand, "" for none
	Owed           string   // the tool for what was asked last, where that is not in view either
	Pending, Ended []string // subtasks, in their order
	Budget         string   // that is used up
}

// CheckEvidence is how a check of the project ended.
type CheckEvidence struct {
	Name, Command string
	ExitCode      int
	TimedOut      bool
	HasBase       bool   // it was run before any change, too
	BaseExitCode  int    // and ended so
	Ran, BaseRan  int    // tests that ran, and before; 0 where that is not known
	Compared      string // what is new of that, what is fixed, in the language of the prompts; "" for nothing
	Output        string // the end of it
}

// The budgets that a run can use up.
const (
	BudgetTokens = "tokens"
	BudgetMoney  = "money"
	BudgetTurns  = "turns"
)

// filling is what templates are filled with.
type filling struct {
	Prompts
	Sizes sizes
	Ask   Ask
}

// render fills a template with what it says of a run. The templates are fixed, and
// tests fill each of them: one that cannot be filled is a fault of the program.
func (p Prompts) render(name string, ask Ask) string {
	p.MaxSubtasks = cmp.Or(p.MaxSubtasks, 100)
	t, err := templates().Clone()
	if err != nil {
		panic(fmt.Sprintf("planning: copy the templates: %v", err))
	}
	t.Funcs(p.funcs()).Funcs(template.FuncMap{"checks": func(a Ask) string {
		return strings.TrimSuffix(p.render("checks", Ask{Checks: a.Checks[:min(len(a.Checks), maxEntries)], Added: a.Added, Unrun: a.Unrun}), "\n")
	}})
	var b strings.Builder
	fill := filling{Prompts: p, Sizes: sizesOf(p.Level, p.MaxSubtasks), Ask: ask}
	if err := t.ExecuteTemplate(&b, name+p.word(".en.md", ".ja.md"), fill); err != nil {
		panic(fmt.Sprintf("planning: fill the template %s: %v", name, err))
	}
	return strings.TrimSpace(b.String()) + "\n"
}

// templates reads all templates once.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(Prompts{}.funcs()).ParseFS(promptFiles, "prompts/*.*.md"))
})

// sizes says how many subtasks a task has.
type sizes struct{ Simple, Medium, Complex string }

func sizesOf(level string, most int) sizes {
	bounds := map[string][6]int{"coarse": {1, 2, 2, 3, 3, 5}, "fine": {2, 4, 4, 8, 8, 15}}
	of, ok := bounds[level]
	if !ok {
		of = [6]int{1, 3, 3, 6, 6, 10}
	}
	span := func(i int) string {
		from, to := min(of[i], most), min(of[i+1], most)
		if from == to {
			return fmt.Sprint(to)
		}
		return fmt.Sprintf("%d–%d", from, to)
	}
	return sizes{span(0), span(2), span(4)}
}

// word is a word in the language of the prompts.
func (p Prompts) word(en, ja string) string {
	if p.Lang == i18n.Japanese {
		return ja
	}
	return en
}

// What a prompt repeats is bounded: entries of a list, runes of an entry, bytes
// of what a check wrote and of a description.
const (
	maxEntries = 50
	maxEntry   = 600
	maxOutput  = 4000
	maxText    = 12_000
)

// funcs are what templates can call.
func (p Prompts) funcs() template.FuncMap {
	return template.FuncMap{
		"reflection_interval": func() int { return p.ReflectionInterval },
		"line":                func(s string) string { return line(p.Lang.Translate(s)) },
		"text":                func(s string) string { return cut(p.Lang.Translate(s), maxText) },
		"data":                asData,
		"bullets":             p.bullets,
		"masked":              func(diff string) bool { _, masked := redact.ContainsMask(diff); return masked },
		"subtasks":            p.describeSubtasks,
		"join":                func(all []string) string { return strings.Join(all, ", ") },
		"checks":              fmt.Sprint, // render gives it its meaning
		"tail":                tail,
	}
}

// line is a text on one line, cut to maxEntry runes.
func line(text string) string { return brief(text, maxEntry) }

// cut is a text with its lines, without space around it, cut to so many bytes.
func cut(s string, most int) string {
	if s = strings.TrimSpace(s); len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.ToValidUTF8(s, "�")
}

// bullets writes a list, an entry a line.
func (p Prompts) bullets(all []string) string {
	var b strings.Builder
	for _, entry := range all[:min(len(all), maxEntries)] {
		b.WriteString("- " + line(p.Lang.Translate(entry)) + "\n")
	}
	if more := len(all) - maxEntries; more > 0 {
		fmt.Fprintf(&b, p.word("- (%d more)\n", "- (ほか%d件)\n"), more)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// asData puts what others wrote between tags. It can neither close them itself
// nor open or close any other of ours.
func asData(tag, text string) string {
	return "<" + tag + ">\n" + dataTag().ReplaceAllString(strings.ToValidUTF8(text, "�"), "<\\${1}") + "\n</" + tag + ">"
}

// dataTag finds the beginning of what reads like one of our tags.
var dataTag = lazyregexp.New(`(?i)<((?:\s*/)?\s*(?:lessons|errors|checks|diff|findings|problems|issue|pull_request|comments|untrusted_comments|failed_check|answer)\b)`)

func (p Prompts) describeSubtasks(all []Subtask) []string {
	lines := make([]string, len(all))
	for i, s := range all {
		lines[i] = s.ID + ": " + p.Lang.Translate(s.Description)
		if len(s.Dependencies) > 0 {
			lines[i] += fmt.Sprintf(p.word(" (after %s)", "(%sの後)"), strings.Join(s.Dependencies, ", "))
		}
	}
	return lines
}

// tail is the end of what a check wrote, indented; nothing where it wrote nothing.
func tail(output string) string {
	output = strings.TrimSpace(output)
	if cut := len(output) - maxOutput; cut > 0 {
		output = "…" + strings.ToValidUTF8(output[cut:], "")
	}
	if output == "" {
		return ""
	}
	return "\n    " + strings.ReplaceAll(output, "\n", "\n    ")
}
