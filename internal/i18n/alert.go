package i18n

// alertTexts are the alerts: what is wrong, and in a second line what to do.
func alertTexts() map[string]text {
	return map[string]text{
		"alert.begun": {"⚠️ %s\n(alert %s)", "⚠️ %s\n（アラート %s）"},
		"alert.over":  {"✅ Over: %s\n(alert %s)", "✅ 解消しました: %s\n（アラート %s）"},

		"alert.disk_full":     {"the disk of the base directory is full, no work is taken\nMake room there; work goes on by itself.", "基準ディレクトリのディスクに空きがないため、作業を受け付けていません\n空きを作ってください。作業は自動で再開します。"},
		"alert.login_refused": {"%s: the login is refused; %s", "%s: ログインが拒否されました。%s"},
		"alert.renew_key":     {"another key in github.app_private_key_file is used without a restart", "github.app_private_key_file の鍵を差し替えれば、再起動なしで使われます"},
		"alert.renew_file":    {"another token in github.token_file is used without a restart", "github.token_file のトークンを差し替えれば、再起動なしで使われます"},
		"alert.renew_restart": {"another token (github.token, GITHUB_TOKEN) needs a restart", "別のトークン（github.token、GITHUB_TOKEN）を使うには再起動が必要です"},
		"alert.not_reached":   {"%s: not reached yet\nLook at the network and at the log; what is asked for there is taken up when it answers.", "%s: まだ接続できていません\nネットワークとログを確認してください。接続できれば、そこでの依頼に取りかかります。"},
		"alert.unreachable":   {"%s: not reached since %s\nLook at the network and at the log; what is asked for there is taken up when it answers.", "%s: %s から接続できていません\nネットワークとログを確認してください。接続できれば、そこでの依頼に取りかかります。"},
		"alert.channel":       {"channels.%s: %v", "channels.%s: %v"},
		"alert.undelivered":   {"results of %d runs have not reached the forge for more than an hour, such as those of %s\nThe log says why, tori show UUID what is missing; it is tried again by itself.", "%d 件の実行の結果が 1 時間以上フォージに届いていません（例: %s）\n理由はログに、内容は tori show UUID にあります。再試行は自動で続きます。"},
		"alert.not_loaded":    {"a file is not in force as it is now: %v\nCorrect it; it is read again by itself.", "ファイルの変更が反映されていません: %v\n修正すれば自動で読み込みます。"},
		"alert.given_up":      {"%d events of %s could not be worked on and were given up, the latest is %s\nThe log says why; whoever wrote has to write again.", "%d 件のイベント（%s）を処理できず、あきらめました。最後のものは %s です\n理由はログにあります。書いた人にはもう一度送ってもらってください。"},
	}
}
