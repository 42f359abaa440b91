package i18n

// conversationTexts are what the chat door says itself, beside what models write.
var conversationTexts = map[string]text{
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
}
