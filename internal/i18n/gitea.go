package i18n

// giteaTexts are the words of forge/gitea beside those of forge/rest.
func giteaTexts() map[string]text {
	return map[string]text{
		"gitea.no_login": {
			en: "no login for Gitea is configured; set gitea.token or gitea.token_file",
			ja: "Gitea のログインが設定されていません。gitea.token か gitea.token_file を設定してください",
		},
		"gitea.unseen": {
			en: "Gitea shows no such repository: %s. Check the names (owner/name or owner/*); a private one is shown only to an account that may read it",
			ja: "Gitea に次のリポジトリが見つかりません: %s。名前（owner/name または owner/*）を確認してください。非公開のものは、読む権限のあるアカウントにしか見えません",
		},
		"gitea.said_permission": {
			en: "our account is no administrator of the repository, and Gitea tells the permissions of others to administrators alone",
			ja: "このアカウントがリポジトリの管理者ではないため、Gitea から他の人の権限を教えてもらえません（管理者にだけ公開されます）",
		},
		"gitea.said_draft": {
			en: "the title %q still makes it a draft: the server has marks of its own",
			ja: "タイトル %q のままでは下書きです。サーバー独自の下書きの印が使われています",
		},
		"gitea.said_shorter": {
			en: "the list became shorter while it was read",
			ja: "読み取り中に一覧が短くなりました",
		},
		"gitea.advice_draft": {
			en: "Take the mark off the title by hand, or keep WIP: among WORK_IN_PROGRESS_PREFIXES of the server",
			ja: "タイトルの印を手動で外すか、サーバーの WORK_IN_PROGRESS_PREFIXES に WIP: を含めてください",
		},
		"gitea.advice_unauthorized": {
			en: "The token is wrong, has expired or was revoked: make a new one and put it into gitea.token_file, which is read again by itself, or set gitea.token and start tori again",
			ja: "トークンが誤っているか、期限切れか、取り消されています。新しく発行して、自動で読み直される gitea.token_file に書くか、gitea.token に設定して tori を再起動してください",
		},
		"gitea.advice_scope": {
			en: "The token lacks a scope; it needs write:repository, write:issue, read:user and read:organization",
			ja: "トークンのスコープが足りません。write:repository、write:issue、read:user、read:organization が必要です",
		},
		"gitea.advice_forbidden": {
			en: "Check what our account may do in this repository, and whether the repository is archived, the item locked or the account blocked",
			ja: "このアカウントがリポジトリで許可されている操作と、アーカイブ、ロック、ブロックの有無を確認してください",
		},
		"gitea.advice_permission": {
			en: "Make our account a collaborator with the role Administrator in this repository",
			ja: "このアカウントを、このリポジトリの共同作業者に「管理者」として加えてください",
		},
	}
}
