package i18n

// comparedTexts tell models and people how checks ended.
func comparedTexts() map[string]text {
	return map[string]text{
		"checks.before":         {"Checks, run before any change; what failed then need not be mended unless the task asks for it", "変更前に実行したチェック(課題が求めない限り、ここでの失敗を直す必要はありません)"},
		"checks.none":           {"Checks: the project has none.", "チェック: このプロジェクトにはありません。"},
		"checks.will":           {"Checks, which will be run on your change: %s.", "変更に対して実行するチェック: %s。"},
		"checks.left_out":       {"Checks that were left out, since what they need is not installed here; nobody will run them:", "必要なものがここに無いため省いたチェック（実行されることはありません）:"},
		"checks.passed":         {"`%s` passed", "`%s`: 合格"},
		"checks.timed_out":      {"`%s` did not end in time", "`%s`: 時間内に終わりませんでした"},
		"checks.limit":          {"`%s` was killed: %s", "`%s`: 強制終了されました（%s）"},
		"checks.failed":         {"`%s` failed with exit code %d", "`%s`: 失敗（終了コード %d）"},
		"checks.red":            {"failed before the change as well", "変更前から失敗しています"},
		"checks.new":            {"new failures (%d)", "新たな失敗（%d 件）"},
		"checks.no_new":         {"no new failures (%d known)", "新たな失敗なし（既知 %d 件）"},
		"checks.no_new_more":    {"no new failures (%d known, +%d passing)", "新たな失敗なし（既知 %d 件、合格 +%d 件）"},
		"checks.fixed":          {"fixed (%d)", "直ったテスト（%d 件）"},
		"checks.still":          {"still red (%d)", "以前から失敗のまま（%d 件）"},
		"checks.excused":        {"added tests that cannot run here, for want of what was missing before the change as well, so not broken by it (%d)", "追加されたが、変更前から無いもののためここでは動かないテスト。変更が壊したものではありません（%d 件）"},
		"checks.fewer":          {"fewer tests ran: %d -> %d", "実行されたテストが減りました: %d → %d"},
		"checks.fewer_packages": {"fewer packages were tested: %d -> %d", "テストされたパッケージが減りました: %d → %d"},
		"checks.feedback":       {"You said the work is done, so the checks were run on what your change will be, in a tree of their own: without files that git ignores, and with what setup made", "作業が終わったとのことなので、変更として引き渡すものに対して、専用のツリーでチェックを実行しました。git が無視するファイルは無く、setup が作ったものはあります"},
		"checks.feedback_end":   {"A check that fails because of your change must pass. One that failed before your change and has nothing to do with the task may stay as it is; say so in your final answer.", "変更が原因で失敗するチェックは、合格させてください。変更前から失敗していて依頼に関係のないものは、そのままで構いません。その場合は最後の回答でそう述べてください。"},
		"checks.feedback_fewer": {"A check passes, but ran less than half of the tests that ran before your change. If that is not what the task asks for, have them run again; if it is, say so in your final answer.", "チェックは合格しましたが、実行されたテストは変更前の半分未満です。依頼の求めることでなければ、再び実行されるようにしてください。求めることであれば、最後の回答でそう述べてください。"},
	}
}
