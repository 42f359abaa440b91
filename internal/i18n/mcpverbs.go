package i18n

// mcpverbsTexts are the texts of tori mcp.
func mcpverbsTexts() map[string]text {
	return map[string]text{
		"mcpverbs.none":       {"No servers of tools are configured (mcp_servers).", "ツールサーバーは設定されていません（mcp_servers）。"},
		"mcpverbs.ready":      {"ready (%s, protocol %s)", "利用できます（%s、プロトコル %s）"},
		"mcpverbs.not_ready":  {"not ready: %s", "利用できません: %s"},
		"mcpverbs.excluded":   {"(left out by allow or deny)", "（allow または deny により対象外）"},
		"mcpverbs.change":     {"%s, tool %s: %s", "%s のツール %s: %s"},
		"mcpverbs.nothing":    {"Nothing to accept: the tools of %s are as they are pinned.", "受け入れるものはありません。%s のツールは記録どおりです。"},
		"mcpverbs.dry":        {"To be accepted: %d. Nothing was changed.", "受け入れ対象: %d 個。何も変更していません。"},
		"mcpverbs.accepted":   {"Accepted: %d. The next run offers what %s has now.", "%[2]s のツール %[1]d 個を受け入れました。次の実行から使われます。"},
		"mcpverbs.no_servers": {"there is no tool server %s: mcp_servers names none", "ツールサーバー %s はありません。mcp_servers に一つも設定されていません"},
		"mcpverbs.no_server":  {"there is no tool server %s; did you mean %s? Configured: %s", "ツールサーバー %s はありません。%s ではありませんか? 設定済み: %s"},
		"mcpverbs.no_tool":    {"the tool server %s has no tool %s; did you mean %s? It has: %s", "ツールサーバー %s にツール %s はありません。%s ではありませんか? ツール一覧: %s"},
		"mcpverbs.no_tools":   {"the tool server %s has no tool %s: it offers none", "ツールサーバー %s にツール %s はありません。一つも提供していません"},
		"mcpverbs.gone":       {"the tool server %s no longer offers the tool %s: there is nothing to accept", "ツールサーバー %s はツール %s をもう提供していません。受け入れるものがありません"},
		"mcpverbs.some_down":  {"not ready: %s", "利用できないツールサーバーがあります: %s"},
		"mcpverbs.down":       {"the tool server %s is not ready, so what it offers cannot be looked at: %s", "ツールサーバー %s を利用できないため、提供内容を確認できません: %s"},

		"mcpverbs.no_prompts": {"%s offers no prompts.", "%s はプロンプトを提供していません。"},
		"mcpverbs.open":       {"Open this address in a browser and log in:\n\n  %s\n", "次のアドレスをブラウザーで開いてログインしてください:\n\n  %s\n"},
		"mcpverbs.paste":      {"If the browser is on another machine, it ends on a page that cannot be opened: paste the address of that page here.", "ブラウザーが別のマシンにある場合、最後に開けないページへ移動します。そのページのアドレスをここに貼り付けてください。"},
		"mcpverbs.strange":    {"That is not where the browser ends after this login. Paste the whole address, from http:// on.", "このログインの戻り先ではありません。http:// から始まるアドレス全体を貼り付けてください。"},
		"mcpverbs.login_late": {"nobody logged in within %s", "%s 以内にログインが行われませんでした"},
		"mcpverbs.logged_in":  {"Logged in at %s, which lists %d tools. Runs use the login from now on.", "%s にログインしました（ツール %d 個）。今後の実行で使われます。"},
		"mcpverbs.logged_out": {"The login at %s is removed from this machine.", "%s のログイン情報をこのマシンから削除しました。"},
		"mcpverbs.no_login":   {"There is no login at %s.", "%s のログイン情報はありません。"},

		"cli.help.mcp":             {"Look at servers of tools, accept what they changed, log in at them.", "ツールサーバーの確認、変更の受け入れ、ログイン。"},
		"cli.help.mcp_list":        {"List the servers and their tools: pinned, drifted, new or gone.", "サーバーとツールの一覧を表示する（pinned / drifted / new / gone）。"},
		"cli.help.mcp_accept":      {"Show how tools differ from what is pinned, and pin what they are now.", "ツールの記録との差分を表示し、現在の内容を受け入れる。"},
		"cli.help.mcp_login":       {"Log in at a server that is reached by a url, in a browser (OAuth).", "url で接続するサーバーにブラウザーでログインする（OAuth）。"},
		"cli.help.mcp_logout":      {"Remove the login at a server from this machine.", "サーバーのログイン情報をこのマシンから削除する。"},
		"cli.help.mcp_prompt":      {"List the prompts of a server, or print one for --message of tori run.", "サーバーのプロンプト一覧を表示する。または一つを tori run の --message 用に出力する。"},
		"cli.help.mcp_prompt_name": {"The prompt; lists all if left out.", "プロンプト（省略時は一覧）。"},
		"cli.help.mcp_prompt_args": {"What the prompt is filled in with.", "プロンプトに埋め込む値。"},
		"cli.help.mcp_scope":       {"A right to ask for besides those that the server names; may be given again.", "サーバーが示すもの以外に要求する権限（複数指定可）。"},
		"cli.help.mcp_browser":     {"Do not open a browser; only print the address.", "ブラウザーを開かず、アドレスだけを表示する。"},
		"cli.help.mcp_server":      {"The server, by its mcp_server_name.", "サーバー（mcp_server_name）。"},
		"cli.help.mcp_tool":        {"The tool; all that differ if left out.", "ツール（省略時は異なるものすべて）。"},
		"cli.help.mcp_dry_run":     {"Show the differences only.", "差分だけを表示する。"},
		"cli.help.mcp_repo":        {"The repository whose files the servers see, as in a run.", "サーバーに見せるリポジトリ（実行時と同じ）。"},
	}
}
