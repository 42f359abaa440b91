package i18n

func opsTexts() map[string]text {
	return map[string]text{
		"ops.unverified":  {"unverified", "未検証"},
		"ops.interrupted": {"interrupted; go on with tori run --resume %s", "中断されています。tori run --resume %s で再開できます"},
		"ops.left_behind": {"Run %[1]s: process %[2]d on %[3]s, which worked on it, is gone; tori run --resume %[1]s goes on with it",
			"実行 %[1]s: 処理していたプロセス %[2]d（%[3]s）はもうありません。tori run --resume %[1]s で続けられます"},
		"ops.stale":      {"Run %s: process %d on %s owns it and has given no sign of life for %s; it may hang", "実行 %s: 持ち主のプロセス %d（%s）が %s のあいだ応答の印を出していません。止まっているかもしれません"},
		"ops.scanned":    {"Every directory was read for this; tori reindex makes it quick.", "すべてのディレクトリを読みました。tori reindex を実行すると速くなります。"},
		"ops.hours":      {"%dh%02dm%02ds", "%d時間%d分%d秒"},
		"ops.minutes":    {"%dm%02ds", "%d分%d秒"},
		"ops.seconds":    {"%ds", "%d秒"},
		"ops.bad_status": {"%q is no status: use one of %s", "%q という状態はありません。次のいずれかを指定してください: %s"},
		"ops.more":       {"The newest %d of %d are shown.", "新しい順に %d 件を表示しました（全 %d 件）。"},
		"ops.damaged":    {"Unreadable: %s", "読み取れません: %s"},
	}
}
