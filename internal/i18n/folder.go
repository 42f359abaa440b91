package i18n

// folderTexts are the words of forge/folder where it is used as a forge.
func folderTexts() map[string]text {
	return map[string]text{
		"folder.no_dir": {
			en: "there is no directory %s for issues; create it or correct the setting",
			ja: "Issue 用のディレクトリ %s がありません。作成するか、設定を直してください",
		},
		"folder.no_repo": {
			en: "this folder holds the issues of %s, not of %s; check the name (owner/name)",
			ja: "このフォルダーは %s の Issue 用で、%s のものはありません。名前（owner/name）を確認してください",
		},
		"folder.no_issue": {
			en: "there is no issue %[2]q in %[1]s; its file may have been removed or renamed",
			ja: "%[1]s に Issue %[2]q がありません。ファイルが削除されたか、名前が変わった可能性があります",
		},
		"folder.same_id": {
			en: "%s and %s both have the id %s; give one of them another (id: in its front matter, or its name)",
			ja: "%s と %s の ID がどちらも %s です。片方を変えてください（フロントマターの id かファイル名）",
		},
		"folder.some_unreadable": {
			en: "%d issues in %s cannot be read and are left out; the first: %v",
			ja: "%[2]s の Issue のうち %[1]d 件を読み取れず、除外しました。最初のもの: %[3]v",
		},
		"folder.labels_unwritable": {
			en: "the labels in %s cannot be changed without changing more; write them in the front matter as labels: [a, b] or one to a line",
			ja: "%s のラベルだけを書き換えることができません。フロントマターに labels: [a, b] の形か 1 行に 1 つずつ書いてください",
		},
		"folder.changing": {
			en: "%s keeps changing while its labels are written; close it in other programs, or wait",
			ja: "%s のラベルを書き込む間に内容が変わり続けています。他のプログラムで閉じるか、しばらく待ってください",
		},
		"folder.marker": {
			en: "the marker %q is not usable: letters, digits, '.', '_' and '-' only",
			ja: "目印 %q は使えません。英数字と「.」「_」「-」だけが使えます",
		},
	}
}
