package i18n

// webTexts say why something was not looked up; people read them in the log and by what RESEARCH tells.
func webTexts() map[string]text {
	return map[string]text{
		"web.search_url":     {"web.search_url: %s is no address of a SearXNG, such as http://127.0.0.1:8888", "web.search_url: %s は SearXNG のアドレスではありません（例: http://127.0.0.1:8888）"},
		"web.search_down":    {"the SearXNG at %s (web.search_url) does not answer: %v", "SearXNG %s（web.search_url）が応答しません: %v"},
		"web.search_no_json": {"the SearXNG at %s answers 403: add json to search.formats in its settings.yml and start it again", "SearXNG %s が 403 を返しました。その settings.yml の search.formats に json を加え、再起動してください"},
		"web.search_limited": {"the SearXNG at %s lets nobody ask so often (429): see server.limiter in its settings.yml, or wait", "SearXNG %s が回数を制限しています（429）。その settings.yml の server.limiter を確認するか、時間をおいてください"},
		"web.search_moved":   {"%s leads on to %s: name that in web.search_url", "%s は %s へ転送されます。web.search_url をそのアドレスにしてください"},
		"web.search_status":  {"the SearXNG at %s (web.search_url) answers with status %d", "SearXNG %s（web.search_url）が状態 %d を返しました"},
		"web.search_not_json": {
			en: "what %s (web.search_url) answers is not the JSON of a SearXNG: check the address, and search.formats in its settings.yml",
			ja: "%s（web.search_url）の応答は SearXNG の JSON ではありません。アドレスと、その settings.yml の search.formats を確認してください",
		},
		"web.search_long":     {"the answer of the SearXNG at %s has more than %d bytes", "SearXNG %s の応答が %d バイトを超えています"},
		"web.slow":            {"it took longer than %d seconds", "%d 秒以内に終わりませんでした"},
		"web.not_listed":      {"%s is not a host that pages may be read of; sandbox.allow_hosts lists: %s", "%s は読めるホストではありません。sandbox.allow_hosts にあるもの: %s"},
		"web.unreached":       {"%s was not reached: %v", "%s に接続できません: %v"},
		"web.status":          {"%s answers with status %d", "%s が状態 %d を返しました"},
		"web.redirects":       {"it leads on more than %d times", "転送が %d 回を超えました"},
		"web.downgrade":       {"it leads from https on to http (%s)", "https から http（%s）へ転送されました"},
		"web.kind":            {"it is %s, not text", "テキストではなく %s です"},
		"web.binary":          {"it says it is %s, and is not text", "%s とありますが、テキストではありません"},
		"web.html":            {"its HTML cannot be read: %v", "HTML を解釈できません: %v"},
		"web.no_text":         {"it has no text: it may be made by its scripts, which are not run", "テキストがありません。スクリプトで作られるページかもしれません（スクリプトは実行しません）"},
		"web.link_forged":     {"This link is not valid. Open the one that stands below the request.", "このリンクは無効です。承認依頼にあるリンクから開いてください。"},
		"web.link_expired":    {"This link was good for 72 hours and has expired. tori approvals show shows the proposal.", "このリンクの有効期限（72 時間）が切れました。提案は tori approvals show で確認できます。"},
		"web.link_gone":       {"This proposal does not exist any more.", "この提案はすでに削除されています。"},
		"web.link_superseded": {"This proposal was made anew. Open the link of the newer request.", "この提案は作り直されました。新しい承認依頼のリンクを開いてください。"},
		"web.link_failed":     {"The proposal cannot be shown now; the log of tori serve says why.", "いまは提案を表示できません。理由は tori serve のログにあります。"},
		"web.diff_cut":        {"(%d more bytes; tori approvals show %s shows all)", "（あと %d バイトあります。全体は tori approvals show %s で確認できます）"},
		"web.stands_pending":  {"Waiting for a decision.", "承認待ちです。"},
		"web.stands_granted":  {"Approved by %s at %s UTC.", "%s が %s UTC に承認しました。"},
		"web.stands_auto":     {"Approved automatically at %s UTC.", "%s UTC に自動で承認されました。"},
		"web.stands_denied":   {"Decided at %s UTC: %s.", "%s UTC に決定: %s。"},
		"web.leads_on":        {"it leads on to an address that is not read", "読めないアドレスへ転送されました"},
	}
}
