package i18n

// webhookTexts are the words of the channel that a bridge speaks with.
func webhookTexts() map[string]text {
	return map[string]text{
		"webhook.secret":      {"channels.http.secret is not whsec_ and the Base64 of at least 24 bytes: printf 'whsec_%s\\n' \"$(openssl rand -base64 32)\" makes one", "channels.http.secret は whsec_ に続けて 24 バイト以上の Base64 でなければなりません。printf 'whsec_%s\\n' \"$(openssl rand -base64 32)\" で作れます"},
		"webhook.url":         {"channels.http.url is needed: the address of the bridge that posts are sent to, such as http://127.0.0.1:9000/", "channels.http.url が必要です。投稿の送り先となるブリッジのアドレスです（例: http://127.0.0.1:9000/）"},
		"webhook.no_session":  {"%s is no conversation of channels.http", "%s は channels.http の会話ではありません"},
		"webhook.waits":       {"the bridge of channels.http is busy or away; nothing is sent to it before %s", "channels.http のブリッジが応答できない状態のため、%s までは送信しません"},
		"webhook.unreachable": {"the bridge of channels.http cannot be reached: %s", "channels.http のブリッジに接続できません: %s"},
		"webhook.dropped":     {"the bridge of channels.http does not take the post: it answered %d", "channels.http のブリッジが投稿を受け付けません。応答は %d です"},
		"webhook.failed":      {"the bridge of channels.http answered %d: %s", "channels.http のブリッジが %d を返しました: %s"},
	}
}
