package dialogue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/tool"
)

// repliesFile holds what the model said of remarks on lines; the last of each counts.
const repliesFile contextstore.Records[RemarkAnswer] = "replies.jsonl"

// RemarkAnswer is what is to be said in the thread of a remark on a line.
type RemarkAnswer struct {
	Thread string `json:"thread"` // id of the remark that began it
	Text   string `json:"text"`   // of the model, "" where it said nothing of it
}

// openRemarks reads which remarks earlier owners were told, and what the model said of them.
func (d *Dialogue) openRemarks() error {
	dir := d.run.Ledger.Dir()
	if _, err := commentsFile.Each(dir, func(e edition) { d.threads[e.ID] = e.Thread }); err != nil {
		return fmt.Errorf("read which remarks are to be answered: %w", err)
	}
	if _, err := repliesFile.Each(dir, func(a RemarkAnswer) { d.answers[a.Thread] = a.Text }); err != nil {
		return fmt.Errorf("read what was said of remarks: %w", err)
	}
	return nil
}

// mayAnswer has the model told how it names a remark on a line that it may answer: not one of a
// stranger, nor one that people have settled.
func (d *Dialogue) mayAnswer(c forge.Comment, m *Remark) {
	delete(d.threads, c.ID)
	_, takes := d.run.Host.Tracker.(forge.Threads)
	if !takes || c.Kind != forge.Line || c.Resolved || m.Untrusted || d.run.Reviews() || d.run.Order.Silent() {
		return
	}
	d.threads[c.ID] = cmp.Or(c.ReplyTo, c.ID)
	m.Numbered = true
	m.Where += ", remark " + numberOf(d.threads[c.ID])
}

// numberOf is how the model names a thread.
func numberOf(thread string) string { return strings.TrimPrefix(thread, string(forge.Line)+"/") }

// RemarkAnswers are the threads that the run was told a remark of, with what the model said of
// each: those that it said something of come first.
func (d *Dialogue) RemarkAnswers() (all []RemarkAnswer) {
	for _, thread := range slices.Compact(slices.Sorted(maps.Values(d.threads))) {
		if thread != "" {
			all = append(all, RemarkAnswer{thread, d.answers[thread]})
		}
	}
	slices.SortStableFunc(all, func(a, b RemarkAnswer) int { return min(len(b.Text), 1) - min(len(a.Text), 1) })
	return all
}

const answerSchema = `{"type":"object","properties":{"remark":{"type":"integer"},"answer":{"type":"string","minLength":1,"maxLength":1000}},"required":["remark","answer"],"additionalProperties":false}`

// answerRemark lets the model say what became of a remark. It changes nothing but its own file,
// to the same again.
func (d *Dialogue) answerRemark() tool.Tool {
	def := tool.Describe("answer_remark", "Say under a remark what became of it: in a sentence or two what you changed, or why you did not. People read it when you are done.\n\n"+
		"remark is the number that was told with it; a further answer takes the place of the one before. answer is in the language of the remark.", answerSchema, true,
		"remark_id", "remark", "id", "remark", "number", "remark", "thread", "remark", "comment_id", "remark", "text", "answer", "reply", "answer", "body", "answer", "message", "answer", "comment", "answer")
	return tool.Of(def, func(_ context.Context, in struct {
		Remark tool.Number
		Answer string
	}) (tool.Result, error) {
		a := RemarkAnswer{fmt.Sprintf("%s/%d", forge.Line, in.Remark), strings.TrimSpace(d.run.Store.Redact(broker.Visible(in.Answer)))}
		d.answering.Lock()
		defer d.answering.Unlock()
		open := d.RemarkAnswers()
		if !slices.ContainsFunc(open, func(o RemarkAnswer) bool { return o.Thread == a.Thread }) {
			return tool.Failf("There is no remark %d to be answered. Those are: %s.", in.Remark, numbersOf(open)), nil
		}
		if a.Text == "" {
			return tool.Failf("The answer is empty."), nil
		}
		if err := repliesFile.Append(d.run.Store, d.run.Ledger.Dir(), a, true); err != nil {
			return tool.Result{}, err
		}
		d.answers[a.Thread] = a.Text
		text := "People will read it under the remark."
		if left := slices.DeleteFunc(d.RemarkAnswers(), func(o RemarkAnswer) bool { return o.Text != "" }); len(left) > 0 {
			text += " Without an answer so far: " + numbersOf(left) + "."
		}
		return tool.Text(text), nil
	})
}

// numbersOf are the threads of answers in a row.
func numbersOf(all []RemarkAnswer) string {
	var numbers []string
	for _, a := range all {
		numbers = append(numbers, numberOf(a.Thread))
	}
	return strings.Join(numbers, ", ")
}
