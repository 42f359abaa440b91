package agent

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"toritsugi/internal/checkrun"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contract"
	"toritsugi/internal/delivery"
	"toritsugi/internal/disk"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/loosejson"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
)

// reviewPrompt is the system prompt of a run that reviews.
//
//go:embed review.md
var reviewPrompt string

// reviewer is what a run that reviews has besides; nil in others.
type reviewer struct {
	r       *run
	change  change
	earlier []earlierFinding

	mu   sync.Mutex
	told bool       // what was wrong with one
	done *verdictOf // once the model handed it in
}

// verdictOf is a review as the model hands it in, kept in reviewFile.
type verdictOf struct {
	Verdict  string    `json:"verdict"`
	Findings []finding `json:"findings"`
}

type finding struct {
	Path       string      `json:"path"`
	Line       tool.Number `json:"line"`
	EndLine    tool.Number `json:"end_line,omitempty"`
	Severity   string      `json:"severity"`
	Title      string      `json:"title"`
	Body       string      `json:"body"`
	Suggestion *string     `json:"suggestion,omitempty"`
}

// earlierFinding is a remark of an earlier review of ours.
type earlierFinding struct {
	place, title string // marks, of the line's text and of the finding's title
	path, text   string
	line         int  // where it stands now, 0 where the line's text is gone
	settled      bool // by people
}

// reviewFile holds the review that the model handed in, below the directory of the context.
const reviewFile = "review.json"

// The bounds of a review: findings, lines of one, bytes of all texts.
const (
	mostFindings = 30
	mostLines    = 50
	mostReview   = 45_000
)

// mostChange is how large a change is reviewed, in bytes of its patch.
const mostChange = 8 << 20

// openReview reads the change, and what an earlier owner handed in.
func (r *run) openReview(ctx context.Context) error {
	v := &reviewer{r: r}
	out := &checkrun.HeadBuffer{Most: mostChange + 1}
	if err := r.out.Workspace.ReviewShown(ctx, r.out.Place.Base, out); err != nil {
		return err
	}
	if out.Len() > mostChange {
		return &delivery.TaskError{Err: i18n.E("review.too_large", mostChange>>20)}
	}
	var err error
	if v.change, err = readChange(out.String()); err != nil {
		return err
	}
	r.review = v
	return readNoted(r.ledger.Dir(), reviewFile, &v.done)
}

// request is what the model is told of the change and of earlier reviews.
func (v *reviewer) request(ctx context.Context) (string, error) {
	if err := v.readEarlier(ctx); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("\n# The change\n\nWith the numbers of the new side, on which findings stand; + was added, - removed.\n\n")
	b.WriteString(llm.Tagged("change", v.change.show(min(maxIssueText, v.r.Window.Tokens/3*bytesPerToken))) + "\n")
	for _, which := range []struct {
		head string
		is   func(e earlierFinding) bool
	}{
		{"Your earlier findings, on lines that are the same; some may be mended by others. Do not report them again, in other words either, and say in the verdict how many still hold", func(e earlierFinding) bool { return e.line > 0 && !e.settled }},
		{"Earlier findings that people have settled. They stay so", func(e earlierFinding) bool { return e.line > 0 && e.settled }},
		{"Earlier findings whose lines are changed by now. Report one anew only where it still holds", func(e earlierFinding) bool { return e.line == 0 }},
	} {
		var all []string
		for _, e := range v.earlier {
			if which.is(e) {
				at := e.path
				if e.line > 0 {
					at += fmt.Sprintf(":%d", e.line)
				}
				all = append(all, at+": "+progress.Cut(progress.OneLine(e.text), 200))
			}
		}
		if shown := progress.Some(all, mostFindings, func(left int) string { return fmt.Sprintf("and %d more", left) }); len(shown) > 0 {
			b.WriteString("\n" + which.head + ":\n" + llm.Tagged("comments", strings.Join(shown, "\n")) + "\n")
		}
	}
	return b.String(), nil
}

// readEarlier reads the remarks of our earlier reviews, by their markers: a run, the mark of the
// line's text, and that of the title.
func (v *reviewer) readEarlier(ctx context.Context) error {
	all, _, err := v.r.out.Host.Comments(ctx, v.r.ledger.Metadata().TaskKey.Item())
	if err != nil {
		return err
	}
	v.earlier = nil
	places := map[string]map[string]int{} // line by mark, by path
	for _, c := range all {
		parts := strings.Split(c.Marker, ".")
		if c.Kind != forge.Line || len(parts) != 3 {
			continue
		}
		if places[c.Path] == nil {
			if places[c.Path], err = v.places(c.Path); err != nil {
				return err
			}
		}
		v.earlier = append(v.earlier, earlierFinding{place: parts[1], title: parts[2], path: c.Path, text: c.Body, line: places[c.Path][parts[1]], settled: c.Resolved})
	}
	return nil
}

// places are the lines of a file as it is now, by their marks; none of one that cannot be read.
func (v *reviewer) places(path string) (map[string]int, error) {
	all := map[string]int{}
	lines, err := v.r.lines(path)
	for i, l := range lines {
		if m := mark(path, l); all[m] == 0 {
			all[m] = i + 1
		}
	}
	return all, err
}

// lines are those of a file as it is now; none of one that cannot be read.
func (r *run) lines(path string) ([]string, error) {
	root, err := r.out.Workspace.Root()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := disk.OpenIn(root, filepath.FromSlash(path), os.O_RDONLY)
	if err != nil {
		return nil, nil //nolint:nilerr // it is gone, or something else by now
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, mostChange))
	return slices.Collect(strings.Lines(string(text))), err
}

// mark is what tells texts from each other, but for their spaces and case.
func mark(parts ...string) string {
	for i := range parts {
		parts[i] = strings.ToLower(progress.OneLine(parts[i]))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// mostReminded is how often a model that ends without a review is asked for one.
const mostReminded = 2

// run has the model work until it hands a review in.
func (v *reviewer) run(ctx context.Context) (string, error) {
	for reminded := 0; v.done == nil; reminded++ {
		if _, err := v.r.plain(ctx); err != nil || v.done != nil {
			return "", err
		}
		if reminded >= mostReminded {
			return "", &delivery.TaskError{Err: i18n.E("review.none", v.r.model())}
		}
		if err := v.r.lead.loop.Ask(ctx, planning.AskRemark, "Nobody reads your answer: hand the review in by calling "+submitName+", with the verdict and all findings."); err != nil {
			return "", err
		}
	}
	return "", nil
}

// reviewDirector ends the loop once the review is handed in. What people say meanwhile is read
// by the next one.
type reviewDirector struct {
	director
	v *reviewer
}

// Before implements turn.Director.
func (reviewDirector) Before(context.Context) ([]contextstore.Message, error) { return nil, nil }

// Read implements turn.Director: a review that an answer says as text is handed in by it.
func (d reviewDirector) Read(r *llm.Reply) {
	m := &r.Message
	if len(m.ToolCalls) > 0 || r.FinishReason == llm.FinishLength {
		return
	}
	for _, o := range contract.Objects(m.Content) {
		var has map[string]json.RawMessage
		fixed, whole, ok := loosejson.Repair(o)
		if ok && whole && json.Unmarshal([]byte(fixed), &has) == nil && has["verdict"] != nil && has["findings"] != nil {
			m.Content = strings.TrimSpace(strings.Replace(m.Content, o, "", 1))
			m.ToolCalls = []llm.ToolCall{{ID: fmt.Sprintf("said_%d", d.r.ledger.LastSeq()), Name: submitName, Arguments: fixed}}
			r.FinishReason = llm.FinishToolCalls
			return
		}
	}
}

// Ends implements turn.Director.
func (d reviewDirector) Ends(answer contextstore.Message) bool {
	return d.v.done != nil || d.director.Ends(answer)
}

// tools are those of a run that reviews: they read, and nothing is run.
func (v *reviewer) tools(root *os.Root, limits tool.Limits) []tool.Tool {
	own := tool.Builtins(tool.Env{Root: root, Dir: v.r.out.Workspace.Tree(), Git: v.r.out.Workspace, Numbered: true, Limits: limits})
	return append(slices.DeleteFunc(own, func(t tool.Tool) bool { return !t.Definition().ReadOnly }), v.tool())
}

// handOver makes the review one that is owed to the forge: without what stands there already.
func (v *reviewer) handOver(ctx context.Context) error {
	r, l := v.r, v.r.Lang
	if err := r.ledger.Activity(contextstore.Completing, "hand_over"); err != nil {
		return err
	}
	if err := v.readEarlier(ctx); delivery.Passing(err) {
		r.log.Warn("What stands at the forge by now is not known: " + r.Store.Redact(err.Error()))
	} else if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, e := range v.earlier {
		known[e.place+"."+e.title] = e.line > 0
	}
	p := forge.ReviewPost{Commit: r.out.Place.Base}
	var aside []string // what stands on no line of the change
	for _, f := range v.done.Findings {
		text := fmt.Sprintf("**%s** %s", l.T("review."+f.Severity), progress.OneLine(f.Title))
		if progress.OneLine(f.Body) != progress.OneLine(f.Title) {
			text += "\n\n" + strings.TrimSpace(f.Body)
		}
		if v.misplaced(&f) != "" {
			text = fmt.Sprintf("\n\n---\n\n`%s:%d`\n\n%s", strings.ReplaceAll(f.Path, "`", "'"), f.Line, text)
			if !slices.Contains(aside, text) {
				aside = append(aside, text)
			}
			continue
		}
		at := v.change.file(f.Path)
		line := at.lines[int(f.EndLine)]
		id := mark(f.Path, at.telling(int(f.Line), int(f.EndLine))) + "." + mark(f.Title)
		if known[id] {
			continue
		}
		known[id] = true
		m := forge.Remark{Path: f.Path, OldPath: at.was, Line: int(f.EndLine), First: int(f.Line), Old: line.old, Body: text, Suggestion: f.Suggestion, Marker: r.ledger.UUID() + "." + id}
		p.Remarks = append(p.Remarks, m)
	}
	stand := 0
	for _, e := range v.earlier {
		if e.line > 0 && !e.settled {
			stand++
		}
	}
	p.Body = v.body(len(p.Remarks), stand) + strings.Join(aside, "")
	return r.out.Review(ctx, p)
}

// body is the text of the review.
func (v *reviewer) body(remarks, stand int) string {
	r, l := v.r, v.r.Lang
	text := l.T("review.head", delivery.Short(r.out.Place.Base)) + "\n\n" + progress.Quote(progress.OneLine(v.done.Verdict)) + "\n\n" + l.T("review.remarks", remarks)
	if stand > 0 {
		text += " " + l.T("review.stand", stand)
	}
	if r.Scripted {
		text += "\n\n" + l.T("agent.scripted")
	}
	return text + "\n\n" + l.T("agent.comment_run", r.ledger.UUID(), contextstore.Short(r.ledger.UUID()))
}

// reviewEnded is the comment on a review that came to nothing.
func (r *run) reviewEnded(l i18n.Lang) string {
	o := r.report.Outcome
	text := l.T("agent.comment_"+string(o.Status)) + "\n\n" + r.Delivery.Public(o.Reason) + "\n\n"
	if o.Status.Final() {
		text += l.T("review.again", r.out.Host.Labels.Review) + "\n\n"
	} else {
		text += l.T("agent.comment_resume") + "\n\n"
	}
	return text + l.T("agent.comment_run", r.ledger.UUID(), contextstore.Short(r.ledger.UUID())) + "\n"
}

var _ turn.Director = reviewDirector{}
