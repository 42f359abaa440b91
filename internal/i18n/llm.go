package i18n

// llmTexts are the texts of llm and the packages below it.
func llmTexts() map[string]text {
	return map[string]text{
		"llm.base_url": {
			"The address of the model provider %s is %q, but it must be an http or https address such as http://localhost:11434/v1. Correct its base_url.",
			"モデルプロバイダー %s のアドレスが %q になっています。http://localhost:11434/v1 のような http または https のアドレスを base_url に指定してください。",
		},
		"llm.api_key": {
			"The API key of the model provider %s holds characters that no key has (spaces, line breaks or non-ASCII). Copy the key again.",
			"モデルプロバイダー %s の API キーに、使えない文字(空白・改行・全角文字など)が含まれています。キーをコピーし直してください。",
		},
		"llm.model": {
			"No model is named for the model provider %s. Set its model.",
			"モデルプロバイダー %s のモデルが指定されていません。model を設定してください。",
		},
		"llm.late_connection": {"no connection within %s", "%s 以内に接続できませんでした"},
		"llm.late_byte":       {"no byte came within %s", "%s の間、何も届きませんでした"},
		"llm.late_part":       {"no part of the answer came within %s", "%s の間、応答の続きが届きませんでした"},
		"llm.late_end":        {"no end of the answer came within %s", "%s 以内に応答の終わりが届きませんでした"},
		"llm.late_token":      {"no token came within %s", "%s 以内に最初のトークンが届きませんでした"},
		"llm.late_whole":      {"no whole answer came within %s", "%s 以内に応答がそろいませんでした"},
		"llm.not_format":      {"not %s: content type %s, at %s", "想定した形式（%s）の応答ではありません: 種類 %s、該当箇所 %s"},
		"llm.long_answer":     {"the answer is longer than %d bytes", "応答が %d バイトを超えています"},
		"llm.long_event":      {"one event is longer than %d bytes", "1 つのイベントが %d バイトを超えています"},
		"llm.redirects":       {"the server redirects to %s; use that as base_url", "サーバーが %s へ転送しています。それを base_url に設定してください"},
		"llm.long_wait":       {"%s (not repeated: the server asks for a wait of %s)", "%s（再試行しません: サーバーが %s の待機を求めています）"},
		"llm.cut":             {"the stream ended before the answer did", "応答が終わる前にストリームが終わりました"},
		"script.read": {
			"The script cannot be read: %v. Check the path and its permissions.",
			"スクリプトを読めません: %v。パスと権限を確認してください。",
		},
		"script.format": {
			"%s is not a script: its name must end in .jsonl (recorded messages), .yaml or .yml (written steps).",
			"%s はスクリプトではありません。拡張子は .jsonl(記録した会話)、.yaml または .yml(手書きの手順)にしてください。",
		},
		"script.syntax": {
			"%s, line %d: %s. Correct the line.",
			"%s の %d 行目: %s。この行を直してください。",
		},
		"script.line_json": {
			"a JSON object with \"role\" and \"content\" is expected (%v)",
			"\"role\" と \"content\" を持つ JSON オブジェクトが必要です(%v)",
		},
		"script.steps": {
			"a list of steps is expected, each \"- say: text\" and/or \"calls:\"",
			"手順のリスト(\"- say: テキスト\" や \"calls:\")が必要です",
		},
		"script.arguments": {
			"the arguments of all calls are longer than %d MiB together",
			"呼び出しの引数が合わせて %d MiB を超えています",
		},
		"script.key": {
			"a list or a mapping is no key of an argument",
			"リストやマッピングは引数のキーにできません",
		},
		"script.yaml": {
			"not the form of a step: %s",
			"手順の書き方が正しくありません: %s",
		},
		"script.step_empty": {
			"the step says nothing and calls nothing; \"say\" or \"calls\" is expected",
			"手順に発言も呼び出しもありません。\"say\" か \"calls\" が必要です",
		},
		"script.call_name": {
			"a call names no tool",
			"呼び出しにツール名がありません",
		},
		"script.call_args": {
			"the arguments of the call of %s must be an object",
			"%s の呼び出しの引数はオブジェクトにしてください",
		},
		"script.delay": {
			"delay_ms must be between 0 and 3600000",
			"delay_ms は 0 から 3600000 の範囲にしてください",
		},
		"script.no_answers": {
			"%s holds no answer of an assistant. Add at least one step.",
			"%s にアシスタントの発言がありません。手順を 1 つ以上書いてください。",
		},
		"script.ended": {
			"The script %s has only %d answers, and all of them were given. Add a step for what comes next.",
			"スクリプト %s の回答 %d 件はすべて使い終わりました。続きの手順を追加してください。",
		},
	}
}
