package spelling

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"same", "same", 0}, {"kitten", "sitting", 3},
		{"modle", "model", 2}, {"bse_dir", "base_dir", 1}, {"read", "read_file", 5},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Distance(c.b, c.a); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	keys := []string{"mcp_server_name", "command", "env", "url", "timeout_seconds", "go", "TORI_LANGUAGE"}
	for name, want := range map[string]string{
		"comand": "command", "Command": "command", "name": "mcp_server_name", "timeout": "timeout_seconds", "urls": "url",
		"TORI_LANGUAGES": "TORI_LANGUAGE", "TORI_HOME": "", "a": "", "x_y": "", "": "", strings.Repeat("command", 20): "",
	} {
		if got := Nearest(name, keys); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
