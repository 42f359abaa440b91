package contextstore

import (
	"path/filepath"
	"strings"
	"testing"
)

// Each repository has a directory of its own, whatever its names are, below the
// one for all.
func TestSetupDir(t *testing.T) {
	t.Parallel()
	s := &Store{Options: Options{BaseDir: "/base"}}
	seen := map[string]string{}
	for _, of := range [][2]string{{"a-b", "c"}, {"a", "b-c"}, {"a_b", "c"}, {"a", "b_c"}, {"a/b", "c"}, {"a", "b/c"}, {"a", "b"}, {"..", ".."}, {"", ""}, {"日本", "語"}, {"日", "本語"}, {strings.Repeat("x", 300), "y"}, {strings.Repeat("x", 301), "y"}} {
		dir := s.SetupDir(of[0], of[1])
		if other, taken := seen[dir]; taken {
			t.Errorf("%q has the directory of %s", of, other)
		}
		seen[dir] = of[0] + " " + of[1]
		if filepath.Dir(dir) != s.SetupsDir() || len(filepath.Base(dir)) > 100 || filepath.Clean(dir) != dir {
			t.Errorf("%q: %s", of, dir)
		}
	}
}
