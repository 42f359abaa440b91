package i18n

func planningTexts() map[string]text {
	return map[string]text{
		"agent.open_points_failed":    {"the verification leaves points open, so that this run counts as failed and no later run takes over from it: %s", "検証で未解決の点が残ったため、この実行は失敗とし、後の実行には引き継ぎません: %s"},
		"agent.also_open":             {"%s; open points: %s", "%s。未解決の点: %s"},
		"agent.plan_changes":          {"Revisions of the plan: %d, plans made anew: %d", "計画の修正: %d 回、再計画: %d 回"},
		"agent.plan_assumed":          {"assumed: %s", "仮定: %s"},
		"agent.plan_uncertain":        {"The understanding of the task is uncertain.", "タスクの理解は確かではありません。"},
		"agent.plan_ambiguous":        {"can be read in more than one way: %s; taken as: %s", "複数の解釈が可能: %s → 採用した解釈: %s"},
		"agent.plan_gap":              {"not known: %s", "不明: %s"},
		"agent.phase_planning":        {"Plan", "計画"},
		"agent.phase_execution":       {"Work", "実行"},
		"agent.phase_reflection":      {"Reflection", "振り返り"},
		"agent.phase_replan_decision": {"Planning anew", "再計画"},
		"agent.phase_verification":    {"Verification", "検証"},
		"agent.phase_completion":      {"Done", "完了"},
		"agent.stuck":                 {"the run made no progress any more: %s", "作業が進まなくなりました: %s"},
	}
}
