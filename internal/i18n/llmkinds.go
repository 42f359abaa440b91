package i18n

// llmkindsTexts say what became of a call of a model; %s is the provider and
// its address.
func llmkindsTexts() map[string]text {
	return map[string]text{
		"llm.status":   {" (HTTP %d)", "（HTTP %d）"},
		"llm.attempts": {", after %d attempts", "（%d 回試行）"},

		"llm.kind.unreachable":  {"%s cannot be reached; check its address and that it runs", "%s に接続できません。アドレスと起動状態を確認してください"},
		"llm.kind.timeout":      {"%s did not answer in time", "%s が時間内に応答しませんでした"},
		"llm.kind.rate_limited": {"%s takes no more calls for now", "%s の呼び出し回数制限に達しています"},
		"llm.kind.server":       {"%s failed", "%s でエラーが発生しました"},
		"llm.kind.cut_stream":   {"%s broke its answer off", "%s の応答が途中で切れました"},
		"llm.kind.invalid":      {"%s gave an answer that is none; check its address", "%s の応答を解釈できません。アドレスを確認してください"},
		"llm.kind.auth":         {"%s refused the key; check the api_key of its section in the settings", "%s が API キーを拒否しました。設定の api_key を確認してください"},
		"llm.kind.not_found":    {"%s has no such model, or nothing at this address", "%s にこのモデルが無いか、アドレスが違います"},
		"llm.kind.context":      {"%s found the request longer than the model's context", "%s: リクエストがモデルのコンテキスト長を超えています"},
		"llm.kind.cut_prompt":   {"%s read only a part of the request, and its answer was not used", "%s がリクエストの一部しか読んでいません。応答は使用しませんでした"},
		"llm.kind.bad_request":  {"%s did not accept the request", "%s がリクエストを受け付けませんでした"},
		"llm.kind.quota":        {"the account at %s is used up", "%s の利用枠を使い切りました"},
		"llm.kind.no_tools":     {"%s takes no tools for this model; set llm.function_calling to false", "%s のこのモデルはツールを受け付けません。llm.function_calling を false にしてください"},
		"llm.kind.suspended":    {"%s is left alone for a while after it failed", "%s は失敗が続いたため、しばらく呼び出しません"},
		"llm.kind.forbidden":    {"%s was not called", "%s は呼び出していません"},
		"llm.kind.script_ended": {"the script has ended (%s)", "台本が終わりました（%s）"},
	}
}
