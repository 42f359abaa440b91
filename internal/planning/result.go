package planning

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/turn"
)

// reported takes the result of the subtask at hand, or of the next one. The word
// that everything is done counts for this subtask alone: what else is open has no
// result yet.
func (co *Coordinator) reported(c contextstore.ToolCall) error {
	s := &co.s
	r, err := readReport(c)
	working := s.working()
	other := func() bool { _, known := co.plan.Subtask(r.ID); return known && r.ID != s.Current }
	switch {
	case !working && (co.plan == nil || s.Asked != "" && s.Asked != askRemark):
		return co.outOfTurn()
	case err != nil:
		return err
	case !working && s.Asked == "" && s.Want == "" && !r.Over && co.left() > 0 && (r.ID == "" && len(co.order) == 1 || co.pick() == r.ID):
		s.Current = co.pick() // beside the plan, or the one before it
	case !working:
		co.lastWord(r)
		return nil
	case other():
		if s.Tried++; s.Tried <= maxTries {
			return fmt.Errorf(co.prompts.word("That was the result of %s; the subtask at hand is %s.", "それは %s の結果です。手元のサブタスクは %s です。"), line(r.ID), s.Current)
		}
		r.Status, r.Summary = Failed, i18n.Recorded("other_result", r.ID, r.Summary)
	case slices.Contains(r.Failed, s.Current):
		r.Status = Failed
	}
	if text := co.objection(r.Status); text != "" {
		return errors.New(text)
	}
	r.ID = s.Current
	co.end(r)
	return nil
}

// lastWord takes what the model tells people of the whole.
func (co *Coordinator) lastWord(r report) {
	s := &co.s
	if co.left() == 0 {
		s.says(cmp.Or(r.Comment, r.Summary))
	}
	if s.Asked == askRemark {
		s.Asked = ""
	}
	for i := range co.entries {
		if t := co.entries[i].Subtask; t != nil && r.Over {
			t.Lessons = co.learn(r.Lessons)
		}
	}
	co.enter()
}

// objection is what speaks against the word that a subtask is done, once: that the
// last edits all failed, or a call that it came with, or that nothing was changed where it
// says to change something; "" for nothing.
func (co *Coordinator) objection(status string) string {
	s := &co.s
	t, _ := co.plan.Subtask(s.Current)
	idle := !s.Changed && co.settings.ReadOnly != nil && changing().MatchString(t.Description)
	if status != Done || s.Objected || !s.Unmade && !co.failed && !idle {
		return ""
	}
	s.Objected = true
	switch {
	case s.Unmade:
		return co.prompts.word("Your last edits all failed, so nothing of them is in the files. Make them, or report how you know that it is done without them.", "直前の編集はすべて失敗しており、ファイルには何も反映されていません。編集をやり直すか、編集なしで完了していると分かる理由を報告してください。")
	case co.failed:
		return co.prompts.word("A call beside this report failed. Look at it first; then report.", "この報告と同時の呼び出しが失敗しました。先に確かめてから報告してください。")
	}
	return co.prompts.word("Nothing was changed in this subtask. Make the change, or report again, with what shows that it is done.", "このサブタスクでは何も変更されていません。変更するか、完了していることを示すものを添えてもう一度報告してください。")
}

// changing finds a description that begins with, or in Japanese names, a change, and does
// not ask to look or to run something.
var changing = lazyregexp.New(`(?i)^\W*(?:add|write|create|implement|fix|change|update|remove|delete|rename|replace|refactor|extend)\b|^(?:[^確検調実]|実装)*(?:追加|作成|実装|修正|変更|更新|削除)`)

// finished takes an answer in words that ends a subtask: its own count of what was
// done. Where nothing was, or it is an object that nobody can read, it is asked once
// for the result.
func (co *Coordinator) finished(m contextstore.Message) {
	s := &co.s
	done, object := len(s.Guard.Recent) > 0, isObject(m.Content)
	co.circles(s.Guard.Said(m.Seq, m.Content))
	if (!done || object) && co.again() {
		return
	}
	if text := co.objection(Done); text != "" {
		s.Told = text
		return
	}
	r, guard := report{SubtaskRecord: SubtaskRecord{ID: s.Current, Status: Done, Summary: m.Content}, Comment: m.Content}, s.Guard
	if object {
		co.log.Warn("The result of " + s.Current + " cannot be read")
		r.Status, r.Summary, r.Comment = Failed, i18n.Recorded("no_result"), ""
	}
	if co.end(r); !done {
		s.Guard = guard // what is counted of talk goes on
	}
}

// isObject reports whether a text begins as an object, in a fence or not: then it
// is no report in words.
func isObject(text string) bool {
	text = strings.TrimSpace(text)
	if fence, rest, ok := strings.Cut(text, "\n"); ok && strings.HasPrefix(fence, "```") {
		text = strings.TrimSpace(rest)
	}
	return strings.HasPrefix(text, "{")
}

// end notes how the subtask at hand ended, and has the model decide about one
// that did not end well.
func (co *Coordinator) end(r report) {
	s := &co.s
	last := co.left() == 1
	switch {
	case last && r.Over, last && r.Comment != "":
		s.says(cmp.Or(r.Comment, r.Summary))
	case last && len(co.order) == 1 && utf8.RuneCountInString(r.Summary) <= MaxSubject: // which can be a subject, so that it ends as none
		s.says(strings.TrimRight(r.Summary, ".。"))
	}
	r.Summary, r.Lessons = line(inTree(r.Summary)), co.learn(r.Lessons)
	co.ends(r.SubtaskRecord)
	for _, c := range r.Criteria[:min(len(r.Criteria), maxIssues)] {
		if len(s.Shows) < maxIssues {
			s.Shows = append(s.Shows, Criterion{Criterion: brief(inTree(c.Criterion), maxIssue), Evidence: brief(inTree(c.Evidence), maxIssue)})
		}
	}
	s.phase = phase{Posed: s.Posed}
	s.Current, s.Why, s.Tried, s.Fresh, s.Unmade, s.Objected = "", "", 0, false, false, false
	s.Changed = co.made // beside the report, and maybe for the next one
	s.Guard = turn.Guard{Turn: s.Guard.Turn}
	co.log.Info("Subtask "+r.ID+": "+r.Status, "left", co.left())
	switch r.Status {
	case Done:
		s.Counts = s.Counts.Done(r.ID)
	case Skipped:
	default:
		s.Redone = false
		if co.settings.Replan.MaxTotal > 0 {
			s.Where = r.ID
			s.wants(askReplan, co.prompts.Lang.Translate(i18n.Recorded(r.Status, r.ID, r.Summary)))
		}
	}
}

// words are what a completion tells people.
func (c Completion) words() string {
	if c.Summary == nil {
		return cut(c.Comment, maxSaid)
	}
	return cut(strings.TrimSpace(c.Comment+"\n\n"+strings.Join(c.Summary.KeyOutcomes, "\n")), maxSaid)
}

// Words are what the model told people of the result: at its end, where a budget
// ended it to whoever goes on, or of each subtask; for readers of a language where
// the program says it for the model.
func (co *Coordinator) Words(lang i18n.Lang) string {
	if h := co.s.Handover; h != nil && h.Words != "" {
		return h.Words
	}
	if co.s.Said != "" {
		return co.s.Said
	}
	var b strings.Builder
	for _, id := range co.order {
		if r := co.s.Results[id]; r.Summary != "" {
			b.WriteString("- " + lang.Translate(r.Summary) + "\n")
		}
	}
	text := b.String()
	if len(co.order) == 1 {
		text = strings.TrimPrefix(text, "- ")
	}
	if text != "" && co.plan.Goal.MainObjective != "" { // which says what is to be, and the task what is wrong
		return line(co.plan.Goal.MainObjective) + "\n\n" + text
	}
	return text
}

// maxSaid is how much of the model's last words is kept, in bytes.
const maxSaid = 4000
