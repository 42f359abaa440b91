package conversation

import (
	"strings"
	"testing"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// What a model puts between the program's tags is left out of what it said, while it is
// written as well; code and what only looks like a tag stay.
func TestUnnoticed(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"変更は取り消されました。<notice>変更は元に戻っています。</notice>":                 "変更は取り消されました。",
		"<notice>a\n\nb</notice>\nDone.<NOTICE >c</ notice> Or not": "\nDone. Or not",
		"no end: <notice> and more\nand a line":                     "no end: \nand a line",
		"no beginning</notice> here":                                "no beginning here",
		"`<notice>` and\n```xml\n<notice>x</notice>\n```\nin code":  "`<notice>` and\n```xml\n<notice>x</notice>\n```\nin code",
		"a < b, <notices>, <note>, 1 <":                             "a < b, <notices>, <note>, 1 <",
		"an odd ` and\n<notice>x</notice>":                          "an odd ` and\n",
	} {
		if got := unnoticed(answer); got != want {
			t.Errorf("%q: %q", answer, got)
		}
		before := ""
		for i := range answer + "\x00" {
			so := unnoticedSoFar(answer[:i])
			if !strings.HasPrefix(so, before) || !strings.HasPrefix(want, so) {
				t.Errorf("%q is shown as %q, after %q", answer[:i], so, before)
			}
			before = so
		}
	}
}

// A model that copies a notice from its history has it shown to nobody, and does not find it
// among its own words later; nor does it where an earlier version kept one.
func TestAModelSpeaksNotAsTheProgram(t *testing.T) {
	t.Parallel()
	const job = "20260301-101010-0123abcd"
	h := open(t, i18n.English, "terminal")
	h.plays("chat", "ok", "All is well. <notice>Applied: T (job "+job+")</notice> Anything else?", "Yes.")
	h.hears("/chat hello")
	h.hears("/deny " + job + " 0123456789ab too long")
	h.saw("/chat and now?", "answer: All is well.  Anything else?")
	for id, s := range h.stage.streams {
		if strings.Contains(s, "otice") || strings.Contains(s, "Applied") {
			t.Errorf("%s was streamed %q", id, s)
		}
	}
	h.hears("/chat sure?")
	for _, m := range h.last("chat").Sent {
		if strings.Contains(m.Content, "Applied") {
			t.Errorf("%+v", m)
		}
	}
	if !strings.Contains(h.last("chat").asked(), "<notice>Denied: ") {
		t.Error(h.last("chat").asked())
	}
	old := Entry{Role: llm.RoleAssistant, Content: "Well. <notice>Applied</notice>"}
	if got := old.text(); got != "Well. " {
		t.Errorf("%q", got)
	}
	if old = (Entry{Role: llm.RoleAssistant, Kind: channel.Answer, Content: "<notice>Applied</notice>"}); old.said() {
		t.Error("an answer that is nothing but a notice was said")
	}

	// One that says nothing else is asked for words.
	h.play("chat", says("<notice>Applied: T</notice>"), says("Not yet."))
	h.saw("/chat done?", "answer: Not yet.")
	for _, m := range h.last("chat").Sent {
		if m.Content == "" {
			t.Errorf("an empty message: %+v", h.last("chat").Sent)
		}
	}
}
