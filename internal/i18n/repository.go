package i18n

// repositoryTexts are the words about remotes, mirrors, snapshots, setup and
// cleaning of workspaces.
func repositoryTexts() map[string]text {
	return map[string]text{
		"workspace.remote_url": {
			en: "the address of the repository cannot be used; give https://host/path (http:// only to this machine) or file:///path, without spaces, query or login",
			ja: "リポジトリのアドレスが使えません。https://ホスト/パス（http:// はこの計算機に限る）か file:///パス を、空白・クエリ・ログイン情報なしで指定してください",
		},
		"workspace.remote_login": {
			en: "the address of a repository on %s holds a login, which would end up in files and lists of processes; take it out of the address and configure the token",
			ja: "%s のリポジトリのアドレスにログイン情報が含まれています。ファイルやプロセス一覧に残るため使えません。アドレスから除き、トークンを設定してください",
		},
		"workspace.remote_denied": {
			en: "%s refused the login; check that the token is valid and may read and write this repository",
			ja: "%s にログインを拒否されました。トークンが有効で、このリポジトリの読み書きが許されているか確認してください",
		},
		"workspace.remote_forbidden": {
			en: "%s does not let this login do that; check that the token or App may read and write the contents of this repository, and that the account is not blocked",
			ja: "%s はこのログインにその操作を許していません。トークンまたは App がこのリポジトリの内容（contents）を読み書きできるか、アカウントがブロックされていないか確認してください",
		},
		"workspace.remote_missing": {
			en: "there is no repository at %s, or the token may not see it; check the address and the token",
			ja: "%s にリポジトリがないか、トークンに見る権限がありません。アドレスとトークンを確認してください",
		},
		"workspace.remote_failed": {
			en: "the repository %s cannot be reached or used: %v",
			ja: "リポジトリ %s に接続できないか、使えません: %v",
		},
		"workspace.merge": {
			en: "branch %s cannot be merged: %v",
			ja: "ブランチ %s をマージできません: %v",
		},
		"workspace.remote_moved": {
			en: "branch %s of %s was changed by somebody else meanwhile; nothing was overwritten",
			ja: "%[2]s のブランチ %[1]s が、その間に他の人によって変更されています。上書きはしていません",
		},
		"workspace.remote_deleted": {
			en: "branch %s of %s was deleted by somebody else meanwhile",
			ja: "%[2]s のブランチ %[1]s は、その間に他の人によって削除されました",
		},
		"workspace.remote_refused": {
			en: "branch %s was refused by %s: %s",
			ja: "ブランチ %s は %s に拒否されました: %s",
		},
		"workspace.no_branch": {
			en: "there is no branch %s at %s; check its name",
			ja: "ブランチ %s は %s にありません。名前を確認してください",
		},
		"workspace.partial_clone": {
			en: "%s is a partial clone: objects are missing that only its remote has. Fetch them (git fetch --refetch --no-filter) or give a whole clone",
			ja: "%s は部分クローンで、リモートにしかないオブジェクトが欠けています。git fetch --refetch --no-filter で取得するか、完全なクローンを指定してください",
		},
		"workspace.no_snapshot": {
			en: "there is no snapshot %s of this workspace; it may have been dropped for newer ones",
			ja: "この作業場所にスナップショット %s はありません。新しいものに置き換えられた可能性があります",
		},
		"workspace.not_restored": {
			en: "the workspace could not be taken back to snapshot %s: %d paths still differ, e.g. %s",
			ja: "作業場所をスナップショット %s に戻せませんでした。%d 個のパスが異なります（例: %s）",
		},
		"agent.setup_failed": {
			en: "the workspace could not be set up: `%s` %s. The model was not called; mend the command or the project (setup in the configuration), then run the task again",
			ja: "作業場所を準備できませんでした: `%s` が%s。モデルは呼び出していません。設定の setup かプロジェクトを直してから、もう一度実行してください",
		},
		"agent.setup_network": {
			en: "the workspace could not be set up: `%s` may need package registries, and this sandbox cannot open the network to them alone. Install what is needed beforehand, choose a sandbox that can (sandbox.mode: bwrap or namespaces), or set workspace.setup_network to none if the command works without network",
			ja: "作業場所を準備できませんでした: `%s` はパッケージレジストリへの接続が必要かもしれませんが、このサンドボックスではそこだけに接続を許すことができません。必要なものを前もって入れるか、許可できるサンドボックス（sandbox.mode: bwrap または namespaces）を選ぶか、ネットワークなしで動くコマンドなら workspace.setup_network を none にしてください",
		},
		"agent.comment_setup": {
			en: "The end of its output:",
			ja: "出力の末尾:",
		},
	}
}
