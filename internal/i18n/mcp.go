package i18n

// mcpTexts are the texts of tool/mcp.
func mcpTexts() map[string]text {
	return map[string]text{
		"mcp.dir": {
			"No directory is set to keep what is known of the MCP servers' tools in. Set one.",
			"MCP サーバーのツールの記録を置くディレクトリが設定されていません。設定してください。",
		},
		"mcp.name": {
			"An MCP server is named %q, but a name must have 1 to %d bytes. Correct its name.",
			"MCP サーバーの名前が %q になっています。1〜%d バイトの名前を付けてください。",
		},
		"mcp.twice": {
			"Two MCP servers are named %q. Give each a name of its own: their tools are told apart by it.",
			"%q という名前の MCP サーバーが二つあります。ツールは名前で区別されるため、別々の名前を付けてください。",
		},
		"mcp.how": {
			"The MCP server %s must have either a command or a url, and not both. Correct its entry.",
			"MCP サーバー %s には command か url のどちらか一方だけを指定してください。",
		},
		"mcp.command": {
			"The command of the MCP server %s is not valid: its first word must be a program, and no word may hold a NUL.",
			"MCP サーバー %s の command が正しくありません。最初の要素はプログラム名とし、NUL 文字は使えません。",
		},
		"mcp.start": {
			"The MCP server %s is a command, but there is no sandbox to run it in. Install one, or allow in the configuration that it runs without.",
			"MCP サーバー %s はコマンドですが、実行するサンドボックスがありません。サンドボックスを導入するか、設定でサンドボックスなしの実行を許可してください。",
		},
		"mcp.url": {
			"The url of the MCP server %s is not a complete http or https address. Correct it.",
			"MCP サーバー %s の url が http または https の完全なアドレスになっていません。修正してください。",
		},
		"mcp.env": {
			"The MCP server %s has an environment variable that cannot be set: %q. A name must not be empty or hold =, and no value may hold a NUL.",
			"MCP サーバー %s の環境変数 %q は設定できません。名前は空にできず、= を含めず、値に NUL 文字は使えません。",
		},
		"mcp.pins": {
			"The file of accepted MCP tools %s cannot be read (%v). Restore it from a backup, or remove it to accept all tools as they are now.",
			"承認済み MCP ツールのファイル %s を読み取れません(%v)。バックアップから戻すか、削除して現在のツールをすべて承認し直してください。",
		},
		"mcp.pins_newer": {
			"The file of accepted MCP tools %s has the format %d, and this program knows formats up to %d. Use a newer version of the program.",
			"承認済み MCP ツールのファイル %s の形式は %d ですが、このプログラムが扱えるのは %d までです。新しいバージョンを使用してください。",
		},
		"mcp.accept": {
			"The change of the tool %[2]s of the MCP server %[1]s cannot be accepted: it is not what the server offers now. Look at the changes again.",
			"MCP サーバー %[1]s のツール %[2]s の変更は承認できません。サーバーが現在提供している内容と異なります。変更内容をもう一度確認してください。",
		},
		"mcp.login_file": {
			"The login file %s cannot be read (%v). Remove it and log in again with tori mcp login.",
			"ログイン情報のファイル %s を読み取れません(%v)。削除して、tori mcp login で再度ログインしてください。",
		},
		"mcp.login_program": {
			"The MCP server %s is a program, which needs no login. Give it what it needs in env.",
			"MCP サーバー %s はプログラムのため、ログインは不要です。必要な情報は env で渡してください。",
		},
		"mcp.login_header": {
			"The MCP server %s has an Authorization header in its settings, which is sent instead of a login. Remove it to log in.",
			"MCP サーバー %s には Authorization ヘッダーが設定されており、ログインの代わりに送信されます。ログインするには設定から削除してください。",
		},
		"mcp.login_port": {
			"The browser cannot come back from the login at the MCP server %s: %v. Set another oauth.redirect_port, or none.",
			"MCP サーバー %s のログイン後にブラウザーの戻り先を用意できません: %v。oauth.redirect_port を変更するか、指定を外してください。",
		},
		"mcp.login": {
			"The login at the MCP server %s failed: %s",
			"MCP サーバー %s へのログインに失敗しました: %s",
		},
		"mcp.login_unasked": {
			"The MCP server %s answered without asking for a login. Nothing was kept.",
			"MCP サーバー %s はログインを求めずに応答しました。何も保存していません。",
		},
		"mcp.login_page":         {"You are logged in as far as the browser goes. You can close this window and go back to tori.", "ブラウザーでの操作は完了しました。このウィンドウを閉じて tori に戻ってください。"},
		"mcp.login_page_strange": {"This is not the login that tori waits for. Open the address that it shows now.", "tori が待っているログインではありません。現在表示されているアドレスを開いてください。"},
		"mcp.down": {
			"The MCP server %s is not available: %s",
			"MCP サーバー %s を利用できません: %s",
		},
		"mcp.refused": {
			"The MCP server %s did not answer: %v",
			"MCP サーバー %s から回答を得られませんでした: %v",
		},
	}
}
