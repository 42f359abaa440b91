package i18n

// projectTexts tell of checks that a project names and that could not be run.
func projectTexts() map[string]text {
	return map[string]text{
		"agent.not_run":            {"%s (%s is not installed where checks run)", "%s (%s がチェックの実行環境にありません)"},
		"agent.also_not_run":       {"%s; left out: %s", "%s。省いたチェック: %s"},
		"agent.needs":              {"Dependencies of the project are not installed where checks run: %s.", "プロジェクトの依存パッケージが、チェックの実行環境にインストールされていません: %s。"},
		"agent.needs_one":          {"%s (named in %s)", "%s（%s に記載）"},
		"agent.needs_auto":         {" The setting `setup: auto` would run `%s`.", "設定 `setup: auto` で `%s` を実行できます。"},
		"agent.needs_setup":        {" A command in the setting `setup` can install them.", "設定 `setup` に、インストールするコマンドを指定できます。"},
		"agent.needs_more":         {" What the setting `setup` runs does not install them.", "設定 `setup` のコマンドではインストールされていません。"},
		"agent.unverified_not_run": {"unverified: no check could be run", "未検証です: 実行できたチェックがありません"},
		"agent.no_change_not_run":  {"no change was made; no check could be run", "変更はありません。実行できたチェックもないため、検証していません"},
		"agent.also_not_found":     {"%s; %s could not be run: a program that it calls was not found, before the change as well (exit code 127; see the setting setup)", "%s。%s は実行できませんでした: 呼び出すプログラムが変更前からありません (終了コード 127。設定 setup を参照)"},
		"agent.open_not_run":       {"Nothing was verified: no check could be run.", "実行できたチェックがないため、何も検証していません。"},
		"agent.open_left_out":      {"Not run: %s.", "実行していません: %s。"},
		"agent.open_not_found":     {"%s could not be run: a program that it calls was not found, before the change as well.", "%s は実行できませんでした: 呼び出すプログラムが変更前からありません。"},
	}
}
