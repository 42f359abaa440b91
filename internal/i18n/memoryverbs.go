package i18n

// memoryverbsTexts are the texts of tori memory.
func memoryverbsTexts() map[string]text {
	return map[string]text{
		"memoryverbs.replayed": {"%d turns of %s, as each policy would have sent them:", "%[2]s の %[1]d ターンを各方針で送った場合:"},
		"memoryverbs.answers":  {"The run's own answers cost the same under each policy and are in none of these: %s tokens, $%s.", "実行自体の回答はどの方針でも同じで、上の費用には含みません: %s トークン、$%s。"},
		"memoryverbs.price":    {"List price of %s, US dollars for a million tokens: %s (as of %s).", "%s の定価（100 万トークンあたりの米ドル）: %s（%s 時点）。"},
		"memoryverbs.legend": {"SENT and COST are shares of the full history (none), the summariser's calls included; the second CACHED is the share of what was sent that the provider had in its cache. MASK/SUM/-: batches of stubs, summaries, truncations. OUT: messages that the last request does not show whole; recall has each. PINNED: identifiers in view / recallable / lost.",
			"SENT と COST は全履歴（none）に対する比率で、要約の呼び出しを含みます。2 つ目の CACHED は送信のうちキャッシュにあった割合です。MASK/SUM/-: マスク・要約・切り捨ての回数。OUT: 最後の要求に全文がないメッセージ（すべて recall で参照できます）。PINNED: 識別子の数（表示中 / recall で参照可 / 消失）。"},
		"memoryverbs.no_price": {"There is no list price of %q: name a model as PROVIDER/MODEL that tori models --prices lists, or add it to the file at llm.prices_file",
			"%q の定価がありません。tori models --prices にある PROVIDER/MODEL を指定するか、llm.prices_file のファイルに追加してください"},
		"memoryverbs.file":   {"the recorded runs in %s cannot be read: %v; expected one JSON object per line with opening and turns, or the messages.jsonl of a run", "記録ファイル %s を読めません: %v（opening と turns を持つ JSON を 1 行に 1 つ、または実行の messages.jsonl が必要です）"},
		"memoryverbs.replay": {"the recorded run in %s cannot be replayed: %v; a larger --context may help", "記録ファイル %s を再生できません: %v（--context を大きくしてください）"},
		"memoryverbs.range":  {"--context must be at least 1000, --keep-turns at least 1, --min-share more than 0 and at most 1, --system not negative", "--context は 1000 以上、--keep-turns は 1 以上、--min-share は 0 より大きく 1 以下、--system は 0 以上を指定してください"},

		"cli.help.memory":            {"Look at what models are shown of a run.", "モデルに見せる内容（コンテキスト）を調べる。"},
		"cli.help.memory_replay":     {"Replay recorded runs through the policies none, mask, summary and hybrid, without a model, and compare what they send and cost.", "記録した実行を none・mask・summary・hybrid の各方針で再生し、送信量と費用を比べる（モデルは呼ばない）。"},
		"cli.help.memory_file":       {"Recorded runs, one JSON object per line, or the messages.jsonl of a run.", "記録ファイル（1 行に 1 実行の JSON、または実行の messages.jsonl）。"},
		"cli.help.memory_context":    {"Tokens of the model's context; summaries begin at 0.7 of them.", "モデルのコンテキスト長（トークン）。その 0.7 で要約を始める。"},
		"cli.help.memory_system":     {"Tokens of the system prompt and the tools before the first message.", "システムプロンプトとツール定義のトークン数。"},
		"cli.help.memory_keep_turns": {"Latest turns that keep their tool output.", "ツール出力を残す直近のターン数。"},
		"cli.help.memory_min_share":  {"Share of the request that a batch of stubs must free.", "一度に空けるべき要求の割合。"},
		"cli.help.memory_model":      {"Model at whose list price the requests are counted; tori models --prices lists them.", "費用の計算に使う定価のモデル。一覧は tori models --prices。"},
	}
}
