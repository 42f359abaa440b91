package i18n

// conversationTexts are what the chat door says itself, beside what models write.
var conversationTexts = map[string]text{
	"config.want.clock": {"a time of the day as HH:MM, such as 04:00", "HH:MM の時刻(04:00 など)"},

	"conversation.prompts_dir":   {"chat.prompts_dir: the folder %s cannot be read: %v", "chat.prompts_dir: フォルダー %s を読めません: %v"},
	"conversation.prompt_unread": {"%s cannot be read, what was read before stays in force: %v", "%s を読めません。以前に読んだ内容を使い続けます: %v"},
	"conversation.export_there":  {"%s is there already; nothing was written: name another folder, or remove it", "%s はすでにあります。何も書き込んでいません。別のフォルダーを指定するか、削除してください"},
	"conversation.stopped":       {"Stopped.", "停止しました。"},
	"conversation.too_many":      {"%d messages of this conversation wait already; send it again when one was answered", "この会話ではすでに %d 件のメッセージが待っています。答えが出てから、もう一度送ってください"},
	"conversation.cut":           {"[left out: %d more characters]", "[省略: 残り %d 文字]"},
	"conversation.left_out":      {"[left out: %d more items of material, which did not fit]", "[省略: 収まらなかった材料 %d 件]"},
	"conversation.task":          {"Task: %s", "依頼: %s"},
	"conversation.diff_files":    {"Files:\n%s", "対象のファイル:\n%s"},
	"conversation.diff_cut":      {"[a piece of the patch; it has %d lines]", "[パッチの一部。全体は %d 行]"},
	"conversation.schema":        {"The JSON Schema of your answer:", "答えの JSON Schema:"},

	"conversation.chat_down":    {"I cannot answer right now: the model I speak through does not answer. Your message is kept; please try again in a moment.", "今は答えられません。会話のモデルから返事がありません。メッセージは保存してあります。少し待ってから、もう一度お願いします。"},
	"conversation.broken":       {"This conversation cannot be continued right now: %v", "今はこの会話を続けられません: %v"},
	"conversation.loading":      {"%s's model is being loaded; this takes a moment.", "%s のモデルを読み込んでいます。少しお待ちください。"},
	"conversation.job":          {"Job %s. /jobs shows how far it is.", "ジョブ %s。/jobs で進み具合を見られます。"},
	"conversation.no_jobs":      {"nothing can be coded here: set routing.llm.coder_provider and routing.llm.coder_model", "ここではコーディングできません。routing.llm.coder_provider と routing.llm.coder_model を設定してください"},
	"conversation.no_approvals": {"there are no proposals to decide on here", "ここには承認する提案がありません"},

	"conversation.declare_code":     {"I'll write the code.", "コーディングするね。"},
	"conversation.declare_code1":    {"I'll draw up the design.", "設計・仕様をまとめるね。"},
	"conversation.declare_code2":    {"I'll write the code.", "コーディングするね。"},
	"conversation.declare_code3":    {"I'll write this with extra care.", "高品質なコードを作るね。"},
	"conversation.declare_analyze":  {"I'll sort and analyse this.", "整理して分析するね。"},
	"conversation.declare_plan":     {"I'll lay out a plan.", "段取りを組むね。"},
	"conversation.declare_ops":      {"I'll walk you through it.", "手順で案内するね。"},
	"conversation.declare_research": {"I'll look into it.", "調べてまとめるね。"},

	"conversation.local": {"Working locally only; /cloud lifts it.", "ローカルだけで動きます。/cloud で解除できます。"},
	"conversation.cloud": {"Cloud models may be used again.", "クラウドも使えます。"},

	"conversation.repository":         {"Repository: %s (to choose from: %s)", "リポジトリ: %s（選べるもの: %s）"},
	"conversation.repository_set":     {"Repository: %s", "リポジトリ: %s"},
	"conversation.no_repository":      {"No repository is set. /repo NAME sets one; to choose from: %s", "リポジトリは決まっていません。/repo 名前 で決められます。選べるもの: %s"},
	"conversation.unknown_repository": {"%s is no repository that can be named here; to choose from: %s", "%s はここで選べるリポジトリではありません。選べるもの: %s"},
	"conversation.none":               {"none", "なし"},

	"conversation.no_job_runs":     {"No job is running.", "動いているジョブはありません。"},
	"conversation.job_stopping":    {"Job %s is being stopped.", "ジョブ %s を止めています。"},
	"conversation.stopping":        {"Stopping.", "止めています。"},
	"conversation.nothing_to_stop": {"Nothing is running here.", "動いているものはありません。"},
	"conversation.idle":            {"Nobody is working on anything.", "誰も作業していません。"},
	"conversation.no_help":         {"There is no command %s. /help lists all.", "%s というコマンドはありません。/help で一覧を見られます。"},
	"conversation.work_on":         {"Work mode for the next %d answers; /normal ends it.", "次の %d 回の答えは仕事モードです。/normal で終わります。"},
	"conversation.work_left":       {"Work mode: %d more answers.", "仕事モード: あと %d 回。"},
	"conversation.work_off":        {"Work mode is off.", "仕事モードはオフです。"},
	"conversation.channel":         {"Channel %s, session %s", "チャネル %s、セッション %s"},

	"conversation.decided_granted":       {"Granted: %s", "承認しました: %s"},
	"conversation.decided_denied":        {"Denied: %s", "却下しました: %s"},
	"conversation.decided_auto_approved": {"Approved automatically: %s", "自動で承認しました: %s"},
	"conversation.decided_pending":       {"Still waiting for a decision: %s", "まだ承認を待っています: %s"},
}
