package i18n

// channelTexts say how channels are set up.
func channelTexts() map[string]text {
	return map[string]text{
		"channel.clock":    {"agrees with the vendor's", "ベンダーの時計と合っています"},
		"channel.no_date":  {"the vendor's answer has no date: something between here and there answers in its place", "応答に日時がありません。途中の機器がベンダーの代わりに応答しています"},
		"channel.skew":     {"it is %v apart from the vendor's: set this machine's clock, signatures are good for minutes", "ベンダーの時計と %v ずれています。この計算機の時計を合わせてください。署名は数分で無効になります"},
		"channel.nobody":   {"channels.%s.allow_from is empty, so nobody is answered: add the ids of people", "channels.%s.allow_from が空のため、誰にも応答しません。利用者の ID を加えてください"},
		"channel.people":   {"%d people are answered", "%d 人に応答します"},
		"channel.none":     {"no channel is set up: channels.line, channels.slack or channels.http is needed", "チャネルが設定されていません。channels.line、channels.slack、channels.http のいずれかを設定してください"},
		"channel.send":     {"sent to %s", "%s に送りました"},
		"channel.not_sent": {"nothing was sent to %s: %v", "%s に送れませんでした: %v"},
		"channel.no_notify": {
			en: "channels.%s.notify names no conversation to send to",
			ja: "channels.%s.notify に送り先の会話がありません",
		},
		"channel.test":   {"This is a test of tori channels check --send.", "tori channels check --send のテスト送信です。"},
		"channel.well":   {"ok    ", "正常  "},
		"channel.wrong":  {"WRONG ", "異常  "},
		"channel.failed": {"%d parts of channels are not set up well", "チャネルの設定に %d 件の問題があります"},
		"channel.public": {
			en: "serve.public_url is empty, so the vendor reaches nothing: set the address of the proxy before serve.listen",
			ja: "serve.public_url が空のため、ベンダーから届きません。serve.listen の前にあるプロキシのアドレスを設定してください",
		},
	}
}
