package i18n

// hookTexts are the words about webhooks of forges.
func hookTexts() map[string]text {
	return map[string]text{
		"hook.secret_file": {"the file with the secret of the webhooks, %s, cannot be read: %v", "Webhook のシークレットのファイル %s を読めません: %v"},
		"hook.no_listen":   {"%s.webhook_secret needs serve.listen: the address at which webhooks come in", "%s.webhook_secret には serve.listen が必要です。Webhook を受けるアドレスです"},
	}
}
