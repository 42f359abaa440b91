package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/task"
)

// The names of the rows part's sample: rowsCount, rowsNaive, and for each
// question listPrefix, statsPrefix or seedPrefix and its name; times are ms.
const (
	rowsCount   = "rows count"
	rowsBytes   = "rows bytes" // of tasks.db
	rowsNaive   = "rows naive" // SELECT *, decode all
	listPrefix  = "list: "
	statsPrefix = "statistics: "
	seedPrefix  = "seed: "
)

const (
	rowsRounds = 9
	slowRounds = 3
	liveRows   = 2000
)

// rowsFrom is when the first of the rows was created, 2024-01-01; the last one
// is two years later.
const rowsFrom = 1704067200

// fillSQL makes :n rows: the newest :live have not ended, of the others 92 %
// are completed. h is a hash of i, so that uuids come in any order.
const fillSQL = `
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i+1 < ?1),
h(i, h, ended, at) AS (SELECT i, (i*2654435761) & 4294967295, i < ?1 - ?2, ` + fillAt + ` FROM n)
INSERT INTO tasks (uuid, task_source, owner, repo, task_type, task_id, status, created_at, started_at, completed_at, process_id, hostname,
	llm_provider, model, context_length, llm_call_count, tool_call_count, total_tokens, compression_count, error_message, user,
	generation, title, heartbeat_at, message_count, bytes,
	prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens, cost_micro_usd, unpriced_calls)
SELECT printf('%08x-0000-4000-8000-%012x', h, i),
	CASE h>>9 & 3 WHEN 0 THEN 'gitlab' ELSE 'github' END, 'owner' || ((h>>11)%200%20), 'repo' || ((h>>11)%200), 'issue',
	CASE WHEN ended THEN i/200 ELSE i END,
	CASE WHEN ended THEN CASE WHEN h%1000 < 60 THEN 'failed' WHEN h%1000 < 80 THEN 'stopped' ELSE 'completed' END
		WHEN h%20 = 0 THEN 'running' WHEN h%20 = 1 THEN 'awaiting_approval' WHEN h%20 < 5 THEN 'paused' ELSE 'queued' END,
	strftime('%Y-%m-%dT%H:%M:%S', at, 'unixepoch') || '.000000Z',
	strftime('%Y-%m-%dT%H:%M:%S', at+5, 'unixepoch') || '.000000Z',
	CASE WHEN ended THEN strftime('%Y-%m-%dT%H:%M:%S', at+5+h%3600, 'unixepoch') || '.000000Z' END,
	4711, 'worker-node-1', 'openai', 'gpt-4o', 128000, h%100, h%200, h%100000, h%3,
	CASE WHEN ended AND h%1000 < 60 THEN 'the checks failed' END, 'user' || ((h>>5)%50),
	1, 'Fix the bug in module number ' || i, strftime('%Y-%m-%dT%H:%M:%S', at+5+h%3600, 'unixepoch') || '.000000Z', h%300, h%1000000,
	h%90000, h%70000, h%10000, h%9000, h%4000, h%500000, h%2
FROM h`

// fillAt spreads the rows evenly over the time.
const fillAt = `1704067200 + i*63072000/?1`

// countersSQL is what the triggers would have made of those rows.
const countersSQL = `INSERT INTO task_days (day, user, status, tasks, llm_calls, tool_calls, tokens, compressions, compression_failures,
	messages, bytes, timed, duration_ms,
	prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens, cost_micro_usd, unpriced_calls,
	under_1m, under_5m, under_15m, under_30m, under_60m, under_240m)
SELECT substr(completed_at, 1, 10), user, status, count(*), sum(llm_call_count), sum(tool_call_count), sum(total_tokens), sum(compression_count),
	sum(compression_failures), sum(message_count), sum(bytes), count(*), sum(took_ms),
	sum(prompt_tokens), sum(cached_tokens), sum(cache_write_tokens), sum(completion_tokens), sum(reasoning_tokens), sum(cost_micro_usd), sum(unpriced_calls),
	sum(took_ms < 60000), sum(took_ms < 300000), sum(took_ms < 900000), sum(took_ms < 1800000), sum(took_ms < 3600000), sum(took_ms < 14400000)
FROM tasks WHERE completed_at IS NOT NULL GROUP BY 1, 2, 3`

// seedQueries are those of store-v3 §8.2 and §10.2, word for word.
func seedQueries() map[string]string {
	return map[string]string{
		"8.2 running tasks":  "SELECT uuid, task_source, owner, repo, task_type, task_id, started_at\nFROM tasks\nWHERE status = 'running'\nORDER BY started_at DESC;",
		"8.2 tasks by user":  "SELECT user, status, COUNT(*) as count\nFROM tasks\nGROUP BY user, status;",
		"8.2 failed tasks":   "SELECT uuid, error_message, created_at\nFROM tasks\nWHERE status = 'failed'\nORDER BY created_at DESC\nLIMIT 10;",
		"10.2 tasks":         "SELECT status, COUNT(*) FROM tasks GROUP BY status;",
		"10.2 average time":  "SELECT AVG(julianday(completed_at) - julianday(started_at)) * 24 * 60 as avg_minutes\nFROM tasks\nWHERE status = 'completed';",
		"10.2 tokens in use": "SELECT SUM(total_tokens) as total, AVG(total_tokens) as average\nFROM tasks\nWHERE status = 'completed';",
	}
}

// measureRows measures listings and statistics over many rows.
func measureRows(ctx context.Context, dir string, count int) (sample, error) {
	base := filepath.Join(dir, "base")
	store, err := openStore(ctx, base, contextstore.Options{}) // for the schema
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	path := filepath.Join(base, "tasks.db")
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(10000)&_pragma=synchronous(OFF)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-200000)")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // the pragmas are the connection's
	// If the filling fails all is thrown away, so it needs no journal.
	if _, err := db.ExecContext(ctx, `PRAGMA journal_mode=OFF`); err != nil {
		return nil, err
	}
	if err := fillRows(ctx, db, count); err != nil {
		return nil, fmt.Errorf("fill the index: %w", err)
	}
	if _, err := db.ExecContext(ctx, `PRAGMA journal_mode=WAL`); err != nil {
		return nil, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	s := sample{rowsCount: float64(count), rowsBytes: float64(st.Size())}
	// Queries are asked as anybody asks them, with a cache of the usual size.
	if _, err := db.ExecContext(ctx, `PRAGMA cache_size=-2000`); err != nil {
		return nil, err
	}
	if err := s.addFaces(ctx, db, base, count); err != nil {
		return nil, err
	}
	for name, query := range seedQueries() {
		s[seedPrefix+name], err = timed(ctx, slowRounds, nil, func() error { return drain(ctx, db, query) })
		if err != nil {
			return nil, fmt.Errorf("query of the seeds, %s: %w", name, err)
		}
	}
	return s, s.addAllRows(ctx, db)
}

// fillRows makes the rows, without indexes and triggers, and puts those back:
// so it takes a small part of the time.
func fillRows(ctx context.Context, db *sql.DB, count int) error {
	again, err := takeOff(ctx, db)
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, fillSQL, count, min(liveRows, count/10)); err != nil {
		return err
	}
	for _, query := range append([]string{countersSQL}, again...) {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// takeOff drops indexes and triggers of tasks and returns what makes them again.
func takeOff(ctx context.Context, db *sql.DB) (again []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT type, name, sql FROM sqlite_master WHERE tbl_name='tasks' AND type IN ('index', 'trigger') AND sql IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var drops []string
	for rows.Next() {
		var kind, name, query string
		if err := rows.Scan(&kind, &name, &query); err != nil {
			return nil, err
		}
		again, drops = append(again, query), append(drops, "DROP "+kind+" "+name)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for _, query := range drops {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return nil, err
		}
	}
	return again, nil
}

// question is what is asked of the index, as commands or as people do.
type question struct {
	name string
	ask  func(x *index.Index) error
}

// questions are the listings and statistics that are measured.
func questions(ctx context.Context, db *sql.DB, count int) []question {
	list := func(name string, f index.Filter) question {
		return question{name, func(x *index.Index) error {
			p, err := x.List(ctx, f)
			if err == nil && len(p.Rows) == 0 {
				err = errors.New("nothing was found")
			}
			return err
		}}
	}
	stats := func(name, query string) question {
		return question{statsPrefix + name, func(*index.Index) error { return drain(ctx, db, query) }}
	}
	key := keyOf(count / 2)
	return []question{
		list(listPrefix+"newest 50", index.Filter{}),
		list(listPrefix+"completed", index.Filter{Status: task.Completed}),
		list(listPrefix+"failed", index.Filter{Status: task.Failed}),
		list(listPrefix+"running", index.Filter{Status: task.Running}),
		list(listPrefix+"of a user", index.Filter{User: "user7"}),
		list(listPrefix+"of a user, failed", index.Filter{User: "user7", Status: task.Failed}),
		list(listPrefix+"of a repository", index.Filter{Owner: key.Owner, Repo: key.Repo}),
		list(listPrefix+"since a year", index.Filter{Since: time.Unix(rowsFrom, 0).UTC().AddDate(1, 0, 0)}),
		list(listPrefix+"by key", index.Filter{Source: key.Source, Owner: key.Owner, Repo: key.Repo, Type: key.Type, ID: key.ID}),
		stats("all", `SELECT status, `+sums+` FROM task_months GROUP BY status`),
		stats("of a user", `SELECT status, `+sums+` FROM task_months WHERE user = 'user7' GROUP BY status`),
		stats("of a month", `SELECT user, status, `+sums+` FROM task_months WHERE month = '2025-01' GROUP BY user, status`),
		stats("of a year and a half", `SELECT user, status, `+sums+` FROM task_days WHERE day BETWEEN '2024-04-11' AND '2025-10-11' GROUP BY user, status`),
	}
}

// sums are what docs/format.md sums up.
const sums = `sum(tasks), sum(tokens), sum(llm_calls), sum(cost_micro_usd)`

// keyOf is the key of a row that has ended, as fillSQL makes it.
func keyOf(i int) task.Key {
	h := uint32(i * 2654435761)
	k := task.Key{Source: "github", Owner: fmt.Sprint("owner", h>>11%200%20), Repo: fmt.Sprint("repo", h>>11%200), Type: "issue", ID: strconv.Itoa(i / 200)}
	if h>>9&3 == 0 {
		k.Source = "gitlab"
	}
	return k
}

// addFaces asks each question with an index that is opened for it, as a command
// does.
func (s sample) addFaces(ctx context.Context, db *sql.DB, base string, count int) (err error) {
	for _, q := range questions(ctx, db, count) {
		s[q.name], err = timed(ctx, rowsRounds, nil, func() error {
			x, err := index.OpenReader(ctx, base)
			if err != nil {
				return err
			}
			return errors.Join(q.ask(x), x.Close())
		})
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
	}
	return nil
}

// drain reads a query's rows to their end.
func drain(ctx context.Context, db *sql.DB, query string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	row, into := make([]any, len(names)), make([]any, len(names))
	for i := range row {
		into[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
	}
	return rows.Err()
}

// addAllRows is the naive way, which answers any question: every row is read,
// decoded and looked at. The sums must be those that the index keeps.
func (s sample) addAllRows(ctx context.Context, db *sql.DB) error {
	var want [4]int64
	err := db.QueryRowContext(ctx, `SELECT `+sums+` FROM task_months`).Scan(&want[0], &want[1], &want[2], &want[3])
	if err != nil {
		return err
	}
	s[rowsNaive], err = timed(ctx, naiveRounds, nil, func() error {
		all, err := db.QueryContext(ctx, `SELECT * FROM tasks`)
		if err != nil {
			return err
		}
		defer func() { _ = all.Close() }()
		var got [4]int64
		for all.Next() {
			r, err := decodeRow(all)
			if err != nil {
				return err
			}
			if r.Status.Final() {
				got = [4]int64{got[0] + 1, got[1] + r.Tokens, got[2] + r.LLMCalls, got[3] + r.CostMicroUSD}
			}
		}
		if got != want {
			err = fmt.Errorf("the rows hold %d tasks, tokens, calls and µ$, the statistics say %d", got, want)
		}
		return errors.Join(err, all.Err())
	})
	return err
}

// decodeRow decodes a row of SELECT *.
func decodeRow(rows *sql.Rows) (r contextstore.Row, err error) {
	var created, status string
	var started, completed, message, user, beat, took, reason sql.NullString
	err = rows.Scan(&r.UUID, &r.Key.Source, &r.Key.Owner, &r.Key.Repo, &r.Key.Type, &r.Key.ID, &status, &created, &started, &completed, &r.ProcessID,
		&r.Hostname, &r.Provider, &r.Model, &r.ContextLength, &r.LLMCalls, &r.ToolCalls, &r.Tokens, &r.Compressions, &message, &user, &r.Generation,
		&r.Title, &beat, &r.Phase, &r.MessageCount, &r.Bytes, &r.Failures, &r.OutboxPending,
		&r.PromptTokens, &r.CachedTokens, &r.CacheWriteTokens, &r.CompletionTokens, &r.ReasoningTokens, &r.CostMicroUSD, &r.UnpricedCalls, &took, &reason)
	if err != nil {
		return r, err
	}
	r.Status, r.Error, r.User = task.Status(status), message.String, user.String
	for _, t := range []struct {
		text string
		to   *contextstore.Time
	}{{created, &r.CreatedAt}, {started.String, &r.StartedAt}, {completed.String, &r.CompletedAt}, {beat.String, &r.HeartbeatAt}} {
		if t.text == "" {
			continue
		}
		if t.to.Time, err = time.Parse(time.RFC3339Nano, t.text); err != nil {
			return r, err
		}
	}
	return r, nil
}
