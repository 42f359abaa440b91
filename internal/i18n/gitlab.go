package i18n

// gitlabTexts are the words of forge/gitlab that other forges have not: what GitLab calls a
// merge request, and how it writes the numbers of items.
func gitlabTexts() map[string]text {
	return map[string]text{
		"gitlab.no_login": {
			en: "no login for GitLab is configured; set gitlab.token or gitlab.token_file to a personal, project or group access token",
			ja: "GitLab のログインが設定されていません。gitlab.token か gitlab.token_file に、個人・プロジェクト・グループのいずれかのアクセストークンを設定してください",
		},
		"gitlab.unseen": {
			en: "GitLab shows no such project: %s. Check the names (group/subgroup/project or group/subgroup/*); a private one is shown only to a token of one of its members",
			ja: "GitLab に次のプロジェクトが見つかりません: %s。名前（グループ/サブグループ/プロジェクト または グループ/サブグループ/*）を確認してください。非公開のものは、メンバーのトークンにしか見えません",
		},

		"gitlab.do_list":       {en: "Listing the issues and merge requests", ja: "Issue とマージリクエストの一覧の取得"},
		"gitlab.do_item":       {en: "Reading %s", ja: "%s の読み取り"},
		"gitlab.do_comments":   {en: "Reading the comments on %s", ja: "%s のコメントの読み取り"},
		"gitlab.do_edits":      {en: "Reading who edited %s", ja: "%s を編集した人の読み取り"},
		"gitlab.do_events":     {en: "Reading the history of %s", ja: "%s の履歴の読み取り"},
		"gitlab.do_set_labels": {en: "Changing the labels of %s", ja: "%s のラベルの変更"},
		"gitlab.do_reviewing":  {en: "Reviewing %s", ja: "%s のレビュー"},
		"gitlab.do_post":       {en: "Commenting on %s", ja: "%s へのコメント"},
		"gitlab.do_react":      {en: "Putting a reaction on %s", ja: "%s へのリアクション"},
		"gitlab.do_reactions":  {en: "Reading the reactions on %s", ja: "%s のリアクションの読み取り"},
		"gitlab.do_propose":    {en: "Opening a merge request from %s to %s", ja: "%s から %s へのマージリクエストの作成"},
		"gitlab.do_ready":      {en: "Marking merge request %s as ready", ja: "マージリクエスト %s をレビュー可能にする操作"},
		"gitlab.do_withdraw":   {en: "Closing merge request %s", ja: "マージリクエスト %s を閉じる操作"},
		"gitlab.do_review":     {en: "Requesting a review of %s", ja: "%s のレビューの依頼"},

		"gitlab.do_scopes": {en: "Reading the token's scopes", ja: "トークンのスコープの読み取り"},

		"gitlab.said_unsigned": {en: "the webhook is there, without the signing token", ja: "Webhook はありますが、署名トークンが設定されていません"},
		"gitlab.advice_unsigned": {
			en: "Signing tokens (whsec_…) need GitLab 19.0 or later: update the server, or set gitlab.webhook_secret to a secret token of another form",
			ja: "署名トークン（whsec_…）には GitLab 19.0 以降が必要です。サーバーを更新するか、gitlab.webhook_secret にそれ以外の形の秘密トークンを設定してください",
		},
		"gitlab.said_confidential": {en: "the issue is confidential and its project is not private", ja: "機密の Issue で、プロジェクトは非公開ではありません"},

		"gitlab.advice_unauthorized": {
			en: "The token is wrong, has expired or was revoked: make a new one and put it into gitlab.token_file, which is read again by itself, or set gitlab.token and start tori again",
			ja: "トークンが誤っているか、期限切れか、取り消されています。新しく発行して、自動で読み直される gitlab.token_file に書くか、gitlab.token に設定して tori を再起動してください",
		},
		"gitlab.advice_scope": {
			en: "The token needs the scopes api and write_repository: make a new one with both",
			ja: "トークンには api と write_repository のスコープが必要です。両方を付けて発行し直してください",
		},
		"gitlab.advice_forbidden": {
			en: "Give the token's account the role Developer in this project, and look whether issues, merge requests and CI/CD are switched on there",
			ja: "このプロジェクトで、トークンのアカウントに Developer ロールを付けてください。Issue・マージリクエスト・CI/CD が有効かどうかも確認してください",
		},
		"gitlab.advice_hook": {
			en: "Webhooks are shown to the role Maintainer: give it to the token's account once, or set the webhook up by hand (docs/serve.md)",
			ja: "Webhook は Maintainer ロールに表示されます。トークンのアカウントに一時的に付けるか、Webhook を手動で設定してください（docs/serve.md）",
		},
		"gitlab.advice_confidential": {
			en: "What it says could come out in a merge request: such issues are worked on only in private projects",
			ja: "内容がマージリクエストで公開されるおそれがあるため、機密の Issue は非公開プロジェクトでのみ扱います",
		},
	}
}
