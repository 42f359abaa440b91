package i18n

func spendingTexts() map[string]text {
	return map[string]text{
		"ops.prompt":       {"Prompt tokens: %s", "入力トークン: %s"},
		"ops.cached":       {" (%s cached)", "（うちキャッシュから %s）"},
		"ops.completion":   {"Completion tokens: %s", "出力トークン: %s"},
		"ops.reasoning":    {" (%s reasoning)", "（うち推論 %s）"},
		"ops.replayed":     {"(of the recorded run; this one called no model)", "（記録元の実行の値。この実行ではモデルを呼び出していません）"},
		"ops.cost":         {"Cost: %s", "費用: %s"},
		"ops.cost_unknown": {"no price known", "価格がわかりません"},
		"ops.unpriced_one": {" (1 call without a price)", "（価格のわからない呼び出し 1 回を除く）"},
		"ops.unpriced":     {" (%s calls without a price)", "（価格のわからない呼び出し %s 回を除く）"},
	}
}
