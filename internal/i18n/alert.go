package i18n

// alertTexts are the alerts: what is wrong, and in a second line what to do.
func alertTexts() map[string]text {
	return map[string]text{
		"alert.begun": {"%s %s\n(alert %s, %s)", "%s %s\n（アラート %s、%s）"},
		"alert.over":  {"✅ Over: %s\n(alert %s)", "✅ 解消しました: %s\n（アラート %s）"},

		"alert.disk_full":     {"the disk of the base directory is full, no work is taken\nMake room there; work goes on by itself.", "基準ディレクトリのディスクに空きがないため、作業を受け付けていません\n空きを作ってください。作業は自動で再開します。"},
		"alert.login_refused": {"%s: the login is refused; %s", "%s: ログインが拒否されました。%s"},
		"alert.renew_key":     {"another key in github.app_private_key_file is used without a restart", "github.app_private_key_file の鍵を差し替えれば、再起動なしで使われます"},
		"alert.renew_file":    {"another token in %s.token_file is used without a restart", "%s.token_file のトークンを差し替えれば、再起動なしで使われます"},
		"alert.renew_restart": {"another token in the setting %s.token needs a restart", "設定 %s.token のトークンを差し替えたときは、再起動が必要です"},
		"alert.not_reached":   {"%s: not reached yet\nLook at the network and at the log; what is asked for there is taken up when it answers.", "%s: まだ接続できていません\nネットワークとログを確認してください。接続できれば、そこでの依頼に取りかかります。"},
		"alert.unreachable":   {"%s: not reached since %s\nLook at the network and at the log; what is asked for there is taken up when it answers.", "%s: %s から接続できていません\nネットワークとログを確認してください。接続できれば、そこでの依頼に取りかかります。"},
		"alert.channel":       {"channels.%s: %v", "channels.%s: %v"},
		"alert.undelivered":   {"results of %d runs have not reached the forge for more than %.0f minutes, such as those of %s\nThe log says why, tori show UUID what is missing; it is tried again by itself.", "%d 件の実行の結果が %.0f 分以上フォージに届いていません（例: %s）\n理由はログに、内容は tori show UUID にあります。再試行は自動で続きます。"},
		"alert.not_loaded":    {"a file is not in force as it is now: %v\nCorrect it; it is read again by itself.", "ファイルの変更が反映されていません: %v\n修正すれば自動で読み込みます。"},
		"alert.given_up":      {"%d events of %s could not be worked on and were given up, the latest is %s\nThe log says why; whoever wrote has to write again.", "%d 件のイベント（%s）を処理できず、あきらめました。最後のものは %s です\n理由はログにあります。書いた人にはもう一度送ってもらってください。"},

		"alert.disk_room":          {"there are %s left where the runs lie, %s\nMake room there, or let tori cleanup --older-than 14d or --gzip-all do it.", "実行の記録がある場所の空きが %s しかありません（%s）\n空きを作るか、tori cleanup --older-than 14d または --gzip-all を実行してください。"},
		"alert.disk_used":          {"the runs take %s, more than %s\nRemove or compress old ones: tori cleanup --older-than 14d or --gzip-all; context_storage.retention does it at night.", "実行の記録が %s あり、%s を超えています\ntori cleanup --older-than 14d または --gzip-all で古い実行を削除・圧縮してください。夜間は context_storage.retention に従います。"},
		"alert.waiting":            {"%d runs wait for their turn, more than %d\nSee tori tasks --status queued: raise workers.max, or stop what is not needed.", "順番待ちの実行が %d 件あり、%d 件を超えています\ntori tasks --status queued で確認し、workers.max を上げるか、不要な実行を止めてください。"},
		"alert.failures":           {"%d of the %d runs that ended in the last %d days failed: %s, more than %s\nSee tori tasks --status failed and tori show UUID for why.", "終了した実行のうち失敗が多すぎます: 失敗 %d 件／終了 %d 件（過去 %d 日）、%s（上限 %s）\n理由は tori tasks --status failed と tori show UUID で確認してください。"},
		"alert.slow":               {"runs took %s on average in the last %d days; in the %d days before it was %s\nSee tori stats and tori models test: a model or a forge may have become slow, or the tasks larger.", "実行の平均時間が %s（過去 %d 日）に延びています。その前の %d 日は %s でした\ntori stats と tori models test で、モデルやフォージが遅くなっていないか、タスクが大きくなっていないか確認してください。"},
		"alert.long_running":       {"run %s has been worked on for %s\nSee tori logs %s; tori stop %s ends it.", "実行 %s が %s 続いています\ntori logs %s で確認してください。tori stop %s で止められます。"},
		"alert.stale_owner":        {"process %d on %s works on run %s and has shown no sign of it for %s\nSee whether it hangs; ended (kill %d), another one takes the run up where it was.", "プロセス %d（%s）が実行 %s を持ったまま %s 応答していません\n固まっていないか確認してください。終了すれば（kill %d）、別のプロセスが続きから再開します。"},
		"alert.models_down":        {"%s: a model in use cannot be called: %v (%s)\nSee tori health and tori models test; runs wait and go on when it answers.", "%s: 使用中のモデルを呼び出せません: %v（%s）\ntori health と tori models test で確認してください。応答すれば実行は続きから再開します。"},
		"alert.model_unreachable":  {"%s does not answer, or does not have it", "%s が応答しないか、モデルがありません"},
		"alert.budget_near":        {"the budget of the day %v is nearly used up: %s of %s (%s)\nWhat it leaves no room for is paused until the next day, or until the setting is raised.", "1 日の予算（%v）の残りがわずかです: %s／%s（%s）\n収まらない実行は、翌日になるか設定を上げるまで一時停止します。"},
		"alert.budget_all":         {"for all", "全体"},
		"alert.budget_user":        {"of %s", "%s"},
		"alert.maintenance_failed": {"the step %s of the nightly work failed: %s\nMend that and run tori maintain; the other steps were done.", "夜間処理の %s が失敗しました: %s\n原因を取り除いて tori maintain を実行してください。ほかの処理は行いました。"},
		"alert.backup_failed":      {"the last backup failed: %s\nMend that and run tori backup again.", "前回のバックアップが失敗しました: %s\n原因を取り除いて tori backup をやり直してください。"},
		"alert.backup_late":        {"the last backup was made: %v\nSee the log for why there is none since, and run tori backup.", "前回のバックアップが古くなっています: %v\nその後のバックアップがない理由をログで確認し、tori backup を実行してください。"},
		"alert.backup_unverified":  {"the last backup that was verified: %v\nRun tori backup verify: what was not restored once may not be one.", "検証済みの最後のバックアップが古くなっています: %v\ntori backup verify を実行してください。復元できると確かめるまで、バックアップとは言えません。"},
		"alert.never":              {"never", "なし"},

		"outside.webhook": {"monitor.notify.webhook_url did not take it: %v", "monitor.notify.webhook_url に送れません: %v"},
		"outside.mail":    {"monitor.notify.mail did not go out: %v", "monitor.notify.mail を送れません: %v"},

		"night.index_left":      {"not mended: %d, the first at %s; tori check tells all", "%d 件を修復できませんでした（最初は %s）。tori check ですべて確認できます"},
		"night.no_conversation": {"maintenance.report_to: %s is told by tori serve alone", "maintenance.report_to: %s に送れるのは tori serve だけです"},
	}
}
