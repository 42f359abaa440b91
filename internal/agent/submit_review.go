package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"toritsugi/internal/progress"
	"toritsugi/internal/tool"
)

const submitName = "submit_review"

const submitSchema = `{"type":"object","properties":{"verdict":{"type":"string","minLength":1,"maxLength":600},"findings":{"type":"array","maxItems":30,"items":{"type":"object","properties":{` +
	`"path":{"type":"string"},"line":{"type":"integer","minimum":1},"end_line":{"type":"integer","minimum":1},"severity":{"type":"string","enum":["critical","major","minor","nit"]},` +
	`"title":{"type":"string","minLength":1,"maxLength":150},"body":{"type":"string","minLength":1,"maxLength":3000},"suggestion":{"type":"string","maxLength":4000}},` +
	`"required":["path","line","severity","title","body"],"additionalProperties":false}}},"required":["verdict","findings"],"additionalProperties":false}`

// submitReads makes of it what a call is read by: the rest is brought into form (finding.meant).
var submitReads = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(`,"enum":["critical","major","minor","nit"]`, "", `,"severity","title","body"]`, `]`, `,"maxLength":600`, "", `,"minLength":1,"maxLength":150`, "", `,"minLength":1,"maxLength":3000`, `,"maxLength":3000`)
})

// The bounds of verdict and title, in characters.
const (
	mostVerdict = 600
	mostTitle   = 150
)

// submitAliases are names that models give to the parts of a review.
var submitAliases = []string{"summary", "verdict", "conclusion", "verdict", "comments", "findings", "issues", "findings", "remarks", "findings",
	"file", "path", "file_path", "path", "filename", "path", "start_line", "line", "line_number", "line", "level", "severity", "priority", "severity",
	"description", "body", "message", "body", "comment", "body", "details", "body", "explanation", "body"}

// tool is the one by which the review is handed in. It changes nothing but its own file, to the
// same again.
func (v *reviewer) tool() tool.Tool {
	d := tool.Describe(submitName, "Hand in the review: once, when you are done. findings may be empty.\n\nline and end_line are numbers of the new side, and lines that the change shows; suggestion takes the place of them all.", submitSchema, true, submitAliases...)
	d.Reads, d.Prose = json.RawMessage(submitReads().Replace(submitSchema)), true
	return tool.Of(d, func(_ context.Context, said verdictOf) (tool.Result, error) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if wrong := v.wrong(&said); len(wrong) > 0 {
			v.told = true
			return tool.Failf("The review is not taken. Mend this and call %s again, with all findings:\n- %s", submitName, strings.Join(wrong, "\n- ")), nil
		}
		v.mask(&said)
		if err := v.r.noteWhole(reviewFile, said); err != nil {
			return tool.Result{}, err
		}
		v.done = &said
		return tool.Text("The review is taken."), nil
	})
}

// mask masks what a review holds of secrets; a suggestion with one is none.
func (v *reviewer) mask(said *verdictOf) {
	said.Verdict = v.r.Store.Redact(said.Verdict)
	for i := range said.Findings {
		f := &said.Findings[i]
		f.Title, f.Body = v.r.Store.Redact(f.Title), v.r.Store.Redact(f.Body)
		if f.Suggestion != nil && v.r.Store.Redact(*f.Suggestion) != *f.Suggestion {
			f.Suggestion = nil
		}
	}
}

// wrong says what keeps a review from being taken, for the model; it brings what is meant into
// form. That a finding stands on no line of the change is said once: then it goes into the text.
func (v *reviewer) wrong(said *verdictOf) (all []string) {
	said.Verdict = progress.Cut(said.Verdict, mostVerdict)
	size := len(said.Verdict)
	if token, masked := v.r.standIns(said.Verdict); masked {
		all = append(all, fmt.Sprintf("The verdict holds %s, which stands for text that you were not shown.", token))
	}
	for i := range said.Findings {
		f := &said.Findings[i]
		f.meant()
		if f.Title == "" {
			all = append(all, fmt.Sprintf("findings[%d]: title and body are missing.", i))
		}
		if problem := v.misplaced(f); problem != "" && !v.told {
			all = append(all, fmt.Sprintf("findings[%d]: %s", i, problem))
		}
		size += len(f.Title) + len(f.Body)
		if f.Suggestion != nil {
			size += len(*f.Suggestion)
			if token, masked := v.r.standIns(*f.Suggestion); masked {
				all = append(all, fmt.Sprintf("findings[%d]: the suggestion holds %s, which stands for text that you were not shown. Leave the suggestion out.", i, token))
			}
		}
	}
	if size > mostReview {
		all = append(all, fmt.Sprintf("It has %d bytes of text, of which %d are taken. Keep what matters most.", size, mostReview))
	}
	return all
}

// severities are other words for those of the schema.
var severities = map[string]string{"critical": "critical", "major": "major", "minor": "minor", "nit": "nit", "blocker": "critical", "severe": "critical", "high": "major", "error": "major", "important": "major",
	"low": "nit", "info": "nit", "style": "nit", "trivial": "nit", "重大": "critical", "重要": "major", "細部": "nit"}

// meant brings a finding into form: a title and a body stand for each other, a suggestion has no
// fence of its own, and an empty one is none.
func (f *finding) meant() {
	f.Severity = cmp.Or(severities[strings.ToLower(strings.TrimSpace(f.Severity))], "minor")
	f.Body = cmp.Or(strings.TrimSpace(f.Body), f.Title)
	first, _, _ := strings.Cut(f.Body, "\n")
	f.Title = progress.Cut(cmp.Or(progress.OneLine(f.Title), progress.OneLine(first)), mostTitle)
	if f.Suggestion == nil {
		return
	}
	text, _ := tool.Unfenced(f.Path, *f.Suggestion)
	if f.Suggestion = &text; strings.TrimSpace(text) == "" {
		f.Suggestion = nil
	}
}

// misplaced says why a finding stands nowhere in the change, "" where it does.
func (v *reviewer) misplaced(f *finding) string {
	if f.EndLine == 0 {
		f.EndLine = f.Line
	}
	// As in /workspace/a.go, ./a.go, and b/a.go of a patch.
	first, below, _ := strings.Cut(strings.TrimPrefix(f.Path, "/"), "/")
	for _, path := range []string{first + "/" + below, below} {
		taken := strings.HasPrefix(f.Path, "/") || slices.Contains([]string{".", "a", "b"}, first)
		if taken && v.change.file(f.Path) == nil && v.change.file(path) != nil {
			f.Path = path
		}
	}
	at := v.change.file(f.Path)
	switch {
	case at == nil:
		var names []string
		for _, c := range v.change {
			names = append(names, c.path)
		}
		return fmt.Sprintf("%q is no file of the change, which has: %s.", f.Path, someFiles(names, maxFilesNamed))
	case len(at.lines) == 0:
		return fmt.Sprintf("%s shows no line of the new side: it is %s. Say it in the verdict, or on a line of another file.", f.Path, at.what())
	case f.EndLine < f.Line || f.EndLine-f.Line >= mostLines:
		return fmt.Sprintf("line %d to end_line %d: expected at most %d lines, the last one last.", f.Line, f.EndLine, mostLines)
	}
	for n := f.Line; n <= f.EndLine; n++ {
		if _, shown := at.lines[int(n)]; !shown {
			return fmt.Sprintf("line %d of %s is none that the change shows; those are %s.", n, f.Path, at.spans())
		}
	}
	return ""
}
