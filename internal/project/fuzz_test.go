package project

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/workspace"
)

// memoryRepository is a commit in memory: what its files hold, by their paths.
type memoryRepository map[string]string

func (r memoryRepository) entry(path string) workspace.Entry {
	return workspace.Entry{Path: path, ID: path, Mode: workspace.ModeFile}
}

func (r memoryRepository) Files(_ context.Context, _ string, each func(workspace.Entry) error) error {
	for _, path := range slices.Sorted(maps.Keys(r)) {
		if err := each(r.entry(path)); err != nil {
			return err
		}
	}
	return nil
}

func (r memoryRepository) Find(_ context.Context, _ string, paths []string) (map[string]workspace.Entry, error) {
	found := map[string]workspace.Entry{}
	for _, path := range paths {
		if _, ok := r[path]; ok {
			found[path] = r.entry(path)
		}
	}
	return found, nil
}

func (r memoryRepository) Blobs(_ context.Context, ids []string, most int64) (map[string]workspace.Blob, error) {
	blobs := map[string]workspace.Blob{}
	for _, id := range ids {
		blobs[id] = workspace.Blob{Size: int64(len(r[id])), Data: []byte(r[id][:min(int64(len(r[id])), most)])}
	}
	return blobs, nil
}

// FuzzDetect: whatever the files of a project hold, what it says of itself is
// bounded, and a command is one line.
func FuzzDetect(f *testing.F) {
	for _, s := range [][3]string{
		{"go.work", "use (\n\t./a // one\n\t\"b/c\"\n", "a/go.mod"}, {"package.json", `{"packageManager":"pnpm@9","scripts":{"test":["x"]}}`, "yarn.lock"},
		{"Makefile", ".PHONY: test\ntest := x\ncheck test: all\n\tgo test\n", "a b/go.mod"}, {"pyproject.toml", "[tool.pytest.ini_options]\n", "tests/test_a.py"},
		{"AGENTS.md", "~~~~ tori-checks\nx\n~~~~", "CLAUDE.md"}, {"AGENTS.md", "@CLAUDE.md", "CLAUDE.md"}, {"Cargo.toml", "[workspace]\n", "Cargo.lock"}, {"composer.json", `{"scripts":{"test":1}}`, "requirements-dev.txt"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, name, text, other string) {
		defer disktest.Bounded(t, len(name)+2*len(text)+len(other))()
		repo := memoryRepository{name: text, other: text}
		p, err := Read(t.Context(), repo, "c", Options{Rules: true, MaxFile: 10_000, MaxTotal: 20_000, Map: true, MaxDepth: 5})
		if err != nil {
			return
		}
		if len(p.Checks) > maxChecks {
			t.Errorf("%d checks", len(p.Checks))
		}
		for _, c := range p.Checks {
			if strings.Contains(c.Command, "\n") {
				t.Errorf("%q", c.Command)
			}
		}
		if _, _, err := Needs(t.Context(), repo, "c", []string{"module x", "program pytest"}); err != nil {
			t.Error(err)
		}
	})
}
