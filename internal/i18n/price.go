package i18n

// priceTexts are the texts of llm/price.
func priceTexts() map[string]text {
	return map[string]text{
		"price.read": {
			"The price table cannot be read: %v. Check the path and its permissions.",
			"料金表を読めません: %v。パスと権限を確認してください。",
		},
		"price.too_large": {
			"The price table %s is larger than %d KiB. Keep only the models that are used.",
			"料金表 %s が %d KiB を超えています。使うモデルだけを残してください。",
		},
		"price.syntax": {
			"The price table %s, line %d: %s. Correct the line.",
			"料金表 %s の %d 行目: %s。この行を直してください。",
		},
		"price.encoding": {
			"the line is not UTF-8",
			"UTF-8 ではありません",
		},
		"price.yaml": {
			"this is not YAML: %s",
			"YAML として読めません: %s",
		},
		"price.top": {
			"one mapping with \"as_of\" and \"models\" is expected",
			"\"as_of\" と \"models\" を持つマッピングが一つ必要です",
		},
		"price.key": {
			"a key of %s is not a text; put it in quotes",
			"%s のキーが文字列ではありません。引用符で囲んでください",
		},
		"price.unknown": {
			"the key %s is not known; these are: %s",
			"キー %s は使えません。使えるキー: %s",
		},
		"price.duplicate": {
			"%s is named twice, before on line %d",
			"%s が重複しています(最初は %d 行目)",
		},
		"price.date": {
			"%s must be a date such as \"2026-11-01\"",
			"%s は \"2026-11-01\" のような日付にしてください",
		},
		"price.models": {
			"%s must map names such as \"openai/gpt-4o\" to their prices",
			"%s には \"openai/gpt-4o\" のような名前と料金の組を書いてください",
		},
		"price.model": {
			"%s names no model; PROVIDER/MODEL without spaces is expected, with a * only at its end",
			"%s はモデル名ではありません。空白なしの PROVIDER/MODEL とし、* は末尾だけに書けます",
		},
		"price.entry": {
			"%s must hold prices in the form {%s: 3, %s: 15}",
			"%s には {%s: 3, %s: 15} の形で料金を書いてください",
		},
		"price.missing": {
			"%s lacks the key %s",
			"%s にキー %s がありません",
		},
		"price.number": {
			"%s must be a number from 0 to %d, US dollars per million tokens",
			"%s は 0 から %d の数値(100 万トークンあたりの米ドル)にしてください",
		},
		"price.above": {
			"%s must be a whole number of tokens from 1 on",
			"%s は 1 以上の整数(トークン数)にしてください",
		},
	}
}
