package i18n

// statsTexts are what tori stats says.
func statsTexts() map[string]text {
	return map[string]text{
		"stats.bad_day":           {"%s %q: expected a day such as 2026-05-30", "%s %q: 2026-05-30 のような日付を指定してください"},
		"stats.no_days":           {"--from %s is after --to %s", "--from %s が --to %s より後です"},
		"stats.title":             {"Context Storage Statistics", "コンテキストの統計"},
		"stats.total":             {"Total contexts: %s", "合計: %s 件"},
		"stats.running":           {"  - Running: %s", "  - 実行中: %s 件"},
		"stats.ended":             {"  - Completed: %s", "  - 終了: %s 件"},
		"stats.disk":              {"Disk usage:", "ディスク使用量:"},
		"stats.disk_running":      {"  - Running: %s", "  - 実行中: %s"},
		"stats.disk_running_more": {"  - Running: more than %s (not all was looked at)", "  - 実行中: %s 以上（一部だけを調べました）"},
		"stats.disk_ended":        {"  - Completed: %s of logs before compression (%s on disk with all files)", "  - 終了: ログ %s（圧縮前。全ファイルのディスク上の合計は %s）"},
		"stats.disk_ended_about":  {"  - Completed: %s of logs before compression (about %s on disk with all files, estimated from %s runs)", "  - 終了: ログ %s（圧縮前。全ファイルのディスク上の合計は約 %s、%s 件からの推定）"},
		"stats.no_average":        {"No run has ended.", "終了した実行はありません。"},
		"stats.average":           {"Average per task:", "1 件あたりの平均:"},
		"stats.messages":          {"  - Messages: %s", "  - メッセージ: %s"},
		"stats.tokens":            {"  - Tokens: %s", "  - トークン: %s"},
		"stats.duration":          {"  - Duration: %s", "  - 所要時間: %s"},
		"stats.compressions":      {"  - Compressions: %s", "  - 圧縮: %s 回"},
		"stats.calls":             {"  - Model calls: %s, tool calls: %s", "  - モデルの呼び出し: %s 回、ツールの呼び出し: %s 回"},
		"stats.cost":              {"  - Cost: %s (%s in all)", "  - 費用: %s（合計 %s）"},
		"stats.unpriced":          {"    without %s calls whose price is not known", "    料金の分からない呼び出し %s 回を除く"},
		"stats.by_user":           {"By user:", "ユーザー別:"},
		"stats.by_status":         {"By status:", "状態別:"},
		"stats.by_model":          {"By model:", "モデル別:"},
		"stats.by_repo":           {"By repository:", "リポジトリ別:"},
		"stats.by_day":            {"By day (UTC, when it ended):", "日別（UTC、終了した日）:"},
		"stats.group":             {"  - %[1]s: %[2]s tasks (%[3]s), %[4]s tokens", "  - %[1]s: %[2]s 件（%[3]s）、%[4]s トークン"},
		"stats.group_cost":        {"  - %[1]s: %[2]s tasks (%[3]s), %[4]s tokens, %[5]s", "  - %[1]s: %[2]s 件（%[3]s）、%[4]s トークン、%[5]s"},
		"stats.others":            {"  and %d more (--csv or --json has all)", "  ほか %d 件（--csv または --json ですべて表示）"},
	}
}
