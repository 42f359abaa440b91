package i18n

// lineTexts are the words of the channel of LINE.
func lineTexts() map[string]text {
	return map[string]text{
		"line.no_login":     {"LINE needs channels.line.channel_secret and channels.line.access_token: both stand in the LINE Developers Console, on the channel's pages", "LINE には channels.line.channel_secret と channels.line.access_token が必要です。どちらも LINE Developers コンソールのチャネルのページにあります"},
		"line.no_session":   {"%s is no conversation of LINE", "%s は LINE の会話ではありません"},
		"line.unreachable":  {"LINE cannot be reached: %s", "LINE に接続できません: %s"},
		"line.unauthorized": {"LINE does not take the access token (%s): issue one in the console and set channels.line.access_token", "LINE がアクセストークンを受け付けません（%s）。コンソールで発行し、channels.line.access_token に設定してください"},
		"line.forbidden":    {"LINE does not allow this (%s): the channel's plan lacks it, or the account is not in the conversation any more", "LINE に許可されていません（%s）。チャネルのプランに含まれていないか、アカウントがその会話にもう参加していません"},
		"line.bad_request":  {"LINE does not take the message (%s): the receiver may not exist any more; if it does, please report this as a fault", "LINE がメッセージを受け付けません（%s）。宛先がなくなっている可能性があります。宛先がある場合は不具合として報告してください"},
		"line.dropped":      {"a message to the conversation %s was not sent, and will not be: %v", "会話 %s 宛てのメッセージを送れませんでした。再送しません: %v"},
		"line.failed":       {"LINE answered %d: %s", "LINE が %d を返しました: %s"},
		"line.monthly":      {"LINE pushes nothing more in this month, the quota of the plan is used up: answers within a minute still come; for more, raise the limit in LINE Official Account Manager", "今月の配信数の上限に達したため、LINE へのプッシュ送信ができません。1 分以内の返信は届きます。上限は LINE Official Account Manager で引き上げてください"},
		"line.quota":        {"%d of the %d messages that LINE pushes in this month are used", "今月 LINE にプッシュ送信できる数のうち、%d / %d を使いました"},

		"line.hello": {"Hello. Write what it is about; /help lists the commands.", "こんにちは。ご用件をお書きください。/help でコマンドの一覧を表示します。"},

		"line.joined":   {"Hello. Mention me in a message and write what it is about; I answer those whom my operators allow. A mention with /help lists the commands.", "こんにちは。私へのメンションを付けてご用件をお書きください。運用者が許可した方にお答えします。メンションに続けて /help と書くと、コマンドの一覧を表示します。"},
		"line.image":    {"[image] Please describe this image briefly.", "［画像］この画像を簡潔に説明してください。"},
		"line.no_image": {"[image, which is not shown to you: %s]", "［画像（読み込めませんでした: %s）］"},
		"line.audio":    {"[audio]", "［音声］"},
		"line.video":    {"[video]", "［動画］"},
		"line.sticker":  {"[sticker]", "［スタンプ］"},
		"line.file":     {"[file: %s]", "［ファイル: %s］"},
		"line.location": {"[place: %s]", "［位置情報: %s］"},

		"line.request":      {"Please approve: %s", "承認のお願い: %s"},
		"line.above":        {"This does not hold all of it: the whole request stands above.", "ここには全体が入りません。依頼の全文は上にあります。"},
		"line.more_diff":    {"(%d more characters; tori approvals show shows all)", "（あと %d 文字あります。全体は tori approvals show で確認できます）"},
		"line.diff":         {"Show the diff", "差分を見る"},
		"line.approve":      {"Approve", "承認する"},
		"line.deny":         {"Deny", "却下する"},
		"line.approve_says": {"I approve %s", "%s を承認します"},
		"line.deny_says":    {"I deny %s", "%s を却下します"},

		"line.bot":           {"%s (%s)", "%s（%s）"},
		"line.used":          {"%d of %d messages of the month are used", "今月の %d / %d 通を使いました"},
		"line.no_limit":      {"the plan has no limit", "プランに上限はありません"},
		"line.webhook":       {"%s, which LINE reaches", "%s（LINE から届きます）"},
		"line.webhook_none":  {"LINE has no webhook address: set %s in the console", "LINE に Webhook URL が設定されていません。コンソールで %s を設定してください"},
		"line.webhook_off":   {"the webhook is switched off: switch Use webhook on in the console", "Webhook の利用がオフです。コンソールでオンにしてください"},
		"line.webhook_other": {"LINE sends to %s, and not to %s: set it in the console, or serve.public_url", "LINE の送信先は %s です。コンソールで %s にするか、serve.public_url を直してください"},
		"line.webhook_fails": {"LINE does not reach %s (status %d, %s): tori serve has to run, and the proxy to let it through with a certificate that browsers trust", "LINE から %s に届きません（状態 %d、%s）。tori serve を起動し、プロキシがブラウザーの信頼する証明書で通すようにしてください"},
	}
}
