package i18n

// scanTexts are the words for what a reviewer should look at in a change.
func scanTexts() map[string]text {
	return map[string]text{
		"scan.heading":    {"**For the reviewer, found in the change**", "**レビュー時に確認してほしい点（変更内容から検出）**"},
		"scan.unverified": {"unverified: %s passed, but the change touches what decides over that: %s", "未検証です: %s は合格しましたが、その合否を左右するものをこの変更が変えています: %s"},
		"scan.unread":     {"unverified: %s passed, but not all of the change could be looked through", "未検証です: %s は合格しましたが、変更の一部を読み取れませんでした"},
		"scan.open":       {"The checks passed, but the change touches what decides over that: %s. Please look at it.", "チェックには合格しましたが、その合否を左右するものをこの変更が変えています: %s。確認してください。"},
		"scan.failed":     {"Not all of the change could be looked through; please look at it as a whole.", "変更の一部を読み取れませんでした。全体を確認してください。"},

		"scan.marker":          {"marks work that is left to do", "やり残しの印があります"},
		"scan.promise":         {"says that code is still to be written", "これから実装すると書かれた箇所があります"},
		"scan.elision":         {"stands for code that was left out", "コードが省略されています"},
		"scan.not_implemented": {"is not implemented", "未実装です"},
		"scan.empty_body":      {"a function without a body", "本体が空の関数です"},

		"scan.test_file_deleted": {"a file of tests was deleted", "テストのファイルが削除されました"},
		"scan.test_removed":      {"a test was removed", "テストが削除されました"},
		"scan.skip_added":        {"a test is skipped now", "テストが飛ばされるようになりました"},
		"scan.focus_added":       {"only this test is run, all others are left out", "このテストだけが実行され、ほかは実行されません"},
		"scan.fewer_assertions":  {"asserts less than before", "検証（アサーション）が減りました"},
		"scan.unreadable":        {"cannot be read as Go, or is too large to be judged: which of its tests run is not known", "Go として読めないか、大きすぎて判定できません。どのテストが実行されるか分かりません"},
		"scan.test_main":         {"changes TestMain, or what else takes a *testing.M: it decides whether the tests of its package run", "パッケージのテストを実行するかどうかを決める関数（TestMain など *testing.M を使うもの）が変更されました"},
		"scan.build_constraint":  {"decides by a build constraint whether the tests of this file are built", "ビルド制約により、このファイルのテストがビルドされるかどうかを左右します"},
		"scan.ends_tests":        {"ends the tests without an error", "テストをエラーなしで終了させます"},
		"scan.trivial_assertion": {"an assertion that is always true", "常に成り立つ検証（アサーション）です"},

		"scan.lost_test_file_deleted": {" (tests: %d)", "（テスト %d 件）"},
		"scan.lost_fewer_assertions":  {" (%d fewer)", "（%d 件減）"},

		"scan.golden":       {"what tests compare with was changed", "テストの期待値のファイルが変更されました"},
		"scan.ci":           {"configuration of CI was changed", "CI の設定が変更されました"},
		"scan.build":        {"configuration of the build was changed", "ビルドの設定が変更されました"},
		"scan.dependencies": {"dependencies may have changed", "依存関係の定義が変更されました"},
		"scan.scripts":      {"scripts of the package were changed", "パッケージのスクリプトが変更されました"},
		"scan.test_config":  {"configuration of the tests was changed", "テストの設定が変更されました"},
		"scan.lint_config":  {"configuration of a linter was changed", "リンターの設定が変更されました"},
		"scan.hooks":        {"hooks or attributes of the repository were changed", "リポジトリのフックや属性が変更されました"},
		"scan.runner":       {"decides which program runs the checks, and was changed", "チェックを実行するプログラムを決める設定が変更されました"},
		"scan.environment":  {"sets a variable that the tools of the checks take orders from", "チェックのツールを左右する変数が設定されました"},
		"scan.check_file":   {"decides what the checks check, and was changed", "チェックの内容を決めるファイルが変更されました"},
	}
}
