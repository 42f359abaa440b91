package i18n

// nightTexts are the texts of the nightly work and of how a house is.
func nightTexts() map[string]text {
	return map[string]text{
		"health.ok":             {"OK: nothing is wrong", "正常です"},
		"health.warning":        {"WARNING: alerts: %d", "警告: アラート %d 件"},
		"health.critical":       {"CRITICAL: alerts: %d", "重大: アラート %d 件"},
		"health.level_warning":  {"warning", "警告"},
		"health.level_critical": {"critical", "重大"},
		"health.since":          {"%s (told since %s)", "%s（%s から通知中）"},
		"health.models":         {"models", "モデル"},
		"health.serve":          {"tori serve: running", "tori serve: 動作中"},
		"health.no_serve":       {"tori serve: not running", "tori serve: 停止中"},
		"health.tasks":          {"runs: %s running, %s queued, %s waiting for people, %s paused", "実行: 実行中 %s、順番待ち %s、回答・承認待ち %s、一時停止 %s"},
		"health.disk":           {"disk: the runs take %s, %s are free", "ディスク: 実行の記録 %s、空き %s"},
		"health.night":          {"nightly work: last at %s", "夜間処理: 最終 %s"},
		"health.no_night":       {"nightly work: not done yet", "夜間処理: 未実施"},
		"health.backup":         {"backup: %s, verified: %s", "バックアップ: %s、検証: %s"},

		"cli.help.maintain":    {"Do the nightly work at once: retention, stale locks, a check of the index, statistics.", "夜間処理（保存期間の適用、残ったロックの解除、索引の確認、統計）を今すぐ行う。"},
		"cli.maintained":       {"%s  done in %s  %s", "%s  完了（%s）  %s"},
		"cli.maintain_failed":  {"%s  failed: %v", "%s  失敗: %v"},
		"cli.maintain_busy":    {"Another process does the nightly work of %s right now; nothing was done", "%s の夜間処理は別のプロセスが実行中です。何も行いませんでした"},
		"cli.maintain_partial": {"steps of the nightly work failed: %s; the others were done", "夜間処理のうち失敗したもの: %s。ほかは完了しました"},
	}
}
