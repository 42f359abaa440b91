package i18n

// terminalTexts are the words of tori chat's terminal.
func terminalTexts() map[string]text {
	return map[string]text{
		"terminal.closed":       {"the conversation in this terminal has ended", "この端末での会話は終わっています"},
		"terminal.not_attached": {"%s is not attached: %v", "%s は添付しません: %v"},
		"terminal.unreadable":   {"it cannot be read, is no plain file, or lies outside of the repository", "読み取れないか、通常のファイルでないか、リポジトリの外にあります"},
		"terminal.large_file":   {"it is larger than %d KiB", "%d KiB を超えています"},
		"terminal.attached":     {"+ %s (%s)", "+ %s（%s）"},

		"terminal.other_session": {"session %s is not the one that is shown here", "ここに表示しているのはセッション %s ではありません"},
		"terminal.more_diff":     {"%d more lines of the diff; Tab, then v shows all", "差分はあと %d 行あります。Tab のあと v で全体を表示します"},

		"terminal.elsewhere":   {"in the session %s:", "セッション %s で:"},
		"terminal.unnamed":     {"(unnamed)", "（無名）"},
		"terminal.anew":        {"What stood above is said anew:", "上の文を言い直します:"},
		"terminal.stopped":     {"Stopped.", "停止しました。"},
		"terminal.stopping":    {"stopping…", "停止しています…"},
		"terminal.busy_for":    {"%v · Esc stops", "%v · Esc で停止"},
		"terminal.busy":        {"An answer is being written; Esc stops it.", "回答の途中です。Esc で停止できます。"},
		"terminal.queued":      {"next: %s", "次: %s"},
		"terminal.change":      {"/code About the proposal %s, please change this: %s", "/code 提案 %s について、次のように変えてください: %s"},
		"terminal.reason":      {"Why not? (Enter alone: no reason)", "却下の理由（Enter のみなら理由なし）"},
		"terminal.what_change": {"What is to be changed?", "どこを変えますか"},
		"terminal.tab":         {"Tab: decide", "Tab: 承認・却下"},
		"terminal.of":          {" (%d wait)", "（%d 件待ち）"},
		"terminal.nth":         {" (%d of %d, ←→ turn to the others)", "（%d/%d 件目、←→ で切り替え）"},
		"terminal.no_longer":   {"That proposal was decided, or has changed, in the meantime.", "その提案は、その間に決定されたか、内容が変わりました。"},
		"terminal.keys":        {"[a]pprove [d]eny [c]hange this [v]iew all, Esc", "[a] 承認 [d] 却下 [c] 修正依頼 [v] 全差分 Esc: 戻る"},
		"terminal.more_jobs":   {"%d more jobs", "ほかに %d 件のジョブ"},
		"terminal.hint":        {"/ commands · @ files · Alt+Enter new line · Ctrl-D leaves", "/ コマンド · @ ファイル · Alt+Enter 改行 · Ctrl-D 終了"},
		"terminal.hint_short":  {"/ commands · Ctrl-D leaves", "/ コマンド · Ctrl-D 終了"},
		"terminal.again":       {"Ctrl-C again leaves.", "もう一度 Ctrl-C で終了します。"},
		"terminal.pick":        {"Session (letters narrow, Enter opens, Esc): %s", "セッション（文字で絞り込み、Enter で開く、Esc）: %s"},
		"terminal.no_sessions": {"There is no session of this repository yet.", "このリポジトリのセッションはまだありません。"},
		"terminal.bad_name":    {"%q is no name for a session: up to 40 letters, digits, '.', '_' and '-'", "%q はセッション名に使えません。英数字と「.」「_」「-」で 40 文字までです"},
		"terminal.pasted":      {"[pasted #%d: %d lines]", "[貼り付け #%d: %d 行]"},
		"terminal.long_paste":  {"%d MiB were pasted, at most %d MiB are taken; save them as a file and name it with @", "%d MiB の貼り付けは受け取れません（上限 %d MiB）。ファイルに保存し、@ で指定してください"},
		"terminal.long_text":   {"a message takes at most %d KiB; save it as a file and name it with @", "メッセージは %d KiB までです。ファイルに保存し、@ で指定してください"},
		"terminal.no_history":  {"the history %s cannot be written", "履歴 %s に書き込めません"},

		"terminal.help.sessions":      {"pick a session, or open the one of that name", "セッションを選ぶ。名前があればそれを開く"},
		"terminal.help.sessions_args": {"[NAME]", "[名前]"},
		"terminal.help.quit":          {"leave", "終了する"},

		"cli.help.chat":          {"Talk with the models: in this terminal, by a pipe, or with one message (-m).", "モデルと会話する（端末で、パイプで、または -m で一言だけ）。"},
		"cli.help.chat_repo":     {"Repository that is talked about; the one of the working directory where it is not given.", "話題にするリポジトリ（指定がなければ作業ディレクトリのもの）。"},
		"cli.help.chat_session":  {"Name of the session, which is begun or taken up again.", "セッション名。なければ始め、あれば再開する。"},
		"cli.help.chat_continue": {"Take up the session of this repository in which something was last said.", "このリポジトリで最後に使ったセッションを再開する。"},
		"cli.help.chat_message":  {"Send this message, print what is answered, and end.", "このメッセージを送り、回答を表示して終わる。"},
		"cli.chat_empty":         {"there is nothing to send: standard input is empty; give a message by -m or a pipe", "送るものがありません。標準入力が空です。-m かパイプでメッセージを渡してください"},
		"cli.chat_long":          {"standard input is longer than %d KiB; name files with @ in a message instead", "標準入力が %d KiB を超えています。代わりにメッセージの中で @ を使ってファイルを指定してください"},
		"cli.chat_no_terminal":   {"a conversation needs a terminal for its output; send one message with -m, or by a pipe", "会話には出力先の端末が必要です。-m かパイプでメッセージを一つ送ってください"},
		"cli.chat_session_twice": {"--session and --continue each name a session; give one of them", "--session と --continue はどちらもセッションを指定します。一方だけを指定してください"},
	}
}
