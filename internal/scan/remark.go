package scan

import (
	"slices"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/lazyregexp"
)

// remark says whether a comment stands for work that was not done. s is the
// comment with what begins and ends it.
func remark(s string) (Why, bool) {
	if !worthReading(s) {
		return "", false
	}
	// What is quoted is spoken about.
	s = quotation().ReplaceAllString(s, "\u00a4")
	switch {
	case marked(s):
		return Marker, true
	case elided(s):
		return Elision, true
	case promised(s):
		return Promise, true
	}
	return "", false
}

// worthReading sorts out most comments before any expression is tried.
func worthReading(s string) bool {
	return anyOf(s, "TODO", "FIXME", "XXX", "HACK", "TBD", "実装", "コード", "ここに", "省略", "同じ", "同様") ||
		anyOf(strings.ToLower(s), "code", "implement", "logic", "brevity", "in a real", "in production", "in a production", "...", "…", "placeholder", "dummy", "rest of")
}

var (
	quotation = lazyregexp.New("`[^`]*`|\"[^\"]*\"|「[^」]*」|『[^』]*』|“[^”]*”|\\B'[^']*'\\B")
	marks     = lazyregexp.New(`\b(TODO|FIXME|XXX|HACK|TBD)\b`)
	owner     = lazyregexp.New(`^\([^()]+\)`)
	noun      = lazyregexp.New(`(?i)^(comments?|markers?|marks?|items?|lists?|apps?|applications?|entry|entries|tags?|and|or|in|is|are|was|were|that|which|lines?|text|of|as|scann\w*|scans?|detect\w*|notes?|annotations?|keywords?|files?|from|on|may|must|should|can|do|does|means?|by|words?|left|nor|stays?|counts?|findings?|names?|strings?|whose|with|inside|at)\b`)
	particle  = lazyregexp.New(`^(コメント|リスト|アプリ|マーカー|タグ|の|は|を|が|や|と|も|に|で|・|、)`)
)

// decoration is what comments are drawn with.
const decoration = " \t*-!/#;@<>[]()={}%|~・:"

// marked finds TODO and its like where it marks something, not where it is
// spoken about.
func marked(s string) bool {
	return slices.ContainsFunc(marks().FindAllStringIndex(s, -1), func(m []int) bool { return marking(s[:m[0]], s[m[0]:m[1]], s[m[1]:]) })
}

func marking(before, word, after string) bool {
	lead := strings.TrimRight(before, " \t@[(*")
	start := strings.Trim(before, decoration) == ""
	if last, _ := utf8.DecodeLastRuneInString(before); !start && strings.ContainsRune("/._-¤=|,", last) {
		return false // one of several words, a part of one
	}
	switch {
	case strings.HasPrefix(after, "::"), strings.HasPrefix(after, ":="):
		return false
	case strings.HasPrefix(after, ":"), strings.HasPrefix(after, "："):
		return start || word != "XXX"
	case owner().MatchString(after):
		return true
	}
	rest := strings.Trim(after, decoration)
	if rest == "" {
		return start || strings.HasSuffix(lead, " is") || strings.HasSuffix(lead, " are") || strings.HasSuffix(lead, ":") || strings.HasSuffix(lead, " -")
	}
	if !start {
		last, _ := utf8.DecodeLastRuneInString(lead)
		return word != "XXX" && word != "TBD" && strings.ContainsRune(".!?。;—–", last) && follows(after)
	}
	return follows(after)
}

// follows reports whether what stands after a marker says what is to be done.
func follows(after string) bool {
	if c := after[0]; c < utf8.RuneSelf && strings.IndexByte(" \t-]!*", c) < 0 || particle().MatchString(after) {
		return false
	}
	if len(after) > 1 && after[0] == '-' && after[1] != ' ' {
		return false // a number of an issue tracker, a pattern of digits
	}
	rest := strings.TrimLeft(after, " \t-*]!")
	if rest == "" {
		return true
	}
	return strings.IndexByte(",/|.)}'\"&+;=", rest[0]) < 0 && !noun().MatchString(rest) && !particle().MatchString(rest) && !strings.HasPrefix(rest, "¤")
}

var (
	codeHere  = lazyregexp.New(`(?i)^\W*((your|actual|real|more|add|insert|put|place|write|some|business|main|todo|note)\b[\w\s':]{0,40})?\b(code|implementation|logic)\s+((goes|will go|should go|would go|to go|comes)\s+)?here\W*$`)
	notYet    = lazyregexp.New(`(?i)^\W*(to be implemented|not (yet )?implemented( yet)?|implement (this|me|it)( later| here| properly)?|implement later|(add|needs?|missing) implementation|implementation (pending|omitted|left out|to follow|needed|missing|tbd))\W*$`)
	standIn   = lazyregexp.New(`(?i)^\W*((this|it) is )?(just |only )?(an? )?(placeholder (implementation|code|logic|function|method|for now)|dummy (implementation|logic))\b`)
	realWorld = lazyregexp.New(`(?i)\bin (an? |the )?(real|actual|production)([- ]world)?( (implementation|application|app|system|project|scenario|world|code|environment))?,? (you|we|one|this|it|there|use|call|i)\b.{0,10}\b(would|should|could|might|'d|use|call|need)`)
	japanese  = lazyregexp.New(`実装予定|(後|あと)で(、)?実装|今後実装|仮実装|実装してください|ここに(実際の)?(実装|コード|処理|ロジック)(を(書|追加|記述|実装|入|記載)|する|します|[\s.…。)）*/>-]*$)`)
)

// promised finds comments that stand in the place of code.
func promised(s string) bool {
	if codeHere().MatchString(s) || notYet().MatchString(s) || standIn().MatchString(s) || realWorld().MatchString(s) {
		return true
	}
	if japanese().MatchString(s) && !strings.Contains(s, "\u00a4") { // beside a quotation it is one of several examples
		return true
	}
	return strings.Trim(s, decoration+".。！…") == "未実装"
}

var (
	dotted    = lazyregexp.New(`(?i)^[^\w.…]*(\.{3}|…)\s*\(?([\w']+,?\s+){0,5}(code|implementations?|methods?|functions?|imports?|logic|file|class|content|fields|properties|tests|handlers|routes|body|lines|unchanged|before|omitted|same|here|cases)\b[)\s]*(\.{3}|…)?\W*$`)
	elsewhere = lazyregexp.New(`(?i)\b(rest|remaining|remainder|existing|previous|other|same|unchanged|original|omitted|more|keep|as before)\b`)
	restOf    = lazyregexp.New(`(?i)^\W*(the )?(rest|remainder) of (the|your|this|my) ([\w.]+ )?(code|implementation|function|file|class|method|logic|component|module|script)( (is|remains?|stays?|goes|would go|continues))?( (unchanged|the same|as before|here|omitted|as is))*\W*$`)
	existing  = lazyregexp.New(`(?i)^\W*(existing|previous|remaining|other|original) (code|implementation|methods|functions|imports|logic)( (is|here|remains?|unchanged|stays?|the same|continues|omitted|goes here|as before|as is))+\W*$`)
	omitted   = lazyregexp.New(`(?i)^\W*(code|implementation|file|body) (is )?(unchanged|omitted)\b|\b(code|implementation|rest|logic|body|methods?|handling)\b.{0,30}\bomitted for brevity\b`)
	leftOut   = lazyregexp.New(`既存の(コード|処理|実装)(は|を)?(、)?(そのまま|省略|変更なし|ここ|維持)|^[^\p{L}]*(以下|以降|中|残り(の(コード|処理|実装|部分))?)は?、?(省略|略|同じ|同様|変更なし|既存のまま)(です|する)?[^\p{L}]*$`)
)

// elided finds comments in the place of code that the author did not repeat.
func elided(s string) bool {
	if dotted().MatchString(s) && elsewhere().MatchString(s) {
		return true
	}
	return restOf().MatchString(s) || existing().MatchString(s) || omitted().MatchString(s) || leftOut().MatchString(s)
}
