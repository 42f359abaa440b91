package index

import (
	"fmt"
	"strings"
)

// otherwise are texts of the queries with what PostgreSQL is told instead: see postgres.sql.
var otherwise = []string{
	rowTimed, `CASE WHEN took_ms IS NULL THEN 0 ELSE 1 END`,
	rowMS, `coalesce(took_ms, 0)`,
	uuidBegins, `uuid ~~ lower(?)`, // so that the key's index finds it
}

// countedColumns are the columns that counters follow from.
const countedColumns = `status, user, owner, repo, model, started_at, completed_at, llm_call_count, tool_call_count, total_tokens, compression_count, ` +
	`compression_failures, message_count, bytes, ` + spendingColumns

// postgresOf is the text of postgres.sql with what follows from the columns.
func postgresOf(text string) string {
	names := strings.Split(totalColumns, ", ")
	var add []string
	for _, n := range names {
		add = append(add, n+" = c."+n+" + excluded."+n)
	}
	counted := strings.Split(countedColumns, ", ")
	changed := StatsFilter{}.of(`(SELECT 1 AS sign, c.* FROM unnest(came) AS c UNION ALL SELECT -1, g.* FROM unnest(gone) AS g) AS changed`, "sign, "+rowColumns()).sql
	var count, clearing strings.Builder
	for _, c := range counters {
		by := byKeys[strings.Count(c.keys, ",")]
		fmt.Fprintf(&count, `INSERT INTO %s AS c SELECT %s, sum(sign * %s) FROM (%s) AS changed GROUP BY %s ORDER BY %s ON CONFLICT (%s) DO UPDATE SET %s;`+"\n    ",
			c.table, c.of, strings.Join(names, "), sum(sign * "), changed, by, by, c.keys, strings.Join(add, ", "))
		fmt.Fprintf(&clearing, "DELETE FROM %s WHERE tasks = 0 AND (%s) IN (SELECT %s FROM (%s) AS changed);\n        ", c.table, c.keys, c.of, changed)
	}
	return strings.NewReplacer("{count}", count.String(), "{clear}", clearing.String(), "{ended}", ended, "{columns}", countedColumns,
		"{old}", "OLD."+strings.Join(counted, ", OLD."), "{new}", "NEW."+strings.Join(counted, ", NEW.")).Replace(text)
}
