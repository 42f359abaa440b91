package i18n

func contextstoreTexts() map[string]text {
	return map[string]text{
		"contextstore.base_dir": {
			"base directory %s cannot be written: %v; choose another one with --base-dir or context_storage.base_dir, or mend its permissions",
			"ベースディレクトリ %s に書き込めません: %v。--base-dir か context_storage.base_dir で別の場所を指定するか、権限を直してください",
		},
		"contextstore.codes": {
			"%d codes wait to be used already: try again in some minutes",
			"未使用のコードがすでに %d 個あります。数分後にもう一度試してください",
		},
		"contextstore.newer_format": {
			"%s was written in format %d, this program knows formats up to %d: use the newer program",
			"%s は形式 %d で書かれていますが、このプログラムが扱えるのは形式 %d までです。新しい版を使ってください",
		},
		"contextstore.other_uuid": {
			"%s tells of run %q, not of the directory it lies in: move the directory away if it is a copy",
			"%s は置かれたディレクトリではなく実行 %q について書かれています。複製なら別の場所へ移してください",
		},
		"contextstore.keep_wait": {
			"run %s is as it was, retention is at work on another one and takes its time: try again",
			"実行 %s は変わっていません。保存期間の処理に時間がかかっています。もう一度試してください",
		},
		"contextstore.import_there": {
			"run %s is here already, and nothing was imported: it is never overwritten",
			"実行 %s はすでにあります。上書きはしないため、取り込みませんでした",
		},
		"contextstore.import_live": {
			"run %s is %q in its record: only a run that has ended can be imported",
			"記録の中の実行 %s は %q です。取り込めるのは終了した実行だけです",
		},
		"contextstore.import_uuid": {
			"this is no record of a run (metadata of %q, of %q): expected what tori export UUID --format json prints",
			"実行の記録ではありません（metadata は %q、uuid は %q）。tori export UUID --format json の出力が必要です",
		},
		"contextstore.import_format": {
			"its format is %s: expected what tori export UUID --format json prints",
			"形式が %s です。tori export UUID --format json の出力が必要です",
		},
		"contextstore.import_file": {
			"the record has a file %q: expected names of JSON files of a run, each once",
			"記録に %q というファイルがあります。実行の JSON ファイルの名前が一つずつ必要です",
		},
		"contextstore.import_broken": {
			"the record is damaged at byte %d (%v), and nothing was imported: export the run again",
			"記録の %d バイト目が壊れています（%v）。何も取り込んでいません。もう一度書き出してください",
		},
		"contextstore.export_findings": {
			"what was exported is not whole: %s line %d: %v; tori check tells all",
			"書き出した内容には欠けや矛盾があります: %s の %d 行目: %v。すべては tori check で分かります",
		},
		"contextstore.import_findings": {
			"the record is not whole, and nothing was imported: %s line %d: %v",
			"記録に欠けや矛盾があるため、何も取り込んでいません: %s の %d 行目: %v",
		},
		"contextstore.busy": {
			"run %s is in the hands of process %d on %s: wait for it, or stop that process first",
			"実行 %s はプロセス %d（%s）が処理中です。終わるのを待つか、先にそのプロセスを止めてください",
		},
		"contextstore.claim": {
			"run %s could not be taken up: %v",
			"実行 %s を引き受けられませんでした: %v",
		},
		"contextstore.log_changed": {
			"%s was removed, replaced or cut while the run was writing it: put it back, then resume; tori check tells what is missing",
			"%s は書き込み中に削除・置換・切り詰めされました。元に戻してから再開してください。欠けているものは tori check で分かります",
		},
		"contextstore.orphans": {
			"processes that the former owner of run %s started are still running (%s): wait for them or end them, then try again",
			"実行 %s の以前の持ち主が起動したプロセスがまだ動いています（%s）。終わるのを待つか終了させてから、やり直してください",
		},
		"contextstore.network_fs": {
			"base directory %s lies on %s, where locks and renames cannot be relied on: choose a directory on a local disk with --base-dir or context_storage.base_dir",
			"ベースディレクトリ %s は %s 上にあり、ロックと名前の変更を信頼できません。--base-dir か context_storage.base_dir でローカルディスク上の場所を指定してください",
		},
		"contextstore.other_device": {
			"%s lies on another file system than %s: a run moves between them in one step, so they must be on the same one",
			"%s は %s と別のファイルシステムにあります。実行は両者の間を一度に移動するので、同じファイルシステムに置いてください",
		},
		"contextstore.restore_cut": {
			"a restore into %s was cut short: run tori restore again, which brings it to its end",
			"%s への復元が途中で終わっています。tori restore をもう一度実行して完了させてください",
		},
		"contextstore.restore_begun": {
			"a restore into %s was begun and has not ended: run tori restore again, or remove %s to begin with nothing",
			"%s への復元が始まったまま終わっていません。tori restore をもう一度実行するか、空の状態から始めるなら %s を削除してください",
		},
		"contextstore.no_space": {
			"nothing new is begun: %s has %d MiB free, at least %d MiB are needed; make room, then try again",
			"新しい実行は始めません: %s の空きは %d MiB で、少なくとも %d MiB 必要です。空きを作ってからやり直してください",
		},
		"contextstore.had_ended": {
			"run %s has ended: it is %s, and stays so",
			"実行 %s はすでに終わっています（%s）。この状態は変わりません",
		},
		"contextstore.not_now": {
			"run %s is %s: it cannot be asked to %s now",
			"実行 %s は %s なので、今は %s できません",
		},
		"contextstore.state_lock": {
			"%s was not free for %s: another process is mending this run; try again when it is done",
			"%s を %s 待っても取得できませんでした。別のプロセスがこの実行を修復しています。終わってからやり直してください",
		},
		"contextstore.not_found": {
			"no run begins with %q in %s: see tori tasks, or name its directory with --base-dir",
			"%q で始まる実行は %s にありません。tori tasks で確かめるか、--base-dir で場所を指定してください",
		},
		"contextstore.ambiguous": {
			"%q fits more than one run: %s; give more of the uuid",
			"%q に当てはまる実行が複数あります: %s。uuid をもう少し長く指定してください",
		},
		"contextstore.bad_uuid": {
			"%q is no uuid nor the beginning of one: see tori tasks",
			"%q は uuid でもその先頭部分でもありません。tori tasks で確かめてください",
		},
		"contextstore.ancestor": {
			"%s is a tree of store-v%d, an older edition: it can be looked at (tori tasks, show, stats, check), nothing works in it; tori migrate copies it into a place of this format",
			"%s は古い版（store-v%d）のツリーです。参照（tori tasks, show, stats, check）はできますが、ここでは実行できません。tori migrate でこの形式の場所へコピーしてください",
		},
		"contextstore.log_damaged": {
			"%s of run %s is damaged and stays as it is, uncompressed: see `tori check`", "%s（実行 %s）は壊れているため、圧縮せずそのまま残します。`tori check` で確認してください",
		},
		"contextstore.base_file": {
			"%s is a file: give the base directory with --base-dir or context_storage.base_dir",
			"%s はファイルです。--base-dir か context_storage.base_dir でベースディレクトリーを指定してください",
		},
		"contextstore.empty_base": {
			"nothing ran in %s yet, or its disk is not mounted: see that it is, or give the base directory with --base-dir",
			"%s ではまだ何も実行されていないか、ディスクがマウントされていません。マウントを確かめるか、--base-dir でベースディレクトリーを指定してください",
		},
		"contextstore.no_base": {
			"no contexts at %s: %v; give the directory with --base-dir",
			"%s にコンテキストがありません: %v。--base-dir で場所を指定してください",
		},
	}
}
