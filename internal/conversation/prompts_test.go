package conversation

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
)

// Both languages have the same prompts, none of them empty.
func TestPromptsOfBothLanguages(t *testing.T) {
	t.Parallel()
	names := map[i18n.Lang][]string{}
	for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
		root := "prompts/" + string(lang)
		if err := fs.WalkDir(builtin, root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := builtin.ReadFile(path)
			if err != nil || strings.TrimSpace(string(raw)) == "" {
				t.Errorf("%s: %v", path, err)
			}
			names[lang] = append(names[lang], strings.TrimPrefix(path, root))
			if n := strings.Count(string(raw), "\n"); strings.Contains(path, "notices/") && n != 3 {
				t.Errorf("%s has %d texts, three are chosen from", path, n)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	// Chat is told of each route that it can hand over to.
	for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
		_, line, _ := strings.Cut(newPrompts("", lang, nil).text("turn/protocol.md"), "\nDELEGATE: ")
		line, _, _ = strings.Cut(line, "\n")
		if line != "PLAN|ANALYZE|OPS|RESEARCH|CODE|CODE1|CODE2|CODE3" {
			t.Errorf("%s: %s", lang, line)
		}
	}
	if !slices.Equal(names[i18n.English], names[i18n.Japanese]) {
		t.Errorf("%v\n%v", names[i18n.English], names[i18n.Japanese])
	}
}

// The order is persona, policy, people's own, overlays: what is missing is passed over,
// and a folder's files go before ours.
func TestSystemPrompt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{"persona/CHAT_PERSONA.md", "policy.md", "AGENTS.md", "USER.md", "overlays/common.md", "overlays/channel_slack.md", "overlays/route_plan.md", "overlays/mode_local_only.md"} {
		write(name, fmt.Sprint("<", i, ">"))
	}
	write("turn/protocol.md", "not ours to replace")
	p := newPrompts(dir, i18n.English, nil)
	order := func(s string) string {
		var b strings.Builder
		for _, part := range strings.Split(s, "\n\n---\n\n") {
			if !strings.HasPrefix(part, "<") {
				part = strings.Fields(part)[1]
			}
			b.WriteString(part)
		}
		return b.String()
	}
	if got := order(p.system("slack", routing.Plan, true, true)); got != "<0><1><2><3><4><5>Handing<6><7>" {
		t.Error(got)
	}
	if got := order(p.system("slack", routing.Chat, false, false)); got != "<0><1><2><3><4><5>" {
		t.Error(got)
	}
	for _, name := range []string{"AGENTS.md", "USER.md", "overlays/common.md", "persona/CHAT_PERSONA.md"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.system("slack", routing.Chat, false, false); !strings.HasPrefix(got, "You are the one") || strings.Contains(got, "<2>") || !strings.Contains(got, "reads well") {
		t.Error(got)
	}
}

// A file that is edited counts at once; one that cannot be read while it is edited leaves
// what was read before in force, and is complained of.
func TestPromptsAreRereadInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "persona", "CHAT_PERSONA.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
	}
	h := open(t, i18n.English, "terminal", func(_ *house, o *Options) { o.PromptsDir = dir })
	asked := func() string {
		t.Helper()
		h.plays("chat", "ok")
		h.saw("/chat hi", "answer: ok")
		return h.last("chat").Sent[0].Content
	}
	write("I am a fox.")
	if got := asked(); !strings.HasPrefix(got, "I am a fox.") {
		t.Error(got)
	}
	write("I am a crane.")
	if got := asked(); !strings.HasPrefix(got, "I am a crane.") {
		t.Error(got)
	}
	for _, broken := range []string{"\x00\x01\x02", strings.Repeat("x", maxPrompt+1)} {
		write(broken)
		if got := asked(); !strings.HasPrefix(got, "I am a crane.") {
			t.Errorf("%.60q", got)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	asked()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := asked(); !strings.HasPrefix(got, "You are the one") {
		t.Error(got)
	}
	write("  \n")
	if got := asked(); !strings.HasPrefix(got, "You are the one") {
		t.Error(got)
	}
	if _, err := New(Options{Store: h.store, Models: h.cast, Router: h.Router, Redact: h.Redact, Strict: h.Strict, Settled: h.Settled, PromptsDir: filepath.Join(dir, "nowhere")}); err == nil {
		t.Error("a folder that is not there is taken")
	}
}

// What is exported can be used as it is, and nothing of others is overwritten.
func TestExportPrompts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	names, err := ExportPrompts(&disk.FS{}, dir, i18n.Japanese)
	if err != nil || !slices.Contains(names, "persona/CHAT_PERSONA.md") || !slices.Contains(names, "notices/start.md") || slices.Contains(names, "turn/protocol.md") {
		t.Fatalf("%v, %v", names, err)
	}
	ours, theirs := newPrompts("", i18n.Japanese, nil), newPrompts(dir, i18n.English, nil)
	for _, n := range names {
		if ours.text(n) != theirs.text(n) {
			t.Errorf("%s is another one", n)
		}
	}
	if _, err := ExportPrompts(&disk.FS{}, dir, i18n.Japanese); err == nil || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}

// A notice names who works and what on, in a few characters.
func TestNotice(t *testing.T) {
	t.Parallel()
	p := newPrompts("", i18n.Japanese, nil)
	seen := map[string]bool{}
	for i := range 30 {
		n := p.notice("start", "Shiro", fmt.Sprint(i, " とても長い依頼の文なので、三十二文字より後ろは見せません。ここは見えない\n次の行"))
		if strings.Contains(n, "見えない") || strings.Contains(n, "次の行") || !strings.Contains(n, "Shiro") || !strings.Contains(n, "…") {
			t.Error(n)
		}
		seen[strings.TrimLeft(n[strings.Index(n, "Shiro"):], "0123456789")[:20]] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d of three texts", len(seen))
	}
}
