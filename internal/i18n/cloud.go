package i18n

// cloudTexts are the texts of llm/cloud.
func cloudTexts() map[string]text {
	return map[string]text{
		"cloud.local_only": {
			"Nothing was sent: local-only mode is on, and the route %s would use a cloud model. End the mode (security.local_only, --local-only of the run, /cloud in a chat), or give the route a model that runs locally.",
			"何も送信していません。ローカル限定モード中ですが、ルート %s はクラウドのモデルを使います。モードを解除する(security.local_only、実行の --local-only、チャットでは /cloud)か、このルートにローカルのモデルを割り当ててください。",
		},
		"cloud.route": {
			"Nothing was sent: the route %s may not use a cloud model, since security.cloud_allowed_routes is %s. Add the route there, or give it a model that runs locally.",
			"何も送信していません。ルート %s ではクラウドのモデルを使えません(security.cloud_allowed_routes は %s)。そこにルートを追加するか、このルートにローカルのモデルを割り当ててください。",
		},
		"cloud.local_host": {
			"security.local_hosts holds %q, but an entry must be a host name (gpu.example.com), an IP address, *.suffix (*.example.com) or a network (203.0.113.0/24), without scheme and port. Correct the entry.",
			"security.local_hosts に %q があります。ホスト名(gpu.example.com)、IP アドレス、*.サフィックス(*.example.com)、ネットワーク(203.0.113.0/24)のいずれかを、スキームとポートを付けずに指定してください。",
		},
		"cloud.not_local": {
			"Nothing was sent to %s: its name counts as local, but it leads to %s, which is outside the local networks. Correct the address of the endpoint or the name's entry in the DNS; if that machine is your own, add the host to security.local_hosts.",
			"%s には何も送信していません。名前はローカル扱いですが、接続先 %s はローカルネットワークの外です。エンドポイントのアドレスか DNS の登録を直してください。自分のマシンであれば、ホストを security.local_hosts に追加してください。",
		},
		"cloud.tool_name": {
			"Nothing was sent: the name of the tool %s holds a secret or personal data, which the cloud model %s must not see. Rename the tool.",
			"何も送信していません。ツール %s の名前に、クラウドのモデル %s に見せてはならない秘密情報または個人情報が含まれています。ツールの名前を変えてください。",
		},
		"cloud.tool_schema": {
			"Nothing was sent: the name of an argument of the tool %s holds a secret or personal data, which the cloud model %s must not see. Rename the argument in the tool's schema.",
			"何も送信していません。ツール %s の引数名に、クラウドのモデル %s に見せてはならない秘密情報または個人情報が含まれています。ツールのスキーマの引数名を変えてください。",
		},
	}
}
