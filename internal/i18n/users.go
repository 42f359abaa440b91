package i18n

// usersTexts are what is said of the settings of single users.
func usersTexts() map[string]text {
	return map[string]text{
		"users.name": {
			"%q is no login that settings of a user are looked for by: letters, digits and . _ - are, but no .. and no . at the beginning",
			"%q はユーザー設定を探せるログイン名ではありません。英数字と . _ - からなり、.. を含まず、. で始まらない名前が必要です",
		},
		"users.unreachable": {
			"%s does not answer (%s): look at user_config_api.url and whether that server runs",
			"%s が応答しません（%s）。user_config_api.url と、そのサーバーが動いているかを確認してください",
		},
		"users.answer": {
			"%s answered with something else than {\"status\": \"success\", \"data\": {…}}: look at user_config_api.url; a login page or a proxy may be in the way",
			"%s の応答が {\"status\": \"success\", \"data\": {…}} ではありません。user_config_api.url を確認してください。ログイン画面やプロキシが応答している可能性があります",
		},
		"users.refused": {
			"%s refuses the key (HTTP %d): look at user_config_api.api_key",
			"%s がキーを拒否しました（HTTP %d）。user_config_api.api_key を確認してください",
		},
		"users.status": {
			"%s answered HTTP %d, 200 was expected: look at user_config_api.url and at the log of that server",
			"%s が HTTP %d を返しました（200 が必要です）。user_config_api.url と、そのサーバーのログを確認してください",
		},
		"users.read": {
			"cannot read the settings of a user in %s: %v",
			"ユーザー設定 %s を読めません: %v",
		},
		"users.open": {
			"%s can be read or changed by other users of this machine, and may hold a key: chmod 600 %s",
			"%s はこのマシンの他のユーザーが読むか変更できますが、キーを含むことがあります。chmod 600 %s を実行してください",
		},
		"users.failed": {
			"the settings of the user %s cannot be had: %v",
			"ユーザー %s の設定を取得できません: %v",
		},
	}
}
