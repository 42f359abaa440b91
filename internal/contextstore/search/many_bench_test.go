package search

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/task"
)

// writer makes text of words that are as frequent as words are (Zipf), a fifth of it Japanese.
type writer struct {
	rnd   *rand.Rand
	often *rand.Zipf
}

func (w writer) text(words int) string {
	var b strings.Builder
	for range words {
		n := w.often.Uint64()
		switch {
		case n%5 == 4:
			for i := range 2 + n%4 {
				b.WriteRune(rune(0x4e00 + (n*31+i*17)%3000))
			}
			continue
		case n%7 == 3:
			b.WriteString("get" + strings.ToUpper(strconv.FormatUint(n%26+10, 36)) + strconv.FormatUint(n, 36))
		default:
			b.WriteString("w" + strconv.FormatUint(n*7919%1_000_003, 36))
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// benchRuns is a base directory with many runs that ended, three years of them, by 50 users in 300
// repositories: made once per directory, set TORI_BENCH_SEARCH to one that is kept between runs. The
// newest tenth has 41 messages, 15 KiB of what people and models said and 40 KiB of what tools did; the
// others lost them (by default those of 30 days stay). 500 of each file are shared as links.
func benchRuns(b *testing.B, runs int) (base string, key task.Key) {
	b.Helper()
	base = os.Getenv("TORI_BENCH_SEARCH")
	if base == "" {
		base = b.TempDir()
	} else {
		base = filepath.Join(base, strconv.Itoa(runs))
	}
	keyOf := func(repo int) task.Key {
		return task.Key{Source: "github", Owner: "owner" + strconv.Itoa(repo%40), Repo: "repo" + strconv.Itoa(repo), Type: "issue"}
	}
	done := filepath.Join(base, "made")
	if _, err := os.Stat(done); err == nil {
		return base, keyOf(7)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	w := writer{rnd, rand.NewZipf(rnd, 1.1, 10, 60_000)}
	write := func(path string, values ...any) {
		var raw []byte
		for _, v := range values {
			var err error
			raw, err = jsonl.Append(raw, v)
			must(b, err)
		}
		must(b, os.WriteFile(path, raw, 0o600))
	}
	shared := filepath.Join(base, "shared")
	must(b, os.MkdirAll(shared, 0o700))
	for n := range 500 {
		messages := []any{contextstore.Message{Seq: 1, Role: "system", Content: "system"}, contextstore.Message{Seq: 2, Role: "user", Content: "<issue>\n" + w.text(150) + "\n</issue>"}}
		var tools []any
		for i := range 19 {
			call := contextstore.ToolCall{ID: "c", Name: "shell", Arguments: `{"command":"ls"}`}
			messages = append(messages, contextstore.Message{Seq: int64(3 + 2*i), Role: "assistant", Content: w.text(100), ToolCalls: []contextstore.ToolCall{call}},
				contextstore.Message{Seq: int64(4 + 2*i), Role: "tool", Content: w.text(300)})
			args, _ := json.Marshal(map[string]string{"command": w.text(20)})
			tools = append(tools, contextstore.ToolRun{Seq: int64(i + 1), Tool: "shell", Args: args, Result: w.text(300), Status: "success"})
		}
		messages = append(messages, contextstore.Message{Seq: 41, Role: "assistant", Content: "Done. " + w.text(50)})
		write(filepath.Join(shared, fmt.Sprint(n, ".messages")), messages...)
		write(filepath.Join(shared, fmt.Sprint(n, ".tools")), tools...)
		write(filepath.Join(shared, fmt.Sprint(n, ".summaries")), contextstore.Summary{ID: 1, Final: true, Outcome: "completed", Summary: w.text(120)})
	}
	start := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range runs {
		var id [16]byte
		for i := range id {
			id[i] = byte(rnd.Uint32())
		}
		k := keyOf(rnd.IntN(300))
		k.ID = strconv.Itoa(n)
		name := uuid.UUID(id).String()
		dir := filepath.Join(base, contextstore.DirCompleted, name)
		must(b, os.MkdirAll(dir, 0o700))
		ended := jsonl.Time{Time: start.Add(time.Duration(n) * (3 * 365 * 24 * time.Hour / time.Duration(runs)))}
		st := contextstore.State{Status: "completed", TaskStatus: task.Completed, CompletedAt: ended, UpdatedAt: ended}
		if n%17 == 0 {
			st.Status, st.TaskStatus = "failed", task.Failed
		}
		write(filepath.Join(dir, contextstore.MetadataFile), contextstore.Metadata{UUID: name, TaskKey: k, CreatedAt: ended, User: "user" + strconv.Itoa(rnd.IntN(50)), Title: w.text(8) + "number" + strconv.Itoa(n)})
		write(filepath.Join(dir, contextstore.StateFile), st)
		files := []string{contextstore.Summaries}
		if n >= runs-runs/10 { // the others are past context_storage.retention.slim_days
			files = append(files, contextstore.Messages, contextstore.Tools)
		}
		for _, f := range files {
			must(b, os.Link(filepath.Join(shared, fmt.Sprint(n%500, ".", strings.TrimSuffix(f, ".jsonl"))), filepath.Join(dir, f)))
		}
	}
	must(b, os.WriteFile(done, nil, 0o600))
	return base, keyOf(7)
}

// BenchmarkMany measures searches among 100,000 runs, or as many as TORI_BENCH_RUNS says (issue: 100 ms).
// It runs only when asked for with -bench.
func BenchmarkMany(b *testing.B) {
	runs := 100_000
	if n, err := strconv.Atoi(os.Getenv("TORI_BENCH_RUNS")); err == nil {
		runs = n
	}
	base, key := benchRuns(b, runs)
	d, err := Open(b.Context(), Options{BaseDir: base})
	must(b, err)
	defer func() { _ = d.Close() }()
	began := time.Now()
	must(b, d.CatchUp(b.Context(), nil))
	st, err := os.Stat(filepath.Join(base, File))
	must(b, err)
	b.Logf("%d runs put in within %v, search.db %d MB", runs, time.Since(began).Round(time.Second), st.Size()>>20)
	often, other := "w"+strconv.FormatUint(1*7919, 36), "w"+strconv.FormatUint(2*7919, 36)
	rare := "w" + strconv.FormatUint(20_001*7919%1_000_003, 36)
	wide := string([]rune{rune(0x4e00 + 4*31%3000), rune(0x4e00 + (4*31+17)%3000)})
	for _, c := range []struct {
		name  string
		words []string
		f     Filter
	}{
		{"often", []string{often}, Filter{}}, {"two often", []string{often, other}, Filter{}}, {"rare", []string{rare}, Filter{}}, {"nowhere", []string{"nowhereatall"}, Filter{}},
		{"phrase", []string{often + " " + other}, Filter{}}, {"beginning", []string{"w2a*"}, Filter{}}, {"one title", []string{"number" + strconv.Itoa(runs/2)}, Filter{}},
		{"japanese", []string{wide}, Filter{}}, {"one character", []string{wide[:3]}, Filter{}},
		{"user", []string{often}, Filter{User: "user7"}}, {"nobody", []string{often}, Filter{User: "nobody"}}, {"repo", []string{often}, Filter{Repo: "repo7"}}, {"failed", []string{often}, Filter{Status: task.Failed}},
		{"month", []string{often}, Filter{From: "2023-06-01", To: "2023-06-30"}}, {"summaries", []string{often}, Filter{In: "summaries"}}, {"tools", []string{often}, Filter{In: "tools"}},
	} {
		c.f.Limit = 20
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				hits, _, err := d.Find(b.Context(), admin, Parse(c.words), c.f)
				if err != nil || len(hits) == 0 && c.name != "nowhere" && c.name != "nobody" && c.name != "phrase" {
					b.Fatal(len(hits), err)
				}
			}
		})
	}
	b.Run("similar", func(b *testing.B) {
		w := writer{rand.New(rand.NewPCG(3, 4)), rand.NewZipf(rand.New(rand.NewPCG(3, 4)), 1.1, 10, 60_000)}
		for range b.N {
			if _, err := d.Similar(b.Context(), admin, Like{Key: key, Title: w.text(8), Body: w.text(150)}, 3); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) { // as tori search does, after a run has ended
		for range b.N {
			d, err := Open(b.Context(), Options{BaseDir: base})
			must(b, err)
			now := time.Now()
			must(b, os.Chtimes(filepath.Join(base, contextstore.DirCompleted), now, now))
			must(b, d.CatchUp(b.Context(), nil))
			must(b, d.Close())
		}
	})
	b.Run("put", func(b *testing.B) { // what the end of a run takes, behind it
		all, _, err := d.Find(b.Context(), admin, Parse([]string{often}), Filter{Limit: 1})
		must(b, err)
		for range b.N {
			must(b, d.Update(b.Context(), all[0].View.Metadata.UUID))
		}
	})
}
