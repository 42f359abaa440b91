package project

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"toritsugi/internal/disk/disktest"
)

func TestRules(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	type rules map[string]string
	for name, c := range map[string]struct {
		files rules
		file  int
		total int
		want  []string // path, by, from, cut, note or why, text
	}{
		"the root's in their order, then the nearest": {files: rules{"claude.md": "c", "AGENTS.md": "a", "Agent.md": "g", "z/AGENTS.md": "z", "a/b/CLAUDE.md": "ab", "a/CLAUDE.md": "ac", "a/AGENTS.md": "aa",
			"README.md": "no", "AGENTS.md.txt": "no", "agents": "no", "x/my-agents.md": "no"},
			want: []string{"AGENTS.md|a", "claude.md|c", "Agent.md|g", "a/AGENTS.md|aa", "a/CLAUDE.md|ac", "z/AGENTS.md|z", "a/b/CLAUDE.md|ab"}},
		"other people's, and what tests read": {files: rules{"node_modules/x/AGENTS.md": "1", "pkg/vendor/AGENTS.md": "2", "testdata/AGENTS.md": "3", "src/fixtures/CLAUDE.md": "4", "build/AGENTS.md": "ours"},
			want: []string{"build/AGENTS.md|ours"}},
		"an import":                 {files: rules{"CLAUDE.md": "@AGENTS.md\n", "AGENTS.md": "a"}, want: []string{"AGENTS.md|a", "CLAUDE.md|@AGENTS.md\n"}},
		"imports that import":       {files: rules{"CLAUDE.md": "- @docs/1.md\n", "docs/1.md": "@2.md", "docs/2.md": "@../3.md", "3.md": "@4.md", "4.md": "too deep"}, want: []string{"CLAUDE.md|- @docs/1.md\n", "docs/1.md|by CLAUDE.md|@2.md", "docs/2.md|by docs/1.md|@../3.md", "3.md|by docs/2.md|@4.md"}},
		"imports in a circle":       {files: rules{"CLAUDE.md": "@a.md", "a.md": "@CLAUDE.md\n@a.md\n@b.md\n@b.md", "b.md": "@a.md\n"}, want: []string{"CLAUDE.md|@a.md", "a.md|by CLAUDE.md|@CLAUDE.md\n@a.md\n@b.md\n@b.md", "b.md|by a.md|@a.md\n"}},
		"imports from outside":      {files: rules{"CLAUDE.md": "@/etc/passwd\n@../x.md\n@~/.claude/x.md\n@no.md\n@hanako\n@types/node is not alone\n```\n@in-code.md\n```\n"}, want: []string{"CLAUDE.md|*", "/etc/passwd|by CLAUDE.md|why it is not in the repository", "../x.md|by CLAUDE.md|why it is not in the repository", "~/.claude/x.md|by CLAUDE.md|why there is no such file", "no.md|by CLAUDE.md|why there is no such file"}},
		"an import of a binary":     {files: rules{"CLAUDE.md": "@logo.png", "logo.png": "\x89PNG\x00"}, want: []string{"CLAUDE.md|@logo.png", "logo.png|by CLAUDE.md|why it is not text in UTF-8"}},
		"a link":                    {files: rules{"CLAUDE.md": "-> AGENTS.md", "AGENTS.md": "a", "x/AGENTS.md": "-> ../doc/rules.txt", "doc/rules.txt": "r"}, want: []string{"AGENTS.md|a", "CLAUDE.md|from AGENTS.md|why the same text as AGENTS.md", "x/AGENTS.md|from doc/rules.txt|r"}},
		"links that lead nowhere":   {files: rules{"AGENTS.md": "-> /etc/passwd", "CLAUDE.md": "-> ../../x", "AGENT.md": "-> other", "other": "-> AGENTS.md", "d/AGENTS.md": "-> gone", "e/AGENTS.md": "-> ../d"}, want: []string{"AGENTS.md|why it links out of the repository", "CLAUDE.md|why it links out of the repository", "AGENT.md|from other|why it links to other, which is a link itself", "d/AGENTS.md|from d/gone|why it links to d/gone, which is not a file of the repository", "e/AGENTS.md|from d|why it links to d, which is not a file of the repository"}},
		"a copy":                    {files: rules{"CLAUDE.md": "same", "AGENTS.md": "same"}, want: []string{"AGENTS.md|same", "CLAUDE.md|why the same text as AGENTS.md"}},
		"not text":                  {files: rules{"AGENTS.md": "a\x00b", "CLAUDE.md": "\xff\xfe", "AGENT.md": ""}, want: []string{"AGENTS.md|why it is not text in UTF-8", "CLAUDE.md|why it is not text in UTF-8", "AGENT.md|"}},
		"a file over the limit":     {files: rules{"AGENTS.md": "1234長い"}, file: 8, want: []string{"AGENTS.md|cut|1234長"}},
		"all over the limit":        {files: rules{"AGENTS.md": "12345", "CLAUDE.md": "678", "a/AGENTS.md": "90"}, total: 7, want: []string{"AGENTS.md|12345", "CLAUDE.md|cut|67", "a/AGENTS.md|why there is no room for more rules (project_agent_rules.max_total_size)"}},
		"a huge file":               {files: rules{"AGENTS.md": strings.Repeat("x", 9<<20)}, want: []string{"AGENTS.md|why 9437184 bytes are too large to be read"}},
		"hidden text is not hidden": {files: rules{"AGENTS.md": "\uFEFFa<!-- b -->\u200bc ⚠️ 👨‍👩‍👧\U000E0041"}, want: []string{"AGENTS.md|note 2 characters in it cannot be seen|a<!-- b -->\u200bc ⚠️ 👨‍👩‍👧\U000E0041"}},
		"case":                      {files: rules{"agents.MD": "1", "AGENTS.md": "2"}, want: []string{"AGENTS.md|2", "agents.MD|1"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := all
			if c.file > 0 {
				o.MaxFile = c.file
			}
			if c.total > 0 {
				o.MaxTotal = c.total
			}
			p := b.read(c.files, o)
			var got []string
			for _, r := range p.Rules.Files {
				s := r.Path + "|"
				for _, part := range [][2]string{{"by ", r.By}, {"from ", r.From}, {"note ", r.Note}, {"why ", r.Why}} {
					if part[1] != "" {
						s += strings.Join(part[:], "") + "|"
					}
				}
				if r.Cut {
					s += "cut|"
				}
				if r.Why != "" {
					s = strings.TrimSuffix(s, "|")
				}
				got = append(got, s+r.Text)
			}
			for i := range max(len(got), len(c.want)) {
				if i >= len(got) || i >= len(c.want) || got[i] != c.want[i] && !strings.HasSuffix(c.want[i], "|*") {
					t.Fatalf("got  %.300q\nwant %.300q", got, c.want)
				}
			}
			if p.Rules.Left != 0 {
				t.Errorf("%d are left", p.Rules.Left)
			}
		})
	}
}

// Of very many files the nearest are read, and the others are counted.
func TestManyRules(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	id := git(t, b.Tree(), "x", "--git-dir="+b.GitDir(), "hash-object", "-w", "--stdin")
	var index strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&index, "100644 %s\ta/d%03d/AGENTS.md\x00100644 %s\tz%03d/AGENTS.md\x00", id, i, id, i)
	}
	p, err := Read(t.Context(), b, b.index(index.String()), all)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Rules.Files); n != maxNested || p.Rules.Left != 2000-maxNested || p.Rules.Files[n-1].Path != "z199/AGENTS.md" {
		t.Errorf("%d files, %d left, last %s", n, p.Rules.Left, p.Rules.Files[n-1].Path)
	}
	for _, budget := range []int{2000, 5000, 50_000} {
		if text := p.Prompt(budget, ""); len(text) > budget || !strings.Contains(text, "- and ") {
			t.Errorf("%d bytes of %d: %s", len(text), budget, text)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"```tori-checks\nmake\n```", "~~~ tori-checks\nx", "````tori-checks\n```\n````", "- @a\n\t@b", "@\n@@", "```a`\n@x\n", "\x00\xff@x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer disktest.Bounded(t, len(s))()
		commands, problem := namedChecks(s)
		if problem != "" && commands != nil {
			t.Error("commands of a block that is wrong")
		}
		for _, c := range commands {
			if strings.ContainsAny(c, "\n\x00") || strings.TrimSpace(c) != c || c == "" || !strings.Contains(s, c) {
				t.Errorf("%q", c)
			}
		}
		for _, p := range importsOf(s) {
			if strings.ContainsAny(p, "@ \n") || !strings.Contains(s, "@"+p) {
				t.Errorf("%q", p)
			}
			if w := within("a/b.md", p); strings.HasPrefix(w, "/") || w == ".." || strings.HasPrefix(w, "../") {
				t.Errorf("%q leads out: %q", p, w)
			}
		}
		b := []byte(s)
		for n := range b {
			if cut := wholeRunes(b[:n]); utf8.Valid(b) && !utf8.Valid(cut) {
				t.Errorf("%q", cut)
			}
		}
	})
}
