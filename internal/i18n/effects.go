package i18n

// effectsTexts are the words of tori show --effects.
func effectsTexts() map[string]text {
	return map[string]text{
		"effects.elsewhere":     {"the commits of the run lie in its workspace on %s: start tori worker there (%v)", "この作業のコミットは %s の作業ディレクトリにあります。そのマシンで tori worker を起動してください（%v）"},
		"ops.no_effects":        {"Nothing was to leave the house.", "外に出そうとしたものはありません。"},
		"ops.effect_head_what":  {"What", "種類"},
		"ops.effect_head_time":  {"Time (UTC)", "時刻 (UTC)"},
		"ops.effect_head_end":   {"Decision", "判定"},
		"ops.effect_head_where": {"Target", "宛先・内容"},
		"ops.effect_allow":      {"allowed", "許可"},
		"ops.effect_refuse":     {"refused", "拒否"},
		"ops.effect_ask":        {"asks", "確認待ち"},
		"ops.effect_met":        {"met", "接触"},
		"ops.effect_untrusted":  {"untrusted", "未検証の入力"},
		"ops.effect_sensitive":  {"sensitive", "機密"},
		"ops.effect_outward":    {"outward", "外部への作用"},
		"ops.effect_why":        {"why: %s", "理由: %s"},
		"ops.effect_changed":    {"changed: %s at %s: %s", "変更: %s（%s）: %s"},
		"ops.effect_more":       {"%d more changes", "ほかに %d 件の変更"},
	}
}
