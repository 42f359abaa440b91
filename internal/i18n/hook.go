package i18n

// hookTexts are the words about webhooks of forges, and about what else is set up there.
func hookTexts() map[string]text {
	return map[string]text{
		"hook.secret_file": {"%s.webhook_secret_file: %s cannot be read: %v", "%s.webhook_secret_file: %s を読めません: %v"},
		"hook.no_listen":   {"%s.webhook_secret needs serve.listen: the address at which webhooks come in", "%s.webhook_secret には serve.listen が必要です。Webhook を受けるアドレスです"},
		"setup.none":       {"tori serve takes no work from a forge: set up repositories and a login of github, gitlab or gitea", "tori serve が作業を受けるフォージがありません。github、gitlab、gitea のいずれかの repositories とログインを設定してください"},
		"setup.login":      {"as %s", "%s としてログインしています"},
		"setup.repositories": {
			en: "%d are watched",
			ja: "%d 件を監視します",
		},
		"setup.permission": {"%s", "%s"},
		"setup.no_write":   {"%s has the role %s there, and needs write", "%s の権限は %s です。write が必要です"},
		"setup.missing":    {"the login lacks: %s", "ログインに次の権限がありません: %s"},
		"setup.labels":     {"all %d are there", "%d 個すべてそろっています"},
		"setup.bucket":     {"%s can be read and written", "%s は読み書きできます"},
		"setup.no_labels":  {"missing: %s; tori serve --check --fix makes them", "足りないラベル: %s。tori serve --check --fix で作れます"},
		"setup.polled":     {"none is set up: work is looked for every %d seconds", "設定されていません。%d 秒ごとに作業を探します"},
		"setup.hook":       {"calls %s", "%s を呼び出します"},
		"setup.no_hook":    {"none calls %s; tori serve --check --fix makes it, or somebody who looks after the repository does", "%s を呼び出すものがありません。tori serve --check --fix で作るか、リポジトリの管理者に依頼してください"},
		"setup.bad_hook":   {"the one that calls %s lacks: %s; tori serve --check --fix mends it", "%s を呼び出す Webhook に次のものがありません: %s。tori serve --check --fix で直せます"},
		"setup.unseen":     {"cannot be told, the login is not shown webhooks: %s", "確認できません。このログインには Webhook が表示されません: %s"},
		"setup.well":       {"ok    ", "正常  "},
		"setup.fixed":      {"FIXED ", "修正  "},
		"setup.wrong":      {"WRONG ", "異常  "},
		"setup.failed":     {"%d parts are not in order", "%d 件の問題があります"},
		"setup.with_once":  {"--check looks over what is set up and works on nothing: leave --once, --role, --model and --script out", "--check は設定を調べるだけで作業はしません。--once、--role、--model、--script は指定しないでください"},
		"setup.fix_alone":  {"--fix and --json go with --check", "--fix と --json は --check と一緒に指定してください"},
	}
}
