package policy

import (
	"strings"

	"toritsugi/internal/i18n"
)

// Text says in l what was decided, of which commands, by which rules and why;
// "" where the script is allowed. The model reads the English text.
func (v Verdict) Text(l i18n.Lang) string {
	if v.Decision == Allow {
		return ""
	}
	var b strings.Builder
	b.WriteString(l.T("policy.verdict_" + v.Decision.String()))
	for _, f := range v.Findings {
		b.WriteString("\n- " + f.Text(l))
	}
	if v.More > 0 {
		b.WriteString("\n" + l.T("policy.more", v.More))
	}
	return b.String()
}

// Text is the finding in one line.
func (f Finding) Text(l i18n.Lang) string {
	where := l.T("policy.command", f.Command.Line, code(f.Command.Text))
	if len(f.Command.Via) > 0 {
		where = l.T("policy.command_in", f.Command.Line, code(f.Command.Text), strings.Join(f.Command.Via, ", "))
	}
	reason := f.Reason.English
	if l == i18n.Japanese {
		reason = f.Reason.Japanese
	}
	switch {
	case f.Rule == RuleNone && f.Doubtful:
		return l.T("policy.unsure", where)
	case f.Rule == RuleNone:
		name := f.Command.Path
		if f.Command.Opaque != "" {
			name = string(f.Command.Opaque)
		}
		return l.T("policy.none", where, oneLine(name, maxText))
	case f.Command.Opaque != "":
		return l.T("policy.opaque", where, l.T("policy.opaque_"+string(f.Command.Opaque)), f.Rule, oneLine(reason, 4*maxText))
	case f.Doubtful:
		return l.T("policy.doubtful", where, f.Rule, oneLine(reason, 4*maxText))
	}
	return l.T("policy.rule", where, f.Rule, oneLine(reason, 4*maxText))
}

// code shows a command among words.
func code(s string) string {
	return "`" + strings.ReplaceAll(s, "`", "ˋ") + "`"
}
