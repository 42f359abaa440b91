package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contract"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/redact"
	"toritsugi/internal/routing"
	turns "toritsugi/internal/turn"
)

// The most of what Chat is given to write from (spec/facts §4), in characters but for
// maxDiffLines and maxItems.
const (
	maxMaterial  = 14_000
	maxItem      = 4_500
	maxDiff      = 3_500
	maxDiffLines = 200
	maxItems     = 8
	maxNote      = 80 // an item's heading, and the note of what is left out
)

// Item is one piece of material: what a worker or a coder came to.
type Item struct {
	Route routing.Route   `json:"route"`
	Task  string          `json:"task,omitempty"`
	Text  string          `json:"text"`
	Diff  string          `json:"diff,omitempty"`
	Out   json.RawMessage `json:"-"`

	// Of RESEARCH: whether it looked anything up, and the addresses that it cites.
	Looked  bool     `json:"looked,omitempty"`
	Sources []string `json:"sources,omitempty"`
}

// ranks order material: what comes first is left out last.
var ranks = map[routing.Route]int{routing.Code: 100, routing.Code1: 100, routing.Code2: 100, routing.Code3: 100, routing.Analyze: 90, routing.Plan: 80,
	routing.Ops: 70, routing.Research: 60, routing.Chat: 50}

// ofOutput is a worker's answer as material.
func ofOutput(route routing.Route, task string, o contract.Output) Item {
	shown := struct {
		Result     json.RawMessage `json:"result,omitempty"`
		Why        string          `json:"why,omitempty"`
		Next       []string        `json:"next_actions,omitempty"`
		Questions  []string        `json:"questions_for_user,omitempty"`
		Confidence float64         `json:"confidence"`
		Risk       string          `json:"risk"`
	}{o.Result, o.Why, o.NextActions, o.Questions, o.Confidence, o.Risk}
	raw, _ := json.MarshalIndent(shown, "", " ") // it was decoded from JSON
	return Item{Route: route, Task: task, Text: string(raw), Out: o.Result}
}

// unfinished gives Chat what a worker had come to when it was stopped: what it wrote, and what
// its tools had shown, the latest first.
func (t *turn) unfinished(route routing.Route, task string, record []contextstore.Message, partial string, err error) {
	var seen []string
	add := func(text string, most int) {
		short, cut := contract.Shortened(strings.TrimSpace(t.e.Strict(text)), most)
		if cut > 0 {
			short += "\n" + t.e.Lang.T("conversation.cut", cut)
		}
		if short != "" {
			seen = append(seen, short)
		}
	}
	add(partial, maxItem/3)
	called := map[redact.Opaque]string{}
	for _, m := range record {
		for _, c := range m.ToolCalls {
			called[c.ID] = c.Name + " " + c.Arguments
		}
	}
	for _, m := range slices.Backward(record) {
		switch m.Role {
		case llm.RoleAssistant:
			add(m.Content, maxItem/3)
		case llm.RoleTool:
			add(called[m.ToolCallID]+":\n"+m.Content, maxItem/3)
		}
	}
	if len(seen) == 0 {
		return
	}
	why := "failed"
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		why = "time"
	case errors.As(err, new(*turns.BudgetError)):
		why = "calls"
	}
	t.items = append(t.items, Item{Route: route, Task: task, Text: t.e.Lang.T("conversation.unfinished_"+why) + "\n\n" + strings.Join(seen, "\n\n")})
}

// ofCoder is a proposal as material.
func ofCoder(route routing.Route, task string, c contract.Coder) Item {
	diff := c.Patch
	c.Patch = ""
	for i := range c.Files {
		c.Files[i].Content = ""
	}
	raw, _ := json.MarshalIndent(c, "", " ") // texts and numbers
	return Item{Route: route, Task: task, Text: string(raw), Diff: diff}
}

// material is what Chat is given to write from, in at most room characters. What is left
// out is named.
func material(lang i18n.Lang, items []Item, room int) string {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(ranks[b.Route], ranks[a.Route]) })
	room = min(room, maxMaterial) - maxNote
	var b strings.Builder
	left := 0
	for i, it := range items {
		text := it.render(lang)
		used := utf8.RuneCountInString(b.String())
		if i >= maxItems || room-used < 200 && i > 0 {
			left++
			continue
		}
		short, cut := contract.Shortened(text, min(maxItem, room-used-maxNote))
		b.WriteString("### " + string(it.Route) + "\n" + short + "\n")
		if cut > 0 {
			b.WriteString(lang.T("conversation.cut", cut) + "\n")
		}
	}
	if left > 0 {
		b.WriteString(lang.T("conversation.left_out", left) + "\n")
	}
	return llm.Tagged("facts", strings.TrimSpace(b.String()))
}

// render is an item with its diff as a list of files and a piece of it.
func (it Item) render(lang i18n.Lang) string {
	text := it.Text
	if it.Task != "" {
		task, _ := contract.Shortened(it.Task, 400)
		text = lang.T("conversation.task", task) + "\n" + text
	}
	if it.Diff == "" {
		return text
	}
	piece, whole := piece(it.Diff)
	text += "\n" + lang.T("conversation.diff_files", strings.Join(filesOf(it.Diff), "\n")) + "\n```diff\n" + piece + "\n```"
	if !whole {
		text += "\n" + lang.T("conversation.diff_cut", strings.Count(it.Diff, "\n")+1)
	}
	return text
}

// piece is the beginning of a diff that is shown, and whether it is all of it.
func piece(diff string) (string, bool) {
	lines := strings.Split(strings.TrimRight(diff, "\n"), "\n")
	whole := len(lines) <= maxDiffLines
	short, cut := contract.Shortened(strings.Join(lines[:min(len(lines), maxDiffLines)], "\n"), maxDiff)
	return short, whole && cut == 0
}

// filesOf are the files that a diff names, with the lines that it adds and takes away.
func filesOf(diff string) (all []string) {
	files, _, err := gitdiff.Parse(strings.NewReader(diff))
	if err != nil {
		return nil // it is shown as it is, and refused where it is to be applied
	}
	for _, f := range files {
		name := strings.TrimPrefix(cmp.Or(f.NewName, f.OldName), "b/") // which a diff without git's lines keeps
		if f.IsRename {
			name = f.OldName + " -> " + f.NewName
		}
		var added, removed int64
		for _, h := range f.TextFragments {
			added, removed = added+h.LinesAdded, removed+h.LinesDeleted
		}
		all = append(all, fmt.Sprintf("- %s (+%d -%d)", name, added, removed))
	}
	return all
}
