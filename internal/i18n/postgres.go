package i18n

// postgresTexts are about the server that the ledger may lie on.
func postgresTexts() map[string]text {
	return map[string]text{
		"postgres.url": {
			"the URL of PostgreSQL cannot be read: it looks like postgres://user@host:5432/database, and of a password in it each @ : / ? # %% is written as %%40 %%3A %%2F %%3F %%23 %%25",
			"PostgreSQL の URL を読み取れません。postgres://user@host:5432/database の形で書き、パスワードに含まれる @ : / ? # %% はそれぞれ %%40 %%3A %%2F %%3F %%23 %%25 と書いてください",
		},
		"postgres.parameter": {
			"the URL of PostgreSQL cannot be used: %s",
			"PostgreSQL の URL が使えません: %s",
		},
		"postgres.unreachable": {
			"%s cannot be reached: see that the server runs, and that the address and TLS settings are right (%v)",
			"%s に接続できません。サーバーが動いているか、アドレスと TLS の設定が正しいか確かめてください（%v）",
		},
		"postgres.login": {
			"%s refused the login: check user, password and database, and what pg_hba.conf lets in (%v)",
			"%s がログインを拒否しました。ユーザー、パスワード、データベース名と、pg_hba.conf の許可を確かめてください（%v）",
		},
		"postgres.too_old": {
			"%s is version %d: version %d or newer is needed",
			"%s のバージョンは %d です。%d 以降が必要です",
		},
		"postgres.encoding": {
			"the database of %s keeps its texts in %s: make one with ENCODING 'UTF8'",
			"%s のデータベースの文字コードは %s です。ENCODING 'UTF8' で作ったものを使ってください",
		},
		"postgres.no_schema": {
			"%s has no schema for the tables: name one in the URL (?search_path=tori), or make one",
			"%s にテーブルを置くスキーマがありません。URL で指定する（?search_path=tori）か、作成してください",
		},
		"postgres.rights": {
			"%s lacks a right: the user must own the schema, or may make tables and functions in it (GRANT USAGE, CREATE ON SCHEMA ... TO ...) (%v)",
			"%s で権限が足りません。ユーザーをスキーマの所有者にするか、テーブルと関数を作る権限を与えてください（GRANT USAGE, CREATE ON SCHEMA ... TO ...）（%v）",
		},
		"postgres.read_only": {
			"%s is a replica, or read-only: name the primary, or all servers of the cluster, in the URL",
			"%s はレプリカか読み取り専用です。プライマリー、またはクラスターの全サーバーを URL で指定してください",
		},
		"postgres.disk_full": {
			"the disk of %s is full: free some space there (%v)",
			"%s のディスクに空きがありません。空きを作ってください（%v）",
		},
		"postgres.newer": {
			"the tables of %s have version %d (%s), this program knows versions up to %d: use the newer program",
			"%s のテーブルは版 %d（%s）ですが、このプログラムが扱えるのは版 %d までです。新しいプログラムを使ってください",
		},
		"postgres.older": {
			"the tables of %s have version %d (%s), where %d is expected: start tori serve or tori worker of this version once, which brings them up to date",
			"%s のテーブルは版 %d（%s）です（必要なのは版 %d）。この版の tori serve か tori worker を一度起動すると更新されます",
		},
	}
}
