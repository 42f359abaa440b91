package i18n

// limitsTexts name the limits of the sandbox, with how much each allows.
func limitsTexts() map[string]text {
	return map[string]text{
		"agent.over_limit": {"killed: %s", "制限で停止: %s"},
		"limit.cpu":        {"processor time limit of %s", "CPU時間の上限 %s"},
		"limit.memory":     {"memory limit of %s", "メモリーの上限 %s"},
		"limit.processes":  {"limit of %s processes at once", "同時プロセス数の上限 %s"},
		"limit.disk":       {"limit of %s written to disk", "ディスク書き込みの上限 %s"},
		"limit.space":      {"the disk is nearly full", "ディスクの空きがほとんどありません"},
		"limit.machine":    {"the memory of the machine is nearly all taken", "マシンのメモリの空きがほとんどありません"},
		"limit.files":      {"limit of %s new files, or the last that the disk has", "新しいファイル数の上限 %s（またはディスクに残るファイル数の下限）"},
		"limit.file_size":  {"limit of %s for one file", "1ファイルの上限 %s"},
		"limit.output":     {"output limit of %s", "出力の上限 %s"},
	}
}
