package planning

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"

	"toritsugi/internal/i18n"
)

// promptFiles are the templates of what the model is told, in both languages.
//
//go:embed prompts/*.md
var promptFiles embed.FS

// Strategies lists how the model can be told to think; the first is the
// default.
func Strategies() []string { return []string{"chain_of_thought", "direct", "test_first"} }

// Levels lists how finely tasks can be cut; moderate is the default.
func Levels() []string { return []string{"coarse", "moderate", "fine"} }

// ForbiddenAssumptions lists what the model must never take to be so: what its
// information is about stands in the id, in the value or in the words for it.
func ForbiddenAssumptions() []string {
	return []string{"security", "secret", "password", "token", "api_key", "credential", "database", "connection_string", "pii", "personal_info"}
}

// Prompts is what the model is told, in one language and manner. What System
// returns depends on these fields only, so that it is the same at every turn and
// in every run (DESIGN §3).
type Prompts struct {
	Lang               i18n.Lang // English for what is not Japanese
	Strategy           string    // one of Strategies; "" for the default
	Level              string    // one of Levels; "" for the default
	MaxSubtasks        int       // at least 1; 0 for 100
	ReflectionInterval int       // actions between two reflections; 0 where there are none
	MayAsk             bool      // somebody may answer questions
}

// Check refuses what System could not follow.
func (p Prompts) Check() error {
	switch {
	case p.Strategy != "" && !slices.Contains(Strategies(), p.Strategy):
		return fmt.Errorf("planning strategy %q: expected one of %s", p.Strategy, strings.Join(Strategies(), ", "))
	case p.Level != "" && !slices.Contains(Levels(), p.Level):
		return fmt.Errorf("decomposition level %q: expected one of %s", p.Level, strings.Join(Levels(), ", "))
	case p.MaxSubtasks < 0 || p.ReflectionInterval < 0:
		return fmt.Errorf("limits of planning: expected no negative number, found %d subtasks and %d actions", p.MaxSubtasks, p.ReflectionInterval)
	}
	return nil
}

// System is the part of the system prompt that tells of planning: the phases,
// in the seed's own words (plan §3) where the language is Japanese, and the
// rules.
func (p Prompts) System() string {
	phases := p.render("planning", nil)
	if p.ReflectionInterval == 0 {
		before, rest, _ := strings.Cut(phases, "### "+p.word("Phase 3", "フェーズ3"))
		_, after, _ := strings.Cut(rest, "### "+p.word("Completion", "完了"))
		phases = before + "### " + p.word("Completion", "完了") + after
	}
	return phases + "\n" + p.render("rules", nil)
}

// PlanAsk is what the request for a plan says beside the task.
type PlanAsk struct {
	Earlier bool     // a plan of an earlier run stands before
	Held    bool     // and the files hold what that run committed
	Facts   []string // what is known of the repository: languages, commands
	Lessons []string // what earlier runs showed

	Bare          bool // for the plan alone, without how the task is understood
	Given         bool // from what the model was given: nothing is to be looked up
	NoAssumptions bool // what is not known is an information gap
}

// Plan asks for the plan.
func (p Prompts) Plan(ask PlanAsk) string { return p.render("plan", ask) }

// SubtaskAsk is the subtask that is to be worked on.
type SubtaskAsk struct {
	K, N    int // it is the Kth of N
	Subtask Subtask
	Before  []SubtaskResult // of its dependencies
	Actions []Action        // that the plan thinks of
	Lessons []string        // how the like went before
	Last    bool            // no other is left
	Small   bool            // the plan is this one, and easy

	Uncertain bool     // the task may be understood wrongly
	Gaps      []string // what is not known and may not be assumed
}

// Subtask starts the work on a subtask.
func (p Prompts) Subtask(ask SubtaskAsk) string { return p.render("subtask", ask) }

// ReflectionAsk is what there is to reflect on.
type ReflectionAsk struct {
	OnError bool     // something failed; else Actions were done
	Action  string   // the one that failed
	Errors  []string // what it said
	Actions int      // turns since the last reflection
	Lessons []string // what earlier reflections found
}

// Reflection asks how it goes.
func (p Prompts) Reflection(ask ReflectionAsk) string { return p.render("reflection", ask) }

// RevisionAsk is what a revision starts from.
type RevisionAsk struct {
	Reason     string
	Done, Open []Subtask
	Left       int // revisions after this one
}

// Revision asks for a change of the plan.
func (p Prompts) Revision(ask RevisionAsk) string { return p.render("revision", ask) }

// ReplanAsk is what went wrong.
type ReplanAsk struct {
	Where      string   // the subtask or the action
	Errors     []string // what it said
	Tried      []string // what was done about it already
	Done, Open []Subtask
	Spent      []string // replan types whose limits are reached
	Left       int      // changes of the plan after this one
}

// Replan asks what is to be done about what went wrong.
func (p Prompts) Replan(ask ReplanAsk) string { return p.render("replan", ask) }

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

// VerificationAsk is the evidence that the verification judges by.
type VerificationAsk struct {
	Round, MaxRounds int
	Criteria         []string
	Checks           []CheckEvidence
	Changed          []string // files, with what was done to them
	Diff             string   // of them
	Findings         []string // of the scan of what was added, weakened or touched
	Earlier          []string // what earlier verifications found
}

// Verification asks whether the goal is reached.
func (p Prompts) Verification(ask VerificationAsk) string { return p.render("verification", ask) }

// RetryAsk is an answer that could not be used.
type RetryAsk struct {
	Tool     string // that gives what was asked for
	Problems string // what is wrong with the call, "" where there was none
}

// Retry asks once more for it.
func (p Prompts) Retry(ask RetryAsk) string { return p.render("retry", ask) }

// AnswerAsk is a question to people, and what became of it.
type AnswerAsk struct {
	Question Question
	Answer   Answer
}

// Answer tells the model what became of a question to people. What they said
// stands in the conversation besides, in their own words.
func (p Prompts) Answer(ask AnswerAsk) string { return p.render("answer", ask) }

// NudgeAsk is what is done again and again.
type NudgeAsk struct {
	What  string
	Times int
}

// Nudge tells the model that it is stuck.
func (p Prompts) Nudge(ask NudgeAsk) string { return p.render("nudge", ask) }

// WithoutAsk is a tool that fails while things are looked up for the plan.
type WithoutAsk struct {
	Tool  string
	Times int
}

// Without tells the model to plan without a tool.
func (p Prompts) Without(ask WithoutAsk) string { return p.render("without", ask) }

// StateAsk is the plan as it stands.
type StateAsk struct {
	Goal        string
	Criteria    []string
	Constraints []string
	Gaps        []string // what is not known and may not be assumed
	Current     string   // the subtask at hand, "" for none
	Owed        string   // the tool for what was asked last, where that is not in view either
	Open, Ended []string // subtasks, in their order
}

// State shows the plan again, where it left the view.
func (p Prompts) State(ask StateAsk) string { return p.render("state", ask) }

// The budgets that a run can use up.
const (
	BudgetTokens = "tokens"
	BudgetMoney  = "money"
	BudgetTurns  = "turns"
	BudgetTime   = "time"
)

// HandoverAsk is how far a run came.
type HandoverAsk struct {
	Budget     string // the one that is used up
	Done, Open []Subtask
}

// Handover asks for the words to whoever goes on, where the budget is used up.
func (p Prompts) Handover(ask HandoverAsk) string { return p.render("handover", ask) }

// Onward takes a handover back that was asked for and not given: the budget was
// raised meanwhile.
func (p Prompts) Onward() string { return p.render("onward", nil) }

// filling is what templates are filled with.
type filling struct {
	Prompts
	Forbidden string
	Sizes     sizes
	Ask       any
}

// render fills a template. The templates are fixed, and tests fill each of
// them: one that cannot be filled is a fault of the program.
func (p Prompts) render(name string, ask any) string {
	p.Strategy = cmp.Or(p.Strategy, Strategies()[0])
	p.Level = cmp.Or(p.Level, "moderate")
	p.MaxSubtasks = cmp.Or(p.MaxSubtasks, 100)
	lang := i18n.English
	if p.Lang == i18n.Japanese {
		lang = i18n.Japanese
	}
	t, err := templates().Clone()
	if err != nil {
		panic(fmt.Sprintf("planning: copy the templates: %v", err))
	}
	t.Funcs(p.funcs())
	var b strings.Builder
	fill := filling{Prompts: p, Forbidden: strings.Join(ForbiddenAssumptions(), ", "), Sizes: sizesOf(p.Level, p.MaxSubtasks), Ask: ask}
	if err := t.ExecuteTemplate(&b, fmt.Sprintf("%s.%s.md", name, lang), fill); err != nil {
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
	span := func(from, to int) string {
		from, to = min(from, most), min(to, most)
		if from == to {
			return fmt.Sprint(to)
		}
		return fmt.Sprintf("%d–%d", from, to)
	}
	switch level {
	case "coarse":
		return sizes{span(1, 2), span(2, 3), span(3, 5)}
	case "fine":
		return sizes{span(2, 4), span(4, 8), span(8, 15)}
	default:
		return sizes{span(1, 3), span(3, 6), span(6, 10)}
	}
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
		"line":                line,
		"text":                longText,
		"join":                func(all []string) string { return strings.Join(all, ", ") },
		"data":                asData,
		"bullets":             p.bullets,
		"subtasks":            p.describeSubtasks,
		"results":             describeResults,
		"steps":               describeActions,
		"checks":              p.describeChecks,
	}
}

// line is a text on one line, cut to maxEntry runes.
func line(text string) string {
	text = text[:min(len(text), 8*maxEntry)]
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if runes := []rune(text); len(runes) > maxEntry {
		return string(runes[:maxEntry]) + "…"
	}
	return text
}

// longText is a text with its lines, cut to maxText bytes.
func longText(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// bullets writes a list, an entry a line.
func (p Prompts) bullets(all []string) string {
	var b strings.Builder
	for _, entry := range all[:min(len(all), maxEntries)] {
		b.WriteString("- " + line(p.Lang.Retold(entry)) + "\n")
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
var dataTag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)<((?:\s*/)?\s*(?:lessons|errors|checks|diff|findings|problems|issue|pull_request|comments|untrusted_comments|failed_check|answer)\b)`)
})

func (p Prompts) describeSubtasks(all []Subtask) []string {
	lines := make([]string, len(all))
	for i, s := range all {
		lines[i] = s.ID + ": " + s.Description
		if len(s.Dependencies) > 0 {
			lines[i] += fmt.Sprintf(p.word(" (after %s)", "(%sの後)"), strings.Join(s.Dependencies, ", "))
		}
	}
	return lines
}

func describeResults(all []SubtaskResult) []string {
	lines := make([]string, len(all))
	for i, r := range all {
		lines[i] = fmt.Sprintf("%s (%s): %s", r.ID, r.Status, r.Summary)
	}
	return lines
}

func describeActions(all []Action) []string {
	lines := make([]string, len(all))
	for i, a := range all {
		parts := []string{a.Tool}
		if len(a.Parameters) > 0 && json.Valid(a.Parameters) && string(a.Parameters) != "null" {
			parts = append(parts, string(a.Parameters))
		}
		text := strings.TrimSpace(strings.Join(parts, " "))
		for _, more := range []string{a.Purpose, a.ExpectedOutcome, a.Fallback} {
			if more != "" {
				text = strings.TrimPrefix(text+" — "+more, " — ")
			}
		}
		lines[i] = text
	}
	return lines
}

// describeChecks writes the checks with their exit codes and the end of what
// the failed ones wrote.
func (p Prompts) describeChecks(all []CheckEvidence) string {
	var b strings.Builder
	for _, c := range all[:min(len(all), maxEntries)] {
		fmt.Fprintf(&b, "%s: `%s`: ", line(c.Name), line(c.Command))
		if c.TimedOut {
			b.WriteString(p.word("did not end in time", "時間内に終わらなかった"))
		} else {
			fmt.Fprintf(&b, "exit %d", c.ExitCode)
		}
		if c.HasBase {
			fmt.Fprintf(&b, p.word(" (before any change: exit %d)", "(変更前: exit %d)"), c.BaseExitCode)
		}
		if c.Compared != "" {
			b.WriteString("; " + longText(c.Compared))
		}
		if c.Ran > 0 {
			fmt.Fprintf(&b, p.word(", %d tests ran", "、テスト%d件を実行"), c.Ran)
		}
		if c.Ran > 0 && c.BaseRan > 0 && c.BaseRan != c.Ran {
			fmt.Fprintf(&b, p.word(" (before: %d)", "(変更前: %d件)"), c.BaseRan)
		}
		b.WriteString("\n")
		if output := strings.TrimSpace(c.Output); output != "" && (c.ExitCode != 0 || c.TimedOut) {
			if cut := len(output) - maxOutput; cut > 0 {
				output = "…" + strings.ToValidUTF8(output[cut:], "")
			}
			b.WriteString("    " + strings.ReplaceAll(output, "\n", "\n    ") + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
