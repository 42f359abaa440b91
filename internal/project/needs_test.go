package project

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is missing is found in the files that name it, manifests before lock files, and
// what nobody names is not.
func TestNeeds(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	id := b.commit(map[string]string{
		"package.json":         `{"scripts":{"test":"npm run vitest run"},"devDependencies":{"vitest":"^3","@types/node":"1","@scope/kit":"2"}}`,
		"package-lock.json":    `{"packages":{"node_modules/vitest":{},"node_modules/deep-dep":{}, "x":{"dependencies":{"deep-dep":"1"}}}}`,
		"requirements.txt":     "PyYAML==6\npython-dateutil\ngoogle-cloud-storage\n",
		"requirements-dev.txt": "parameterized==0.9\npytest_asyncio\n",
		"go.mod":               "module example.org/a\nrequire github.com/x/y v1.2.3\n",
		"Makefile":             "test:\n\truff check\n",
		"docs/package.json":    `{"dependencies":{"nested":"1"}}`,
	})
	want := map[string]string{
		"program vitest": "package.json", "module @scope/kit/sub/x": "package.json", "module deep-dep": "package-lock.json",
		"module yaml": "requirements.txt", "module dateutil.parser": "requirements.txt", "module google.cloud.storage": "requirements.txt",
		"module parameterized": "requirements-dev.txt", "module pytest-asyncio": "requirements-dev.txt", "module github.com/x/y/z": "go.mod",
	}
	missing := []string{"network", "program ruff", "program npm", "module github.com/x/other", "module @scope/none", "module nested", "module vite", "module aml", "module ", "program (["}
	for what := range want {
		missing = append(missing, what)
	}
	slices.Sort(missing)
	got, setup, err := Needs(t.Context(), b, id, missing)
	if err != nil || len(setup) != 2 {
		t.Fatal(setup, err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
