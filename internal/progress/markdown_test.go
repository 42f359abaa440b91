package progress

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/broker"
	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
	"toritsugi/internal/redact"
	"toritsugi/internal/task"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// full is a report with something of everything in it.
func full() *Report {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	return &Report{
		UUID: "0123456789", Model: "openai/m", By: "@hanako", Stage: Working, Branch: "tori/issue-1",
		Phase: planning.PhaseReflection, Current: "three", Goal: "The answer is 42",
		Understood: &Understanding{Type: "bug_fix", Deliverables: []string{"answer.txt"}, In: []string{"answer.txt", "README"}, Out: []string{"the build"}},
		Items: []planning.Item{{ID: "one", Text: "Look", Status: planning.Done}, {ID: "two", Text: "Ask", Status: planning.Skipped},
			{ID: "three", Text: "Write", Status: ""}, {ID: "four", Text: "Say so", Status: planning.Failed}, {ID: "five", Text: "Rest", Status: ""}, {ID: "verification_fix_1", Text: "Mend what is still open: no test"}},
		Verified: &Verified{Round: 1, Issues: []string{"it says 41"}}, Assumptions: []string{"decimal"}, Gaps: []string{"who reads it"}, Ambiguities: []planning.Ambiguity{{Item: "the answer", Selected: "that of answer.txt"}},
		Revisions: 1, Replans: 2, Calls: 12, Tools: 34, Tokens: 56789, MicroUSD: 120000, Started: noon, Updated: noon.Add(time.Hour),
		Notes: []string{"Run `0123456789`"},
		History: History{Dropped: 3, Entries: []Entry{
			{At: at(1), Kind: KindPhase, Result: planning.PhasePlanning},
			{At: at(2), Kind: KindTool, Name: "read_file", Text: "answer.txt", Result: OK},
			{At: at(3), Kind: KindCollected, N: 1},
			{At: at(3), Kind: KindUnderstood, Name: "bug_fix", N: 85, Text: "The answer is 42"},
			{At: at(4), Kind: KindAssumption, Text: "decimal"},
			{At: at(5), Kind: KindPhase, Result: planning.PhaseExecution, Name: "one"},
			{At: at(6), Kind: KindTool, Name: "shell", Text: "make", Result: Failed},
			{At: at(6), Kind: KindError, Name: "shell", Text: "exit code 2"},
			{At: at(7), Kind: KindSaid, Text: "I try </details> <!-- another `way` [x](y)"},
			{At: at(8), Kind: KindSummary, Name: "one", Result: planning.Done, Text: "looked"},
			{At: at(8), Kind: KindSummary, Name: "verification_fix_1", Result: planning.Done, Text: "mended"},
			{At: at(9), Kind: KindRevision, N: 2, Text: "a step more"},
			{At: at(10), Kind: KindReplan, Name: "retry", N: 1, Text: "once more"},
			{At: at(10), Kind: KindReplan, Name: "use other actions", N: 3, Text: "that fails", Wished: "try the same again", Why: "it was tried often", Doubt: true},
			{At: at(10), Kind: KindReplan, Name: "go on without it", Text: "no matter"},
			{At: at(11), Kind: KindCheck, Name: "make test", Result: Failed},
			{At: at(12), Kind: KindVerification, Result: Failed, Text: "it says 41"},
			{At: at(86400), Kind: KindVerification, Result: OK},
			{At: at(86401), Kind: KindQuestion, Text: "Which one?"},
			{At: at(86402), Kind: KindAnswer, Name: "hanako", Text: "That one."},
		}},
	}
}

func filter() *broker.Filter {
	return broker.NewFilter(broker.FilterOptions{Sanitizer: redact.New([]string{"s3cret-of-the-house"}, nil)})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
}

func markdown(t *testing.T, r *Report, l i18n.Lang, most int) string {
	t.Helper()
	text, err := r.Markdown(l, filter(), most)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What people read, while the run goes on and at its end.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
		r := full()
		golden(t, "running."+string(l)+".md", markdown(t, r, l, Size))
		r.Ended, r.Reason, r.Phase, r.Scripted, r.Worked, r.Passed = task.Completed, "checks passed: `make test`", planning.PhaseCompletion, true, true, true
		r.Verified = &Verified{Round: 2, Passed: true}
		r.Understood.Uncertain = true
		golden(t, "completed."+string(l)+".md", markdown(t, r, l, Size))
		golden(t, "begun."+string(l)+".md", markdown(t, &Report{Model: "openai/m", Stage: Preparing, Started: noon, Updated: noon, History: History{More: true, Entries: full().History.Entries[:1]}}, l, Size))
	}
}

// Whatever texts the model gives: the one fold is ours, and nothing is hidden in it
// or below it.
func TestTextsOfOthersAreText(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"</details>", "<details><summary>x", "<!-- all that follows", "`</details>`", "``` </details>", `\</details>`, "&lt;/details&gt;", "</summary></details>\n<details>", "<script>", "![x](http://evil.example/x)"} {
		r := full()
		r.Goal, r.Items[0].Text, r.Items[0].ID, r.By, r.Branch, r.Verified.Issues[0], r.Assumptions[0] = bad, bad, bad, bad, bad, bad, bad
		r.Understood.Type, r.Understood.In[0] = bad, bad
		for i := range r.History.Entries {
			e := &r.History.Entries[i]
			if e.Text = bad; e.Kind != KindReplan {
				e.Name = bad
			}
		}
		text := withoutSpans(markdown(t, r, i18n.English, Size))
		if n := strings.Count(text, "<details>"); n != 1 {
			t.Errorf("%q: %d folds are opened\n%s", bad, n, text)
		}
		if strings.Count(text, "</details>") != 1 || !strings.HasSuffix(text, "\n</details>\n\n") || strings.Contains(text, "<!--") || strings.Count(text, "<") != 4 {
			t.Errorf("%q makes\n%s", bad, text)
		}
	}
}

// withoutSpans is Markdown without its spans of code: what is in them is seen as it is.
func withoutSpans(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		for {
			at := strings.IndexByte(line, '`')
			for at > 0 && at < len(line) && line[at-1] == '\\' {
				next := strings.IndexByte(line[at+1:], '`')
				if next < 0 {
					at = -1
					break
				}
				at += 1 + next
			}
			if at < 0 {
				break
			}
			n := len(line[at:]) - len(strings.TrimLeft(line[at:], "`"))
			end := strings.Index(line[at+n:], strings.Repeat("`", n))
			if end < 0 {
				break
			}
			b.WriteString(line[:at])
			line = line[at+n+end+n:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// A secret is in nothing that is shown.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	r := full()
	r.Goal, r.History.Entries[8].Text = "s3cret-of-the-house", "it is s3cret-of-the-house."
	if text := markdown(t, r, i18n.English, Size); strings.Contains(text, "s3cret-of") {
		t.Error(text)
	}
}

// What does not fit goes by age, and its number is said; at last the checklist is
// told in numbers.
func TestSize(t *testing.T) {
	t.Parallel()
	r := full()
	r.Items, r.History = nil, History{Dropped: 5}
	for n := range 100 {
		r.Items = append(r.Items, planning.Item{ID: fmt.Sprint("task_", n), Text: strings.Repeat("長", 100), Status: planning.Done})
		r.History.Entries = append(r.History.Entries, Entry{At: noon, Kind: KindSaid, Text: fmt.Sprintf("entry-%03d ", n) + strings.Repeat("語", 200)})
	}
	for _, c := range []struct {
		most           int
		list           bool
		oldest, newest bool
	}{{200_000, true, true, true}, {40_000, true, false, true}, {12_000, true, false, true}, {8_000, false, false, true}, {900, false, false, false}} {
		text := markdown(t, r, i18n.Japanese, c.most)
		if len(text) > c.most {
			t.Errorf("%d bytes of %d", len(text), c.most)
		}
		if list := strings.Contains(text, "**サブタスク "); list != c.list {
			t.Errorf("%d: the checklist is there: %t", c.most, list)
		}
		if strings.Contains(text, "entry-000") != c.oldest || strings.Contains(text, "entry-099") != c.newest {
			t.Errorf("%d:\n%s", c.most, text)
		}
		if shown := strings.Count(text, "entry-"); shown > 0 && !strings.Contains(text, fmt.Sprintf("これより前の %d 件", 105-shown)) {
			t.Errorf("%d: %d are shown\n%s", c.most, shown, text)
		}
	}
}
