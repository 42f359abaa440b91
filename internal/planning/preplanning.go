package planning

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
)

// PrePlanning is what comes before the plan: understanding the task, looking
// things up, and telling what is assumed from what is not known. The zero value
// asks for the plan alone.
type PrePlanning struct {
	Enabled    bool
	Sure       float64 // 0 to 1: an understanding below it is uncertain
	Collect    bool    // things may be looked up before the plan
	MaxRetries int     // failed calls of a tool beyond the first, before the plan
	Assume     bool    // what is not known may be assumed
	Likely     float64 // 0 to 1: an assumption below it is none
}

// of fills in how the plan is asked for.
func (p PrePlanning) of(ask Ask) Ask {
	ask.Bare, ask.Given, ask.NoAssumptions = !p.Enabled, !p.Enabled || !p.Collect, !p.Enabled || !p.Assume
	return ask
}

// uncertain reports whether a goal is not understood well enough to change
// something without a further look. Where the model does not say, it is not.
func (p PrePlanning) uncertain(g *Goal) bool {
	return p.Enabled && g.Confidence != nil && *g.Confidence < p.Sure
}

// settle keeps apart what a goal assumes and what it does not know: assumptions
// that may not be made, or are not likely enough, become information gaps. What
// was to be assumed about a forbidden subject is not repeated where the gap has a
// name without it.
func (p PrePlanning) settle(g *Goal) {
	g.Assumptions = slices.DeleteFunc(slices.Clone(g.Assumptions), func(a Assumption) bool {
		gap := Gap{ID: a.ID, Impact: a.Reasoning}
		switch subject := forbiddenIn(a.ID + " " + a.Value); {
		case subject != "" && strings.TrimSpace(a.ID) != "":
			gap.Description, gap.Impact = i18n.Recorded("forbidden_id", a.ID, subject), ""
		case subject != "":
			gap.Description, gap.Impact = i18n.Recorded("forbidden", subject), ""
		case p.Enabled && !p.Assume:
			gap.Description = i18n.Recorded("not_assumed", a.Value)
		case p.Enabled && a.Confidence != nil && *a.Confidence < p.Likely:
			gap.Description = i18n.Recorded("unlikely", fmt.Sprintf("%.2g", *a.Confidence), a.Value)
		default:
			return false
		}
		g.Gaps = append(slices.Clip(g.Gaps), gap)
		return true
	})
}

// forbidden are the subjects about which nothing is assumed.
var forbidden = []string{"security", "secret", "password", "token", "api_key", "credential", "database", "connection_string", "pii", "personal_info"}

// forbiddenJapanese are the forbidden subjects as a Japanese text names them.
var forbiddenJapanese = map[string]string{"セキュリティ": "security", "秘密": "secret", "シークレット": "secret", "機密": "secret", "パスワード": "password", "暗証": "password", "トークン": "token",
	"APIキー": "api_key", "apiキー": "api_key", "資格情報": "credential", "認証情報": "credential", "クレデンシャル": "credential", "データベース": "database", "接続文字列": "connection_string", "個人情報": "personal_info"}

// forbiddenIn is a subject that nothing may be assumed about and that a text
// names, "" for none: as words of their own, in whatever way they are put together.
func forbiddenIn(text string) string {
	words := " " + strings.Join(wordsOf(text), " ") + " "
	for _, subject := range forbidden {
		name := " " + strings.ReplaceAll(subject, "_", " ")
		if strings.Contains(words, name+" ") || strings.Contains(words, name+"s ") || strings.Contains(words, strings.TrimSuffix(name, "y")+"ies ") {
			return subject
		}
	}
	for word, subject := range forbiddenJapanese {
		if strings.Contains(text, word) {
			return subject
		}
	}
	return ""
}

// humps are where words are put together by capitals.
var humps = lazyregexp.New(`(\p{Ll})(\p{Lu})|(\p{Lu})(\p{Lu}\p{Ll})`)

// wordsOf are the words of a text in lower case; db_password, db-password and
// dbPassword have two.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(humps().ReplaceAllString(text, "$1$3 $2$4")), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// maxMissing is how many tools are told apart that fail before the plan.
const maxMissing = 16

// missed counts a call that failed while things are looked up before the plan:
// a tool that failed too often is to be done without.
func (co *Coordinator) missed(tool string) {
	s, pre := &co.s, co.settings.Pre
	if s.Asked != askPlan || !pre.Enabled || !pre.Collect {
		return
	}
	if tool = cut(tool, maxID); s.Missed[tool] == 0 && len(s.Missed) >= maxMissing {
		return
	}
	if s.Missed == nil {
		s.Missed = map[string]int{}
	}
	if s.Missed[tool]++; s.Missed[tool] == pre.MaxRetries+2 {
		s.Without = tool
	}
}

// gaps are what the plan does not know, in a line each.
func (co *Coordinator) gaps() (all []string) {
	for _, g := range co.plan.Goal.Gaps {
		all = append(all, g.Description)
	}
	return all
}
