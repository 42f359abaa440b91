package i18n

// restTexts are the words of the forges that are spoken to over REST. A failure is told in
// four parts: what was asked, of which repository, what the server said, what to do.
func restTexts() map[string]text {
	return map[string]text{
		"rest.failed": {
			en: "%s (%s) failed: %s. %s",
			ja: "%s（%s）に失敗しました: %s。%s",
		},

		"rest.do_self":         {en: "Asking who we are", ja: "自分のアカウントの確認"},
		"rest.do_read_labels":  {en: "Reading the labels", ja: "ラベルの読み取り"},
		"rest.do_hook":         {en: "Looking at the webhook", ja: "Webhook の確認"},
		"rest.do_repository":   {en: "Reading the repository", ja: "リポジトリの読み取り"},
		"rest.do_repositories": {en: "Listing the repositories", ja: "リポジトリの一覧の取得"},
		"rest.do_list":         {en: "Listing the issues and pull requests", ja: "Issue とプルリクエストの一覧の取得"},
		"rest.do_item":         {en: "Reading #%v", ja: "#%v の読み取り"},
		"rest.do_comments":     {en: "Reading the comments on #%v", ja: "#%v のコメントの読み取り"},
		"rest.do_news":         {en: "Reading the newest comments", ja: "新しいコメントの読み取り"},
		"rest.do_edits":        {en: "Reading who edited #%v", ja: "#%v を編集した人の読み取り"},
		"rest.do_events":       {en: "Reading the history of #%v", ja: "#%v の履歴の読み取り"},
		"rest.do_permission":   {en: "Asking for the permission of %s", ja: "%s の権限の確認"},
		"rest.do_labels":       {en: "Creating labels", ja: "ラベルの作成"},
		"rest.do_set_labels":   {en: "Changing the labels of #%v", ja: "#%v のラベルの変更"},
		"rest.do_post":         {en: "Commenting on #%v", ja: "#%v へのコメント"},
		"rest.do_reviewing":    {en: "Reviewing #%v", ja: "#%v のレビュー"},
		"rest.do_react":        {en: "Putting a reaction on #%v", ja: "#%v へのリアクション"},
		"rest.do_reactions":    {en: "Reading the reactions on #%v", ja: "#%v のリアクションの読み取り"},
		"rest.do_person":       {en: "Looking for the account %s", ja: "アカウント %s の確認"},
		"rest.do_withdraw":     {en: "Closing pull request #%v", ja: "プルリクエスト #%v を閉じる操作"},
		"rest.do_propose":      {en: "Opening a pull request from %s to %s", ja: "%s から %s へのプルリクエストの作成"},
		"rest.do_ready":        {en: "Marking #%v as ready for review", ja: "#%v をレビュー可能にする操作"},
		"rest.do_review":       {en: "Requesting a review of #%v", ja: "#%v のレビューの依頼"},
		"rest.do_checks":       {en: "Reading the checks of commit %s", ja: "コミット %s のチェックの読み取り"},
		"rest.do_remote":       {en: "Getting a password for git", ja: "git 用のパスワードの取得"},

		"rest.said":             {en: "%s answered %d: %s", ja: "%s の応答 %d: %s"},
		"rest.said_nothing":     {en: "%s was not asked to the end", ja: "%s への問い合わせが完了していません"},
		"rest.said_no_number":   {en: "that is no number of an issue or pull request", ja: "Issue やプルリクエストの番号ではありません"},
		"rest.said_no_commit":   {en: "that is no commit", ja: "コミットではありません"},
		"rest.said_marker":      {en: "the marker %q holds other characters than letters, digits, '.', '_' and '-'", ja: "目印 %q に英数字と「.」「_」「-」以外の文字が含まれています"},
		"rest.said_moved":       {en: "it was moved to %s", ja: "%s に移動しています"},
		"rest.said_settled":     {en: "the remark is gone, or people have settled it", ja: "指摘がなくなったか、解決済みになっています"},
		"rest.said_elsewhere":   {en: "the server sends us to another host, which was not followed", ja: "サーバーが別のホストへの転送を指示しましたが、従いませんでした"},
		"rest.said_garbage":     {en: "the answer is not the JSON it should be: %v", ja: "応答が期待した JSON ではありません: %v"},
		"rest.said_unreachable": {en: "no answer: %v", ja: "応答がありません: %v"},
		"rest.said_limited":     {en: "the limit of requests is used up for now", ja: "今の時間枠のリクエスト数の上限に達しています"},
		"rest.said_slow_down":   {en: "%s asks us to slow down (secondary rate limit)", ja: "%s から間隔を空けるよう求められています（二次レート制限）"},

		"rest.url": {
			en: "%s.url is not usable: give the server's address as in a browser, e.g. https://git.example/ (http:// only to this machine), without login and query",
			ja: "%s.url が使えません。ブラウザーで開くサーバーのアドレス（例: https://git.example/、http:// はこの計算機に限る）を、ログイン情報とクエリなしで指定してください",
		},
		"rest.bad_token": {
			en: "the setting %s.token is no token: it holds spaces or characters beyond ASCII. Copy it again",
			ja: "設定 %s.token はトークンではありません。空白または ASCII 以外の文字が含まれています。コピーし直してください",
		},
		"rest.advice_not_found": {
			en: "Check the name; what our account may not see, a private repository too, looks the same as what does not exist",
			ja: "名前を確認してください。非公開リポジトリなど、このアカウントに見る権限がないものも、存在しないものと同じに見えます",
		},
		"rest.advice_settled": {
			en: "It is left as it is",
			ja: "そのままにします",
		},
		"rest.advice_gone": {
			en: "It was deleted or moved, or issues are switched off in the repository's settings",
			ja: "削除または移動されたか、リポジトリの設定で Issue が無効になっています",
		},
		"rest.advice_conflict": {
			en: "It changed meanwhile; it will be tried again",
			ja: "その間に変更されました。再試行します",
		},
		"rest.advice_invalid": {
			en: "%s does not accept what was sent; see its words",
			ja: "送信した内容を %s が受け付けませんでした。上の応答を確認してください",
		},
		"rest.advice_limited": {
			en: "Nothing is sent for %s",
			ja: "%s の間は送信しません",
		},
		"rest.advice_unavailable": {
			en: "It will be tried again; if it lasts, look at the network, %s.url and %s's status page",
			ja: "再試行します。続く場合は、ネットワーク、%s.url、%s の稼働状況を確認してください",
		},
		"rest.advice_url": {
			en: "Check that %s.url is a %s server and that no proxy answers in its place",
			ja: "%s.url が %s サーバーであること、プロキシが代わりに応答していないことを確認してください",
		},
	}
}
