package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/channel"
)

const (
	// shownDiff is how many lines of a proposal's diff stand in its request (spec/chat §7).
	shownDiff = 60
	// maxSection is the most characters of a section, maxSections how many a message has:
	// Slack takes 50 blocks, the buttons are one.
	maxSection  = 3000
	maxSections = 40
	// listedFiles is how many files are named one by one; the diff has all.
	listedFiles = 40
)

// buttonsOf is the block id of a session's buttons.
func buttonsOf(session string) string { return "approval:" + session }

func section(text string) any {
	return map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": text, "verbatim": true}}
}

func sections(text string) (all []any) {
	for _, t := range split(text, maxSection) {
		all = append(all, section(t))
	}
	return all
}

// latestKey is the key of a job's request that stands now.
func latestKey(at place, job string) string { return partKey(at, "request/"+job, 0) }

// request shows a proposal with buttons, and its diff: long ones as a file.
func (s *Slack) request(ctx context.Context, at place, p channel.Post) error {
	old := s.mayBeOld(at, p.ReplyTo)
	if err := s.progressEnd(ctx, at, p.Approval.Job, old); err != nil {
		return err
	}
	leave, err := s.lines.Enter(ctx, at.channel+":"+at.thread)
	if err != nil {
		return err
	}
	defer leave()
	a := p.Approval
	key := "request/" + a.Job + "/" + p.Key
	mine := partKey(at, key, 0)
	if _, done := s.told(mine); !done {
		if before, ok := s.told(latestKey(at, a.Job)); ok { // its buttons are bound to another hash
			note := s.opt.Lang.T("slack.superseded", Escape(clean(a.Title)))
			if err := s.rewrite(ctx, at, before, part{text: note, blocks: sections(note)}, s.api.call); err != nil && code(err) != "message_not_found" {
				return err
			}
		}
	}
	inline := strings.Count(a.Diff, "\n") <= shownDiff && len(a.Diff) <= maxSection*maxSections/4
	if err := s.saying(ctx, at, key, []part{s.proposal(p.SessionID, a, inline)}, old); err != nil {
		return err
	}
	if inline {
		return nil
	}
	name := a.Job + "-" + a.Hash + ".diff"
	if _, done := s.told(partKey(at, "file/"+name, 0)); done {
		return nil
	}
	if err := s.api.upload(ctx, s.opt.BotToken, at, name, name, clean(a.Diff)); err != nil {
		return err
	}
	s.remember(partKey(at, "file/"+name, 0), "")
	return nil
}

// proposal is the message of a request.
func (s *Slack) proposal(session string, a *channel.Approval, diff bool) part {
	l := s.opt.Lang
	var text []string
	said := func(t string) string { return Escape(clean(t)) }
	title, files := "", 0
	until := a.Expires.UTC().Format("2006-01-02 15:04 UTC")
	for _, r := range a.Rows(l, func(time.Time) string { return until }) {
		row := said(r.Text)
		switch r.Kind {
		case channel.SmallRow:
			row = strings.Replace(row, until, moment(a.Expires.Unix(), until), 1)
		case channel.TitleRow:
			title = row
			row = "*" + strings.ReplaceAll(row, "*", "") + "*"
		case channel.ItemRow:
			row = "• " + row
		case channel.CommandRow:
			row = "$ " + coded(r.Text)
		case channel.FileRow:
			if files++; files > listedFiles {
				continue
			}
			row = fmt.Sprintf("• %s %s  +%d -%d", row, coded(r.File.Name()), r.File.Added, r.File.Removed)
			if more := len(a.Files) - listedFiles; files == listedFiles && more > 0 {
				row += "\n" + l.T("slack.more_files", more)
			}
		}
		if r.Risky && r.Kind != channel.FileRow {
			row = ":warning: " + strings.TrimPrefix(row, "• ")
		}
		text = append(text, row)
	}
	all := sections(strings.Join(text, "\n"))
	if diff && a.Diff != "" {
		all = append(all, sections(strings.Join(block(strings.Split(strings.TrimRight(clean(a.Diff), "\n"), "\n")), "\n"))...)
	}
	out := part{text: short(title, maxShown), job: a.Job}
	if len(all) > maxSections { // what is not shown whole has no buttons
		out.blocks = slices.Concat(all[:maxSections], []any{section(l.T("slack.cut_request"))})
		return out
	}
	value := a.Job + " " + a.Hash
	button := func(id, text, style string) any {
		return map[string]any{"type": "button", "action_id": id, "value": value, "style": style, "text": map[string]any{"type": "plain_text", "text": text}}
	}
	all = append(all, map[string]any{"type": "actions", "block_id": buttonsOf(session),
		"elements": []any{button("approve", l.T("slack.approve"), "primary"), button("deny", l.T("slack.deny"), "danger")}})
	out.blocks = all
	return out
}

// coded is a path or a command as code.
func coded(s string) string {
	return "`" + Escape(strings.ReplaceAll(strings.ReplaceAll(clean(s), "`", "ˋ"), "\n", " ⏎ ")) + "`"
}

// moment is a time in the reader's time zone.
func moment(unix int64, otherwise string) string {
	return fmt.Sprintf("<!date^%d^{date_short_pretty} {time}|%s>", unix, Escape(otherwise))
}

// decided puts what became of a request in its place.
func (s *Slack) decided(ctx context.Context, at place, p channel.Post) error {
	a := p.Approval
	text := fmt.Sprintf("*%s*\n`%s`\n%s", strings.ReplaceAll(Escape(clean(a.Title)), "*", ""), Escape(clean(a.Job)), mrkdwn(p.Text))
	return s.replace(ctx, at, latestKey(at, p.Job), p, text, a.Approver, a.DecidedAt)
}

// replace puts a text in the place of what was said by a key, with who and when, and without its
// buttons. In a thread in which that was not said, the post is.
func (s *Slack) replace(ctx context.Context, at place, key string, p channel.Post, text, by string, when time.Time) error {
	old := s.mayBeOld(at, p.ReplyTo)
	leave, err := s.lines.Enter(ctx, at.channel+":"+at.thread)
	if err != nil {
		return err
	}
	defer leave()
	ts, ok := s.told(key)
	if !ok && old {
		if err := s.lookBack(ctx, at); err != nil {
			return err
		}
		ts, ok = s.told(key)
	}
	if !ok {
		return s.saying(ctx, at, p.Key, parts(p.Text), old)
	}
	if by != "" {
		who := Escape(clean(by))
		if user, here := strings.CutPrefix(by, string(channel.Slack)+":"); here {
			who = "<@" + Escape(clean(user)) + ">"
		}
		text += "\n" + who
		if !when.IsZero() {
			text += " · " + moment(when.Unix(), when.UTC().Format("2006-01-02 15:04 MST"))
		}
	}
	text = short(text, maxShown)
	err = s.rewrite(ctx, at, ts, part{text: text, blocks: sections(text)}, s.api.call)
	if code(err) == "message_not_found" || code(err) == "cant_update_message" {
		return s.saying(ctx, at, p.Key, parts(p.Text), old)
	}
	return err
}
