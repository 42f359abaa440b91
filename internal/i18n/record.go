package i18n

// recordTexts are the texts of llm/record, and of llm/script for what it replays.
func recordTexts() map[string]text {
	return map[string]text{
		"record.exists": {
			"The record %s exists already and is not overwritten. Name another file, or remove this one.",
			"記録ファイル %s は既に存在するため上書きしません。別のファイル名を指定するか、このファイルを削除してください。",
		},
		"record.create": {
			"The record %s cannot be created: %v. Name a file in a directory that exists and can be written to.",
			"記録ファイル %s を作成できません: %v。書き込める既存のディレクトリのファイルを指定してください。",
		},
		"record.write": {
			"The record %s cannot be written: %v. What was answered before is in it; the answers from here on are not.",
			"記録ファイル %s に書き込めません: %v。これより前の回答は記録済みですが、以後の回答は記録されません。",
		},
		"script.finish": {
			"finish must be one of %s",
			"finish は %s のいずれかにしてください",
		},
		"script.usage": {
			"usage must hold numbers from 0 on",
			"usage の値は 0 以上の数にしてください",
		},
	}
}
