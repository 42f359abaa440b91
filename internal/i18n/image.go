package i18n

// imageTexts are about images that are shown to models.
func imageTexts() map[string]text {
	return map[string]text{
		"image.dropped":     {"the image %s is not shown to the model: %v", "画像 %s はモデルに見せません: %v"},
		"image.more":        {"%d more images are not shown to the model", "ほかに画像 %d 件をモデルに見せません"},
		"image.with_resume": {"--resume takes a run up with the images that it began with: it goes without --image", "--resume は最初の画像のまま再開します。--image は指定できません"},

		"image.empty_path":        {"no path was given", "パスが空です"},
		"image.read_failed":       {"it cannot be read, or is no plain file", "読み取れないか、通常のファイルではありません"},
		"image.file_too_large":    {"it is larger than %d MiB", "%d MiB を超えています"},
		"image.unsupported_type":  {"its content is not png, jpeg, gif or webp", "内容が png、jpeg、gif、webp のいずれでもありません"},
		"image.too_many":          {"a message takes %d images and %d MiB of them at most", "一つのメッセージに付けられる画像は %d 件、合計 %d MiB までです"},
		"image.outside_directory": {"it lies outside of the issue's directory and of the repository", "issue のディレクトリとリポジトリの外にあります"},

		"check.found.image_missing":    {"refers to %s, which is not there", "%s を参照していますが、ありません"},
		"check.found.image_differs":    {"refers to %s, whose content is not what was written", "%s を参照していますが、内容が書き込んだものと異なります"},
		"check.found.image_unreadable": {"refers to the image %q, which cannot be read: %v", "画像 %q を参照していますが、読み取れません: %v"},

		"cli.help.image": {"Show the model an image (png, jpeg, gif, webp) with the request; may be repeated.", "依頼とともに画像（png、jpeg、gif、webp）をモデルに見せる（複数指定可）。"},
	}
}
