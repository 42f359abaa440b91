package i18n

func brokerTexts() map[string]text {
	return map[string]text{
		"broker.record_unreadable": {"the record of what this run sent out cannot be read, so that nothing more may go out: %v; see tori check", "この実行が外部へ送った記録を読めないため、これ以上は何も送れません: %v。tori check を確認してください"},
		"broker.other_task":        {"a %s was asked for on behalf of task %s by the run of task %s: a run speaks for its own task only", "%s の要求がタスク %s の名で出されましたが、この実行のタスクは %s です。実行は自分のタスクについてだけ発信できます"},
		"broker.other_target":      {"%s to %q was refused: this task may reach %q only", "%[1]s（宛先 %[2]q）を拒否しました。このタスクの宛先は %[3]q だけです"},
		"broker.kind":              {"a request of kind %q is not known: comment, push or pull_request", "種別 %q の要求は扱えません。comment、push、pull_request のいずれかにしてください"},
		"broker.limit":             {"the run has used up its requests of kind %s (%d): raise %s if that is too few", "種別 %s の要求は上限（%d 件）に達しました。足りない場合は %s を増やしてください"},
		"broker.trifecta_ask":      {"a %s needs a person: the run has read text of strangers and can read what they must not get (%s); look at what it wants to send, then resume it with broker.trifecta: allow, or send it yourself", "%s には人の承認が必要です。この実行は外部の人の文章を読み、見せてはならない情報にも触れられます（%s）。送信内容を確認し、broker.trifecta: allow で再開するか、ご自身で送信してください"},
		"broker.trifecta_refuse":   {"a %s was refused: the run has read text of strangers and can read what they must not get (%s), and broker.trifecta is refuse", "%s を拒否しました。この実行は外部の人の文章を読み、見せてはならない情報にも触れられ（%s）、broker.trifecta が refuse です"},
		"broker.secret_in_patch":   {"the change holds what looks like a secret (%s) and was not handed over: remove it from the workspace or from the task", "変更に機密情報らしきもの（%s）が含まれるため、引き渡しませんでした。ワークスペースまたは依頼から取り除いてください"},
		"broker.patch_size":        {"the change has %d MiB, of at most %d (%s)", "変更が %d MiB あり、上限の %d MiB（%s）を超えています"},
		"broker.lookup":            {"it holds what looks like a secret, or a person's address or number (%s), and was not sent: ask without it", "機密情報、または個人の連絡先らしきもの（%s）が含まれるため、送りませんでした。それを除いて調べてください"},
		"broker.lookup_long":       {"it has %d bytes, of at most %d, and was not sent", "%d バイトあり、上限の %d バイトを超えているため、送りませんでした"},
		"broker.title":             {"a title of one line with 1 to %d characters is expected", "題名は 1～%d 文字の 1 行にしてください"},
		"broker.empty":             {"there is nothing in it that could be sent", "送れる内容がありません"},
		"broker.too_long":          {"the text has %d bytes, of at most %d (%s)", "本文が %d バイトあり、上限の %d バイト（%s）を超えています"},
		"broker.uncleanable":       {"the text could not be cleaned of what must not be sent: it grows or changes each time", "送ってはならないものを本文から取り除けませんでした（取り除くたびに内容が増えるか変わります）"},

		"agent.not_told":          {"the comment on the end of the run may not be posted: %v", "実行の結果を伝えるコメントを投稿できません: %v"},
		"config.want.hostpattern": {"the name of a host such as docs.example.com, or *.example.com, without a scheme and a port", "docs.example.com や *.example.com のようなホスト名（スキームとポートを除く）"},
	}
}
