package i18n

func appTexts() map[string]text {
	return map[string]text{
		"app.no_storage":        {"context_storage.enabled is false: this run is not kept; it cannot be listed, resumed or inherited", "context_storage.enabled が false です。この実行は保存されず、一覧・再開・引き継ぎの対象になりません"},
		"app.no_storage_resume": {"context_storage.enabled is false, so there is no run to resume", "context_storage.enabled が false のため、再開できる実行はありません"},
		"app.has_ended":         {"run %s is %s and cannot be resumed: start a new one", "実行 %s は %s で終わっているため再開できません。新しく始めてください"},
		"app.had_ended":         {"run %s had ended; what its process left undone is done now. See tori show", "実行 %s はすでに終わっていました。やり残された後始末を済ませました。tori show で確認できます"},
		"app.owed":              {"what is owed is not delivered yet (%d)", "引き渡しが %d 件残っています"},
		"app.delivered":         {"what was still owed is delivered (%d)", "残っていた引き渡し %d 件を済ませました"},
		"app.empty_message":     {"the message is empty: say what is to be done with --message TEXT, or name an issue file with --issue", "メッセージが空です。--message で依頼内容を書くか、--issue で issue ファイルを指定してください"},
		"app.not_included":      {"note: the work starts from the last commit; %d modified and %d untracked files of the checkout are not part of it", "注意: 作業は最後のコミットから始まります。チェックアウト中の変更 %d 件と未追跡 %d 件は含まれません"},
		"app.live":              {"run %s of this issue has not ended (%s, #%s): go on with tori run --resume %s", "この issue の実行 %s がまだ終わっていません（%s、#%s）。tori run --resume %s で続けてください"},
		"app.live_held": {"run %s of this issue (#%s) is in the hands of process %d on %s: watch it with tori show %s, or end it with tori stop %s",
			"この issue の実行 %s（#%s）はプロセス %d（%s）が処理中です。tori show %s で様子を見るか、tori stop %s で止めてください"},
		"app.owner_died": {"Run %s (#%s) was left by process %d on %s, which died: tori run --resume %s goes on with it",
			"実行 %s（#%s）は、プロセス %d（%s）が異常終了したため中断しています。tori run --resume %s で続けられます"},
		"app.sandbox_none": {"sandbox.mode is none: commands of the model would run unconfined; allow that with --allow-unsandboxed", "sandbox.mode が none のため、モデルのコマンドが隔離なしで実行されます。許可するには --allow-unsandboxed を付けてください"},
		"app.sandbox_none_here": {"sandbox.mode is none, and this command runs nothing without a sandbox: set sandbox.mode to auto or container (tori sandbox check tries what this machine has)",
			"sandbox.mode が none ですが、このコマンドはサンドボックスなしでは何も実行しません。sandbox.mode を auto か container にしてください（使えるものは tori sandbox check で確認できます）"},
		"app.sandbox_or_bare":  {"%v. Or let commands run without a sandbox: --allow-unsandboxed", "%v。または --allow-unsandboxed で、サンドボックスなしの実行を許可してください"},
		"app.unsandboxed":      {"warning: no sandbox; commands run unconfined, with your rights and the network", "警告: サンドボックスなし。コマンドはあなたの権限とネットワークで、隔離なしに実行されます"},
		"app.scripted":         {"The answers come from the script %s; no model is called.", "応答は台本 %s によるもので、モデルは呼び出されません。"},
		"app.unpriced":         {"warning: the price of %s (or of a fallback of it) is not known, so its calls do not count towards the limits max_cost_usd of budget; add it to llm.prices_file", "警告: %s（またはその代替モデル）の価格が不明なため、呼び出しは budget の max_cost_usd に数えられません。llm.prices_file に追加してください"},
		"app.rules":            {"the rules for commands %s cannot be read: %v (commands.rules_file)", "コマンドの規則 %s を読めません: %v（commands.rules_file）"},
		"app.script_and_model": {"--script excludes --model and --role: a script calls no model", "--script と --model・--role は同時に指定できません（台本はモデルを呼び出しません）"},
		"app.role_and_model":   {"--role and --model exclude each other: a role has its model by the settings", "--role と --model は同時に指定できません（役割のモデルは設定で決まります）"},
		"app.no_model":         {"no model is configured. Three ways to go on: set OPENAI_API_KEY or ANTHROPIC_API_KEY; start a local Ollama (none answers at %s); or name a server in config.yaml under llm.openai.base_url. Without any of them tori demo shows a scripted run", "モデルが設定されていません。次の三つの方法があります: OPENAI_API_KEY か ANTHROPIC_API_KEY を設定する、ローカルの Ollama を起動する（%s は応答しません）、config.yaml の llm.openai.base_url でサーバーを指定する。いずれも無ければ tori demo で台本による実行を見られます"},
		"app.no_ollama_model":  {"no model is configured: the Ollama at %s has none that can chat. Load one with ollama pull, or set OPENAI_API_KEY or ANTHROPIC_API_KEY", "モデルが設定されていません。Ollama（%s）にもモデルがありません。ollama pull でモデルを取得するか、OPENAI_API_KEY か ANTHROPIC_API_KEY を設定してください"},
		"app.ollama_found":     {"using the local Ollama at %s with model %s", "ローカルの Ollama（%s）のモデル %s を使います"},
	}
}
