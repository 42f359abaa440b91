package i18n

// askingTexts are about questions to people.
var askingTexts = map[string]text{
	"agent.waits_for_answer":          {"an answer is needed: %s", "回答が必要です: %s"},
	"agent.comment_awaiting_approval": {"❓ **Waiting for an answer**", "❓ **回答を待っています**"},
	"agent.comment_asked":             {"Questions:", "質問:"},
	"agent.asked_open":                {"not answered yet", "未回答"},
	"agent.asked_timed_out":           {"nobody answered in time; the run went on with an assumption", "期限までに回答がなかったため、仮定を置いて続けました"},
	"agent.asked_answered":            {"%s: %s", "%s: %s"},
	"agent.somebody":                  {"somebody", "誰か"},
	"agent.question_title":            {"❓ **A question before the work can go on**", "❓ **作業を続ける前に確認があります**"},
	"agent.question_assume":           {"without an answer it is assumed: %s", "回答がない場合の仮定: %s"},
	"agent.question_how":              {"Answer with a comment here (who may ask for work may answer), or with `tori answer %s TEXT`.", "このページにコメントで回答してください（作業を依頼できる人の回答だけを受け付けます）。`tori answer %s TEXT` でも回答できます。"},
	"agent.question_how_here":         {"Answer below in this file, or with `tori answer %s TEXT`; then let the run go on with `tori run --resume`.", "このファイルの下に書くか、`tori answer %s TEXT` で回答し、`tori run --resume` で続けてください。"},
	"agent.question_waits":            {"The run waits until somebody answers.", "回答があるまで待ちます。"},
	"agent.question_until":            {"Without an answer until %s UTC it takes the reading that does the least harm, and says so.", "%s UTC までに回答がなければ、最も害の少ない解釈で続け、その旨を報告します。"},
	"agent.question_until_not":        {"Without an answer until %s UTC it is not done.", "%s UTC までに回答がなければ実行しません。"},
	"cli.end_awaiting_approval":       {"waiting: %s", "待機中: %s"},
	"cli.question":                    {"It asks:\n%s", "質問:\n%s"},
	"cli.answer_with":                 {"Answer with: tori answer %s TEXT   then: tori run --resume %s", "回答: tori answer %s TEXT   その後: tori run --resume %s"},
	"cli.answer_until":                {"Without an answer it goes on with an assumption when it is resumed after %s.", "%s 以降に再開すると、回答がなくても仮定を置いて続けます。"},
	"cli.answered":                    {"%s: the answer is recorded.", "%s: 回答を記録しました。"},
	"cli.not_asked":                   {"run %s waits for no answer (it is %s): tori show %s tells what it does", "実行 %s は回答を待っていません（%s）。状況は tori show %s で確認できます"},
	"cli.no_answer":                   {"no answer was given: write it behind the run, or give - to read it from standard input", "回答がありません。実行の後に書くか、- で標準入力から渡してください"},
	"cli.help.answer":                 {"Answer the question that a run waits for.", "実行が待っている質問に回答する。"},
	"cli.help.answer_text":            {"The answer; - reads it from standard input.", "回答。- で標準入力から読む。"},
}
