package i18n

func doorTexts() map[string]text {
	return map[string]text{
		"config.want.repository": {"a repository as owner/name, or owner/* for all of an owner", "owner/name の形のリポジトリ(owner/* はその所有者のすべて)"},
		"config.want.forgeurl":   {"a repository of a forge such as github:owner/name or gitlab:group/sub/name", "github:owner/name や gitlab:group/sub/name の形のフォージのリポジトリ"},
		"config.want.person":     {"a person as CHANNEL:ID, such as slack:U123 or terminal:hanako", "slack:U123 や terminal:hanako のような チャンネル:ID の形の人"},
		"config.gitea_url":       {"%s: gitea.url: expected the address of the server, which gitea.repositories and gitea.token_file need; found nothing", "%s: gitea.url: gitea.repositories や gitea.token_file にはサーバーのアドレスが必要ですが、設定されていません"},
		"config.account":         {"%s: access.people.%s: expected an account as github:NAME, gitlab:NAME or gitea:NAME, found %s", "%s: access.people.%s: github:名前、gitlab:名前、gitea:名前 の形のアカウントが必要ですが、%s です"},
		"config.chat_where":      {"%s: %s: expected either path (a repository of this machine) or url (one of a forge) for %s", "%s: %s: %s には path（このマシンのリポジトリ）か url（フォージのリポジトリ）のどちらか一方が必要です"},
		"config.want.session":    {"the id of a conversation as /show channel tells it, such as slack:T1:C1 or line:user:U1", "/show channel で表示される会話の ID(slack:T1:C1 や line:user:U1 など)"},
		"config.want.mail":       {"an address of mail such as ops@example.com", "ops@example.com のようなメールアドレス"},
		"config.want.report":     {"mail, webhook, the id of a conversation such as slack:T1:C1, or nothing", "mail、webhook、slack:T1:C1 のような会話の ID のいずれか(空も可)"},
		"config.mail_way":        {"%s: monitor.notify.mail needs either sendmail (a program) or smtp_host (a server) to send to its addresses", "%s: monitor.notify.mail の宛先に送るには、sendmail（プログラム）か smtp_host（サーバー）のどちらか一方が必要です"},
		"config.half_mail":       {"%s: monitor.notify.mail needs both smtp_user and smtp_password, or neither; a variable in ${…} that is not set counts as empty", "%s: monitor.notify.mail には smtp_user と smtp_password の両方が必要です（使わない場合は両方とも空。未設定の ${…} は空として扱います）"},
		"config.bare_mail":       {"%s: monitor.notify.mail.smtp_tls: expected starttls or tls, without which smtp_password would be sent unencrypted; found none", "%s: monitor.notify.mail.smtp_tls: smtp_password を暗号化せずに送ることになるため、none ではなく starttls か tls が必要です"},
		"config.report_way":      {"%s: maintenance.report_to: %s is not set up in monitor.notify", "%s: maintenance.report_to: %s は monitor.notify に設定されていません"},
		"config.want.hours":      {"two times of the day as HH:MM-HH:MM, such as 22:00-07:00, or nothing", "22:00-07:00 のような HH:MM-HH:MM の時間帯(空も可)"},
		"config.rule_for":        {"%s: %s: expected status (completed, stopped or failed), repository (owner/name), or both", "%s: %s: status（completed、stopped、failed のどれか）か repository（所有者/リポジトリ名）、または両方が必要です"},
		"config.rule_does":       {"%s: %s: expected either keep: true, or gzip_days, slim_days or delete_days", "%s: %s: keep: true か、gzip_days・slim_days・delete_days のいずれかが必要です"},
		"config.retention":       {"%s: %s is %d: runs may be inherited from for %d days (context_inheritance.context_expiry_days); keep them as long, or inherit for fewer days", "%s: %s が %d 日です。引き継ぎの期限は %d 日（context_inheritance.context_expiry_days）なので、それ以上にするか、期限を短くしてください"},
		"config.other_channel":   {"%s: %s: expected ids that begin with %s:, found %s", "%s: %s: %s: で始まる ID が必要ですが、%s です"},
		"config.half_http":       {"%s: channels.http needs both secret and url, or neither; a variable in ${…} that is not set counts as empty", "%s: channels.http には secret と url の両方が必要です（使わない場合は両方とも空。未設定の ${…} は空として扱います）"},
		"config.half_line":       {"%s: channels.line needs both channel_secret and access_token, or neither", "%s: channels.line には channel_secret と access_token の両方が必要です（使わない場合は両方とも空。未設定の ${…} は空として扱います）"},
		"config.half_rotation":   {"%s: channels.slack needs refresh_token, client_id and client_secret together, or none of them", "%s: channels.slack には refresh_token、client_id、client_secret のすべてが必要です(使わない場合はすべて空)"},
		"config.half_slack":      {"%s: channels.slack needs bot_token, and app_token (Socket Mode) or signing_secret (webhooks), or none of them", "%s: channels.slack には bot_token と、app_token(Socket Mode)か signing_secret(Webhook)が必要です(使わない場合はすべて空)"},
		"config.want.label":      {"the name of a label: one line of at most 50 characters without a comma", "ラベル名(1 行、50 文字以内、カンマなし)"},
		"config.want.listen":     {"an address such as 127.0.0.1:8420, or nothing", "127.0.0.1:8420 のようなアドレス(空も可)"},
		"config.same_label":      {"%s: %s: expected a label of its own, found %q, which %s has already", "%s: %s: ほかと重ならないラベルが必要ですが、%q は %s と同じです"},
		"config.app_key":         {"%s: github.app_private_key_file: expected the file with the private key of the app, which github.app_id needs; found nothing", "%s: github.app_private_key_file: github.app_id にはアプリの秘密鍵のファイルが必要ですが、設定されていません"},
	}
}
