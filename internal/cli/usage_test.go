package cli

import (
	"bytes"
	"regexp"
	"testing"

	"toritsugi/internal/i18n"
)

// What the parser of the command line says is said in the reader's language, each of its forms.
func TestUsageSpeaksOneLanguage(t *testing.T) {
	t.Parallel()
	english := regexp.MustCompile(`[A-Za-z]+ [A-Za-z]+`)
	for _, c := range []struct {
		args   []string
		ja, en string
	}{
		{[]string{"tasks", "--x"}, `--x というフラグはありません`, `unknown flag --x`},
		{[]string{"chat", "--sesion", "a"}, `--sesion というフラグはありません。もしかして: "--session"`, `unknown flag --sesion, did you mean "--session"?`},
		{[]string{"chat", "--m"}, `--m というフラグはありません。もしかして: "-h", "-c", "--message", "-m"`, `unknown flag --m, did you mean "-h", "-c", "--message", "-m"?`},
		{[]string{"frobnicate"}, `余分な引数、または知らないコマンドです: frobnicate`, `unexpected argument frobnicate`},
		{[]string{"shw"}, `余分な引数、または知らないコマンドです: shw。もしかして: "show"`, `unexpected argument shw, did you mean "show"?`},
		{[]string{"show", "a", "b"}, `余分な引数、または知らないコマンドです: b`, `unexpected argument b`},
		{[]string{"show"}, `足りない引数: <uuid>`, `expected <uuid>`},
		{[]string{"approvals", "grant"}, `足りない引数: <job> <hash>`, `expected <job> <hash>`},
		{[]string{"routes"}, `次のいずれかが必要です: "test", "stats"`, `expected one of "test", "stats"`},
		{[]string{"approvals", "--json", "show", "x"}, `--json は "list" のフラグで、"show" のものではありません`, `flag --json belongs to "list", not to "show"`},
		{[]string{"run", "--issue", "a", "--message", "b"}, `--issue と --message は同時に指定できません`, `--issue and --message can't be used together`},
		{[]string{"tasks", "--limit"}, `--limit の値がありません`, `--limit: a value is missing`},
		{[]string{"chat", "-m"}, `--message の値がありません`, `--message: a value is missing`},
		{[]string{"tasks", "--limit", "-3"}, `「-」で始まる値は --limit="-3" のように指定します`, `is given as --limit="-3"`},
		{[]string{"tasks", "--limit", "x y"}, `--limit には数を指定してください（指定された値: "x y"）`, `--limit: expected a number but got "x y"`},
		{[]string{"memory", "replay", "f", "--min-share", "x"}, `--min-share には数を指定してください（指定された値: "x"）`, `--min-share: expected a number but got "x"`},
		{[]string{"tasks", "--json=maybe"}, `--json に指定できる値は true か false だけです（指定された値: "maybe"）`, `--json takes no value but true or false`},
		{[]string{"approvals", "auto", "on"}, `[<off>] に指定できるのは "","off" です（指定された値: "on"）`, `[<off>] must be one of "","off" but got "on"`},
		{[]string{"eval", "--modes", "x"}, `--modes に指定できるのは`, `--modes must be one of`},
		{[]string{"mcp", "prompt", "s", "p", "x"}, `NAME=VALUE の形で指定してください（指定された値: "x"）`, `expected NAME=VALUE but got "x"`},
	} {
		for lang, want := range map[i18n.Lang]string{i18n.Japanese: c.ja, i18n.English: c.en} {
			var out bytes.Buffer
			code := (&console{out: &out, err: &out, lang: lang, getenv: func(string) string { return "" }}).main(c.args)
			said := out.String()
			if code != exitUsage || !bytes.Contains(out.Bytes(), []byte(want)) {
				t.Errorf("%q (%s): exit code %d\n%s", c.args, lang, code, said)
			}
			said = regexp.MustCompile(`tori --help|tori: |"[^"]*"|<job> <hash>`).ReplaceAllString(said, "")
			if found := english.FindString(said); lang == i18n.Japanese && found != "" {
				t.Errorf("%q: %q is English in\n%s", c.args, found, said)
			}
		}
	}
}
