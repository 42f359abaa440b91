package i18n

// jobTexts are about jobs of a conversation.
var jobTexts = map[string]text{
	"job.progress":         {"answer %d: %s", "回答 %d: %s"},
	"app.auto_on":          {"Approved without asking until %s: paths %s, task types %s, tools %s. /auto-approve off ends it.", "%s まで、次の範囲を確認なしで承認します。パス: %s、種別: %s、ツール: %s。/auto-approve off で終わります。"},
	"app.auto_off":         {"Nothing is approved without asking any more (%d ended).", "確認なしの承認を終わりました（%d 件）。"},
	"app.stale":            {"The files changed after the proposal was made, so job %s makes it anew.", "提案の後でファイルが変わったため、ジョブ %s が提案を作り直します。"},
	"app.stale_again":      {"The files changed again after the proposal was made anew; ask for it once more when they rest.", "作り直した提案の後で、ファイルがまた変わりました。変更が落ち着いてから、もう一度依頼してください。"},
	"app.chat_storage":     {"tori chat needs context_storage.enabled: true", "tori chat には context_storage.enabled: true が必要です"},
	"job.applying":         {"applying: %s", "適用中: %s"},
	"job.begins":           {"reading: %s", "確認中: %s"},
	"job.no_chat":          {"run %s is no job of a conversation", "実行 %s は会話のジョブではありません"},
	"job.no_patch":         {"proposed without a patch: there is nothing to apply", "パッチのない提案です。適用するものはありません"},
	"job.waits":            {"job %s waits for a decision", "ジョブ %s は承認待ちです"},
	"job.unchecked":        {"; no check was run: the project has none", "。チェックは実行していません（プロジェクトにありません）"},
	"job.checked":          {"; passed: %s", "。合格: %s"},
	"job.checked_red":      {"; run: %s; failing as before the change: %s", "。実行: %s。変更前から失敗: %s"},
	"job.no_proposal":      {"the model proposed nothing that can be applied", "モデルから、適用できる提案がありませんでした"},
	"job.file":             {"%s cannot be read: %v", "%s を読めません: %v"},
	"job.file_there":       {"%s is to be created and is there already: modify it", "%s を作る提案ですが、すでにあります。modify を使ってください"},
	"job.file_gone":        {"%s is to be changed and is not there", "%s を変える提案ですが、ありません"},
	"job.command_failed":   {"%s ended with %d:\n%s", "%s が終了コード %d で終わりました:\n%s"},
	"job.risk_destructive": {"destroys something", "失われるものがある"},
	"job.risk_no_rollback": {"cannot be taken back", "元に戻せない"},
}
