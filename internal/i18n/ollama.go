package i18n

// ollamaTexts are the texts of llm/ollama.
func ollamaTexts() map[string]text {
	return map[string]text{
		"ollama.base_url": {
			"The address of Ollama is %q, but it must be an http or https address such as http://localhost:11434. Correct its endpoint.",
			"Ollama のアドレスが %q になっています。http://localhost:11434 のような http または https のアドレスを endpoint に指定してください。",
		},
		"ollama.num_ctx": {
			"The context length of the model %s is %d, but it must be at least %d tokens. Correct num_ctx (or context_length).",
			"モデル %s のコンテキスト長が %d になっています。%d トークン以上を num_ctx(または context_length)に指定してください。",
		},
		"ollama.keep_alive": {
			"keep_alive is %q, but it must be a number of seconds (-1: for ever) or a duration such as 30m. Correct it.",
			"keep_alive が %q になっています。秒数(-1 で無期限)または 30m のような時間を指定してください。",
		},
		"ollama.think": {
			"think is %q, but it must be true, false, low, medium, high or max. Correct it.",
			"think が %q になっています。true、false、low、medium、high、max のいずれかを指定してください。",
		},
		"ollama.limits": {
			"The limits of the model %s do not agree: num_ctx %d, min_context %d, max_context %d. num_ctx must lie between the two (0: no limit).",
			"モデル %s の制限が矛盾しています: num_ctx %d、min_context %d、max_context %d。num_ctx は両者の間にしてください(0 は制限なし)。",
		},
		"ollama.same_model": {
			"The model %s is required twice with different context lengths (%d and %d). Ollama would load it anew with every change; give it one num_ctx.",
			"モデル %s に異なるコンテキスト長(%d と %d)が指定されています。切り替えのたびに再読み込みが起きるため、num_ctx を一つにしてください。",
		},
		"ollama.state_dir": {
			"A restart command for Ollama is set, but no directory to keep count of restarts in. Give the care of Ollama a state directory.",
			"Ollama の再起動コマンドが設定されていますが、再起動回数を記録するディレクトリがありません。状態ディレクトリを指定してください。",
		},
		"ollama.broke_off": {
			"the stream ended before the answer did (Ollama also ends it so where a model repeats itself)",
			"応答が終わる前にストリームが終わりました(モデルが同じ出力を繰り返したときも Ollama はこのように終えます)",
		},
		"ollama.slow": {"no answer in time", "時間内に応答がありません"},
		"ollama.unreachable": {
			"Ollama at %s does not answer: %s. Start it, or correct its endpoint.",
			"%s の Ollama が応答しません: %s。起動するか、endpoint を修正してください。",
		},
		"ollama.unchecked": {
			"Ollama at %s was not looked at yet.",
			"%s の Ollama はまだ確認されていません。",
		},
		"ollama.unknown": {
			"Ollama at %s does not tell which models it has loaded: %s. Check its version (0.1.38 or later) and the access to it.",
			"%s の Ollama が読み込み済みモデルを返しません: %s。バージョン(0.1.38 以降)とアクセス権を確認してください。",
		},
		"ollama.not_loaded": {
			"The model %s is not in the memory of Ollama at %s. Check that it was pulled or created (ollama list) and that it fits.",
			"モデル %s が %s の Ollama に読み込まれていません。モデルの有無(ollama list)とメモリの空きを確認してください。",
		},
		"ollama.too_long": {
			"The request is about %d tokens, more than the %d of num_ctx; Ollama would drop its beginning, so it was not sent. Raise llm.ollama.context_length (providers.ollama.num_ctx for chat and workers) if the memory allows it.",
			"リクエストが約 %d トークンで num_ctx の %d を超えています。Ollama が先頭を切り捨てるため送信しませんでした。メモリに余裕があれば llm.ollama.context_length(chat と worker では providers.ollama.num_ctx)を大きくしてください。",
		},
		"ollama.full": {
			"Ollama read %d tokens, with a num_ctx of %d, of a request of about %d: it dropped a part in silence. Raise llm.ollama.context_length (providers.ollama.num_ctx for chat and workers), or update Ollama to 0.12.6 or later, which refuses what is too long.",
			"Ollama が読んだのは %d トークン(num_ctx は %d、リクエストは約 %d)で、一部を黙って切り捨てています。llm.ollama.context_length(chat と worker では providers.ollama.num_ctx)を大きくするか、長すぎる入力を拒否する Ollama 0.12.6 以降に更新してください。",
		},
		"ollama.cut": {
			"Ollama read %d tokens of a request of about %d, far fewer, though num_ctx is %d: it holds less and dropped the rest in silence. Set llm.ollama.context_length (providers.ollama.num_ctx for chat and workers) to what `ollama ps` shows as CONTEXT, or make the server keep what is asked for (memory, OLLAMA_NUM_PARALLEL, Ollama 0.12.6 or later).",
			"Ollama が読んだのは %d トークンで、リクエスト(約 %d)より大幅に少なく、num_ctx %d も保たれていません。残りは黙って切り捨てられました。llm.ollama.context_length(chat と worker では providers.ollama.num_ctx)を `ollama ps` の CONTEXT に合わせるか、要求した長さを保つよう設定してください(メモリ、OLLAMA_NUM_PARALLEL、Ollama 0.12.6 以降)。",
		},
		"ollama.context": {
			"The model %s at %s is loaded with a context length of %d, outside of %d to %d. Another program loads it with another num_ctx; make them agree.",
			"モデル %s(%s)のコンテキスト長が %d で、許容範囲 %d〜%d の外です。別のプログラムが異なる num_ctx で読み込んでいます。設定を揃えてください。",
		},
		"ollama.restart_limit": {
			"Ollama at %s was restarted %d times within %s already, so it is not restarted again. See why it fails, then start it by hand.",
			"%s の Ollama は既に %d 回再起動されています(%s 以内)。これ以上の再起動は行いません。原因を調べ、手動で起動してください。",
		},
		"ollama.restart_failed": {
			"The restart command of Ollama (%s) failed: %s. Run it by hand to see why; its output is in %s.",
			"Ollama の再起動コマンド(%s)が失敗しました: %s。手動で実行して原因を確認してください。出力は %s にあります。",
		},
		"ollama.warmup_failed": {
			"The model %s could not be loaded into Ollama at %s: %s",
			"モデル %s を %s の Ollama に読み込めませんでした: %s",
		},
		"ollama.does_not_fit": {
			"The models %s do not stay in the memory of Ollama at %s together. Use smaller ones, a smaller num_ctx, or raise OLLAMA_MAX_LOADED_MODELS.",
			"モデル %s は %s の Ollama に同時に収まりません。小さいモデルや num_ctx にするか、OLLAMA_MAX_LOADED_MODELS を増やしてください。",
		},
		"ollama.state": {
			"The state of the care of Ollama in %s cannot be used (%s), so nothing was restarted. Check the directory and the disk.",
			"%s にある Ollama の状態ファイルを使えないため(%s)、再起動しませんでした。ディレクトリとディスクを確認してください。",
		},
		"ollama.command": {
			"The restart command of Ollama %q holds %q, which only a shell understands, and none runs it. Name one program with its arguments, or a script.",
			"Ollama の再起動コマンド %q に %q が含まれています。シェルは使われないため、プログラム一つとその引数、またはスクリプトを指定してください。",
		},
		"ollama.command_open": {
			"The restart command of Ollama %q ends within quotes, or names no program. Correct it.",
			"Ollama の再起動コマンド %q の引用符が閉じていないか、プログラム名がありません。修正してください。",
		},
	}
}
