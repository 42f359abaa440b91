package i18n

// routingTexts are the texts of routing and of tori routes.
var routingTexts = map[string]text{
	"routing.local_only": {"Coding is not possible while working locally only. /cloud lifts it.", "ローカル限定中はコーディングできません。/cloud で解除してください。"},
	"routing.usage":      {"usage: %s %s", "使い方: %s %s"},

	"routing.help.chat":         {"talk about TEXT, without handing it over", "相談する（ほかの担当に渡さない）"},
	"routing.help.plan":         {"lay out steps, split a task", "段取りやタスク分解をする"},
	"routing.help.analyze":      {"sort and count data or logs", "データやログを整理・分析する"},
	"routing.help.ops":          {"get instructions for servers and tools; nothing is executed", "運用の手順を聞く（実行はしない）"},
	"routing.help.research":     {"look something up", "調べものをする"},
	"routing.help.code":         {"have code written, by the coder that fits", "コードを書く（内容に合う担当が書く）"},
	"routing.help.code1":        {"have a specification or design written", "仕様・設計をまとめる"},
	"routing.help.code2":        {"have code written", "コードを書く"},
	"routing.help.code3":        {"have code written with extra care", "失敗できないコードを書く"},
	"routing.help.local":        {"use models of this machine and network only", "ローカルのモデルだけを使う"},
	"routing.help.cloud":        {"use models of clouds again, where the settings allow it", "設定の許す範囲でクラウドのモデルも使う"},
	"routing.help.repo":         {"name the repository of this session, or show it", "このセッションのリポジトリを決める・表示する"},
	"routing.help.approve":      {"grant a proposal", "提案を承認する"},
	"routing.help.deny":         {"deny a proposal", "提案を却下する"},
	"routing.help.auto-approve": {"grant proposals of this kind for a while", "しばらくの間、範囲内の提案を自動で承認する"},
	"routing.help.jobs":         {"list the jobs of this session", "このセッションのジョブの一覧"},
	"routing.help.status":       {"show how this session stands", "このセッションの状態"},
	"routing.help.stop":         {"stop the turn at hand, or a job", "いまの応答、またはジョブを止める"},
	"routing.help.work":         {"work mode for the next N answers (8)", "次の N 回の応答を作業モードにする（8）"},
	"routing.help.normal":       {"end the work mode", "作業モードを終える"},
	"routing.help.show":         {"show the model or the channel in use", "使用中のモデル・チャネルを表示する"},
	"routing.help.list":         {"list models, channels or repositories", "モデル・チャネル・リポジトリの一覧"},
	"routing.help.help":         {"show the commands", "コマンドの一覧"},
}
