package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/rogpeppe/go-internal/txtar"

	"toritsugi/internal/i18n"
	"toritsugi/internal/redact"
)

// poison is what a stranger would have on somebody's terminal: another title,
// colours, text that reads backwards, a line written over.
const poison = "OWNED\x1b]0;title\x07\x1b[31m\u009b2J\u202eback\u200f\r"

// aJob is the job of the run that waits.
const aJob = "20260304-120607-dead0001"

// verbLines are the command lines that are tried of each verb, those that change
// something last. UUID is each of the runs, BASE where they lie.
var verbLines = []struct {
	verb  string
	lines []string // none: it prints nothing that others have written
}{
	{"demo", nil}, {"version", nil}, {"config example", nil},
	{"show", []string{
		"show UUID BASE", "show UUID --json BASE", "show UUID --messages BASE", "show UUID --messages --summaries --tools --effects --plan BASE",
		"show UUID --messages --summaries --tools --effects --json BASE", "show UUID --plan --json BASE",
	}},
	{"logs", []string{"logs UUID BASE", "logs UUID --json BASE", "logs POISON -f BASE"}}, {"tail", []string{"tail --base-dir POISON"}},
	{"export", []string{"export UUID BASE", "export UUID --format html BASE", "export UUID --format json BASE", "export UUID --format atif BASE", "export UUID --format swebench --instance POISON BASE", "export UUID --format POISON BASE"}},
	{"tasks", []string{"tasks BASE", "tasks --json BASE", "tasks --user POISON BASE", "tasks --status POISON BASE"}},
	{"stats", []string{"stats BASE", "stats --json BASE", "stats --csv BASE", "stats --goals BASE", "stats --user POISON BASE", "stats --repo POISON --model POISON BASE", "stats --status POISON BASE", "stats --from POISON BASE"}},
	{"search", []string{"search owned BASE", "search owned --json BASE", "search owned --in tools BASE", "search POISON BASE", "search POISON --json BASE", "search owned --user POISON --repo POISON BASE", "search owned --in POISON BASE", "search owned --status POISON BASE", "search owned --from POISON BASE", "show UUID --similar BASE", "show UUID --similar --json BASE"}},
	{"memory show", []string{"memory UUID BASE", "memory UUID --request BASE", "memory UUID --json BASE", "memory UUID --request --json BASE"}},
	{"memory replay", []string{"memory replay LOG", "memory replay LOG --json", "memory replay LOG --model POISON"}},
	{"config check", []string{"config check", "config check --config POISON", "config check --config wrong.yaml"}},
	{"config print", []string{"config print"}},
	{"config trust", []string{"config trust wrong.yaml", "config trust POISON"}},
	{"models list", []string{"models", "models --json", "models --prices"}},
	{"models test", []string{"models test", "models test POISON"}},
	{"health", []string{"health", "health --json", "health BASE", "health --json BASE"}},
	{"mcp list", []string{"mcp BARE", "mcp --json BARE"}},
	{"mcp accept", []string{"mcp accept words BARE", "mcp accept POISON BARE"}},
	{"mcp prompt", []string{"mcp prompt words BARE", "mcp prompt words POISON BARE"}},
	{"mcp login", []string{"mcp login words", "mcp login POISON"}}, {"mcp logout", []string{"mcp logout words", "mcp logout POISON"}},
	{"sandbox check", []string{"sandbox check --kind POISON"}},
	{"eval", []string{"eval --list --cases cases", "eval --cases cases --model script BARE", "eval --cases cases --model script --json BARE", "eval POISON"}},
	{"serve", []string{"serve --once BASE", "serve --model POISON BASE"}},
	{"worker", []string{"worker BASE", "worker --model POISON BASE"}},
	{"check", []string{"check BASE", "check --json BASE", "check --repair BASE", "check --repair --json BASE"}},
	{"migrate", []string{"migrate --from jsonl:ctx --to sqlite:moved/ledger.db", "migrate --from jsonl:ctx --to jsonl:POISON --json"}},
	{"reindex", []string{"reindex BASE", "reindex --json BASE", "tasks BASE", "tasks --json BASE"}},
	{"cleanup", []string{"cleanup --dry-run BASE", "cleanup --dry-run --json --gzip-all BASE", "cleanup --older-than POISON BASE"}},
	{"maintain", []string{"maintain BASE", "maintain --json BASE"}},
	{"backup make", []string{"backup copies BASE", "backup copies --json BASE", "backup s3://POISON BASE"}},
	{"backup list", []string{"backup list copies BASE", "backup list copies --json BASE", "backup list POISON BASE"}},
	{"backup verify", []string{"backup verify copies BASE", "backup verify copies --json BASE", "backup verify POISON BASE"}},
	{"restore", []string{"restore copies --to restored BASE", "restore copies --json --to restored BASE", "restore POISON BASE", "restore copies --task POISON BASE"}},
	{"sessions list", []string{"sessions BASE", "sessions --json BASE"}},
	{"sessions show", []string{"sessions show SESSION BASE", "sessions show SESSION --json BASE", "sessions show POISON BASE"}},
	{"analyses", []string{"analyses BASE", "analyses POISON --json BASE"}},
	{"routes test", []string{"routes test poisoned.md", "routes test POISON"}},
	{"routes stats", []string{"routes stats BASE", "routes stats --json BASE"}},
	{"chat talk", []string{"chat -m POISON BASE", "chat -m POISON --session POISON BASE"}},
	{"chat prompts export", []string{"chat prompts export wrong.yaml"}},
	{"approvals list", []string{"approvals BASE", "approvals --json BASE"}},
	{"approvals show", []string{"approvals show JOB BASE", "approvals show JOB --json BASE", "approvals show POISON BASE"}},
	{"approvals grant", []string{"approvals grant JOB POISON BASE"}},
	{"approvals auto", []string{"approvals auto BASE", "approvals auto off POISON BASE"}},
	{"rollback", []string{"rollback JOB BASE", "rollback POISON BASE"}},
	{"approvals deny", []string{"approvals deny JOB --reason POISON BASE"}},
	{"channels check", []string{"channels check", "channels check --config wrong.yaml", "channels check --config POISON"}},
	{"link code", []string{"link code BASE", "link code --user POISON BASE"}},
	{"link list", []string{"link list BASE", "link list --json BASE"}},
	{"link remove", []string{"link remove POISON BASE"}},
	{"keep", []string{"keep UUID BASE", "keep UUID --release BASE", "keep POISON BASE"}},
	{"compress", []string{"compress UUID BASE", "compress POISON BASE"}},
	{"import", []string{"import poisoned.md BASE", "import POISON BASE"}},
	{"unlock", []string{"unlock UUID BASE", "unlock UUID --json BASE", "unlock POISON BASE"}},
	{"answer", []string{"answer UUID POISON BASE"}},
	{"pause", []string{"pause UUID BASE"}},
	{"resume", []string{"resume UUID BASE"}},
	{"run", []string{"run --resume UUID BASE BARE", "run --repo repo --issue poisoned.md --script s.yaml BASE BARE"}},
	{"stop", []string{"stop UUID BASE"}},
	{"retry", []string{"retry UUID BASE", "retry POISON BASE"}},
}

// What the verbs print of a ledger whose texts were written to steer a terminal
// does not: neither where it can be read, nor where nothing in it is right.
func TestNoTextSteersTheTerminal(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	tried := map[string]bool{}
	for _, v := range verbLines {
		tried[v.verb] = true
	}
	k, err := kong.New(&commands{}, kong.Name("tori"), kong.PostBuild((&console{lang: i18n.English}).explain))
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range k.Model.Leaves(false) {
		if verb := strings.TrimSpace(strings.TrimPrefix(regexp.MustCompile(` <.*| \[<.*`).ReplaceAllString(leaf.FullPath(), ""), "tori")); !tried[verb] {
			t.Errorf("tori %s is not tried", verb)
		}
	}
	for name, keeps := range map[string]func(string) bool{
		"texts":      regexp.MustCompile(`^[0-9a-f]{8,64}(-[0-9a-f]{4}.*)?$|^\d{4}-\d\d-\d\dT|^(issue|message|user|assistant|tool|system|queued|running|paused|completed|awaiting_approval|initializing|success|planning|final|folder|codegen|modify|delete|branch|notice|answer|\d{8}-\d{6}-[0-9a-f]{8})$`).MatchString,
		"everything": func(string) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := poisoned(t, keeps)
			var printed strings.Builder
			for _, v := range verbLines {
				for _, line := range v.lines {
					for _, said := range h.each(line) {
						printed.WriteString(said)
						if i := strings.IndexFunc(said, redact.Steers); i >= 0 {
							t.Errorf("tori %s: %+q", line, said[max(0, i-60):min(len(said), i+40)])
						}
					}
				}
			}
			if n := strings.Count(printed.String(), "OWNED"); n < 100 { // else the texts were not there
				t.Errorf("%d texts in\n%s", n, printed.String())
			}
		})
	}
}

// poisoned is a house with one run that has ended and one that waits, of whose
// records each text that keeps does not is poison.
func poisoned(t *testing.T, keeps func(string) bool) *house {
	h := newHouse(t, "http://127.0.0.1:1", "")
	h.at = h.dir
	all, err := txtar.ParseFile("testdata/script/ask.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all.Files {
		if !strings.HasPrefix(f.Name, "repo/") {
			h.write(f.Name, string(f.Data))
		}
	}
	quoted, err := json.Marshal(poison)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(quoted), "\u009b", `\u009b`) // as YAML takes it, too
	h.write("s.yaml", "- calls: [{tool: "+text+", args: {x: "+text+"}}, {tool: write_file, args: {path: a.txt, content: a}}]\n- say: "+text+"\n")
	h.write("poisoned.md", "---\nid: 7\ntitle: "+text+"\nauthor: "+text+"\n---\n"+poison+"\n")
	h.write("c.yaml", "language: en\nchecks: []\nsandbox: {env: {A: "+text+"}}\nllm: {max_retries: 0, openai: {base_url: 'http://127.0.0.1:1', model: "+text+", api_key: key-for-a-test}}\n"+
		"mcp_servers: [{mcp_server_name: words, command: [sh, -c, 'printf \"OWNED\\033[31m\\n\" >&2; exit 1']}]\n")
	h.write("none.yaml", "language: en\nchecks: []\n")
	h.write("wrong.yaml", "language: "+text+"\n? "+text+"\n: 1\n")
	h.write("cases/x/issue.md", "---\nabout: "+text+"\n---\n# "+text+"\n")
	h.write("cases/x/check.sh", "printf 'OWNED\\033[31m\\n'; exit 1\n")
	h.write("cases/x/repo/a", "a\n")
	h.write("cases/x/script.yaml", "- say: "+text+"\n")
	for issue, script := range map[string]string{"poisoned.md": "s.yaml", "1.md": "ask.yaml"} {
		h.env = []string{"LANG=C.UTF-8", fmt.Sprint("TORI_PLANNING_ENABLED=", issue == "1.md")}
		p := h.start(h.words("run --repo repo --issue "+issue+" --config none.yaml --script "+script+" BASE BARE", "")...)
		if code := p.code(); code != 0 && code != 5 {
			t.Fatalf("%s: %d\n%s", issue, code, &p.out)
		}
	}
	_ = h.start(h.words("chat -m hello --config none.yaml BASE", "")...).code() // Chat has no model
	waiting, err := filepath.Glob(filepath.Join(h.base(), "paused", "*"))
	if err != nil || len(waiting) == 0 {
		t.Fatal(waiting, err)
	}
	for _, dir := range waiting {
		write(t, filepath.Join(dir, "proposal.json"), `{"format":1,"job_id":"`+aJob+`","uuid":"`+filepath.Base(dir)+`","title":"x","summary":["x"],"plan":"x","requester":"x","coder_risk":"x","task_type":"codegen",`+
			`"notes":["x"],"files":[{"path":"x","action":"modify"}],"commands":["x"],"risks":[{"kind":"delete","details":["x"],"count":1}],"repository":"x","deliver":"branch"}`+"\n")
	}
	err = filepath.WalkDir(h.base(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(d.Name(), ".json") {
			return err
		}
		b, err := readFile(path)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		for line := range bytes.Lines(b) {
			var v any
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				return err
			}
			e := json.NewEncoder(&out)
			e.SetEscapeHTML(false)
			if err := e.Encode(spoil(v, keeps)); err != nil {
				return err
			}
		}
		return os.WriteFile(path, out.Bytes(), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tasks.db", "tasks.db-wal", "tasks.db-shm"} { // made anew from the files
		_ = os.Remove(filepath.Join(h.base(), name))
	}
	h.env = append(h.env, "TORI_CONFIG="+filepath.Join(h.dir, "c.yaml"))
	return h
}

func spoil(v any, keeps func(string) bool) any {
	switch v := v.(type) {
	case string:
		if v != "" && !keeps(v) {
			return v + poison
		}
	case []any:
		for i := range v {
			v[i] = spoil(v[i], keeps)
		}
	case map[string]any:
		for k := range v {
			v[k] = spoil(v[k], keeps)
		}
	}
	return v
}

// words is a command line as its words.
func (h *house) words(line, dir string) []string {
	var all []string
	for _, w := range strings.Fields(line) {
		switch w {
		case "BASE":
			all = append(all, "--base-dir", h.base())
		case "BARE":
			all = append(all, h.bare...)
		case "UUID":
			all = append(all, filepath.Base(dir))
		case "JOB":
			all = append(all, aJob)
		case "SESSION":
			found, err := filepath.Glob(filepath.Join(h.base(), "sessions", "*"))
			if err != nil || len(found) == 0 {
				h.t.Fatal(found, err)
			}
			all = append(all, filepath.Base(found[0]))
		case "LOG":
			all = append(all, filepath.Join(dir, "messages.jsonl"))
		case "POISON":
			all = append(all, poison)
		default:
			all = append(all, w)
		}
	}
	return all
}

// each is what tori prints of a command line, for each of the runs where one is
// named.
func (h *house) each(line string) (said []string) {
	h.t.Helper()
	dirs := []string{""}
	if strings.Contains(line, "UUID") || strings.Contains(line, "LOG") {
		var err error
		if dirs, err = filepath.Glob(filepath.Join(h.base(), "*", "????????-????-*")); err != nil || len(dirs) < 2 {
			h.t.Fatal(dirs, err)
		}
	}
	for _, dir := range dirs {
		p := h.start(h.words(line, dir)...)
		_ = p.code()
		said = append(said, p.out.String())
	}
	return said
}

// However a text is cut into writes, programs get all of it, and people all but
// what steers and what is no text.
func TestDisplay(t *testing.T) {
	t.Parallel()
	const text = "a\tあ\x1b[1m\r\n\u009b\u202eb\u061c𝔸é\x7f"
	for _, c := range []struct {
		json       bool
		text, want string
	}{
		{false, text, "a\tあ[1m\nb𝔸é"},
		{true, text, "a\tあ\\u001b[1m\\u000d\n\\u009b\\u202eb\\u061c𝔸é\\u007f"},
		{false, "x\x9b2J\xffy", "x�2J�y"}, // a terminal of eight bits takes 0x9b for an escape
		{false, "あ\xe3\x81", "あ"},         // the rest may still come
	} {
		for size := 1; size <= len(c.text); size++ {
			var b bytes.Buffer
			d := onDisplay(&b)
			d.json = c.json
			for rest := []byte(c.text); len(rest) > 0; {
				n, err := d.Write(rest[:min(size, len(rest))])
				if err != nil || n != min(size, len(rest)) {
					t.Fatal(n, err)
				}
				rest = rest[n:]
			}
			if b.String() != c.want {
				t.Errorf("%q by %d: %q, want %q", c.text, size, b.String(), c.want)
			}
		}
	}
	if n, err := onDisplay(brokenPipe{}).Write([]byte("x\x1b")); n != 0 || !errors.Is(err, fs.ErrClosed) {
		t.Error(n, err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, fs.ErrClosed }
