package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// runThatEnded writes a run that has ended below base.
func runThatEnded(t *testing.T, base string, n int, status, reason, model, user string, end time.Time, took time.Duration) {
	t.Helper()
	uuid := fmt.Sprintf("550e8400-e29b-41d4-a716-%012d", n)
	dir := filepath.Join(base, "completed", uuid)
	stamp := func(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }
	meta, err := json.Marshal(map[string]any{"uuid": uuid, "format": 1, "user": user, "created_at": stamp(end.Add(-took)), "config": map[string]any{"llm_provider": "openai", "model": model},
		"task_key": map[string]string{"task_source": "github", "owner": "acme", "repo": "widgets", "task_type": "issue", "task_id": fmt.Sprint(n)}})
	state, serr := json.Marshal(map[string]any{"status": status, "task_status": status, "started_at": stamp(end.Add(-took)), "completed_at": stamp(end), "updated_at": stamp(end), "error": reason,
		"total_tokens_used": 1000 * n, "cost_micro_usd": 10000 * n})
	if err = errors.Join(err, serr, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "metadata.json"), meta, 0o600), os.WriteFile(filepath.Join(dir, "state.json"), state, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func pageOf(t *testing.T, base string, o StatsOptions) string {
	t.Helper()
	o.Now, o.Viewer = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), contextstore.Viewer{Admin: true}
	r, err := ReadStats(t.Context(), base, o)
	if err != nil {
		t.Fatal(err)
	}
	page, err := StatsPage(t.Context(), base, r, o, func(s string) string { return strings.ReplaceAll(s, "hunter2", "[SECRET]") })
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The page shows what the report says, of the runs that are chosen; what strangers said is text in
// it, and nothing in it loads or runs anything.
func TestStatsPage(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	day := func(d int) time.Time { return time.Date(2026, 5, d, 12, 0, 0, 0, time.UTC) }
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)> hunter2`
	runThatEnded(t, base, 1, "completed", "", "m-one", "ken", day(4), 30*time.Second)
	runThatEnded(t, base, 2, "completed", "", "m-one", "ken", day(4), 20*time.Minute)
	runThatEnded(t, base, 3, "failed", "budget.max_turns: 500 turns are used up", "m-one", "hanako", day(6), 5*time.Hour)
	runThatEnded(t, base, 4, "failed", "budget.max_turns: 40 turns are used up", evil, evil, day(13), 5*time.Hour)
	runThatEnded(t, base, 5, "failed", evil, evil, evil, day(13), 2*time.Minute)
	runThatEnded(t, base, 6, "stopped", "stopped by ken", "m-two", "ken", day(13), 2*time.Minute)
	page := pageOf(t, base, StatsOptions{Lang: i18n.English})
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	rects, texts := map[string]int{}, []string{}
	allowed := strings.Fields("html head meta title style body h1 h2 p dl div dt dd section figure svg g rect figcaption span details summary table thead tbody tr th td")
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" && n.Parent.Data != "style":
			texts = append(texts, strings.TrimSpace(n.Data))
		case n.Type == html.ElementNode && !slices.Contains(allowed, n.Data):
			t.Errorf("<%s>", n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" || strings.Contains(a.Key, "<") {
				t.Errorf("%s=%q", a.Key, a.Val)
			}
			if n.Data == "rect" && a.Key == "class" {
				rects[a.Val]++
			}
		}
	}
	said := "\n" + strings.Join(texts, "\n") + "\n"
	if strings.Contains(page, "hunter2") || !strings.Contains(said, `"><script>alert(1)</script><img src=x onerror=alert(1)> [SECRET]`) {
		t.Error(said)
	}
	for _, want := range []string{
		"\nRuns\n6\nNot ended\n0\nSuccess rate\n40.0%\n", "\nTokens\n21,000\nCost\n$0.2100\n", "\n2026-05-04\nat most 3\n2026-05-13\n", "\n2026-05-13\n0\n1\n2\n",
		"\n2026-05-11\n0.0%\n0\n2\n2026-05-04\n66.7%\n2\n1\n", "\nbelow 1m00s\n1\n17%\n", "\n4h00m00s and longer\n2\n33%\n",
		"\nbudget.max_turns: 40 turns are used up\n2\n67%\n2026-05-13 550e8400\n", "\nm-two\n6,000\n1\n-\n$0.0600\n", "\nacme/widgets\n6\n40.0%\n21,000\n$0.2100\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("not there: %q in%s", want, said)
		}
	}
	// 10 days, 2 weeks: columns are those where something was; then 7 durations, models, one
	// repository, users, and the keys.
	if rects["s0"] != 1+3+1+7+3+1+3+1 || rects["s1"] != 2 || rects["s2"] != 2+1+2 {
		t.Errorf("%v", rects)
	}
	page = pageOf(t, base, StatsOptions{Lang: i18n.Japanese, StatsFilter: contextstore.StatsFilter{User: "ken", From: "2026-05-05"}})
	for _, want := range []string{`<html lang="ja">`, "--user ken", "--from 2026-05-05", "失敗の理由", "表示するものはありません。", "<dd>1</dd>", "m-two"} {
		if !strings.Contains(page, want) {
			t.Errorf("not there: %s", want)
		}
	}
	if strings.Contains(page, "m-one") {
		t.Error("what is not chosen is there")
	}
	if page := pageOf(t, t.TempDir(), StatsOptions{Lang: i18n.English}); strings.Contains(page, "<rect") || strings.Contains(page, "NaN") {
		t.Error(page)
	}
}

// A page takes the place of a plain file alone, whole.
func TestStatsPageFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	for _, text := range []string{"one", "two"} {
		if err := WriteStatsPage(&disk.FS{}, path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%s, %v", b, err)
		}
	}
	if err := os.Symlink(path, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, filepath.Join(dir, "link"), filepath.Join(dir, "no", "page.html")} {
		if err := WriteStatsPage(&disk.FS{}, at, []byte("three")); err == nil {
			t.Errorf("%s was written", at)
		}
	}
	all, err := os.ReadDir(dir)
	if b, rerr := os.ReadFile(path); err != nil || len(all) != 2 || rerr != nil || string(b) != "two" {
		t.Errorf("%v, %v, %s", all, err, b)
	}
}
