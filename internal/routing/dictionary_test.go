package routing

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/i18n"
)

// The shipped dictionary has the seventeen rules of spec/facts §2.4, in their order.
func TestShippedRules(t *testing.T) {
	t.Parallel()
	d, err := ParseDictionary("dictionary.yaml", shipped)
	if err != nil {
		t.Fatal(err)
	}
	f, err := readForm("dictionary.yaml", shipped)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, r := range f.Rules {
		got = append(got, strings.Join([]string{r.Name, r.Label, r.Route}, " "))
		if i > 0 && r.Priority >= f.Rules[i-1].Priority {
			t.Errorf("%s stands behind a lower priority", r.Name)
		}
	}
	want := []string{
		"CODE_DIFF_GIT diff CODE", "CODE_CODE_FENCE code_fence CODE", "CODE_STACKTRACE_PYTHON stacktrace CODE", "CODE_STACKTRACE_NODE stacktrace CODE", "CODE_JAVA_STACKTRACE stacktrace CODE",
		"CODE_CONCRETE_FILES_HIGH_SIGNAL filenames CODE", "CODE_FILE_EXTENSIONS_IN_TEXT file_ext CODE", "OPS_SYSTEMD_JOURNALCTL ops_systemd OPS", "OPS_DOCKER ops_docker OPS",
		"OPS_SSH_NETWORK ops_network OPS", "OPS_GIT_OPERATIONS ops_git OPS", "ANALYZE_CSV_TSV_TABLE_BLOCK data_table ANALYZE", "ANALYZE_JSON_BLOCK data_json ANALYZE",
		"ANALYZE_LOG_BULK bulk_text ANALYZE", "ANALYZE_KEYWORDS analyze_words ANALYZE", "RESEARCH_URL_OR_SOURCE_REQUEST research RESEARCH", "PLAN_PLANNING_KEYWORDS plan_words PLAN",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || len(d.rules) != len(want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

const head = "version: 1\nroutes: [CHAT, OPS, PLAN]\nrules:\n"

// A user's dictionary: priorities, ties, any and all, words in both scripts, expressions.
func TestDictionary(t *testing.T) {
	t.Parallel()
	d, err := ParseDictionary("d.yaml", []byte(head+`
- {name: low, route: PLAN, priority: 1, match: {any: [{words: [plan, 計画]}]}}
- {name: first, route: OPS, priority: 5, evidence_label: l, match: {all: [{words: [Kube, クベ]}, {regexp: '(?i)^help$'}]}}
- {name: second, route: PLAN, priority: 5, match: {any: [{words: [kube, "two words"], except: [kubernetes kube, 小kube屋]}, {regexp: 'T-\d+'}]}}
- {name: guarded, route: OPS, priority: 3, match: {any: [{words: [cake]}]}, unless: [{kind: statement}, {words: [cheese]}]}
- {name: table, route: OPS, priority: 0, match: {any: [{kind: table}]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"kube":                       "second kube",
		"KUBE!":                      "second KUBE",
		"ｋｕｂｅが":                      "second kube",
		"kubes, xkube, kube_1, kubé": "",
		"éclairkube":                 "",
		"小kube屋":                     "",
		"小kube屋のkube":                "second kube",
		"the Two Words here":         "second Two Words",
		"see T-12":                   "second T-12",
		"t-12":                       "",
		"kube\nHELP\nme":             "first kube",
		"a cake, please":             "guarded cake",
		"I ate cake":                 "",
		"cheese cake, please":        "",
		"ﾌﾟﾗﾝではなく計画":                 "low 計画",
		"無計画":                        "low 計画",
		"a,1\nb,2\nc,3":              "table a,1",
		"":                           "",
	} {
		got := ""
		if h, ok := d.Match(text); ok {
			got = h.Rule + " " + h.Fragment
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if h, _ := d.Match("kube\nhelp"); h.Label != "l" || h.Route != Ops {
		t.Errorf("%+v", h)
	}
	if h, _ := d.Match("計画"); h.Label != "low" {
		t.Errorf("a rule without a label: %+v", h)
	}
}

func TestBadDictionaries(t *testing.T) {
	t.Parallel()
	rule := func(s string) string { return head + "- {name: a, route: OPS, priority: 1, " + s + "}\n" }
	for text, want := range map[string]string{
		"":                    "d.yaml:1: a dictionary with version, routes and rules is expected",
		"- a":                 "d.yaml:1: ",
		"rules: [":            "d.yaml:1: ",
		"version: 1\nrule: 2": "d.yaml:2: ",
		"\xff":                "d.yaml:1: the text is not UTF-8",
		"version: 1":          "d.yaml: expected 1 to 1000 rules, found 0",
		head + "- {route: OPS, priority: 1, match: {any: [{words: [a]}]}}":                    `d.yaml: rule 1 by priority: expected a name of its own, found ""`,
		rule("match: {any: [{words: [a]}]}") + "- {name: a, route: OPS}\n":                    `d.yaml: rule 2 by priority: expected a name of its own, found "a"`,
		strings.Replace(rule("match: {any: [{words: [a]}]}"), "route: OPS", "route: FISH", 1): `d.yaml: rule a: route: expected one that routes lists, found "FISH"`,
		strings.Replace(rule("match: {any: [{words: [a]}]}"), "route: OPS", "route: CODE", 1): `d.yaml: rule a: route: expected one that routes lists, found "CODE"`,
		rule("match: {}"): "d.yaml: rule a: match: expected either any or all, with tests",
		rule("match: {any: [{words: [a]}], all: [{words: [a]}]}"):    "d.yaml: rule a: match: expected either any or all, with tests",
		rule("match: {any: [{}]}"):                                   "d.yaml: rule a: match: each test has one of words, regexp, kind; except belongs to words",
		rule("match: {any: [{words: [a], kind: json}]}"):             "d.yaml: rule a: match: each test has one of words, regexp, kind; except belongs to words",
		rule("match: {any: [{kind: json, except: [a]}]}"):            "d.yaml: rule a: match: each test has one of words, regexp, kind; except belongs to words",
		rule("match: {any: [{kind: fish}]}"):                         `d.yaml: rule a: match: expected a kind of build_file, bulk_log, closed_fence, `,
		rule("match: {any: [{kind: json}]}, unless: [{kind: fish}]"): `d.yaml: rule a: match: expected a kind of `,
		rule("match: {any: [{regexp: '('}]}"):                        `d.yaml: rule a: match: the regexp "(" cannot be read: `,
		rule("match: {any: [{regexp: 'a*'}]}"):                       `d.yaml: rule a: match: the regexp "a*" matches every message`,
		rule("match: {any: [{words: ['']}]}"):                        "d.yaml: rule a: match: expected at most 5000 words, none empty",
		rule("match: {any: [{words: [a], except: [' ']}]}"):          "d.yaml: rule a: match: expected at most 5000 words, none empty",
	} {
		_, err := ParseDictionary("d.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n%v", text, err)
			continue
		}
		if ja := i18n.Japanese.Error(err); strings.Contains(ja, "%!") || strings.Contains(err.Error(), "%!") {
			t.Errorf("%s", ja)
		}
	}
}

// A changed file is in force at once; one that does not load leaves the former in force,
// and is reported once.
func TestRulesAreReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d.yaml")
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	write := func(text string) {
		t.Helper()
		at = at.Add(time.Second)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenRules(path, nil); err == nil {
		t.Fatal("a file that is not there was opened")
	}
	write(head + "- {name: a, route: OPS, priority: 1, match: {any: [{words: [kube]}]}}\n")
	var reports []string
	rules, err := OpenRules(path, func(err error) { reports = append(reports, err.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	router := New(rules, Settings{})
	expect := func(step string, want Route, reported int) {
		t.Helper()
		for range 2 {
			if d := router.Decide(context.Background(), Input{Text: "kube"}); d.PrimaryRoute != want {
				t.Errorf("%s: %+v", step, d)
			}
		}
		if len(reports) != reported {
			t.Errorf("%s: %q", step, reports)
		}
	}
	expect("as it was", Ops, 0)
	write(head + "- {name: a, route: PLAN, priority: 1, match: {any: [{words: [kube]}]}}\n")
	expect("changed", Plan, 0)
	write("rules: [")
	expect("broken", Plan, 1)
	write(head + "- {name: a, route: OPS, priority: 1, match: {any: [{words: [kube]}]}}\n")
	expect("mended", Ops, 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("removed", Ops, 2)
	write(head + "- {name: a, route: PLAN, priority: 1, match: {any: [{words: [kube]}]}}\n")
	expect("there again", Plan, 2)
}

// A message of 10 MB is routed by its beginning and end, in the time and memory of these.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	r := open(t, Settings{})
	line := "2026-01-01 00:00:01 INFO request served, nothing to see\n"
	prose := strings.Repeat("むかしむかし、あるところに。\n", 10<<20/45)
	for name, tc := range map[string]struct {
		text string
		want Route
	}{
		"a log":             {strings.Repeat(line, 10<<20/len(line)), Analyze},
		"prose":             {prose, Chat},
		"asked at the end":  {prose + "この文章から人名を抽出して", Analyze},
		"asked at its head": {"main.go を直して\n" + prose, Code},
		"one line":          {strings.Repeat("a", 10<<20), Chat},
		"open brackets":     {strings.Repeat("[", 10<<20), Chat},
		"braces on lines":   {strings.Repeat("{\n", 5<<20), Chat},
		"backticks":         {strings.Repeat("`", 10<<20), Chat},
		"fences":            {strings.Repeat("```\nx\n", 10<<20/6), Chat},
		"commas":            {strings.Repeat(",", 10<<20), Chat},
		"invalid":           {strings.Repeat("\xff", 10<<20), Chat},
		"a JSON list":       {`[` + strings.Repeat(`{"a": 1},`, 10<<20/9) + `{}]`, Analyze},
		"dots":              {strings.Repeat("a.", 5<<20), Chat},
		"slashes":           {strings.Repeat("/", 10<<20), Chat},
	} {
		if d := r.Decide(context.Background(), Input{Text: tc.text}); d.PrimaryRoute != tc.want {
			t.Errorf("%s: %s by %s %q", name, d.PrimaryRoute, d.Reason, d.Evidence)
		}
		m := newMessage(tc.text)
		if len(m.raw) > maxHead+maxTail+1 || len(m.folded) > 12*len(m.raw) {
			t.Errorf("%s: %d bytes are looked at, %d folded", name, len(m.raw), len(m.folded))
		}
	}
}

// Evidence that lets a classifier's CODE pass.
func TestStrongEvidence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"`parse` を直して":               true,
		"handleLogin を修正":            true,
		"rename user_id":             true,
		"fix Foo()":                  true,
		"ParseConfig にオプションを追加":      true,
		"http.Server のタイムアウトを変えて":    true,
		"うちの猫 main.go":               true,
		"a,1\nb,2\nc,3":              true,
		"```go\nfunc main() {}\n```": true,
		"handleLogin って何":            false,
		"ログインを直して":                   false,
		"fix my life":                false,
		"DELETE my account":          false,
		"iPhone の設定を変えて":             false,
		"PowerPoint を修正して":           false,
		"iPhone が好き":                 false,
		"":                           false,
	} {
		if got := StrongEvidence(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// conversation is what people write, for the benchmark.
var conversation = []string{
	"おはよう。昨日の件だけど、やっぱり最初の案で進めようと思う。",
	"この三日間の問い合わせを原因別に分類して、件数の多い順に並べてください。できれば表にしてほしいです。",
	"can you rename the function in helpers.py to snake_case and fix the callers?",
	"I had a long talk with the team about remote work, and everybody had a different opinion about which days to come in. What would you do?",
	"引っ越しの段取りを考えて。来月の十日に荷物を出して、十二日に受け取る予定。",
}

// Routing by commands and rules takes few allocations; make bench measures its time.
func TestRoutingIsCheap(t *testing.T) {
	r := open(t, Settings{})
	for _, text := range conversation {
		if n := testing.AllocsPerRun(100, func() { r.Decide(context.Background(), Input{Text: text}) }); n > 12 {
			t.Errorf("%q: %.0f allocations", text, n)
		}
	}
}

// What tells and asks for nothing is no work, whatever words are in it.
func TestStatement(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"論文に追われて夏が終わる":                true,
		"大学では設計が苦手だった！":               true,
		"the design is hideous":       true,
		"I ate the plan":              true,
		"論文を探して":                      false,
		"設計したい":                       false,
		"この設計でいいですか？":                 false,
		"画面の設計":                       false,
		"I need a plan":               false,
		"my plan: could you check it": false,
		"describe the design":         false,
		"設計した。\n見て":                   false,
		"":                            false,
	} {
		if _, got := statement(newMessage(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
