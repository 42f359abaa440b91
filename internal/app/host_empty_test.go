package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/config"
)

// A file that is to hold the token and holds nothing is named.
func TestEmptyTokenFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for source, c := range map[string]*config.Config{"github": {GitHub: config.GitHub{URL: "https://github.com", TokenFile: file}}, "gitlab": {GitLab: config.GitLab{URL: "https://gitlab.com", TokenFile: file}}} {
		s := &system{cfg: c}
		if err := s.openHosts(t.Context()); err == nil || !strings.HasPrefix(err.Error(), source+".token_file: ") || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", source, err)
		}
	}
}
