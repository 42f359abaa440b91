package i18n

// llmclientsTexts are the texts of the packages below llm.
func llmclientsTexts() map[string]text {
	return map[string]text{
		"anthropic.temperature": {
			"The temperature for the model provider %s is %v, but it must be from 0 to 1. Correct it, or leave it out for the model's own.",
			"モデルプロバイダー %s の temperature が %v になっています。0 から 1 までの値にするか、設定を消してモデルの既定値を使ってください。",
		},
		"openai.temperature": {
			"The temperature for the model provider %s is %v, but it must be from 0 to 2. Correct it, or leave it out for the model's own.",
			"モデルプロバイダー %s の temperature が %v になっています。0 から 2 までの値にするか、設定を消してモデルの既定値を使ってください。",
		},
		"llm.part": {
			"the server counted %d tokens of a request of about %d: it dropped a part in silence. Raise its context length, or set context_length to what it holds",
			"サーバーが数えたのは %d トークンで、リクエスト(約 %d)の一部を黙って切り捨てています。サーバーのコンテキスト長を大きくするか、context_length を実際の長さに合わせてください",
		},
		"llm.part_known": {
			"the server counted %d tokens of a request of about %d: it dropped a part in silence. %v",
			"サーバーが数えたのは %d トークンで、リクエスト(約 %d)の一部を黙って切り捨てています。%v",
		},
		"endpoint.suspended": {
			"%s was not called: it failed %d times in a row (last: %v) and is left alone until %s. Check the server, or wait.",
			"%s は呼び出していません。%d 回続けて失敗したため(直近: %v)、%s まで呼び出しを控えます。サーバーを確認するか、時間をおいてください。",
		},
		"endpoint.probing": {
			"%s was not called: it failed %d times in a row (last: %v), and one trial call is being made. Check the server, or wait.",
			"%s は呼び出していません。%d 回続けて失敗したため(直近: %v)、現在は 1 件だけ試験的に呼び出しています。サーバーを確認するか、時間をおいてください。",
		},
		"endpoint.waiting": {
			"Waiting for %s since %s; %d are ahead",
			"%s の空きを待っています(%s 経過、前に %d 件)",
		},
		"endpoint.opened": {
			"%s does not work (%v); it is left alone until %s",
			"%s が応答しません(%v)。%s まで呼び出しを控えます",
		},
		"endpoint.closed": {
			"%s works again",
			"%s が復旧しました",
		},
		"endpoint.moved": {
			"%s cannot answer (%v); %s answers from now on",
			"%s が回答できないため(%v)、以降は %s が回答します",
		},
		"endpoint.declined": {
			"%s cannot answer (%v), and no other model takes its place",
			"%s が回答できません(%v)。代わりに回答するモデルはありません",
		},
	}
}
