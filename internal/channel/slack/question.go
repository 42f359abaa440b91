package slack

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"toritsugi/internal/channel"
)

const (
	// maxLabel is the most characters of what a button, or the title of a form, shows.
	maxLabel, maxFormTitle = 75, 24
	// maxButtons is how many choices have a button: Slack takes 25 in a row, one is for words.
	maxButtons = 24
	// maxWords is how long an answer in words may be: what Slack takes of a form.
	maxWords = 3000
	// inWords is the action of the button that opens a form, and the callback of that.
	inWords = "words"
)

// choicesOf is the block id of the buttons that answer a question in a session.
func choicesOf(session string) string { return "question:" + session }

func plainText(s string, most int) any {
	if r := []rune(clean(s)); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return map[string]any{"type": "plain_text", "text": clean(s)}
}

// asks shows a question: a button for each choice, and one that opens a form. A value is the
// number of the choice and the question.
func (s *Slack) asks(ctx context.Context, at place, p channel.Post) error {
	q := p.Question
	var buttons []any
	button := func(action, label string, n int) {
		buttons = append(buttons, map[string]any{"type": "button", "action_id": action, "value": strconv.Itoa(n) + " " + q.ID, "text": plainText(label, maxLabel)})
	}
	for n, c := range q.Choices[:min(len(q.Choices), maxButtons)] {
		button("choice"+strconv.Itoa(n+1), c, n+1)
	}
	button(inWords, s.opt.Lang.T("slack.in_words"), 0)
	shown := mrkdwn(p.Text)
	all := sections(shown)
	all = append(all[:min(len(all), maxSections)], map[string]any{"type": "actions", "block_id": choicesOf(p.SessionID), "elements": buttons})
	return s.say(ctx, at, p.Key, []part{{text: short(shown, maxShown), blocks: all}}, s.mayBeOld(at, p.ReplyTo))
}

// settled puts what became of a question in its place, with who and when, and without its
// buttons.
func (s *Slack) settled(ctx context.Context, at place, p channel.Post) error {
	q := p.Question
	return s.replace(ctx, at, partKey(at, q.ID, 0), p, mrkdwn(q.Text)+"\n\n"+mrkdwn(p.Text), q.By, q.At)
}

// answers hands on which choice was pressed, or opens the form for another answer.
func (r receipt) answers(ctx context.Context, b body, session string, a pressed) error {
	number, question, ok := strings.Cut(a.Value, " ")
	switch {
	case !ok:
		return nil
	case a.ActionID != inWords:
		return r.answer(ctx, session, question, number, b.User.ID)
	}
	l := r.s.opt.Lang
	view, err := json.Marshal(map[string]any{"type": "modal", "callback_id": inWords, "private_metadata": session + " " + question,
		"title": plainText(l.T("slack.form"), maxFormTitle), "submit": plainText(l.T("slack.form_send"), maxFormTitle), "close": plainText(l.T("slack.form_close"), maxFormTitle),
		"blocks": []any{map[string]any{"type": "input", "block_id": inWords, "label": plainText(l.T("slack.form_answer"), maxLabel),
			"element": map[string]any{"type": "plain_text_input", "action_id": inWords, "multiline": true, "max_length": maxWords}}}})
	if err != nil {
		return err
	}
	err = r.s.api.try(ctx, r.s.opt.BotToken, "views.open", url.Values{"trigger_id": {b.TriggerID}, "view": {string(view)}}, nil)
	if err == nil || r.fromBefore() { // it was open perhaps, or is not worth opening any more
		return ctx.Err()
	}
	r.s.log.Info(r.s.opt.Mask("A form was not opened: " + err.Error()))
	return r.note(ctx, b, r.e.ID+"/form", l.T("slack.no_form"))
}

// sent hands on what was written into a form.
func (r receipt) sent(ctx context.Context, b body) error {
	session, question, ok := strings.Cut(b.View.Metadata, " ")
	if b.User == nil || !r.s.opt.Allowed(b.User.ID) || !ok || b.View.CallbackID != inWords {
		return nil
	}
	return r.answer(ctx, session, question, b.View.State.Values[inWords][inWords].Value, b.User.ID)
}

func (r receipt) answer(ctx context.Context, session, question, text, user string) error {
	return r.h.Handle(ctx, channel.Message{Channel: channel.Slack, SessionID: session, ID: r.e.ID, User: string(channel.Slack) + ":" + user, UserText: text, Raw: r.e.Body, ReceivedAt: r.e.ReceivedAt, Question: question})
}

// note says something where a button was pressed, once for a key.
func (r receipt) note(ctx context.Context, b body, key, text string) error {
	err := r.s.say(ctx, b.place(), key, []part{{text: text}}, true)
	if absent(err) {
		return nil
	}
	return err
}
