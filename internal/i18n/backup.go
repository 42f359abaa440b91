package i18n

func backupTexts() map[string]text {
	return map[string]text{
		"backup.no_place": {
			"no place for backups is named: give a directory, s3://BUCKET/PREFIX or azure://CONTAINER/PREFIX, or set backup.dir",
			"バックアップの置き場所が指定されていません。ディレクトリー、s3://BUCKET/PREFIX、azure://CONTAINER/PREFIX のどれかを指定するか、backup.dir を設定してください",
		},
		"bucket.no_login": {
			"%s cannot be used without a login: set backup.s3.access_key and backup.s3.secret_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
			"%s を使うには認証情報が必要です。backup.s3.access_key と backup.s3.secret_key、または AWS_ACCESS_KEY_ID と AWS_SECRET_ACCESS_KEY を設定してください",
		},
		"bucket.no_azure_login": {
			"%s cannot be used without a login: set backup.azure.account and backup.azure.key, or AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, to the name of the storage account and one of its keys (base64, as Azure shows them)",
			"%s を使うには認証情報が必要です。backup.azure.account と backup.azure.key、または AZURE_STORAGE_ACCOUNT と AZURE_STORAGE_KEY に、ストレージ アカウントの名前とそのキー（Azure が表示する base64 のまま）を設定してください",
		},
		"bucket.kind": {
			"%q names no place: expected a directory, s3://BUCKET/PREFIX or azure://CONTAINER/PREFIX",
			"%q は置き場所の指定ではありません。ディレクトリー、s3://BUCKET/PREFIX、azure://CONTAINER/PREFIX のどれかで指定してください",
		},
		"bucket.clock": {
			"%v; this machine's clock differs from the server's by %v, and signatures are good for 15 minutes: set the clock",
			"%v。このマシンの時計がサーバーと %v ずれています。署名の有効範囲は 15 分なので、時計を合わせてください",
		},
		"bucket.key": {
			"%v; the key is not the one that the server knows: compare the login, of backup.s3 or backup.azure, with what is valid there now",
			"%v。サーバーが知っているキーではありません。backup.s3 または backup.azure の認証情報が、サーバー側で現在有効なものか確かめてください",
		},
		"backup.no_directory": {
			"%s is no directory: name one",
			"%s はディレクトリーではありません。ディレクトリーを指定してください",
		},
		"backup.recipient": {
			"backup.recipients: %q is no public key of age (%v): expected age1… as age-keygen prints it",
			"backup.recipients: %q は age の公開鍵ではありません（%v）。age-keygen が表示する age1… の形で指定してください",
		},
		"backup.identity": {
			"the file of secret keys %s cannot be used (%v): expected what age-keygen writes, AGE-SECRET-KEY-1… on a line",
			"秘密鍵のファイル %s を使えません（%v）。age-keygen が書き出す AGE-SECRET-KEY-1… の行が必要です",
		},
		"backup.own_identity": {
			"%s cannot be used (%v): bring it back, or remove it; without it the next backup needs a place of its own, and what was encrypted is read with the secret key of backup.recipients alone",
			"%s を使えません（%v）。元に戻すか、削除してください。なくなると次のバックアップには別の置き場所が必要になり、暗号化されたものは backup.recipients の秘密鍵でしか読めません",
		},
		"backup.locked": {
			"what lies in %s is encrypted, and no key that is known opens it: name the file of the secret key with --identity or backup.identity_file",
			"%s の内容は暗号化されていて、手元の鍵では開けません。--identity または backup.identity_file で秘密鍵のファイルを指定してください",
		},
		"backup.inside": {
			"backups cannot lie in %s, which is in the base directory %s: what destroys that destroys them; name a place elsewhere, on another disk if there is one",
			"%s はベースディレクトリー %s の中なので、バックアップを置けません。もろともに失われます。別の場所を、できれば別のディスクに指定してください",
		},
		"backup.busy": {
			"another backup or restore of %s is under way: wait until it has ended",
			"%s の別のバックアップまたは復元が進行中です。終わるまで待ってください",
		},
		"backup.other_house": {
			"%s holds backups of another base directory than %s: name another place, such as a subdirectory",
			"%s には %s とは別のベースディレクトリーのバックアップがあります。サブディレクトリーなど別の場所を指定してください",
		},
		"backup.none": {
			"there is no backup in %s: make one with tori backup, or name the right place",
			"%s にバックアップがありません。tori backup で作成するか、正しい場所を指定してください",
		},
		"backup.no_generation": {
			"%s has no generation %d: tori backup list tells which there are",
			"%s に世代 %d はありません。tori backup list で確認してください",
		},
		"backup.generation": {
			"there is no generation %d, they count from 1: tori backup list tells which there are",
			"世代 %d はありません。世代は 1 から数えます。tori backup list で確認してください",
		},
		"backup.newer": {
			"%s has format %d, this program knows formats up to %d: use the newer program",
			"%s の形式は %d ですが、このプログラムが扱えるのは %d までです。新しいプログラムを使ってください",
		},
		"backup.damaged": {
			"%s of the backup is damaged or missing: what needs it cannot be restored from here; the other generations may be whole, and the next backup writes it anew where the base directory still has it",
			"バックアップの %s が壊れているか、ありません。これを必要とするものは復元できません。ほかの世代は無事かもしれません。ベースディレクトリーに残っていれば、次のバックアップで書き直されます",
		},
		"bucket.server": {
			"%s does not take or give what it should (%s: %v): see to the server, the login and its rights, and begin again; what was written is used",
			"%s とのやり取りに失敗しました（%s: %v）。サーバー、認証情報、権限を確かめてからやり直してください。書き込み済みの分は再利用されます",
		},
		"backup.full": {
			"%s is full: make room there, or name another place, and begin again; what was written is used",
			"%s がいっぱいです。空きを作るか別の場所を指定してから、やり直してください。書き込み済みの分は再利用されます",
		},
		"backup.unwritable": {
			"%s does not take what is written to it (%v): mend that, or name another place, and begin again; what was written is used",
			"%s に書き込めません（%v）。原因を取り除くか別の場所を指定してから、やり直してください。書き込み済みの分は再利用されます",
		},
		"backup.no_room": {
			"%s has %s free, the restore needs %s: make room, or restore elsewhere with --to",
			"%s の空きは %s で、復元には %s 必要です。空きを作るか、--to で別の場所に復元してください",
		},
		"backup.not_empty": {
			"%s is in use already (%s): nothing was restored. Restore elsewhere with --to DIR, or only one run with --task UUID, or move what is there aside with --force",
			"%s はすでに使われています（%s）。何も復元していません。--to DIR で別の場所に復元するか、--task UUID で 1 件だけ復元するか、--force で今あるものを脇に移してください",
		},
		"backup.no_run": {
			"run %s: generation %d has %d runs whose uuid begins so, where one is expected",
			"実行 %s: 世代 %d で uuid がこれで始まる実行は %d 件です（1 件である必要があります）",
		},
		"backup.run_there": {
			"run %s is at %s and is not as in the backup: nothing was restored. Restore elsewhere with --to DIR; one that has ended is moved aside with --force",
			"実行 %s は %s にあり、バックアップとは異なります。何も復元していません。--to DIR で別の場所に復元してください。終了した実行なら --force で脇に移せます",
		},
		"backup.not_tested": {
			"generation %d was restored for a test, and tori check finds %d damages in it that were copied with it: %s. What else it holds is whole; run tori check --repair on the base directory, or restore these runs from an older generation",
			"世代 %d を試しに復元したところ、複写元にあった損傷が tori check で %d 件見つかりました: %s。ほかは正常です。ベースディレクトリーで tori check --repair を実行するか、該当する実行を古い世代から復元してください",
		},
		"backup.verify_damage": {
			"%d generations of %s are damaged: the next backup writes everything anew",
			"%d 世代が壊れています（%s）。次のバックアップですべて書き直されます",
		},
		"backup.verify_older": {
			"%d older generations of %s are damaged, and the last one is whole: they go with backup.generations as new ones are made",
			"%d 世代が壊れています（%s）。最新の世代は正常です。古い世代は、新しい世代ができると backup.generations に従って削除されます",
		},
		"backup.verify_unkept": {
			"%d generations of %s are damaged, and the base directory %s cannot note that: make the next backup in another place, which is empty",
			"%d 世代が壊れています（%s）。ベースディレクトリー %s に記録できないため、次のバックアップは別の空の場所に作成してください",
		},

		"cli.help.backup":             {"Copy what must not be lost to a directory or bucket, in generations.", "失えないものをディレクトリーまたはバケットに世代別に複写する。"},
		"cli.help.backup_make":        {"Make a backup (the default).", "バックアップを作成する（既定）。"},
		"cli.help.backup_place":       {"Directory, s3://BUCKET/PREFIX or azure://CONTAINER/PREFIX; backup.dir where none is named.", "ディレクトリー、s3://BUCKET/PREFIX または azure://CONTAINER/PREFIX。省略時は backup.dir。"},
		"cli.help.backup_list":        {"List the generations.", "世代を一覧する。"},
		"cli.help.backup_verify":      {"Read all generations and tell which can be restored whole: exit 2 where one cannot.", "すべての世代を読み、完全に復元できるかを確かめる。壊れた世代があれば終了コード 2。"},
		"cli.help.backup_identity":    {"File of age's secret keys for an encrypted backup; backup.identity_file where none is named.", "暗号化されたバックアップ用の、age の秘密鍵のファイル。省略時は backup.identity_file。"},
		"cli.help.restore":            {"Bring a backup back, checked, into an empty base directory, or one run of it.", "バックアップを検査して、空のベースディレクトリーに復元する。実行 1 件だけの復元もできる。"},
		"cli.help.restore_source":     {"Where the backups are: a directory, s3://BUCKET/PREFIX or azure://CONTAINER/PREFIX.", "バックアップの場所。ディレクトリー、s3://BUCKET/PREFIX または azure://CONTAINER/PREFIX。"},
		"cli.help.restore_task":       {"Only this run (a unique beginning of its uuid).", "この実行だけを復元する（uuid の先頭部分）。"},
		"cli.help.restore_to":         {"Base directory to restore into; that of the settings where none is named.", "復元先のベースディレクトリー。省略時は設定のもの。"},
		"cli.help.restore_generation": {"Generation by its number; the latest where none is named.", "世代の番号。省略時は最新。"},
		"cli.help.restore_force":      {"Move what is there aside, into before-restore-… of the base directory.", "今あるものを、ベースディレクトリーの before-restore-… に移す。"},

		"cli.backup_done":      {"Generation %d in %s: %d runs, %d conversations, %s; %s written, %d old generations removed", "世代 %d（%s）: 実行 %d 件、会話 %d 件、%s。書き込み %s、古い世代の削除 %d 件"},
		"cli.backup_failed":    {"%d could not be read, and are as they were in the generation before or missing. The first: %v", "%d 件を読めませんでした。前の世代のままか、含まれていません。最初の 1 件: %v"},
		"cli.backup_unswept":   {"What no generation needs any more was left, because it cannot be told from the rest: %v", "不要になったものは、ほかと区別できないため残しました: %v"},
		"cli.backup_list_head": {"number  made at               runs  conversations        size     written", "番号    作成日時              実行           会話      サイズ    書き込み"},
		"cli.backup_none":      {"No backup in %s", "%s にバックアップはありません"},
		"cli.backup_encrypted": {"encrypted", "暗号化"},
		"cli.backup_whole":     {"Generation %d: whole, %d parts, %s", "世代 %d: 正常。%d 個、%s"},
		"cli.backup_broken":    {"Generation %d: %d parts cannot be restored. The first: %v", "世代 %d: %d 個を復元できません。最初の 1 個: %v"},
		"cli.backup_bad":       {"Generation %d cannot be read: %v", "世代 %d を読めません: %v"},
		"cli.backup_no_marks":  {"The base directory cannot be written, so that it does not know of this backup", "ベースディレクトリーに書き込めないため、このバックアップは記録されません"},
		"cli.restored":         {"Generation %d was restored into %s: %d runs, %d conversations", "世代 %d を %s に復元しました。実行 %d 件、会話 %d 件"},
		"cli.restored_run":     {"Run %s was restored from generation %d into %s", "実行 %s を世代 %d から %s に復元しました"},
		"cli.restore_same":     {"Run %s is there already, as it is in the backup", "実行 %s はすでにあり、バックアップと同じです"},
		"cli.restore_resumed":  {"A restore of generation %d into %s that had been cut short was brought to its end", "中断していた世代 %d の %s への復元を完了しました"},
		"cli.restore_aside":    {"What was there is in %s; remove it when you need it no more", "以前の内容は %s にあります。不要になったら削除してください"},
		"cli.restore_damage":   {"tori check finds %d damages in what was restored, which were there when the backup was made: run tori check", "復元したものに tori check が %d 件の損傷を見つけました。バックアップ時からあるものです。tori check を実行してください"},
	}
}
