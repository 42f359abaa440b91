package index

import (
	"fmt"
	"strings"

	"toritsugi/internal/contextstore/database"
)

// countedColumns are the columns that counters follow from.
const countedColumns = `status, user, owner, repo, model, started_at, completed_at, llm_call_count, tool_call_count, total_tokens, compression_count, ` +
	`compression_failures, message_count, bytes, ` + spendingColumns

// postgresOf is the text of postgres.sql with what follows from the columns.
func postgresOf(text string) string {
	names := strings.Split(counterColumns, ", ")
	var add []string
	for _, n := range names {
		add = append(add, n+" = c."+n+" + excluded."+n)
	}
	changed := StatsFilter{}.of(`(SELECT 1 AS sign, c.* FROM unnest(came) AS c UNION ALL SELECT -1, g.* FROM unnest(gone) AS g) AS changed`, "sign, "+rowColumns()).sql
	var count, clearing strings.Builder
	for _, c := range counters {
		by := byKeys[strings.Count(c.keys, ",")]
		fmt.Fprintf(&count, `INSERT INTO %s AS c SELECT %s, sum(sign * %s) FROM (%s) AS changed GROUP BY %s ORDER BY %s ON CONFLICT (%s) DO UPDATE SET %s;`+"\n    ",
			c.table, c.of, strings.Join(names, "), sum(sign * "), changed, by, by, c.keys, strings.Join(add, ", "))
		fmt.Fprintf(&clearing, "DELETE FROM %s WHERE tasks = 0 AND (%s) IN (SELECT %s FROM (%s) AS changed);\n        ", c.table, c.keys, c.of, changed)
	}
	return strings.NewReplacer("{count}", count.String(), "{clear}", clearing.String(), "{ended}", ended, "{columns}", countedColumns,
		"{old}", prefixed("OLD.", countedColumns), "{new}", prefixed("NEW.", countedColumns)).Replace(text)
}

// endsCounted brings counters up to date that know nothing of endColumns.
func endsCounted() string {
	var b strings.Builder
	b.WriteString(postgresOf(postgresSQL)) // first, for it takes the lock that whoever ends a run takes first
	for _, c := range counters {
		fmt.Fprintf(&b, "ALTER TABLE %s ADD COLUMN IF NOT EXISTS %s BIGINT NOT NULL DEFAULT 0;\n", c.table,
			strings.Join(endColumns(), " BIGINT NOT NULL DEFAULT 0, ADD COLUMN IF NOT EXISTS "))
	}
	for _, c := range counters {
		b.WriteString("TRUNCATE " + c.table + ";\n")
	}
	return b.String() + database.Translated(strings.Join(countersSQL(true), ";\n")) + ";\n"
}
