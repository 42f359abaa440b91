package i18n

// mcpverbsTexts are the texts of tori mcp.
var mcpverbsTexts = map[string]text{
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
	"mcpverbs.down":       {"the tool server %s is not ready, so what it offers cannot be looked at: %s", "ツールサーバー %s を利用できないため、提供内容を確認できません: %s"},

	"cli.help.mcp":         {"Look at servers of tools, and accept what they changed.", "ツールサーバーを確認し、変更を受け入れる。"},
	"cli.help.mcp_list":    {"List the servers and their tools: pinned, drifted, new or gone.", "サーバーとツールの一覧を表示する（pinned / drifted / new / gone）。"},
	"cli.help.mcp_accept":  {"Show how tools differ from what is pinned, and pin what they are now.", "ツールの記録との差分を表示し、現在の内容を受け入れる。"},
	"cli.help.mcp_server":  {"The server, by its mcp_server_name.", "サーバー（mcp_server_name）。"},
	"cli.help.mcp_tool":    {"The tool; all that differ if left out.", "ツール（省略時は異なるものすべて）。"},
	"cli.help.mcp_dry_run": {"Show the differences only.", "差分だけを表示する。"},
	"cli.help.mcp_repo":    {"The repository whose files the servers see, as in a run.", "サーバーに見せるリポジトリ（実行時と同じ）。"},
}
