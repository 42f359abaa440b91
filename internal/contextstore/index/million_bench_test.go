package index

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/task"
)

// aTask makes the n-th of many tasks: three years, 50 users, 300 repositories
// of 40 owners; a fifth of a percent has not ended.
func aTask(rnd *rand.Rand, n, of int) Row {
	start := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)
	created := start.Add(time.Duration(n) * (3 * 365 * 24 * time.Hour / time.Duration(of)))
	repo := rnd.IntN(300)
	var id [16]byte
	for i := range id {
		id[i] = byte(rnd.Uint32())
	}
	r := Row{
		UUID: uuid.UUID(id).String(), CreatedAt: jsonl.Time{Time: created}, User: "user" + strconv.Itoa(rnd.IntN(50)), Title: "Fix the bug in the module number " + strconv.Itoa(n),
		Provider: "openai", Model: "gpt-4o", ContextLength: 128000,
		Key:    task.Key{Source: []string{"github", "github", "gitlab"}[repo%3], Owner: "owner" + strconv.Itoa(repo%40), Repo: "repo" + strconv.Itoa(repo), Type: "issue", ID: strconv.Itoa(n / 300)},
		Status: task.Completed, StartedAt: jsonl.Time{Time: created.Add(time.Second)}, CompletedAt: jsonl.Time{Time: created.Add(time.Duration(rnd.IntN(3_600_000)) * time.Millisecond)}.Written(), Generation: 1,
		LLMCalls: rnd.Int64N(100), ToolCalls: rnd.Int64N(200), Tokens: rnd.Int64N(100_000), Compressions: rnd.Int64N(3), MessageCount: rnd.Int64N(300), Bytes: rnd.Int64N(1 << 20),
		ProcessID: 4711, Hostname: "worker-node-1",
	}
	r.CreatedAt, r.StartedAt = r.CreatedAt.Written(), r.StartedAt.Written()
	r.HeartbeatAt = r.CompletedAt
	switch k := rnd.IntN(1000); {
	case k < 2:
		r.Status, r.CompletedAt = []task.Status{task.Queued, task.Running, task.Paused, task.AwaitingApproval}[rnd.IntN(4)], jsonl.Time{}
		r.Key.ID += "-" + strconv.Itoa(n)
	case k < 60:
		r.Status, r.Error = task.Failed, "the checks failed"
	case k < 80:
		r.Status = task.Stopped
	}
	return r
}

// million is an index with rows tasks, made once per directory: set
// TORI_BENCH_INDEX to one that is kept between runs.
func million(b *testing.B, rows int) *Index {
	b.Helper()
	dir := os.Getenv("TORI_BENCH_INDEX")
	if dir == "" {
		dir = b.TempDir()
	} else {
		dir = filepath.Join(dir, strconv.Itoa(rows))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	i := open(b, dir)
	fill(b, i, rows)
	if st, err := os.Stat(i.Path()); err == nil {
		b.Logf("%d MB", st.Size()>>20)
	}
	return i
}

// fill gives an index its rows, if it has not as many.
func fill(b *testing.B, i *Index, rows int) {
	b.Helper()
	if p, err := i.List(b.Context(), Filter{Limit: 1}); err != nil {
		b.Fatal(err)
	} else if p.Total == int64(rows) {
		return
	}
	release, err := i.base.Exclusive(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	began := time.Now()
	rnd := rand.New(rand.NewPCG(1, 2))
	n, err := i.Rebuild(b.Context(), func(add func(Row) error) error {
		for n := range rows {
			if err := add(aTask(rnd, n, rows)); err != nil {
				return err
			}
		}
		return nil
	}, func(stands string, left Row) { b.Errorf("%s is left out for %s", left.UUID, stands) })
	if err != nil || n != int64(rows) {
		b.Fatal(n, err)
	}
	b.Logf("filled %d rows in %v", n, time.Since(began).Round(time.Millisecond))
}

// BenchmarkMillion measures the budgets of DESIGN §9 on 1,000,000 rows, or as
// many as TORI_BENCH_ROWS says. It runs only when asked for with -bench.
func BenchmarkMillion(b *testing.B) {
	benchMillion(b, million(b, benchRows()))
}

// BenchmarkMillionPostgres measures that of issue 22: lists, searches and sums within 100 ms. With
// TORI_TEST_POSTGRES_URL and TORI_BENCH_SCHEMA the rows are kept between runs.
func BenchmarkMillionPostgres(b *testing.B) {
	at := pgtest.URL(b)
	if schema, server := os.Getenv("TORI_BENCH_SCHEMA"), os.Getenv(pgtest.Env); schema != "" && server != "" {
		u, err := url.Parse(server)
		if err != nil {
			b.Fatal(err)
		}
		q := u.Query()
		q.Set("search_path", schema)
		u.RawQuery = q.Encode()
		at = u.String()
	}
	i := openAt(b, at)
	fill(b, i, benchRows())
	if _, err := writer(i).Exec(`VACUUM tasks`); err != nil { // as the server does by itself in its time
		b.Fatal(err)
	}
	b.Log(driverRows(b, reader(i), `SELECT relname, pg_size_pretty(pg_total_relation_size(oid)) FROM pg_class WHERE relkind='r' AND relnamespace=current_schema()::regnamespace ORDER BY pg_total_relation_size(oid) DESC`))
	b.Log(driverRows(b, reader(i), `SELECT indexrelname, pg_size_pretty(pg_relation_size(indexrelid)) FROM pg_stat_user_indexes WHERE schemaname=current_schema() AND relname='tasks' ORDER BY 1`))
	benchMillion(b, i)
}

func benchRows() int {
	if v, err := strconv.Atoi(os.Getenv("TORI_BENCH_ROWS")); err == nil {
		return v
	}
	return 1_000_000
}

func benchMillion(b *testing.B, i *Index) {
	at := func(year, month, day int) time.Time {
		return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	}
	middle, err := i.List(b.Context(), Filter{Status: task.Completed})
	if err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]Filter{
		"all": {}, "after": {After: middle.Next}, "completed": {Status: task.Completed}, "failed": {Status: task.Failed}, "running": {Status: task.Running},
		"user": {User: "user7"}, "user failed": {User: "user7", Status: task.Failed}, "user running": {User: "user7", Status: task.Running}, "nobody": {User: "x"},
		"id": {ID: "27"}, "key": {Source: "github", Owner: "owner4", Repo: "repo4", ID: "27"}, "no such key": {Source: "github", Owner: "owner4", Repo: "repo4", ID: "x"}, "repo": {Repo: "repo4"},
		"owner repo": {Source: "github", Owner: "owner4", Repo: "repo4"}, "owner": {Owner: "owner4"}, "source": {Source: "gitlab"}, "repo failed": {Repo: "repo4", Status: task.Failed},
		"repo user": {Repo: "repo4", User: "user7"}, "since": {Since: at(2025, 1, 1)}, "since failed": {Since: at(2024, 1, 1), Status: task.Failed},
		"source owner": {Source: "github", Owner: "owner4"},
	} {
		b.Run("list/"+name, func(b *testing.B) {
			for range b.N {
				if _, err := i.List(b.Context(), f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("open", func(b *testing.B) {
		for range b.N {
			if err := i.Unfinished(b.Context(), func(Row) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, f := range map[string]StatsFilter{
		"all": {}, "user": {User: "user7"}, "repo": {Repo: "repo4"}, "model": {Model: "gpt-4o"}, "failed": {Status: task.Failed},
		"month": {From: "2024-01-10", To: "2024-02-10"}, "years": {From: "2023-02-10", To: "2025-11-20"}, "user month": {User: "user7", From: "2024-01-10", To: "2024-02-10"},
	} {
		b.Run("stats/"+name, func(b *testing.B) {
			for range b.N {
				if _, err := i.Stats(b.Context(), f, "2025-10-01"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("ends", func(b *testing.B) {
		for range b.N {
			if _, err := i.Ends(b.Context(), StatsFilter{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for n, q := range seedQueries {
		b.Run(fmt.Sprint("seed/", n), func(b *testing.B) {
			for range b.N {
				if err := drain(b.Context(), i, q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// drain reads a query's rows to the end.
func drain(ctx context.Context, i *Index, q string) error {
	return i.file.Use(func(h *database.Handles) error {
		rows, err := h.R.QueryContext(ctx, q)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return rows.Err()
	})
}

// seedQueries are the queries of store-v3 §8.2, §10.1 and §10.2, word for word.
var seedQueries = []string{
	`SELECT uuid, task_source, owner, repo, task_type, task_id, started_at
FROM tasks
WHERE status = 'running'
ORDER BY started_at DESC;`,
	`SELECT user, status, COUNT(*) as count
FROM tasks
GROUP BY user, status;`,
	`SELECT uuid, error_message, created_at
FROM tasks
WHERE status = 'failed'
ORDER BY created_at DESC
LIMIT 10;`,
	`SELECT * FROM tasks WHERE uuid='...'`,
	`SELECT status, COUNT(*) FROM tasks GROUP BY status;`,
	`SELECT AVG(julianday(completed_at) - julianday(started_at)) * 24 * 60 as avg_minutes
FROM tasks
WHERE status = 'completed';`,
	`SELECT SUM(total_tokens) as total, AVG(total_tokens) as average
FROM tasks
WHERE status = 'completed';`,
}
