package eval

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/llm/script"
)

func TestShippedCasesAreWhole(t *testing.T) {
	t.Parallel()
	all, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 20 {
		t.Errorf("%d cases, want 20", len(all))
	}
	wrong, issues := 0, map[string]string{}
	for _, c := range all {
		if c.About == "" {
			t.Errorf("%s does not say what it is about", c.Name)
		}
		if c.Scripts["script.yaml"] == nil {
			t.Errorf("%s has no answer", c.Name)
		}
		if c.Scripts["script-bad.yaml"] != nil {
			wrong++
		}
		for name, data := range c.Scripts {
			if _, err := script.Parse(name, data); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
		if other, ok := issues[string(c.Issue)]; ok {
			t.Errorf("%s and %s are the same", c.Name, other)
		}
		issues[string(c.Issue)] = c.Name
		// What the model is shown gives away nothing of the check.
		for _, f := range c.Hidden {
			if slices.ContainsFunc(c.Repo, func(r File) bool { return r.Path == f.Path }) {
				t.Errorf("%s: %s is in the repository and hidden", c.Name, f.Path)
			}
		}
	}
	if wrong < 5 {
		t.Errorf("%d cases have a wrong answer to refuse, want five", wrong)
	}
}

func TestTheMinimalLoopHasAnswersThatOnlyUseAShell(t *testing.T) {
	t.Parallel()
	all, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		name, data := c.answers(Answers, Bare)
		for line := range strings.Lines(string(data)) {
			if tool, ok := strings.CutPrefix(strings.TrimSpace(line), "- tool: "); ok && strings.TrimSpace(tool) != "shell" {
				t.Errorf("%s: %s uses %s", c.Name, name, tool)
			}
		}
	}
}

// small is a case that is as short as one can be.
func small() map[string]string {
	return map[string]string{"issue.md": "# Do it\n\nPlease.\n", "check.sh": "grep -q done a\n", "repo/a": "open\n",
		"script.yaml": "- calls:\n    - tool: shell\n      args: {command: echo done > a}\n- say: Done.\n"}
}

func with(files map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		if files[more[i]] = more[i+1]; more[i+1] == "" {
			delete(files, more[i])
		}
	}
	return files
}

func archive(files map[string]string) []byte {
	var b bytes.Buffer
	for name, text := range files {
		b.WriteString("-- " + name + " --\n" + text)
	}
	return b.Bytes()
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		says  string
	}{
		"no issue":        {with(small(), "issue.md", ""), "issue.md"},
		"blank check":     {with(small(), "check.sh", " \n"), "check.sh"},
		"no repository":   {with(small(), "repo/a", ""), "repo/"},
		"misspelt file":   {with(small(), "Check.sh", "x"), "Check.sh"},
		"outside":         {with(small(), "repo/../b", "x"), "repo/../b"},
		"absolute":        {with(small(), "hidden//etc/passwd", "x"), "hidden//etc/passwd"},
		"git's own":       {with(small(), "repo/.git/config", "x"), ".git/config"},
		"git's, shouted":  {with(small(), "hidden/sub/.GIT/hooks/x", "x"), ".GIT"},
		"unknown setting": {with(small(), "case.yaml", "need: [go]\n"), "need"},
		"bad need":        {with(small(), "case.yaml", "needs: ['x; rm -rf /']\n"), "x; rm"},
		"two bases":       {with(small(), "case.yaml", "repo_of: y\n"), "repo/"},
		"no such base":    {with(small(), "repo/a", "", "case.yaml", "repo_of: y\n"), "repo_of names y"},
		"unknown step":    {with(small(), "steps.yaml", "say: x\nturns: []\n"), "steps.yaml"},
		"no command":      {with(small(), "steps.yaml", "look: [{calls: [{tool: recall}]}]\n"), "recall"},
		"bad timeout":     {with(small(), "case.yaml", "timeout_seconds: 999999\n"), "999999"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(fstest.MapFS{"x.txtar": {Data: archive(tt.files)}}, "dir")
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "dir") {
				t.Errorf("error %v, want one of dir that names %s", err, tt.says)
			}
		})
	}
	if _, err := Load(fstest.MapFS{"README.md": {Data: []byte("x")}}, "dir"); err == nil {
		t.Error("a directory without cases is accepted")
	}
	if _, err := Load(fstest.MapFS{"Bad Name.txtar": {Data: archive(small())}}, "dir"); err == nil {
		t.Error("a name that is no name is accepted")
	}
	twice := append(archive(small()), archive(small())...)
	if _, err := Load(fstest.MapFS{"x.txtar": {Data: twice}}, "dir"); err == nil {
		t.Error("a file that is there twice is accepted")
	}
	both := fstest.MapFS{"x.txtar": {Data: archive(small())}}
	for name, text := range small() {
		both["x/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	if _, err := Load(both, "dir"); err == nil {
		t.Error("two cases of one name are accepted")
	}
}

func TestADirectoryIsACaseLikeAnArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := with(small(), "case.yaml", "about: x\nneeds: [sh]\nchecks: ['true']\ntimeout_seconds: 5\n", "hidden/sub/h", "h\n", "NOTES.md", "notes\n", "repo/run", "#!/bin/sh\n")
	for name, text := range files {
		path := filepath.Join(dir, "x", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := Load(fstest.MapFS{"x.txtar": {Data: archive(files)}}, "dir")
	if err != nil {
		t.Fatal(err)
	}
	byPath := func(a, b File) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(packed[0].Repo, byPath)
	slices.SortFunc(tree[0].Repo, byPath)
	if diff := cmp.Diff(packed, tree); diff != "" {
		t.Errorf("archive and directory differ:\n%s", diff)
	}
	if m := tree[0].Repo[1].Mode(); m != 0o755 {
		t.Errorf("a script has the mode %v", m)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "x", "repo", "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadDir(dir); err == nil {
		t.Error("a link in a case is followed")
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	all := []Case{{Name: "go-a"}, {Name: "go-b"}, {Name: "sh-a"}}
	for _, tt := range []struct {
		names []string
		want  string
	}{{nil, "go-a go-b sh-a"}, {[]string{"go-*"}, "go-a go-b"}, {[]string{"sh-a", "go-b"}, "go-b sh-a"}, {[]string{"go-a", "nope"}, "error"}, {[]string{"["}, "error"}} {
		got, err := Select(all, tt.names)
		var names []string
		for _, c := range got {
			names = append(names, c.Name)
		}
		if err != nil {
			names = []string{"error"}
		}
		if s := strings.Join(names, " "); s != tt.want {
			t.Errorf("Select(%q) = %s, want %s", tt.names, s, tt.want)
		}
	}
}

// FuzzCase: whatever an archive holds, it is refused or a case whose files all
// lie inside the repository.
func FuzzCase(f *testing.F) {
	f.Add(archive(small()))
	f.Add([]byte("-- repo/../../x --\n-- issue.md --\nx\n-- check.sh --\ntrue\n-- repo/a\x00b --\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer disktest.Bounded(t, len(data))()
		c, err := newCase("x", parseArchive(data))
		if err != nil {
			return
		}
		for _, file := range slices.Concat(c.Repo, c.Hidden) {
			if !fs.ValidPath(file.Path) || !filepath.IsLocal(file.Path) || strings.Contains(strings.ToLower("/"+file.Path+"/"), "/.git/") {
				t.Errorf("path %q", file.Path)
			}
		}
	})
}
