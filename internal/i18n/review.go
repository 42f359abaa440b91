package i18n

// reviewTexts are the words of reviews.
func reviewTexts() map[string]text {
	return map[string]text{
		"review.head":      {"🔎 **Review** of %s", "🔎 **レビュー**（%s）"},
		"review.remarks":   {"New remarks on lines: %d.", "行への新しい指摘: %d 件。"},
		"review.stand":     {"Earlier remarks on lines that are the same: %d.", "行が変わっていない以前の指摘: %d 件。"},
		"review.critical":  {"Critical", "重大"},
		"review.major":     {"Major", "重要"},
		"review.minor":     {"Minor", "軽微"},
		"review.nit":       {"Nit", "細部"},
		"review.done":      {"reviewed, findings: %d", "レビューしました。指摘: %d 件"},
		"review.again":     {"The label `%s`, or a comment `/review`, asks for a review again.", "ラベル `%s` を付けるか、コメント `/review` を書くと、もう一度レビューします。"},
		"review.none":      {"%s ended without handing a review in", "%s はレビューを提出せずに終わりました"},
		"review.too_large": {"the change is larger than %d MiB, which is too much for one review: split it", "変更が %d MiB を超えており、1 回のレビューには大きすぎます。分割してください"},
		"review.unrelated": {"%s has no commit in common with %s, so that there is no change to review", "%s には %s と共通のコミットがないため、レビューする変更がありません"},
	}
}
