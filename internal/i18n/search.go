package i18n

// searchTexts are what tori search, and what looks for similar runs, says.
func searchTexts() map[string]text {
	return map[string]text{
		"search.newer": {
			"%s has schema version %d, this program knows versions up to %d: use the newer program, or make it anew for this one with tori reindex",
			"%s のスキーマは版 %d ですが、このプログラムが扱えるのは版 %d までです。新しいプログラムを使うか、tori reindex で作り直してください",
		},
		"search.broken": {
			"%s cannot be searched (%v): make it anew from the directories with tori reindex",
			"%s は検索に使えません（%v）。tori reindex でディレクトリから作り直してください",
		},
		"search.none": {
			"there is no %s yet, and none can be made (%v): run tori search once as the user whom the directory belongs to",
			"%s がまだなく、作成もできません（%v）。ディレクトリの所有者で一度 tori search を実行してください",
		},
		"search.no_words": {
			"nothing to look for: give words of letters, digits or Japanese characters, as in tori search timeout 認証",
			"検索する語がありません。tori search timeout 認証 のように、文字や数字を含む語を指定してください",
		},
		"search.bad_in": {
			"--in %q: expected one of %s",
			"--in %q: %s のいずれかを指定してください",
		},
		"search.bad_status": {
			"--status %q: expected completed, stopped or failed; runs that have not ended are not searched (tori tasks lists them)",
			"--status %q: completed、stopped、failed のいずれかを指定してください。終了していない実行は検索の対象外です（tori tasks で一覧できます）",
		},
		"search.too_many": {
			"%q begins more than %d words: give more of the word",
			"%q で始まる語が %d を超えています。もう少し長く指定してください",
		},
		"search.read_only": {
			"Runs that ended since search.db was last written are not found: %v",
			"search.db の最後の更新より後に終了した実行は見つかりません: %v",
		},
		"search.nothing": {
			"No run that ended holds all of that.",
			"すべての語を含む、終了した実行はありません。",
		},
		"search.more": {
			"There may be more: --limit, --from and --to show others.",
			"ほかにもある可能性があります。--limit、--from、--to で絞り込んだり続きを表示したりできます。",
		},
		"search.in_title":    {"title", "タイトル"},
		"search.in_request":  {"request, messages.jsonl [%d]", "依頼 messages.jsonl [%d]"},
		"search.in_summary":  {"summary, summaries.jsonl [%d]", "要約 summaries.jsonl [%d]"},
		"search.in_plan":     {"plan, %s line %d", "計画 %s %d 行目"},
		"search.in_messages": {"messages.jsonl [%d]", "messages.jsonl [%d]"},
		"search.in_tools":    {"tools.jsonl [%d]", "tools.jsonl [%d]"},
		"search.similar":     {"Similar runs in %s:", "%s の似た実行:"},
		"search.no_vectors":  {"The model %s made no embeddings; similar runs are found by their words alone: %v", "モデル %s による埋め込みを作れません。似た実行は語だけで探します: %v"},
		"search.not_similar": {"No run of %s that ended is like it.", "%s に、これと似た終了した実行はありません。"},
		"search.reindexed":   {"%d runs can be searched (search.db).", "%d 件の実行を検索できます（search.db）。"},
	}
}
