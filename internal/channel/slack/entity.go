package slack

import (
	"strings"

	"toritsugi/internal/lazyregexp"
)

var (
	// entity is what Slack writes for people, channels, groups and links.
	entity = lazyregexp.New(`<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>`)
	// leading are mentions at the beginning of a message.
	leading = lazyregexp.New(`^(?:\s*<@[UW][A-Z0-9]+(?:\|[^<>]*)?>)+ *`)
)

var characters = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// plain is a message's text as the person wrote it, without the mention of the bot.
func plain(text, bot string) string {
	for _, m := range []string{"<@" + bot + ">", "<@" + bot + "|"} {
		for {
			i := strings.Index(text, m)
			if i < 0 {
				break
			}
			end := strings.IndexByte(text[i:], '>')
			if end < 0 {
				break
			}
			after := text[i+end+1:]
			if before := strings.TrimRight(text[:i], " "); before == "" {
				text = strings.TrimLeft(after, " ")
			} else {
				text = before + after
			}
		}
	}
	var out strings.Builder
	for text != "" {
		at := entity().FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		out.WriteString(characters.Replace(text[:at[0]]))
		group := func(n int) string {
			if at[2*n] < 0 {
				return ""
			}
			return characters.Replace(text[at[2*n]:at[2*n+1]])
		}
		out.WriteString(spelled(group(1), group(2), group(3)))
		text = text[at[1]:]
	}
	out.WriteString(characters.Replace(text))
	return out.String()
}

// spelled is an entity as people read it.
func spelled(kind, id, label string) string {
	switch kind {
	case "@", "#":
		if label != "" {
			id = label
		}
		return kind + id
	case "!": // <!here>, <!subteam^S1|@team>, <!date^…|text>
		if label != "" {
			return label
		}
		name, _, _ := strings.Cut(id, "^")
		return "@" + name
	}
	address := strings.TrimPrefix(id, "mailto:")
	if label == "" || label == address || strings.HasSuffix(address, "://"+label) {
		return address
	}
	return label + " (" + address + ")"
}

// mentions reports whether a text names a person; others whether it names anybody.
func mentions(text, user string) bool {
	return strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|")
}

// words is all that a message says, as the programs that post in channels say it too.
func (m *message) words() string {
	if strings.TrimSpace(m.Text) != "" {
		return m.Text
	}
	var all []string
	for _, a := range m.Attachments {
		if a.Text == "" {
			a.Text = a.Fallback
		}
		all = append(all, a.Text)
	}
	return strings.TrimSpace(strings.Join(all, "\n"))
}
