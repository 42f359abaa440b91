package line

import (
	"fmt"
	"strings"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"toritsugi/internal/channel"
)

const (
	maxRows    = 40   // of a request within its message
	maxRowText = 500  // units of one of them
	maxCard    = 4000 // units of all of them; LINE takes 30 KB of a bubble
	maxAlt     = 400  // units of what a notification shows
	maxURI     = 1000 // characters of what a button opens
	// maxDiff is how many characters of a diff are sent where there is no page for it
	// (spec/chat §7).
	maxDiff = 4000
)

// A line of a request.
type requestRow struct {
	text  string
	how   messaging_api.FlexTextWEIGHT
	size  string
	color string
}

const (
	grey = "#777777"
	red  = "#C62828"
)

// request is a proposal as its approvers see it, in the order of spec/chat §7: what its
// message cannot hold stands above it, and the diff below, or behind a button.
func (l *Line) request(session string, a *channel.Approval) (all []messaging_api.MessageInterface) {
	rows := l.rows(a)
	card, whole := fit(rows)
	if !whole {
		var text []string
		for _, r := range rows {
			text = append(text, r.text)
		}
		for _, part := range split(strings.Join(text, "\n"), maxText) {
			all = append(all, textMessage(part, ""))
		}
		card = append(card, requestRow{text: l.opt.Lang.T("line.above"), color: red})
	}
	title := l.opt.Lang.T("line.request", plainLine(a.Title))
	page := l.page(session, a)
	all = append(all, &messaging_api.FlexMessage{AltText: title[:hard(title, maxAlt, 0)], Contents: l.bubble(a, card, page)})
	if a.Diff != "" && page == "" {
		all = append(all, l.diff(a.Diff)...)
	}
	return all
}

// page is the address of a diff for the person of a session, or for its group; "" for none.
func (l *Line) page(session string, a *channel.Approval) string {
	if a.Diff == "" || l.opt.Page == nil {
		return ""
	}
	who := session
	if id, alone := strings.CutPrefix(session, "line:user:"); alone {
		who = "line:" + id
	}
	page := l.opt.Page(who, a)
	if len(page) > maxURI || !strings.HasPrefix(page, "https://") { // LINE takes no other
		return ""
	}
	return page
}

// diff is the beginning of a diff.
func (l *Line) diff(text string) (all []messaging_api.MessageInterface) {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	text = strings.TrimRight(channel.Clean(text), "\n")
	runes := []rune(text)
	shown := mark + "diff\n" + string(runes[:min(len(runes), maxDiff)]) + "\n" + mark
	if more := len(runes) - maxDiff; more > 0 {
		shown += "\n" + l.opt.Lang.T("line.more_diff", more)
	}
	for _, part := range split(shown, maxText) {
		all = append(all, textMessage(part, ""))
	}
	return all
}

// rows are the lines of a request.
func (l *Line) rows(a *channel.Approval) (rows []requestRow) {
	for _, r := range a.Rows(l.opt.Lang, func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }) {
		row := requestRow{text: r.Text}
		switch r.Kind {
		case channel.TitleRow:
			row.how, row.size = messaging_api.FlexTextWEIGHT_BOLD, "lg"
		case channel.HeadRow:
			row.how = messaging_api.FlexTextWEIGHT_BOLD
		case channel.SmallRow:
			row.size, row.color = "xs", grey
		case channel.ItemRow:
			row.text = "• " + r.Text
		case channel.CommandRow:
			row.text = "$ " + r.Text
		case channel.FileRow:
			row.text = fmt.Sprintf("• %s %s (+%d −%d)", r.Text, r.File.Name(), r.File.Added, r.File.Removed)
		}
		if r.Risky {
			row.color = red
		}
		if row.text = plainLine(row.text); row.text != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// fit is as much of the rows as a message holds; whole says that it is all.
func fit(rows []requestRow) (card []requestRow, whole bool) {
	size := 0
	for _, r := range rows {
		if size += channel.Units(r.text); size > maxCard || len(card) == maxRows || channel.Units(r.text) > maxRowText {
			return card, false
		}
		card = append(card, r)
	}
	return card, true
}

// bubble is the message with the buttons, which carry the job and the hash, and one that opens
// the page of the diff, if there is one.
func (l *Line) bubble(a *channel.Approval, card []requestRow, page string) *messaging_api.FlexBubble {
	t := l.opt.Lang.T
	body := &messaging_api.FlexBox{Layout: messaging_api.FlexBoxLAYOUT_VERTICAL, Spacing: "sm"}
	for _, r := range card {
		size := r.size
		if size == "" {
			size = "sm"
		}
		body.Contents = append(body.Contents, &messaging_api.FlexText{Text: r.text, Size: size, Color: r.color, Weight: r.how, Wrap: true})
	}
	press := func(act, label, says string, how messaging_api.FlexButtonSTYLE) *messaging_api.FlexButton {
		return &messaging_api.FlexButton{Style: how, Height: messaging_api.FlexButtonHEIGHT_SM,
			Action: &messaging_api.PostbackAction{Label: t(label), Data: postback(act, a), DisplayText: t(says, a.Job)}}
	}
	foot := &messaging_api.FlexBox{Layout: messaging_api.FlexBoxLAYOUT_VERTICAL, Spacing: "sm"}
	if page != "" {
		foot.Contents = append(foot.Contents, &messaging_api.FlexButton{Style: messaging_api.FlexButtonSTYLE_LINK, Height: messaging_api.FlexButtonHEIGHT_SM,
			Action: &messaging_api.UriAction{Label: t("line.diff"), Uri: page}})
	}
	foot.Contents = append(foot.Contents,
		press(actGrant, "line.approve", "line.approve_says", messaging_api.FlexButtonSTYLE_PRIMARY),
		press(actDeny, "line.deny", "line.deny_says", messaging_api.FlexButtonSTYLE_SECONDARY))
	return &messaging_api.FlexBubble{Size: messaging_api.FlexBubbleSIZE_GIGA, Body: body, Footer: foot}
}
