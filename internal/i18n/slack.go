package i18n

// slackTexts are the words of the channel of Slack.
func slackTexts() map[string]text {
	return map[string]text{
		"slack.bot_token": {"channels.slack.bot_token: expected a bot token, xoxb-…, of the page OAuth & Permissions of the app", "channels.slack.bot_token: アプリの OAuth & Permissions にあるボットトークン（xoxb-…）を指定してください"},
		"slack.app_token": {"channels.slack.app_token: expected a token of the app, xapp-…, with the scope connections:write (Basic Information)", "channels.slack.app_token: スコープ connections:write のアプリトークン（xapp-…、Basic Information）を指定してください"},
		"slack.no_way_in": {"Slack has no way in: set channels.slack.app_token for Socket Mode, or channels.slack.signing_secret for events by HTTP", "Slack からの受信方法がありません。Socket Mode なら channels.slack.app_token、HTTP なら channels.slack.signing_secret を設定してください"},
		"slack.base_url":  {"the address of Slack's Web API is none: %q", "Slack の Web API のアドレスが正しくありません: %q"},
		"slack.session":   {"%q is not a session of Slack", "%q は Slack のセッションではありません"},
		"slack.clock":     {"A request signed by Slack was refused: its time and that of this machine are %v apart, 5 minutes are allowed. Set the clock; if it is right, somebody sent an old request again", "Slack の署名がある要求を拒否しました。この計算機の時刻と %v ずれています（許容は 5 分）。時計を合わせてください。時計が正しければ、古い要求の再送です"},

		"slack.token":          {"Slack refused the token (%v): issue it anew on the app's page and set it", "Slack がトークンを拒否しました（%v）。アプリの設定画面で再発行し、設定し直してください"},
		"slack.rotates":        {"channels.slack.bot_token: a token that ends (xoxe.xoxb-…) also takes channels.slack.refresh_token, client_id and client_secret", "channels.slack.bot_token: 期限のあるトークン（xoxe.xoxb-…）には channels.slack.refresh_token、client_id、client_secret も必要です"},
		"slack.not_renewed":    {"the bot token of Slack, which ends, is not renewed: %v. It is tried again each minute; where Slack does not take the refresh token any more, install the app anew and set bot_token and refresh_token", "Slack のボットトークン（期限あり）を更新できません: %v。1 分ごとに再試行します。リフレッシュトークンが拒否される場合は、アプリを再インストールし、bot_token と refresh_token を設定してください"},
		"slack.not_kept":       {"the new tokens of Slack cannot be kept, and would be lost with the program: %v", "Slack の新しいトークンを保存できません。このまま終了すると失われます: %v"},
		"slack.ends":           {"the bot token is good until %s, tori serve renews it before", "ボットトークンの期限は %s です。その前に tori serve が更新します"},
		"slack.ended":          {"the bot token ended at %s: tori serve renews it when it runs; its log and /readyz say if it cannot", "ボットトークンは %s に期限が切れています。tori serve が動いていれば更新します。できない場合はログと /readyz に理由が出ます"},
		"slack.end_unknown":    {"the bot token was not renewed yet, its end is not known: start tori serve", "ボットトークンはまだ更新されておらず、期限が分かりません。tori serve を起動してください"},
		"slack.shared":         {"Slack has %d connections for the app token: another program uses it too, and each event reaches one of them alone. Stop the other one, or give it an app of its own", "Slack のアプリトークンに %d 本の接続があります。別のプログラムも同じトークンを使っており、イベントはどちらか一方にしか届きません。もう一方を止めるか、専用のアプリを使ってください"},
		"slack.not_in_channel": {"Slack refused (%v): tori is not in that channel, or it is gone; /invite the app there", "Slack に拒否されました（%v）。tori がそのチャンネルにいないか、チャンネルがありません。/invite でアプリを招待してください"},
		"slack.archived":       {"Slack refused (%v): the channel is archived", "Slack に拒否されました（%v）。チャンネルはアーカイブされています"},
		"slack.scope":          {"Slack refused (%v): add the scope that is named there to the app, and install it anew", "Slack に拒否されました（%v）。示されたスコープをアプリに加え、再インストールしてください"},
		"slack.refused":        {"Slack refused: %v", "Slack に拒否されました: %v"},

		"slack.not_attached":    {"%s is not attached: %v", "%s は添付しません: %v"},
		"slack.many_files":      {"a message takes %d files", "1 つのメッセージで扱えるのは %d ファイルまでです"},
		"slack.large_file":      {"a file may have %d MiB, those of a message 20 MiB together", "1 ファイル %d MiB、1 メッセージ合計 20 MiB までです"},
		"slack.no_file":         {"Slack gives no address for it", "Slack から取得先が示されていません"},
		"slack.foreign_file":    {"it does not lie at Slack", "Slack 上のファイルではありません"},
		"slack.unreadable_file": {"Slack does not hand it out (%s)", "Slack から取得できません（%s）"},

		"slack.asked_to_work": {"%s asks to work on this.", "%s さんからの依頼で取りかかります。"},
		"slack.invite":        {"I am not in %s. /invite me there, then ask again.", "%s に参加していません。/invite で招待してから、もう一度お願いします。"},

		"slack.approve":     {"Approve", "承認"},
		"slack.deny":        {"Deny", "却下"},
		"slack.in_words":    {"Answer in words", "文章で回答"},
		"slack.form":        {"Answer", "回答"},
		"slack.form_answer": {"Your answer", "回答内容"},
		"slack.form_send":   {"Send", "送信"},
		"slack.form_close":  {"Cancel", "キャンセル"},
		"slack.no_form":     {"The form could not be opened: please answer here in words.", "入力画面を開けませんでした。ここに文章で回答してください。"},
		"slack.copied":      {"This is a copy. Buttons count only in the message that they were put in.", "これは写しです。ボタンは元のメッセージでだけ有効です。"},
		"slack.superseded":  {"%s: a newer request stands below.", "%s: 新しい承認要求が下にあります。"},
		"slack.more_files":  {"and %d more files; the diff has all of them", "ほか %d ファイル。すべて差分にあります"},
		"slack.cut_request": {"The request is too long to show whole here, so it has no buttons; tori approvals shows and decides it.", "長すぎて全体を表示できないため、ボタンはありません。tori approvals で確認し、決定してください。"},

		"slack.unreachable":    {"Slack cannot be reached: %v", "Slack に接続できません: %v"},
		"slack.team":           {"%s in %s", "%s（%s）"},
		"slack.scopes":         {"all %d that are needed", "必要な %d 個がすべてあります"},
		"slack.scopes_missing": {"missing: %s. Add them on the page OAuth & Permissions and install the app anew", "不足: %s。OAuth & Permissions で加え、再インストールしてください"},
		"slack.socket":         {"opens Socket Mode", "Socket Mode に接続できます"},
		"slack.reached":        {"%s answers", "%s が応答します"},
		"slack.not_reached":    {"%s does not answer: %v. tori serve has to run, and the proxy to let it through", "%s が応答しません: %v。tori serve を起動し、プロキシで通してください"},
		"slack.other_answer":   {"%s answers with status %d, and tori serve would with 401: something else is there", "%s の応答は状態 %d です（tori serve なら 401）。別のプログラムが応答しています"},
	}
}
