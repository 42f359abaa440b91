package i18n

func ledgerTexts() map[string]text {
	return map[string]text{
		"ledger.disk_full": {
			en: "the file system of %s is full: free some space there, or name another directory with --base-dir or context_storage.base_dir (%v)",
			ja: "%s のファイルシステムに空きがありません。空きを作るか、--base-dir または context_storage.base_dir で別のディレクトリーを指定してください（%v）",
		},
		"ledger.in_database": {
			"the contexts of %s lie in %s: set context_storage.backend to sqlite",
			"%s のコンテキストは %s にあります。context_storage.backend を sqlite にしてください",
		},
		"ledger.in_files": {
			"context_storage.backend is %s, and the contexts of %s lie in files: set it to jsonl, or name another context_storage.base_dir",
			"context_storage.backend は %s ですが、%s のコンテキストはファイルにあります。jsonl にするか、別の context_storage.base_dir を指定してください",
		},
		"migrate.held": {
			"%s has an owner that lives: stop it, and call this again",
			"%s は実行中です。停止してから、もう一度実行してください",
		},
		"migrate.differs": {
			"%s is there already and is not the same as %s: nothing was overwritten. Remove one of them, or name an empty place",
			"%s はすでに存在し、%s と内容が異なります。上書きはしていません。どちらかを削除するか、空の移行先を指定してください",
		},
		"migrate.damaged": {
			"%s is not what was read of %s: the copy is left there, and does not count",
			"%s は %s から読み取った内容と一致しません。コピーはそのまま残りますが、使われません",
		},
		"migrate.url": {
			"%q names no place of contexts: expected jsonl:DIRECTORY, sqlite:FILE (its name is ledger.db) or postgres://…",
			"%q はコンテキストの場所ではありません。jsonl:ディレクトリ、sqlite:ファイル（名前は ledger.db）、または postgres://… を指定してください",
		},
		"migrate.same": {
			"--from and --to name the same place",
			"--from と --to が同じ場所を指しています",
		},
		"migrate.done": {
			"%d copied (%s), %d were there already, %d rows of house.db",
			"%d 件をコピーしました（%s）。%d 件はコピー済みでした。house.db は %d 行です",
		},
		"migrate.dry": {
			"%d would be copied (%s), %d are there already; nothing was done",
			"%d 件がコピーされます（%s）。%d 件はコピー済みです。何も変更していません",
		},
		"migrate.note.ended": {
			"%s had not ended: it cannot go on here, and is failed",
			"%s は終わっていませんでした。ここでは続行できないため failed とします",
		},
		"migrate.note.no_row": {
			"%s has no row in tasks.db: nothing tells what became of it, and it is failed",
			"%s は tasks.db に行がなく、結果が分からないため failed とします",
		},
		"migrate.note.no_directory": {
			"%s has a row in tasks.db and no directory: what the row tells is carried over, its messages are missing",
			"%s は tasks.db に行があり、ディレクトリーがありません。行の内容だけを引き継ぎます（メッセージはありません）",
		},
		"migrate.note.no_uuid": {
			"a row of tasks.db has %q for a uuid: it is not carried over",
			"tasks.db に uuid が %q の行があります。引き継ぎません",
		},
		"ledger.no_url": {
			"context_storage.backend is postgres: name the server in context_storage.postgres.url, or in TORI_CONTEXT_STORAGE_POSTGRES_URL",
			"context_storage.backend が postgres です。context_storage.postgres.url か TORI_CONTEXT_STORAGE_POSTGRES_URL でサーバーを指定してください",
		},
		"ledger.no_bucket": {
			"%s lies in a bucket: set context_storage.blobs to the place that it was written to",
			"%s はバケットにあります。context_storage.blobs に、書き込んだ場所を指定してください",
		},
		"ledger.not_stored": {
			"%v: it was written there just now; see that context_storage.blobs names the right server, and what lies between",
			"%v: たった今書き込んだものです。context_storage.blobs のサーバーと、その間にあるものを確かめてください",
		},
		"ledger.object": {
			"a file lies in a bucket and cannot be read there: %v",
			"ファイルはバケットにありますが、読めません: %v",
		},
		"ledger.not_in_database": {
			"%s works with context_storage.backend: jsonl alone; for a database its own programs make copies: sqlite3 ledger.db .backup, or pg_dump",
			"%s は context_storage.backend: jsonl でのみ使えます。データベースは、そのプログラムでコピーしてください（sqlite3 ledger.db .backup、または pg_dump）",
		},
		"ledger.house_wait": {
			"another process has %s for itself, to mend or restore it: wait until it has ended",
			"別のプロセスが %s を修復または復元のため専有しています。終わるまで待ってください",
		},
		"ledger.house_busy": {
			"other processes are using %s: stop them first",
			"ほかのプロセスが %s を使用中です。先に止めてください",
		},
		"ledger.house_taken": {
			"another process is about to have %s for itself: wait until it has ended",
			"別のプロセスが %s を専有しようとしています。終わるまで待ってください",
		},
		"ledger.house_moved": {
			"%s was removed or replaced while it was open: stop every process that uses its directory and start again",
			"%s が使用中に削除または置き換えられました。このディレクトリを使うプロセスをすべて止めて、やり直してください",
		},
		"ledger.newer_index": {
			"%s has schema version %d, this program knows versions up to %d: use the newer program, or make the index anew for this one with tori reindex",
			"%s のスキーマは版 %d ですが、このプログラムが扱えるのは版 %d までです。新しいプログラムを使うか、tori reindex で索引を作り直してください",
		},
		"ledger.newer_house": {
			"%s has schema version %d, this program knows versions up to %d: use the newer program",
			"%s のスキーマは版 %d ですが、このプログラムが扱えるのは版 %d までです。新しいプログラムを使ってください",
		},
		"ledger.older": {
			"%s has schema version %d, of an older program, where %d is expected: bring it up to date with tori reindex",
			"%s のスキーマは古いプログラムの版 %d です（必要なのは版 %d）。tori reindex で更新してください",
		},
		"ledger.broken_index": {
			"%s cannot be used as the index (%v): make it anew from the directories with tori reindex",
			"%s は索引として使えません（%v）。tori reindex でディレクトリから作り直してください",
		},
		"ledger.broken_house": {
			"%s cannot be read (%v): bring it back from a backup, or move it aside; deliveries look for their own marks before they repeat anything",
			"%s を読めません（%v）。バックアップから戻すか、別名に変えてください。配信は繰り返す前に自分の印を確かめます",
		},
		"ledger.no_index": {
			"there is no index at %s (%v): make it from the directories with tori reindex",
			"%s に索引がありません（%v）。tori reindex でディレクトリから作ってください",
		},
		"ledger.incomplete_index": {
			"%s does not hold every run: make it anew with tori reindex",
			"%s にはすべての実行が入っていません。tori reindex で作り直してください",
		},
		"ledger.stale_index": {
			"%s cannot be read on this disk without losing what its %s holds: copy the directory to a disk that can be written",
			"%s は、このディスクのままでは %s の内容を欠いてしか読めません。書き込めるディスクにディレクトリごと複写してください",
		},
		"ledger.bad_cursor": {
			"%q is no place in a listing: use the one that the page before gave, or begin anew without it",
			"%q は一覧の位置ではありません。前のページが示した値を使うか、指定せずに最初から始めてください",
		},
		"ledger.ack_other": {
			"the delivery %s is already recorded for run %s, now run %s reports it: idempotency keys must differ",
			"配信 %s は実行 %s のものとして記録済みですが、実行 %s から届きました。冪等キーは重複できません",
		},
	}
}
