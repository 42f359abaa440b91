package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openHand opens the files of a checkout.
func openHand(t *testing.T, repo string) *Checkout {
	t.Helper()
	src, err := Inspect(t.Context(), repo, InspectOptions{Box: walls(), AllowDirty: true})
	must(t, err)
	h, err := OpenCheckout(t.Context(), src, filepath.Join(t.TempDir(), "hand"), walls())
	must(t, err)
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// touchedBy is what a patch does to the files at hand.
func touchedBy(t *testing.T, h *Checkout, base string, raw []byte) []Touch {
	t.Helper()
	p, err := ParsePatch(raw)
	must(t, err)
	tr, err := h.TryPatch(t.Context(), base, p)
	must(t, err)
	return tr.Touched
}

// Each kind of patch makes the files at hand what git apply makes of them, and leaves
// alone what the repository knows of itself.
func TestHandKinds(t *testing.T) {
	t.Parallel()
	for name, change := range patchKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := patchRepo(t)
			raw, _ := diffOf(t, repo, change, "-M")
			write(t, repo+"/notes.txt", "not tracked\n")
			index := read(t, repo+"/.git/index")
			h := openHand(t, repo)
			base, err := h.TreeOf(t.Context())
			must(t, err)
			touched := touchedBy(t, h, base, raw)
			clean := filepath.Join(t.TempDir(), "clean")
			git(t, repo, "clone", "-q", ".", clean)
			write(t, clean+"/notes.txt", "not tracked\n")
			must(t, os.WriteFile(clean+".patch", raw, 0o600))
			git(t, clean, "-c", "core.autocrlf=false", "apply", clean+".patch")
			must(t, h.Write(t.Context(), touched))
			must(t, h.Write(t.Context(), touched)) // once more changes nothing
			if got, want := state(t, repo), state(t, clean); got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			if read(t, repo+"/.git/index") != index {
				t.Error("the index was written")
			}
			after, err := h.TreeOf(t.Context())
			must(t, err)
			back, err := h.ReversePatch(t.Context(), after, base)
			must(t, err)
			must(t, h.Write(t.Context(), touchedBy(t, h, after, back)))
			if got, err := h.TreeOf(t.Context()); err != nil || got != base {
				t.Errorf("taken back: %s %v, want %s", got, err, base)
			}
		})
	}
}

// The base of files at hand has what is tracked and what is not, as it is in the files,
// and not what is ignored.
func TestHandTree(t *testing.T) {
	t.Parallel()
	repo := patchRepo(t)
	write(t, repo+"/.gitignore", "*.log\n")
	write(t, repo+"/a.log", "ignored\n")
	write(t, repo+"/new.txt", "new\r\n")
	write(t, repo+"/README.md", "edited\r\n")
	write(t, repo+"/inner/.git/HEAD", "ref: refs/heads/x\n")
	write(t, repo+"/inner/file", "x\n")
	h := openHand(t, repo)
	base, err := h.TreeOf(t.Context())
	must(t, err)
	must(t, h.Lay(t.Context(), base))
	got := state(t, h.Tree())
	for _, want := range []string{".gitignore", "new.txt 0 \"new\\r\\n\"", "README.md 0 \"edited\\r\\n\"", "src/main.go"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "a.log") || strings.Contains(got, "inner") {
		t.Errorf("too much:\n%s", got)
	}
	if _, err := h.TryPatch(t.Context(), base, &Patch{Raw: []byte("x")}); key(err) != "workspace.patch_apply" {
		t.Error(err)
	}
}

// A touched file that is not what it was when the change was proposed has nothing be
// written; any other may change. What is ignored is never written over.
func TestHandMoved(t *testing.T) {
	t.Parallel()
	two := []byte(goodPatch + creating("made/x", "100644", "a"))
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, repo string)
		refused   bool
	}{
		"other file":   {func(t *testing.T, repo string) { write(t, repo+"/src/main.go", "package other\n") }, false},
		"touched":      {func(t *testing.T, repo string) { write(t, repo+"/README.md", "mine\n") }, true},
		"touched mode": {func(t *testing.T, repo string) { must(t, os.Chmod(repo+"/README.md", 0o755)) }, true},
		"gone":         {func(t *testing.T, repo string) { must(t, os.Remove(repo+"/README.md")) }, true},
		"there now":    {func(t *testing.T, repo string) { write(t, repo+"/made/x", "mine\n") }, true},
		"a link there": {func(t *testing.T, repo string) { must(t, os.Symlink("src", repo+"/made")) }, true},
		"a link out":   {func(t *testing.T, repo string) { must(t, os.Symlink(t.TempDir(), repo+"/made")) }, true},
		"ignored": {func(t *testing.T, repo string) {
			write(t, repo+"/.git/info/exclude", "made/\n")
			write(t, repo+"/made/x", "mine\n")
		}, true},
		"empty directory": {func(t *testing.T, repo string) { must(t, os.MkdirAll(repo+"/made/x/y", 0o755)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := patchRepo(t)
			h := openHand(t, repo)
			base, err := h.TreeOf(t.Context())
			must(t, err)
			touched := touchedBy(t, h, base, two)
			c.meanwhile(t, repo)
			before := state(t, repo)
			err = h.Write(t.Context(), touched)
			if c.refused != errors.Is(err, ErrMoved) || c.refused != (err != nil) {
				t.Fatalf("%v", err)
			}
			if after := state(t, repo); c.refused != (before == after) {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// Where others were written and one was changed by somebody, the error says how far it
// came; a killed one goes on from any file.
func TestHandGoesOn(t *testing.T) {
	t.Parallel()
	repo := patchRepo(t)
	raw, _ := diffOf(t, repo, func(t *testing.T, dir string) {
		write(t, dir+"/README.md", "x\n")
		write(t, dir+"/src/main.go", "y\n")
		must(t, os.Remove(dir+"/bare.txt"))
	})
	h := openHand(t, repo)
	base, err := h.TreeOf(t.Context())
	must(t, err)
	touched := touchedBy(t, h, base, raw)
	must(t, h.Write(t.Context(), touched[:2]))
	want := state(t, repo)
	write(t, repo+"/src/main.go", "mine\n")
	if err := h.Write(t.Context(), touched); key(err) != "workspace.hand_half" || errors.Is(err, ErrMoved) {
		t.Error(err)
	}
	write(t, repo+"/src/main.go", "package main\n")
	if got := state(t, repo); got != want {
		t.Fatalf("%s", got)
	}
	must(t, h.Write(t.Context(), touched))
	if got := state(t, repo); strings.Contains(got, "bare.txt") || !strings.Contains(got, `main.go 0 "y\n"`) {
		t.Errorf("%s", got)
	}
}
