package i18n

// githubTexts are the words of forge/github. A failure is told in four parts:
// what was asked, of which repository, what GitHub said, what to do.
func githubTexts() map[string]text {
	return map[string]text{
		"github.both_logins": {
			en: "both a token and an App are configured for GitHub; keep one of github.token and github.app_id",
			ja: "GitHub にトークンと App の両方が設定されています。github.token か github.app_id のどちらか一方にしてください",
		},
		"github.no_login": {
			en: "no login for GitHub is configured; set github.token, or github.app_id and github.app_private_key_file",
			ja: "GitHub のログインが設定されていません。github.token か、github.app_id と github.app_private_key_file を設定してください",
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

		"github.do_installation": {en: "Finding the App's installation", ja: "App のインストール先の検索"},

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
	}
}
