package i18n

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// recordedTexts are what the program itself writes into the record of a run,
// beside what models and people say there. A record is in English, so that it
// does not depend on who reads it; Translate shows it in the reader's language. Their
// arguments are texts.
func recordedTexts() map[string]text {
	return map[string]text{
		"recorded.failed":         {"subtask %s failed: %s", "サブタスク %s は失敗しました: %s"},
		"recorded.blocked":        {"subtask %s is blocked: %s", "サブタスク %s は着手できません: %s"},
		"recorded.needs_failed":   {"it needs %s, which failed", "前提のサブタスク %s が失敗しています"},
		"recorded.needs_blocked":  {"it needs %s, which is blocked", "前提のサブタスク %s に着手できません"},
		"recorded.no_result":      {"its result could not be read", "結果を読み取れませんでした"},
		"recorded.other_result":   {"no result was given for it, but one for %s: %s", "結果がなく、%s の結果が返されました: %s"},
		"recorded.earlier_result": {"done by run %s: %s", "以前の実行 %s で完了: %s"},
		"recorded.request":        {"Do what the task asks for, and show it by a test.", "依頼されたことを行い、テストで示す。"},

		"recorded.unmet":         {"not met: %s", "未達成: %s"},
		"recorded.no_evidence":   {"no evidence is given for: %s", "根拠が示されていません: %s"},
		"recorded.wants_more":    {"the verification passes it and wants further work", "検証は合格としながら追加の作業を求めています"},
		"recorded.placeholders":  {"placeholders: %s", "未実装の箇所: %s"},
		"recorded.not_passed":    {"the verification did not pass", "検証に合格していません"},
		"recorded.unread":        {"the model gave no verification that can be read", "モデルの検証結果を読み取れませんでした"},
		"recorded.criterion":     {"the behaviour that the task asks for is there, shown by a test", "依頼された振る舞いが実現され、テストで示されている"},
		"recorded.checks_passed": {"the project's checks pass", "プロジェクトのチェックに合格"},
		"recorded.handed_in":     {"it was handed in", "提出しました"},
		"recorded.handed_back":   {"it was handed in, and not taken", "提出しましたが、採用されませんでした"},
		"recorded.ended_well":    {"%s (exit code 0)", "%s（終了コード 0）"},
		"recorded.resolve":       {"Mend what is still open: %s", "残っている点を直す: %s"},
		"recorded.verification":  {"verification", "検証"},

		"recorded.forbidden":    {"nothing about %s may be assumed", "%s については何も仮定しません"},
		"recorded.forbidden_id": {"%s: nothing about %s may be assumed", "%s: %s については何も仮定しません"},
		"recorded.not_assumed":  {"not assumed: %s", "仮定しません: %s"},
		"recorded.unlikely":     {"too unlikely to be assumed (%s): %s", "仮定するには確信度が低すぎます（%s）: %s"},

		"recorded.order": {"the order is now %s", "順序を変更: %s"},

		"recorded.revisions_spent": {"The plan was revised %s times, which is as often as it may be, and it needs another change: %s. Shall I change it again? Answer yes, or say what to do.",
			"計画の修正が上限の %s 回に達しましたが、さらに変更が必要です: %s。もう一度修正してよいですか？「はい」か、代わりにすることを答えてください。"},
		"recorded.unsure": {"I am not sure whether to %s: %s. Shall I do it? Answer yes, or say what to do.", "%sべきか確信が持てません: %s。実行してよいですか？「はい」か、代わりにすることを答えてください。"},

		"recorded.do_none":                  {"go on as planned", "計画どおり続ける"},
		"recorded.do_nothing":               {"go on without it", "そのまま続ける"},
		"recorded.do_retry":                 {"try the same again", "同じ作業をやり直す"},
		"recorded.do_partial_replan":        {"do the rest in another way", "残りを別の方法で行う"},
		"recorded.do_plan_revision":         {"revise the plan", "計画を修正する"},
		"recorded.do_action_regeneration":   {"use other actions", "別の手順を使う"},
		"recorded.do_task_redecomposition":  {"cut the rest of the work anew", "残りの作業を分け直す"},
		"recorded.do_goal_revision":         {"begin with the goal again", "目標からやり直す"},
		"recorded.do_full_replan":           {"plan everything anew", "全体を計画し直す"},
		"recorded.do_ask":                   {"ask people", "人に確認する"},
		"recorded.do_clarification_request": {"ask people for clarification", "人に質問する"},
		"recorded.do_assume":                {"go on with stated assumptions", "仮定を示して続ける"},
		"recorded.do_stop":                  {"end the run", "実行を終える"},
	}
}

// Recorded is a text of recordedTexts as it is written into a record.
func Recorded(key string, args ...any) string { return English.T("recorded."+key, args...) }

// Named reports whether there is such a text.
func Named(key string) bool { _, ok := find("recorded." + key); return ok }

// Translate is a text of a record for a reader of l: what the program wrote there
// itself is in their language, and so are its arguments; what others said is as
// they said it. Lists whose entries stand behind semicolons are told entry by entry.
func (l Lang) Translate(s string) string { return l.retold(s, maxWithin) }

// maxWithin is how many of our texts stand within each other; a text of others that
// looks like more of them would take the square of its length.
const maxWithin = 5

func (l Lang) retold(s string, within int) string {
	if l != Japanese || s == "" || within == 0 {
		return s
	}
	for _, p := range recordedPatterns() {
		m := p.re.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		args := make([]any, len(m)-1)
		for i, a := range m[1:] {
			args[i] = l.retold(a, within-1)
		}
		return l.T(p.key, args...)
	}
	if !strings.Contains(s, "; ") {
		return s
	}
	all := strings.Split(s, "; ")
	for i := range all {
		all[i] = l.retold(all[i], within-1)
	}
	return strings.Join(all, "; ")
}

type recordedPattern struct {
	key string
	re  *regexp.Regexp
}

// recordedPatterns find each of recordedTexts as it stands in a record; what says
// most beside its arguments comes first.
var recordedPatterns = sync.OnceValue(func() (all []recordedPattern) {
	texts := recordedTexts()
	keys := slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(texts[b].en), len(texts[a].en)), cmp.Compare(a, b))
	})
	for _, k := range keys {
		parts := strings.Split(texts[k].en, "%s")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		all = append(all, recordedPattern{k, regexp.MustCompile(`(?s)\A` + strings.Join(parts, `(.*?)`) + `\z`)})
	}
	return all
})
