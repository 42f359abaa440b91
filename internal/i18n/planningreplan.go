package i18n

// planningReplanTexts say why something else was done than a model wished, and how
// a run goes in circles.
func planningReplanTexts() map[string]text {
	return map[string]text{
		"planning.subtask":                         {"Subtask %s", "サブタスク %s"},
		"planning.fix":                             {"After verification, part %s", "検証後の作業 %s"},
		"planning.override.join":                   {"; ", "、"},
		"planning.override.unknown_type":           {"the model named no kind of replanning that there is", "モデルの示した再計画の種類がありません"},
		"planning.override.low_confidence":         {"the model was too unsure of it (planning.replanning.llm_decision)", "モデルの確信度が低すぎます（planning.replanning.llm_decision）"},
		"planning.override.needs_confirmation":     {"the model was not sure enough to go on without a person's yes (planning.replanning.llm_decision.min_confidence_threshold)", "モデルの確信度が低いため、人の確認が必要です（planning.replanning.llm_decision.min_confidence_threshold）"},
		"planning.override.fatal_error":            {"the error cannot be mended by trying again", "再試行では直らないエラーです"},
		"planning.override.no_question":            {"the model wanted to ask and named no question", "確認を求めましたが、質問がありませんでした"},
		"planning.override.clarifications_spent":   {"no questions to people are left (planning.replanning.goal_understanding.max_clarification_requests)", "質問の上限に達しました（planning.replanning.goal_understanding.max_clarification_requests）"},
		"planning.override.questions_first":        {"its questions are asked first", "先に質問への回答を待ちます"},
		"planning.override.action_retries_spent":   {"it was tried as often as it may be (planning.replanning.execution.max_action_retries)", "再試行の上限に達しました（planning.replanning.execution.max_action_retries）"},
		"planning.override.partial_replans_spent":  {"no partial replans are left (planning.replanning.execution.max_partial_replans)", "部分的な再計画の上限に達しました（planning.replanning.execution.max_partial_replans）"},
		"planning.override.plan_revisions_spent":   {"no revisions of the plan are left (planning.replanning.reflection.max_plan_revisions)", "計画修正の上限に達しました（planning.replanning.reflection.max_plan_revisions）"},
		"planning.override.regenerations_spent":    {"the actions were planned anew as often as they may be (planning.replanning.action_sequence.max_regeneration_attempts)", "アクション再生成の上限に達しました（planning.replanning.action_sequence.max_regeneration_attempts）"},
		"planning.override.redecompositions_spent": {"the task was cut anew as often as it may be (planning.replanning.task_decomposition.max_redecomposition_attempts)", "タスク再分解の上限に達しました（planning.replanning.task_decomposition.max_redecomposition_attempts）"},
		"planning.override.loop":                   {"the same was wished again and again without progress (planning.replanning.global.same_trigger_max_count)", "進展のないまま同じ再計画が繰り返されました（planning.replanning.global.same_trigger_max_count）"},
		"planning.override.total_spent":            {"no replans are left (planning.replanning.global.max_total_replans)", "再計画の総数の上限に達しました（planning.replanning.global.max_total_replans）"},

		"planning.loop.repeat":    {"the same call of %s failed or gave the same result", "%s の同じ呼び出しが失敗し続けたか、同じ結果を返し続けました"},
		"planning.loop.cycle":     {"the calls of %s go round in a circle with the same results", "%s の呼び出しが同じ結果で堂々巡りしています"},
		"planning.loop.monologue": {"answers came without a call where work was to be done", "作業が必要なところで、ツールを呼ばない応答が続きました"},
	}
}
