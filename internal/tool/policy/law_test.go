package policy

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
)

// atoms are command lines of plain words whose verdict does not depend on what
// stands around them.
var atoms = [][]string{
	{"ls", "-la"}, {"go", "test", "./..."}, {"cat", "/w/repo/a b"}, {"rm", "-rf", "/w/repo/build"}, {"git", "status"}, {"true"}, {"make", "test"},
	{"git", "push"}, {"rm", "-rf", "/"}, {"cat", "/home/ken/.ssh/id_rsa"}, {"mount", "/dev/sda", "/mnt"}, {"chmod", "+s", "/w/repo/x"}, {"sudo", "ls"},
	{"docker", "ps"}, {"npm", "publish"}, {"rm", "/etc/hosts"}, {"curl", "https://example.com"}, {"unheard-of", "it's"}, {"git", "reset", "--hard"}, {"kill", "1"},
}

// wrapped are ways to run a command line through another; those of the first
// kind put words before it, those of the second make a script of it.
var wrapped = []struct {
	before []string
	script bool
}{
	{[]string{"env"}, false}, {[]string{"env", "-i", "A=b"}, false}, {[]string{"env", "-u", "X", "--unset=Y"}, false}, {[]string{"timeout", "-k", "1", "5m"}, false}, {[]string{"timeout", "--signal=9", "5"}, false},
	{[]string{"nice"}, false}, {[]string{"nice", "-n", "5"}, false}, {[]string{"nice", "-5"}, false}, {[]string{"ionice", "-c", "3"}, false}, {[]string{"nohup"}, false}, {[]string{"setsid", "-fw"}, false}, {[]string{"stdbuf", "-oL", "-e", "0"}, false},
	{[]string{"xargs", "-r", "-n", "1"}, false}, {[]string{"/usr/bin/env"}, false}, {[]string{"bundle", "exec"}, false}, {[]string{"poetry", "-q", "run"}, false}, {[]string{"busybox"}, false},
	{[]string{"find", ".", "-exec"}, false},
	{[]string{"sh", "-c"}, true}, {[]string{"bash", "-lc"}, true}, {[]string{"dash", "-e", "-u", "-c"}, true}, {[]string{"bash", "-o", "pipefail", "-c"}, true}, {[]string{"watch", "-n1"}, true}, {[]string{"env", "sh", "-c"}, true},
}

func TestUnwrappingGivesTheInnerVerdict(t *testing.T) {
	t.Parallel()
	p := defaultPolicy(t)
	rapid.Check(t, func(t *rapid.T) {
		line := slices.Clone(rapid.SampledFrom(atoms).Draw(t, "atom"))
		want := p.Judge(quoted(line), testPlace)
		fed := false
		for range rapid.IntRange(1, 5).Draw(t, "depth") {
			w := rapid.SampledFrom(wrapped).Draw(t, "wrapper")
			fed = fed || w.before[0] == "xargs"
			if w.script {
				line = append(slices.Clone(w.before), quoted(line))
			} else {
				line = append(slices.Clone(w.before), line...)
			}
			if w.before[0] == "find" {
				line = append(line, ";")
			}
		}
		got := p.Judge(quoted(line), testPlace)
		if fed && got.Decision > want.Decision && got.Decision == Ask {
			return // the words that xargs adds may make it worse
		}
		if got.Decision != want.Decision || len(want.Findings) > 0 && !slices.ContainsFunc(got.Findings, func(f Finding) bool { return f.Rule == want.Findings[0].Rule }) {
			t.Fatalf("%s: %v, want %v\n%s\n%s", quoted(line), got.Decision, want.Decision, got.Text(i18n.English), want.Text(i18n.English))
		}
	})
}

func TestTheStrictestWins(t *testing.T) {
	t.Parallel()
	p := defaultPolicy(t)
	rapid.Check(t, func(t *rapid.T) {
		script, want := "", Allow
		for range rapid.IntRange(1, 6).Draw(t, "commands") {
			line := quoted(rapid.SampledFrom(atoms).Draw(t, "atom"))
			want = max(want, p.Judge(line, testPlace).Decision)
			switch rapid.IntRange(0, 7).Draw(t, "frame") {
			case 0:
				line = "(" + line + ")"
			case 1:
				line = "if " + line + "; then :; fi"
			case 2:
				line = "f() {\n" + line + "\n}"
			case 3:
				line = "echo \"$(" + line + ")\""
			case 4:
				line = "for x in 1 2; do " + line + "; done"
			}
			script += line + rapid.SampledFrom([]string{"\n", "; ", " && ", " || ", " | ", " & ", " # \n"}).Draw(t, "then")
		}
		script += "true"
		if got := p.Judge(script, testPlace); got.Decision != want {
			t.Fatalf("%s: %v, want %v\n%s", script, got.Decision, want, got.Text(i18n.English))
		}
	})
}

// A second rule, whatever it says, never makes a verdict milder.
func TestMoreRulesAreNeverMilder(t *testing.T) {
	t.Parallel()
	p := defaultPolicy(t)
	rapid.Check(t, func(t *rapid.T) {
		extra := Rule{Name: "extra", Decision: Decision(rapid.IntRange(0, 2).Draw(t, "decision")), Programs: []string{rapid.SampledFrom([]string{"git", "rm", "c*", "ls"}).Draw(t, "program")}}
		q := &Policy{rules: append(slices.Clone(p.rules), extra)}
		line := quoted(rapid.SampledFrom(atoms).Draw(t, "atom"))
		before := p.Judge(line, testPlace)
		if len(before.Findings) > 0 && before.Findings[0].Rule == RuleNone {
			return // that no rule is about it is what a rule may change
		}
		if after := q.Judge(line, testPlace); after.Decision < before.Decision {
			t.Fatalf("%s: %v became %v", line, before.Decision, after.Decision)
		}
	})
}

// What is made to be costly is read in little memory, or not read.
func TestCostlyScripts(t *testing.T) {
	p := defaultPolicy(t)
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	for name, script := range map[string]string{
		"pipes":         "a" + many("|a", MaxScript/2-1),
		"lists":         "a" + many("&&a", MaxScript/3-1),
		"clauses":       many("if ", MaxScript/4),
		"bangs":         many("! ", MaxScript/2),
		"brackets":      many("(", MaxScript),
		"substitutions": many("$(", 190) + many(")", 190),
		"nested shells": many("sh -c ", 30),
		"backquotes":    many("`", MaxScript),
		"braces":        "echo " + many("{a,b}", MaxScript/6),
		"long braces":   "echo " + many("x", 60000) + "{1..4000}",
		"variables":     "a=" + many("x", 4000) + "\n" + many("b=\"x$a$a$a$a\"\necho \"x$a$a$a\" \"y$b$b\"\n", 1000),
		"doubling": "a=xxxxxxxx\n" + func() (s string) {
			for i := range 30 {
				v := string(rune('a' + i%26))
				n := string(rune('a' + (i+1)%26))
				s += n + "=\"$" + v + "$" + v + "$" + v + "$" + v + "\"\n"
			}
			return s
		}() + "echo $z$y$x",
		"heredocs": many("cat <<A\n$(ls)\nA\n", 5000),
		"globs":    "ls " + many("*a", MaxScript/3),
		"flags":    "git " + many("--x ", MaxScript/5),
		"loops":    many("for i in a b c; do cd ..; ", 100) + "ls" + many("; done", 100),
		"shells": func() string {
			s := "cd ..; ls"
			for range 7 {
				s = "for i in 1; do " + quoted([]string{"sh", "-c", s}) + "; cd x; done"
			}
			return s
		}(),
		"stars": "git config " + many("*", 1000) + many("a*", 1000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		v := p.Judge(script, testPlace)
		runtime.ReadMemStats(&after)
		commands := len(Commands(script, testPlace))
		t.Logf("%-14s %8d bytes: %6.1f ms, %6.1f MB allocated, %v, %d commands", name, len(script), float64(time.Since(began).Microseconds())/1000, float64(after.TotalAlloc-before.TotalAlloc)/1e6, v.Decision, commands)
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 400 {
			t.Errorf("%s: %d MiB allocated", name, mb)
		}
		if commands > 2*MaxCommands+1 {
			t.Errorf("%s: %d commands", name, commands)
		}
	}
}

func FuzzJudge(f *testing.F) {
	for _, c := range verdicts {
		if len(c.script) < 2000 {
			f.Add(c.script)
		}
	}
	p, err := New(Default())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, script string) {
		defer disktest.Bounded(t, len(script))()
		v := p.Judge(script, testPlace)
		if again := p.Judge(script, testPlace); again.Decision != v.Decision || again.Text(i18n.English) != v.Text(i18n.English) {
			t.Fatalf("two verdicts: %v and %v", v.Decision, again.Decision)
		}
		for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
			text := v.Text(l)
			if !utf8.ValidString(text) || len(text) > 64<<10 || (v.Decision == Allow) != (text == "") {
				t.Fatalf("%v: %q", v.Decision, text)
			}
		}
		if len(v.Findings) > MaxFindings || (v.Decision > Allow) != (len(v.Findings) > 0) {
			t.Fatalf("%v with %d findings", v.Decision, len(v.Findings))
		}
		// What a script does is done as well where more follows it.
		if more := p.Judge(script+"\ntrue\n", testPlace); more.Decision < v.Decision && !strings.Contains(v.Text(i18n.English), "opaque") && !strings.Contains(script, "<<") && !strings.HasSuffix(script, `\`) {
			t.Fatalf("%v became %v", v.Decision, more.Decision)
		}
	})
}

// quoted returns the words of a command line for a reader.
func quoted(words []string) string {
	var b strings.Builder
	for i, s := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$`;&|<>()*?[]{}#~") {
			b.WriteString(s)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(s, "'", `'\''`) + "'")
	}
	return b.String()
}
