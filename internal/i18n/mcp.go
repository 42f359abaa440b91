package i18n

// mcpTexts are the texts of tool/mcp.
var mcpTexts = map[string]text{
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
}
