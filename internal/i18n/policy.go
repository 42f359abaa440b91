package i18n

// policyTexts are the words of the command policy.
func policyTexts() map[string]text {
	return map[string]text{
		"policy.too_large": {
			en: "%s: a file of command rules may have at most %d KiB; split it or remove examples",
			ja: "%s: コマンド規則のファイルは最大 %d KiB です。分割するか例を減らしてください",
		},
		"policy.too_many": {
			en: "%s: more than %d command rules; remove some",
			ja: "%s: コマンド規則が %d 件を超えています。減らしてください",
		},
		"policy.syntax": {
			en: "%s:%d: cannot be read as command rules: %s. Write a YAML list of rules with name, decision, reason, what they are about, match and not_match",
			ja: "%s:%d: コマンド規則として読めません: %s。name, decision, reason, 対象, match, not_match を持つ規則の YAML リストを書いてください",
		},
		"policy.not_utf8":   {"the text is not UTF-8", "UTF-8 ではありません"},
		"policy.not_list":   {"a list of rules is expected", "規則のリストが必要です"},
		"policy.empty_rule": {"the rule is empty", "規則が空です"},
		"policy.twice": {
			en: "%s:%d: there are two command rules named %s; rename or remove one",
			ja: "%s:%d: %s という名前のコマンド規則が 2 つあります。どちらかの名前を変えるか削除してください",
		},
		"policy.field": {
			en: "%s:%d: command rule %q: %s is %q, expected: %s",
			ja: "%s:%d: コマンド規則 %q: %s の値が %q です。使えるもの: %s",
		},
		"policy.match": {
			en: "%s:%d: command rule %s: the example under match is not matched for certain: %s. Correct the rule or the example",
			ja: "%s:%d: コマンド規則 %s: match の例に規則が確実には当てはまりません: %s。規則か例を直してください",
		},
		"policy.not_match": {
			en: "%s:%d: command rule %s: the example under not_match is matched, or may be: %s. Correct the rule or the example",
			ja: "%s:%d: コマンド規則 %s: not_match の例に規則が当てはまるか、当てはまる可能性があります: %s。規則か例を直してください",
		},
		"policy.verdict_ask":    {"A rule asks for a person's agreement:", "規則は人の同意を求めています:"},
		"policy.verdict_forbid": {"Not run: forbidden here.", "実行しません。ここでは禁止されています。"},
		"policy.command":        {"line %d: %s", "%d 行目: %s"},
		"policy.command_in":     {"line %d: %s (within %s)", "%d 行目: %s（%s の中）"},
		"policy.rule":           {"%s: rule %s: %s", "%s: 規則 %s: %s"},
		"policy.doubtful":       {"%s: it cannot be told whether rule %s is about it: %s Write the words out instead of computing them", "%s: 規則 %s に当てはまるか判断できません: %s 計算で組み立てずに、そのまま書いてください"},
		"policy.opaque":         {"%s: %s; rule %s: %s", "%s: %s。規則 %s: %s"},
		"policy.none":           {"%s: no rule is about %s", "%s: %s についての規則がありません"},
		"policy.unsure":         {"%s: it cannot be told whether a rule allows it, because some of its words are computed; write them out", "%s: 計算で組み立てた部分があり、許可する規則に当てはまるか判断できません。そのまま書いてください"},
		"policy.more":           {"and %d more", "ほか %d 件"},

		"policy.opaque_name":     {"what command this is cannot be known before it runs", "どのコマンドになるかは実行するまで分かりません"},
		"policy.opaque_script":   {"a computed text is run as a script", "計算で組み立てた文字列をスクリプトとして実行します"},
		"policy.opaque_input":    {"what another command prints is run as code", "ほかのコマンドの出力をコードとして実行します"},
		"policy.opaque_alias":    {"it changes what command words mean", "コマンド名の意味を変えます"},
		"policy.opaque_looks":    {"it has letters that look like others", "ほかの文字に見える文字が含まれています"},
		"policy.opaque_syntax":   {"shells disagree about how to read it", "シェルによって読み方が変わる書き方です"},
		"policy.opaque_too_much": {"it is too long or nested too deep to be looked into", "長すぎるか入れ子が深すぎるため調べられません"},
	}
}
