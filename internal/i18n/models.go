package i18n

// modelsTexts are the texts of models, and of what shows them.
func modelsTexts() map[string]text {
	return map[string]text{
		"models.no_role":        {"there is no role %q: the roles are %s", "%q という役割はありません。役割は %s です"},
		"models.bad_model":      {"--model %q: expected PROVIDER/MODEL with one of these providers: %s, e.g. openai/gpt-4o", "--model %q: プロバイダー/モデル の形（プロバイダーは %s のいずれか。例 openai/gpt-4o）で指定してください"},
		"models.not_configured": {"the role %s is not configured: %v", "役割 %s が設定されていません: %v"},
		"models.fallback":       {"the role %s falls back to %s, which cannot be called: %v", "役割 %s の代替モデル %s を呼び出せません: %v"},
		"models.script_file":    {"its provider is script but there is no script: name one with --script FILE or llm.script.file", "プロバイダーが script ですが台本がありません。--script FILE か llm.script.file で指定してください"},
		"models.needs_key":      {"%s needs a key; set %s", "%s にはキーが必要です。%s を設定してください"},
		"models.needs_model":    {"%s needs the name of a model; set %s", "%s にはモデル名が必要です。%s を設定してください"},
		"models.text_tools":     {"%s takes no tools; they are told and called in text from now on (llm.function_calling: false says so from the start): %v", "%s はツールを受け付けないため、以後はテキストでツールを使います（llm.function_calling: false で最初からそうできます）: %v"},
		"models.no_slots":       {"calls of %s are not limited across processes, because %s cannot be used (llm.state_dir): %v", "%s の同時呼び出し数をプロセス間で制限できません。%s を使えないためです（llm.state_dir）: %v"},
		"models.context":        {"%s was made for a context of %d tokens, not %d; the smaller is used", "%s のコンテキスト長は %d トークンです（設定は %d）。小さい方を使います"},
		"models.no_thinking":    {"%s cannot think; llm.ollama.think (%s) does not apply to it", "%s は思考に対応していないため、llm.ollama.think（%s）は使いません"},
		"models.waiting":        {"waiting for %s since %s: %d KB sent, %d characters of its text so far", "%s の応答を待っています（%s 経過、送信 %d KB、受信した文章 %d 文字）"},
		"models.unknown_model":  {"the Ollama at %s has no model %s; it has: %s. Load it with ollama pull, or set llm.ollama.model", "%s の Ollama にモデル %s がありません（あるモデル: %s）。ollama pull で取得するか、llm.ollama.model を修正してください"},
		"models.is_ollama":      {"%s (provider %s) is an Ollama, which here takes no context length and drops what is longer than its own in silence: set provider ollama and llm.ollama.endpoint: %s", "%s（プロバイダー %s）は Ollama です。この API ではコンテキスト長を指定できず、長い入力が黙って切り捨てられます。プロバイダーを ollama にし、llm.ollama.endpoint に %s を指定してください"},

		"models.remote": {"the model %s is passed on to %s, a cloud, which was not known when the run began; nothing was sent. Start or resume the run again", "モデル %s は %s（クラウド）に転送されます。実行開始時には不明だったため、何も送信していません。もう一度実行または再開してください"},

		"models.care_fault":    {"Ollama at %s is not as it must be", "%s の Ollama に異常があります"},
		"models.care_mismatch": {"Ollama at %s is not as it must be, and a restart would not change it", "%s の Ollama に異常がありますが、再起動では直りません"},
		"models.care_wait":     {"Ollama at %s will be restarted after a wait", "待ち時間のあと %s の Ollama を再起動します"},
		"models.care_restart":  {"Ollama at %s is restarted", "%s の Ollama を再起動します"},
		"models.care_warm_up":  {"Ollama at %s loads a model", "%s の Ollama にモデルを読み込みます"},
		"models.care_healed":   {"Ollama at %s works again", "%s の Ollama が復旧しました"},
		"models.care_gave_up":  {"Ollama at %s could not be mended", "%s の Ollama を復旧できませんでした"},

		"models.yes":     {"yes", "可"},
		"models.no":      {"no", "不可"},
		"models.unknown": {"unknown", "不明"},
		"models.local":   {"local", "ローカル"},
		"models.cloud":   {"cloud", "クラウド"},

		"models.ready":       {"reachable", "応答あり"},
		"models.reachable":   {"reachable", "応答あり"},
		"models.absent":      {"reachable, but it does not have this model", "応答あり（このモデルはありません）"},
		"models.unreachable": {"not reachable", "応答なし"},
		"models.unasked":     {"not asked", "未確認"},
		"models.facts":       {"context %d, tools %s, images %s, %s", "コンテキスト %d、ツール %s、画像 %s、%s"},
		"models.price":       {"%s in / %s out per million tokens", "100 万トークンあたり入力 %s／出力 %s"},
		"models.free":        {"no cost", "費用なし"},
		"models.no_price":    {"price unknown", "価格不明"},

		"models.answered": {"%s: %s answered (%s)", "%s: %s が応答しました（%s）"},
		"models.latency":  {"first token after %s, all after %s", "最初のトークンまで %s、全体で %s"},
		"models.speed":    {"%s tokens per second", "毎秒 %s トークン"},
		"models.usage":    {"prompt %d tokens (%d cached), answer %d (%d reasoning), %s", "入力 %d トークン（うちキャッシュ %d）、出力 %d（うち思考 %d）、%s"},
		"models.no_usage": {"the server reports no token counts", "サーバーがトークン数を返しません"},
		"models.said":     {"it said: %s", "応答: %s"},

		"models.health_ready":     {"ready: every model in use can be called", "準備完了: 使用するモデルはすべて呼び出せます"},
		"models.health_not_ready": {"not ready", "準備未完了"},
		"models.loaded":           {"loaded, context %d (allowed %d to %d, 0 for no limit), %d MiB on the graphics card", "読み込み済み、コンテキスト %d（許容 %d〜%d。0 は制限なし）、GPU メモリ %d MiB"},
		"models.not_loaded":       {"not loaded", "未読み込み"},
		"models.restarts":         {"restarts: %d of at most %d within %s", "再起動: %d 回（上限 %d 回、%s 以内）"},
		"models.last_repair":      {"the last repair failed: %s", "前回の復旧に失敗しました: %s"},
		"models.calls":            {"%s: %s (process %d) calls it since %s", "%s: %s（プロセス %d）が呼び出し中（%s から）"},
		"models.waits":            {"%s: %s (process %d) waits since %s", "%s: %s（プロセス %d）が順番待ち（%s から）"},

		"cli.help.models":      {"Show which model fills which role, and try one.", "役割ごとのモデルを表示し、試しに呼び出す。"},
		"cli.help.models_list": {"List the roles: model, server, context length, tools, images, price.", "役割の一覧（モデル・サーバー・コンテキスト長・ツール・画像・価格）を表示する。"},
		"cli.help.models_test": {"Make one call of a role's model: latency, tokens per second, usage.", "役割のモデルを一度呼び出す（待ち時間・毎秒トークン数・使用量）。"},
		"cli.help.models_role": {"The role: chat, worker, coder, coder2, coder3, task (the default) or summarizer.", "役割: chat、worker、coder、coder2、coder3、task（既定）、summarizer"},
		"cli.help.prices":      {"Print the price table in the form of llm.prices_file.", "価格表を llm.prices_file の形で出力する。"},
		"cli.help.health":      {"Show whether the models in use can be called, and what is wrong with the runs (exit 0: nothing, 1: warnings, 2: critical).", "使用するモデルを呼び出せるか、実行に異常がないかを表示する（終了コード 0: 正常、1: 警告、2: 重大）。"},
		"cli.help.role":        {"Whose model works on it: task (the default), coder, coder2, coder3, …", "作業するモデルの役割: task（既定）、coder、coder2、coder3 など"},
		"cli.help.local_only":  {"Call no model in a cloud.", "クラウドのモデルを呼び出さない。"},
		"cli.help.record":      {"Write the answers to a new FILE, a script to be replayed with --script.", "応答を新しい FILE に記録する（--script で再生できる台本になる）。"},
	}
}
