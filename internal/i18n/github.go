package i18n

// githubTexts are the words of forge/github. A failure is told in four parts:
// what was asked, of which repository, what GitHub said, what to do.
func githubTexts() map[string]text {
	return map[string]text{
		"github.failed": {
			en: "%s (%s) failed: %s. %s",
			ja: "%s（%s）に失敗しました: %s。%s",
		},
		"github.url": {
			en: "github.url is not usable: give the server's address as in a browser, e.g. https://ghe.example/ (http:// only to this machine), without login and query",
			ja: "github.url が使えません。ブラウザーで開くサーバーのアドレス（例: https://ghe.example/、http:// はこの計算機に限る）を、ログイン情報とクエリなしで指定してください",
		},
		"github.both_logins": {
			en: "both a token and an App are configured for GitHub; keep one of github.token and github.app_id",
			ja: "GitHub にトークンと App の両方が設定されています。github.token か github.app_id のどちらか一方にしてください",
		},
		"github.no_login": {
			en: "no login for GitHub is configured; set github.token, or github.app_id and github.app_private_key_file",
			ja: "GitHub のログインが設定されていません。github.token か、github.app_id と github.app_private_key_file を設定してください",
		},
		"github.bad_token": {
			en: "the setting github.token is no token: it holds spaces or characters beyond ASCII. Copy it again",
			ja: "設定 github.token はトークンではありません。空白または ASCII 以外の文字が含まれています。コピーし直してください",
		},
		"github.bad_key": {
			en: "the private key of the GitHub App cannot be read; give the whole PEM file that GitHub made for the App, with its first and last line (github.app_private_key_file): %v",
			ja: "GitHub App の秘密鍵を読み取れません。GitHub が発行した PEM ファイルを最初と最後の行も含めて指定してください（github.app_private_key_file）: %v",
		},
		"github.not_installed": {
			en: "the GitHub App is not installed on %q, or is suspended there; install it on that account and give it this repository",
			ja: "GitHub App が %q にインストールされていないか、停止されています。そのアカウントにインストールし、このリポジトリへのアクセスを許可してください",
		},
		"github.unseen": {
			en: "GitHub shows no such repository: %s. Check the names (owner/name or owner/*); a private one is shown only to a token or App that may read it",
			ja: "GitHub に次のリポジトリが見つかりません: %s。名前（owner/name または owner/*）を確認してください。非公開のものは、読む権限のあるトークンか App にしか見えません",
		},

		"github.advice_app_hook": {
			en: "The webhook of a GitHub App is set up on the App's own page: the address %s, the same secret, and the events %s",
			ja: "GitHub App の Webhook は App の設定ページで設定します。アドレス %s、同じシークレット、イベント %s を指定してください",
		},

		"github.do_self":         {en: "Asking who we are", ja: "自分のアカウントの確認"},
		"github.do_installation": {en: "Finding the App's installation", ja: "App のインストール先の検索"},
		"github.do_repository":   {en: "Reading the repository", ja: "リポジトリの読み取り"},
		"github.do_repositories": {en: "Listing the repositories", ja: "リポジトリの一覧の取得"},
		"github.do_list":         {en: "Listing the issues and pull requests", ja: "Issue とプルリクエストの一覧の取得"},
		"github.do_item":         {en: "Reading #%v", ja: "#%v の読み取り"},
		"github.do_comments":     {en: "Reading the comments on #%v", ja: "#%v のコメントの読み取り"},
		"github.do_news":         {en: "Reading the newest comments", ja: "新しいコメントの読み取り"},
		"github.do_edits":        {en: "Reading who edited #%v", ja: "#%v を編集した人の読み取り"},
		"github.do_events":       {en: "Reading the history of #%v", ja: "#%v の履歴の読み取り"},
		"github.do_permission":   {en: "Asking for the permission of %s", ja: "%s の権限の確認"},
		"github.do_labels":       {en: "Creating labels", ja: "ラベルの作成"},
		"github.do_read_labels":  {en: "Reading the labels", ja: "ラベルの読み取り"},
		"github.do_hook":         {en: "Looking at the webhook", ja: "Webhook の確認"},
		"github.do_set_labels":   {en: "Changing the labels of #%v", ja: "#%v のラベルの変更"},
		"github.do_post":         {en: "Commenting on #%v", ja: "#%v へのコメント"},
		"github.do_person":       {en: "Looking for the account %s", ja: "アカウント %s の確認"},
		"github.do_withdraw":     {en: "Closing pull request #%v", ja: "プルリクエスト #%v を閉じる操作"},
		"github.do_propose":      {en: "Opening a pull request from %s to %s", ja: "%s から %s へのプルリクエストの作成"},
		"github.do_ready":        {en: "Marking #%v as ready for review", ja: "#%v をレビュー可能にする操作"},
		"github.do_review":       {en: "Requesting a review of #%v", ja: "#%v のレビューの依頼"},
		"github.do_checks":       {en: "Reading the checks of commit %s", ja: "コミット %s のチェックの読み取り"},
		"github.do_remote":       {en: "Getting a password for git", ja: "git 用のパスワードの取得"},

		"github.said":             {en: "GitHub answered %d: %s", ja: "GitHub の応答 %d: %s"},
		"github.said_nothing":     {en: "GitHub was not asked to the end", ja: "GitHub への問い合わせが完了していません"},
		"github.said_no_number":   {en: "that is no number of an issue or pull request", ja: "Issue やプルリクエストの番号ではありません"},
		"github.said_no_commit":   {en: "that is no commit", ja: "コミットではありません"},
		"github.said_marker":      {en: "the marker %q holds other characters than letters, digits, '.', '_' and '-'", ja: "目印 %q に英数字と「.」「_」「-」以外の文字が含まれています"},
		"github.said_moved":       {en: "it was moved to %s", ja: "%s に移動しています"},
		"github.said_elsewhere":   {en: "the server sends us to another host, which was not followed", ja: "サーバーが別のホストへの転送を指示しましたが、従いませんでした"},
		"github.said_garbage":     {en: "the answer is not the JSON it should be: %v", ja: "応答が期待した JSON ではありません: %v"},
		"github.said_unreachable": {en: "no answer: %v", ja: "応答がありません: %v"},
		"github.said_limited":     {en: "the hourly limit of requests is used up", ja: "1 時間あたりのリクエスト数の上限に達しています"},
		"github.said_secondary":   {en: "GitHub asks us to slow down (secondary rate limit)", ja: "GitHub から間隔を空けるよう求められています（二次レート制限）"},

		"github.advice_unauthorized": {
			en: "The token is wrong, has expired or was revoked: make a new one and put it into github.token_file, which is read again by itself, or set github.token and start tori again (of an App: check github.app_id)",
			ja: "トークンが誤っているか、期限切れか、取り消されています。新しく発行して、自動で読み直される github.token_file に書くか、github.token に設定して tori を再起動してください（App の場合は github.app_id を確認してください）",
		},
		"github.advice_app": {
			en: "Check that the App's number and private key (github.app_id, github.app_private_key_file) belong together and that this machine's clock is right",
			ja: "App の番号と秘密鍵（github.app_id、github.app_private_key_file）が対応していること、この計算機の時計が正しいことを確認してください",
		},
		"github.advice_installation": {
			en: "The App was removed from this account, is suspended, or lacks a permission: look at its installation",
			ja: "App がこのアカウントから削除されたか、停止されたか、権限が足りません。インストールの状態を確認してください",
		},
		"github.advice_permission": {
			en: "The token or App lacks a permission; give it %s",
			ja: "トークンまたは App の権限が足りません。次の権限を付与してください: %s",
		},
		"github.advice_scope": {
			en: "The token lacks a scope; give it one of: %s",
			ja: "トークンのスコープが足りません。次のいずれかを付与してください: %s",
		},
		"github.advice_sso": {
			en: "The organization wants single sign-on: authorize the token for it at %s",
			ja: "組織がシングルサインオンを求めています。%s でトークンを承認してください",
		},
		"github.advice_forbidden": {
			en: "Check what the token or App may do in this repository, and whether the item is locked or the account blocked",
			ja: "トークンまたは App がこのリポジトリで許可されている操作と、ロックやブロックの有無を確認してください",
		},
		"github.advice_not_found": {
			en: "Check the name; what the token or App may not see, a private repository too, looks the same as what does not exist",
			ja: "名前を確認してください。非公開リポジトリなど、トークンや App に見る権限がないものも、存在しないものと同じに見えます",
		},
		"github.advice_gone": {
			en: "It was deleted or moved, or issues are switched off in the repository's settings",
			ja: "削除または移動されたか、リポジトリの設定で Issue が無効になっています",
		},
		"github.advice_conflict": {
			en: "It changed meanwhile; it will be tried again",
			ja: "その間に変更されました。再試行します",
		},
		"github.advice_invalid": {
			en: "GitHub does not accept what was sent; see its words",
			ja: "送信した内容を GitHub が受け付けませんでした。上の応答を確認してください",
		},
		"github.advice_limited": {
			en: "Nothing is sent for %s",
			ja: "%s の間は送信しません",
		},
		"github.advice_unavailable": {
			en: "It will be tried again; if it lasts, look at the network, github.url and GitHub's status page",
			ja: "再試行します。続く場合は、ネットワーク、github.url、GitHub の稼働状況を確認してください",
		},
		"github.advice_url": {
			en: "Check that github.url is a GitHub server and that no proxy answers in its place",
			ja: "github.url が GitHub サーバーであること、プロキシが代わりに応答していないことを確認してください",
		},
	}
}
