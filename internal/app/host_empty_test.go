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
	s := &system{cfg: &config.Config{GitHub: config.GitHub{TokenFile: file}}}
	if err := s.openHosts(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "github.token_file: ") || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
}
