package i18n

func budgetTexts() map[string]text {
	return map[string]text{
		"agent.budget":      {"the budget is used up: %s of %s (%s)", "予算を使い切りました: %s / %s（%s）"},
		"agent.budget_next": {"the budget leaves no room for another call: %s of %s are taken, and one takes about %s (%s)", "予算に次の呼び出しが収まりません: %s / %s を使用済みで、1 回に約 %s かかります（%s）"},

		"agent.day":         {"the budget of the day is used up: %s of %s (%s); the day ends at %s", "1 日の予算を使い切りました: %s / %s（%s）。この日は %s に終わります"},
		"agent.day_held":    {"%s taken, and %s held by runs under way,", "使用済み %s、実行中のタスクの予約 %s"},
		"agent.day_needs":   {"; a call takes about %s", "。1 回の呼び出しに約 %s かかります"},
		"agent.day_goes_on": {"; the run goes on by itself after that", "。その後、自動的に再開します"},

		"agent.handover":        {"Where it stands, put together from the records:", "ここまでの状況（記録をまとめたもの）:"},
		"agent.handover_goal":   {"goal: %s", "目標: %s"},
		"agent.handover_done":   {"done: %s: %s", "完了: %s: %s"},
		"agent.handover_open":   {"not done: %s: %s", "未完了: %s: %s"},
		"agent.handover_ended":  {"not done: %s (%s): %s", "未完了: %s（%s）: %s"},
		"agent.handover_failed": {"failed last: %s", "最後の失敗: %s"},
		"agent.handover_said":   {"The model said last:", "モデルの最後の言葉:"},
	}
}
