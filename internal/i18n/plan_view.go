package i18n

// planViewTexts are the words of tori show --plan.
func planViewTexts() map[string]text {
	return map[string]text{
		"cli.help.plan":          {"The latest plan with what became of it, its revisions, and the verifications.", "最新の計画とその結果、改訂の履歴、検証。"},
		"ops.plan_none":          {"This run has no plan, or none yet.", "この実行に計画はありません（またはまだありません）。"},
		"ops.plan_goal":          {"Goal", "目標"},
		"ops.plan_criteria":      {"Success criteria", "達成条件"},
		"ops.plan_constraints":   {"Constraints", "制約"},
		"ops.plan_deliverables":  {"To be delivered", "成果物"},
		"ops.plan_ambiguous":     {"Can be read in more than one way", "複数の解釈が可能な点"},
		"ops.plan_taken_as":      {"%s; taken as: %s", "%s → 採用した解釈: %s"},
		"ops.plan_add":           {"add", "追加"},
		"ops.plan_remove":        {"remove", "削除"},
		"ops.plan_modify":        {"modify", "変更"},
		"ops.plan_decisions":     {"Decisions about what went wrong", "問題への対応の判断"},
		"ops.plan_assumed":       {"Assumed", "仮定"},
		"ops.plan_unknown":       {"Not known", "不明"},
		"ops.plan_subtasks":      {"Subtasks", "サブタスク"},
		"ops.plan_revisions":     {"Revisions", "改訂"},
		"ops.plan_verifications": {"Verifications", "検証"},
		"ops.plan_judged":        {"judged to be done; the run is unverified", "完了と判断（実行は未検証）"},
		"ops.plan_passed":        {"passed", "合格"},
		"ops.plan_not_passed":    {"not passed", "不合格"},
	}
}
