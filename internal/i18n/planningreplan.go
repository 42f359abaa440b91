package i18n

// planningReplanTexts say why something else was done than a model wished.
var planningReplanTexts = map[string]text{
	"planning.override.join":                   {"; ", "、"},
	"planning.override.unknown_type":           {"the model named no kind of replanning that there is", "モデルの示した再計画の種類がありません"},
	"planning.override.low_confidence":         {"the model was too unsure of it", "モデルの確信度が低すぎます"},
	"planning.override.needs_confirmation":     {"the model was not sure enough to go on without a person's yes", "モデルの確信度が低いため、人の確認が必要です"},
	"planning.override.fatal_error":            {"the error cannot be mended by trying again", "再試行では直らないエラーです"},
	"planning.override.no_question":            {"the model wanted to ask and named no question", "確認を求めましたが、質問がありませんでした"},
	"planning.override.clarifications_spent":   {"no questions to people are left (replanning.goal_understanding.max_clarification_requests)", "質問の上限に達しました（replanning.goal_understanding.max_clarification_requests）"},
	"planning.override.questions_first":        {"its questions are asked first", "先に質問への回答を待ちます"},
	"planning.override.action_retries_spent":   {"it was tried as often as it may be (replanning.execution.max_action_retries)", "再試行の上限に達しました（replanning.execution.max_action_retries）"},
	"planning.override.partial_replans_spent":  {"no partial replans are left (replanning.execution.max_partial_replans)", "部分的な再計画の上限に達しました（replanning.execution.max_partial_replans）"},
	"planning.override.plan_revisions_spent":   {"no revisions of the plan are left (replanning.reflection.max_plan_revisions)", "計画修正の上限に達しました（replanning.reflection.max_plan_revisions）"},
	"planning.override.regenerations_spent":    {"the actions were planned anew as often as they may be (replanning.action_sequence.max_regeneration_attempts)", "アクション再生成の上限に達しました（replanning.action_sequence.max_regeneration_attempts）"},
	"planning.override.redecompositions_spent": {"the task was cut anew as often as it may be (replanning.task_decomposition.max_redecomposition_attempts)", "タスク再分解の上限に達しました（replanning.task_decomposition.max_redecomposition_attempts）"},
	"planning.override.loop":                   {"the same was wished again and again without progress (replanning.global.same_trigger_max_count)", "進展のないまま同じ再計画が繰り返されました（replanning.global.same_trigger_max_count）"},
	"planning.override.total_spent":            {"no replans are left (replanning.global.max_total_replans)", "再計画の総数の上限に達しました（replanning.global.max_total_replans）"},
}
