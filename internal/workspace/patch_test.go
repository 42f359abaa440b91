package workspace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const goodPatch = `diff --git a/README.md b/README.md
--- a/README.md
+++ b/README.md
@@ -1 +1,2 @@
 hello
+more
`

// head is a patch of one new file at a path, as the path is written.
func creating(path, mode, content string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode %[2]s\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+%[3]s\n", path, mode, content)
}

// Each patch that has no place in a tree is refused for a reason of its own, before git
// sees it.
func TestParsePatchRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ patch, want string }{
		"empty":            {"", "workspace.patch_none"},
		"prose":            {"I would change the README.\n", "workspace.patch_none"},
		"prose before":     {"Here it is:\n" + goodPatch, "workspace.patch_none"},
		"counts too many":  {strings.Replace(goodPatch, "+1,2", "+1,3", 1), "workspace.patch_syntax"},
		"line behind hunk": {goodPatch + "+hidden\n", "workspace.patch_loose"},
		"numbered lines":   {"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n1: a\n2:-b\n2:+c\n", "workspace.patch_line"},
		"no space before":  {"--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-b\n+c\nd\n+e\n", "workspace.patch_line"},
		"hunk alone":       {"@@ -1 +1,2 @@\n hello\n+more\n", "workspace.patch_syntax"},
		"up":               {creating("../x", "100644", "a"), "workspace.patch_outside"},
		"up within":        {creating("docs/../../x", "100644", "a"), "workspace.patch_outside"},
		"dot":              {creating("docs/./x", "100644", "a"), "workspace.patch_outside"},
		"absolute":         {"diff --git a/README.md b/x\nrename from README.md\nrename to /etc/x\n", "workspace.patch_outside"},
		"git":              {creating(".git/config", "100644", "a"), "workspace.patch_git"},
		"Git":              {creating("docs/.GiT/hooks/post-checkout", "100755", "a"), "workspace.patch_git"},
		"short name":       {creating("git~1/config", "100644", "a"), "workspace.patch_git"},
		"modules link":     {creating(".gitmodules", "120000", "x\n\\ No newline at end of file"), "workspace.patch_git"},
		"submodule":        {creating("sub", "160000", "Subproject commit 1111111111111111111111111111111111111111"), "workspace.patch_submodule"},
		"odd mode":         {creating("x", "100600", "a"), "workspace.patch_mode"},
		"control":          {"diff --git \"a/x\\001\" \"b/x\\001\"\nnew file mode 100644\n", "workspace.patch_unreadable"},
		"twice":            {goodPatch + goodPatch, "workspace.patch_twice"},
		"two names":        {"diff --git a/README.md b/OTHER.md\n--- a/README.md\n+++ b/OTHER.md\n@@ -1 +1,2 @@\n hello\n+more\n", "workspace.patch_names"},
		"mixed":            {goodPatch + "--- a/src/main.go\n+++ b/src/main.go\n@@ -1 +1,2 @@\n package main\n+// x\n", "workspace.patch_mixed"},
		"no prefix":        {"--- README.md\n+++ README.md\n@@ -1 +1,2 @@\n hello\n+more\n", "workspace.patch_prefix"},
		"no prefix, new":   {"--- /dev/null\n+++ x.md\n@@ -0,0 +1 @@\n+more\n", "workspace.patch_prefix"},
		"no prefix, gone":  {"--- x.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-more\n", "workspace.patch_prefix"},
		"long path":        {creating(strings.Repeat("a", 1500), "100644", "a"), "workspace.patch_path"},
		"bomb":             {"diff --git a/x b/x\nnew file mode 100644\nindex 0..1\nGIT binary patch\nliteral 99999999999\nzc\n\n", "workspace.patch_binary"},
		"many files":       {strings.Repeat("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", 1100), "workspace.patch_files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := ParsePatch([]byte(c.patch)); key(err) != c.want {
				t.Errorf("%v (%s), want %s", err, key(err), c.want)
			}
		})
	}
}

// What is too large costs no more than its length is asked for.
func TestParsePatchLarge(t *testing.T) {
	raw := bytes.Repeat([]byte("diff --git a/x b/x\n"), 50<<20/19)
	allocs := testing.AllocsPerRun(3, func() {
		if _, err := ParsePatch(raw); key(err) != "workspace.patch_large" {
			t.Fatal(err)
		}
	})
	if allocs > 50 {
		t.Errorf("%v allocations", allocs)
	}
	// As large as may be, of what the parser is slowest with.
	line := "diff --git " + strings.Repeat("a ", maxPatchPath-20) + "\n"
	begin := time.Now()
	if _, err := ParsePatch([]byte(strings.Repeat(line, 1000))); err == nil {
		t.Error("taken")
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("refused after %s", took)
	}
}

// What a patch says of its files is what people are shown.
func TestParsePatch(t *testing.T) {
	t.Parallel()
	p, err := ParsePatch([]byte(goodPatch + creating("tool.sh", "100755", "#!/bin/sh") +
		"diff --git a/old b/new\nsimilarity index 90%\nrename from old\nrename to new\n--- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n" +
		"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n" +
		"diff --git a/m b/m\nold mode 100644\nnew mode 100755\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range p.Files {
		got = append(got, fmt.Sprintf("%s %s<%s +%d -%d %s>%s", f.Action, f.Path, f.From, f.Added, f.Removed, f.OldMode, f.NewMode))
	}
	want := "modify README.md< +1 -0 >|create tool.sh< +1 -0 >100755|rename new<old +1 -1 >|delete gone< +0 -2 100644>|mode m< +0 -0 100644>100755"
	if strings.Join(got, "|") != want {
		t.Errorf("%s", strings.Join(got, "|"))
	}
	// A patch without git's headers, as models write it.
	p, err = ParsePatch([]byte("--- a/README.md\n+++ b/README.md\n@@ -1 +1,2 @@\n hello\n+more\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"))
	if err != nil || len(p.Files) != 2 || p.Files[0].Path != "README.md" || p.Files[1].Path != "x" || p.Files[1].Action != PatchCreate {
		t.Errorf("%+v %v", p, err)
	}
}

func TestStaysInside(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]bool{
		"x": true, "../x": true, "../../x": true, "../../../x": false, "/etc/passwd": false, "": false,
		"d/../x": false, ".././x": true, "..": true, "../..": true, "../../..": false, "../.git/config": false, "../.GIT": false,
	} {
		if got := staysInside("a/b", target); got != want {
			t.Errorf("a/b -> %q: %t", target, got)
		}
	}
	if staysInside(".", "..") || !staysInside(".", "x/y") {
		t.Error("at the top")
	}
}

// state is every file below dir with its mode and content.
func state(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(p string, st os.FileInfo, err error) error {
		if err != nil || st.IsDir() && st.Name() == ".git" {
			if st != nil && st.IsDir() && st.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		switch {
		case rel == ".git" || st.IsDir():
		case st.Mode()&os.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			fmt.Fprintf(&b, "%s -> %s\n", rel, to)
		default:
			raw, _ := os.ReadFile(p)
			fmt.Fprintf(&b, "%s %o %q\n", rel, st.Mode().Perm()&0o100, raw)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// kinds are changes of a repository, each by what is done in a clone of it.
var patchKinds = map[string]func(t *testing.T, dir string){
	"modify": func(t *testing.T, dir string) { write(t, dir+"/README.md", "hello\nmore\n") },
	"create": func(t *testing.T, dir string) { write(t, dir+"/docs/日本 語.md", "x\n") },
	"delete": func(t *testing.T, dir string) { must(t, os.Remove(dir+"/src/main.go")) },
	"rename": func(t *testing.T, dir string) {
		must(t, os.Mkdir(dir+"/cmd", 0o755))
		must(t, os.Rename(dir+"/src/main.go", dir+"/cmd/main.go"))
	},
	"mode": func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/README.md", 0o755)) },
	"binary": func(t *testing.T, dir string) {
		write(t, dir+"/bin.dat", "\x00\x01\x02"+strings.Repeat("\xff\x00", 400))
	},
	"binary change": func(t *testing.T, dir string) { write(t, dir+"/old.bin", "\x00changed\x00") },
	"crlf":          func(t *testing.T, dir string) { write(t, dir+"/dos.txt", "a\r\nB\r\nc\r\n") },
	"no newline":    func(t *testing.T, dir string) { write(t, dir+"/README.md", "hello") },
	"newline added": func(t *testing.T, dir string) { write(t, dir+"/bare.txt", "no end\n") },
	"empty":         func(t *testing.T, dir string) { write(t, dir+"/empty", "") },
	"link":          func(t *testing.T, dir string) { must(t, os.Symlink("../README.md", dir+"/src/link")) },
	"file to link": func(t *testing.T, dir string) {
		must(t, os.Remove(dir+"/bare.txt"))
		must(t, os.Symlink("README.md", dir+"/bare.txt"))
	},
	"file to dir": func(t *testing.T, dir string) {
		must(t, os.Remove(dir+"/bare.txt"))
		write(t, dir+"/bare.txt/in", "x\n")
	},
	"dir to file":     func(t *testing.T, dir string) { must(t, os.RemoveAll(dir+"/src")); write(t, dir+"/src", "x\n") },
	"trailing spaces": func(t *testing.T, dir string) { write(t, dir+"/README.md", "hello  \n\t\n \n") },
}

// patchRepo is a repository with a file of each sort.
func patchRepo(t *testing.T) string {
	dir := newRepo(t, "p")
	write(t, dir+"/dos.txt", "a\r\nb\r\nc\r\n")
	write(t, dir+"/bare.txt", "no end")
	write(t, dir+"/old.bin", "\x00old\x00")
	write(t, dir+"/.gitattributes", "*.md text\nsrc/* ident\n")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "more")
	return dir
}

// diffOf is the patch that a change makes, and what the files then are.
func diffOf(t *testing.T, repo string, change func(*testing.T, string), args ...string) (raw []byte, after string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	git(t, repo, "clone", "-q", ".", dir)
	return diffIn(t, dir, change, args...)
}

// diffIn is diffOf in a clone.
func diffIn(t *testing.T, dir string, change func(*testing.T, string), args ...string) (raw []byte, after string) {
	t.Helper()
	change(t, dir)
	git(t, dir, "-c", "core.autocrlf=false", "add", "-A")
	raw = []byte(git(t, dir, append([]string{"diff", "--cached", "--binary", "--full-index", "HEAD"}, args...)...))
	return raw, git(t, dir, "write-tree")
}

// What is committed of each kind of patch is, object by object, what git apply makes of
// it in a clean clone; taken back it is the base.
func TestApplyPatchKinds(t *testing.T) {
	t.Parallel()
	repo := patchRepo(t)
	for name, change := range patchKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, want := diffOf(t, repo, change, "-M")
			p, err := ParsePatch(raw)
			if err != nil {
				t.Fatalf("%v\n%s", err, raw)
			}
			w := create(t, repo)
			before := state(t, w.Tree())
			if tr, err := w.TryPatch(t.Context(), p); err != nil || tr.Tree != line(want) {
				t.Fatalf("%v: %s, want %s\n%s", err, tr.Tree, want, raw)
			}
			if state(t, w.Tree()) != before {
				t.Error("trying changes the tree")
			}
			if _, err := w.ApplyPatch(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			tr, err := w.ApplyPatch(t.Context(), p) // a second time changes nothing
			if err != nil {
				t.Fatal(err)
			}
			clean := filepath.Join(t.TempDir(), "clean")
			git(t, repo, "clone", "-q", ".", clean)
			must(t, os.WriteFile(clean+".patch", raw, 0o600))
			git(t, clean, "apply", "--index", clean+".patch")
			if got, want := state(t, w.Tree()), state(t, clean); got != want {
				t.Errorf("the tree is\n%s, want\n%s", got, want)
			}
			id, err := w.Commit(t.Context(), CommitOptions{Message: "x", When: when, Tree: tr.Tree})
			if err != nil {
				t.Fatal(err)
			}
			if got := git(t, w.GitDir(), "rev-parse", id+"^{tree}"); got != want {
				t.Errorf("committed %s, want %s", got, want)
			}
			back, err := w.ReversePatch(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			must(t, os.WriteFile(clean+".back", back, 0o600))
			git(t, clean, "apply", "--index", clean+".back")
			if got, want := git(t, clean, "write-tree"), git(t, repo, "rev-parse", "HEAD^{tree}"); got != want {
				t.Errorf("taken back it is %s, not %s", got, want)
			}
		})
	}
}

// A patch of which one part does not fit is not applied at all, and git's words say why.
func TestApplyPatchAllOrNothing(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "p"))
	before := state(t, w.Tree())
	for name, c := range map[string]struct{ patch, want string }{
		"second does not fit": {goodPatch + "diff --git a/src/main.go b/src/main.go\n--- a/src/main.go\n+++ b/src/main.go\n@@ -1 +1 @@\n-package other\n+package x\n", "workspace.patch_apply"},
		"missing file":        {strings.ReplaceAll(goodPatch, "README.md", "NOPE.md"), "workspace.patch_apply"},
		"there already":       {creating("README.md", "100644", "x"), "workspace.patch_apply"},
		"link out":            {creating("docs/l", "120000", "../../etc\n\\ No newline at end of file"), "workspace.patch_link"},
		"link to root":        {creating("l", "120000", "/etc/passwd\n\\ No newline at end of file"), "workspace.patch_link"},
		"git directory":       {creating("x/HEAD", "100644", "ref: refs/heads/m") + creating("x/objects/a", "100644", "a") + creating("x/refs/a", "100644", "a"), "workspace.patch_git"},
		"nothing":             {"diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-hello\n+hello\n", "workspace.patch_nothing"},
	} {
		p, err := ParsePatch([]byte(c.patch))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := w.ApplyPatch(t.Context(), p); key(err) != c.want {
			t.Errorf("%s: %v (%s)", name, err, key(err))
		}
		if state(t, w.Tree()) != before {
			t.Fatalf("%s changed the tree", name)
		}
	}
}

// What commands did after a patch is committed with it; what setup left before is not.
func TestCarry(t *testing.T) {
	t.Parallel()
	w := create(t, newRepo(t, "p"))
	p, err := ParsePatch([]byte(goodPatch))
	must(t, err)
	tr, err := w.ApplyPatch(t.Context(), p)
	must(t, err)
	write(t, w.Tree()+"/left-by-setup", "x\n")
	before, err := w.TreeNow(t.Context())
	must(t, err)
	write(t, w.Tree()+"/generated.txt", "y\n")
	must(t, os.Remove(w.Tree()+"/src/main.go"))
	after, err := w.TreeNow(t.Context())
	must(t, err)
	tree, err := w.Carry(t.Context(), tr.Tree, before, after)
	must(t, err)
	id, err := w.Commit(t.Context(), CommitOptions{Message: "x", When: when, Tree: tree})
	must(t, err)
	if got := git(t, w.GitDir(), "ls-tree", "-r", "--name-only", id); got != "README.md\ngenerated.txt\n" {
		t.Errorf("%q", got)
	}
}

// The patches that a model may write, of any files: what is applied is what git apply
// makes of the approved bytes.
func TestApplyPatchProperty(t *testing.T) {
	t.Parallel()
	repo := patchRepo(t)
	w := create(t, repo)
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, repo, "clone", "-q", ".", clone)
	names := []string{"README.md", "src/main.go", "dos.txt", "bare.txt", "old.bin", "new.txt", "docs/a b.md"}
	rapid.Check(t, func(rt *rapid.T) {
		changes := rapid.MapOfN(rapid.SampledFrom(names), rapid.OneOf(rapid.Just("\x00delete"), rapid.StringMatching("[ab \r\n]{0,12}"), rapid.Just("\x00\xff\n")), 1, 4).Draw(rt, "changes")
		context := rapid.SampledFrom([]string{"-U3", "-U0"}).Draw(rt, "context")
		git(t, clone, "reset", "-q", "--hard")
		raw, want := diffIn(t, clone, func(t *testing.T, dir string) {
			for name, text := range changes {
				if text == "\x00delete" {
					_ = os.Remove(filepath.Join(dir, name))
				} else {
					write(t, filepath.Join(dir, name), text)
				}
			}
		}, context, "--no-renames")
		if len(raw) == 0 {
			return
		}
		p, err := ParsePatch(raw)
		if err != nil {
			rt.Fatalf("%v\n%s", err, raw)
		}
		tr, err := w.TryPatch(t.Context(), p)
		if context == "-U0" && key(err) == "workspace.patch_apply" {
			return // git apply wants to be told of a patch without context
		}
		if err != nil || tr.Tree != line(want) {
			rt.Fatalf("%v: %s, want %s\n%s", err, tr.Tree, want, raw)
		}
	})
}

// Whatever the gate lets through names paths of the tree only, and keeps its bytes.
func FuzzParsePatch(f *testing.F) {
	for _, s := range []string{goodPatch, goodPatch + "+x\n", creating("../x", "100644", "a"), creating("x", "120000", "/etc"), "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
		"diff --git a/x b/x\nGIT binary patch\nliteral 3\nKcmZQ\n\nliteral 0\nHcmV?d00001\n\n", "diff --git \"a/x\\001\" \"b/x\\001\"\nnew file mode 100644\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		p, err := ParsePatch(raw)
		if !bytes.Equal(before, raw) {
			t.Fatal("the patch was changed")
		}
		if err != nil {
			if key(err) == "" {
				t.Fatalf("no reason for people: %v", err)
			}
			return
		}
		if len(p.Files) == 0 || len(p.SHA256) != 64 {
			t.Fatalf("%+v", p)
		}
		for _, file := range p.Files {
			for _, name := range []string{file.Path, file.From} {
				if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") || strings.Contains(strings.ToLower("/"+name+"/"), "/.git/") {
					t.Fatalf("%q in %q", name, raw)
				}
			}
		}
	})
}
