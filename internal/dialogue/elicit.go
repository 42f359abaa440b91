package dialogue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/progress"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// Elicit puts what a server of tools wants to know for a call to people, as
// mcp.Options has it: in the server's words, said to be its words. An answer is for
// that call alone; the same question of another call is another one.
func (d *Dialogue) Elicit(ctx context.Context, e mcp.Elicitation) (string, error) {
	q := planning.Question{Call: tool.CallID(ctx)}
	text := elicitation(d.run.Lang, e)
	switch len(e.Fields) {
	case 0:
		q.Options = []string{d.run.Lang.T("agent.yes"), d.run.Lang.T("agent.no")}
	case 1:
		q.Options = d.options(e.Fields[0].Options)
		text += numbered(q.Options)
	}
	q.Questions = []string{progress.Head(d.run.Store.Redact(text), maxAnswer)}
	sum := sha256.Sum256([]byte(q.Call + "\x00" + q.Questions[0]))
	q.ID = ownQuestion + "-" + hex.EncodeToString(sum[:6])
	_, a, err := d.pose(ctx, q)
	switch {
	case errors.As(err, new(*tooManyError)):
		return "", errors.New("nobody was asked, since as many questions were asked in this run as there may be")
	case err != nil:
		return "", err
	case a.TimedOut:
		return "", errors.New("nobody answered in time")
	}
	// A mask is not what people said, nor is what was said on record (DESIGN §2.7).
	if token, ok := d.Masks(a.Text); ok {
		d.run.Log.Warn("The answer is not passed on to the tool server: what was said is masked", "server", e.Server, "mask", token)
		return "", fmt.Errorf("people answered with what is masked here (%s), which cannot be passed on; it has to be told to the server in another way, such as mcp_servers[].env", token)
	}
	return a.Text, nil
}

// Waits reports whether a call asked people something that is not answered: it had
// no effect so far. Once the answer is on record it may have one.
func (d *Dialogue) Waits(id string) bool {
	return slices.ContainsFunc(d.questions.all, func(q planning.Question) bool {
		_, over := d.questions.answers[q.ID]
		return q.Call == id && !over
	})
}

// elicitation is the question as people read it, and how they answer it.
func elicitation(l i18n.Lang, e mcp.Elicitation) string {
	var b strings.Builder
	b.WriteString(l.T("agent.elicit", e.Server, e.Tool) + "\n" + strings.TrimSpace(e.Message) + "\n")
	if e.URL != "" {
		b.WriteString(l.T("agent.elicit_url") + " " + progress.Span(e.URL) + "\n")
	}
	for _, f := range e.Fields {
		b.WriteString("- " + f.Name + " (" + cmp.Or(strings.Join(f.Options, " / "), l.T("agent.elicit_type_"+knownType(f.Type))))
		if f.Required {
			b.WriteString(", " + l.T("agent.elicit_required"))
		}
		b.WriteString(")")
		if f.Title != "" {
			b.WriteString(": " + f.Title)
		}
		b.WriteByte('\n')
	}
	how := "agent.elicit_yes"
	switch {
	case len(e.Fields) == 1:
		how = "agent.elicit_value"
	case len(e.Fields) > 1:
		how = "agent.elicit_lines"
	}
	return b.String() + l.T(how)
}

// knownType is the type of a field, as there is a text for it.
func knownType(t string) string {
	if slices.Contains([]string{"integer", "number", "boolean"}, t) {
		return t
	}
	return "string"
}
