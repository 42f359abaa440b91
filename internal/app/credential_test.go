package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/config"
	"toritsugi/internal/redact"
)

// A secret of webhooks that is written into its file later is masked in texts from its first use on.
func TestAnotherWebhookSecret(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	cfg := &config.Config{}
	cfg.GitHub.WebhookSecretFile = file
	d := &daemon{system: &system{cfg: cfg, redact: redact.New(nil, nil)}}
	for _, secret := range []string{"an old kind of a secret", "another kind of a secret"} {
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := d.secretNow("github"); got != secret || strings.Contains(d.redact.String("it is "+got), secret) {
			t.Errorf("%q, shown as %q", got, d.redact.String(got))
		}
	}
}

// What is written into the file later is used where texts would not show it;
// what cannot be read or is no credential changes nothing, and is said once.
func TestFreshCredential(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	first, second := "an-old-kind-of-token", "ghp_"+strings.Repeat("Ab1", 12)
	var log bytes.Buffer
	s := &system{redact: redact.New([]string{first}, nil), log: slog.New(slog.NewTextHandler(&log, nil))}
	fresh := s.fresh(file, []byte(first))
	for _, c := range []struct{ write, want, says string }{
		{"", first, "cannot be read again"}, // there is no such file
		{first + "\n", first, ""},
		{second[:3], first, "used after a restart"},
		{second + "\n", second, "There is a new credential"},
		{"an-old-kind-of-another", second, "used after a restart"},
		{first, first, "There is a new credential"},
	} {
		log.Reset()
		if c.write != "" {
			if err := os.WriteFile(file, []byte(c.write), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if got := string(fresh()); got != c.want {
				t.Errorf("%q: %q", c.write, got)
			}
		}
		if n := strings.Count(log.String(), "\n"); c.says != "" && (n != 1 || !strings.Contains(log.String(), c.says)) || c.says == "" && n > 0 {
			t.Errorf("%q: %q", c.write, log.String())
		}
		if strings.Contains(log.String(), second) {
			t.Errorf("the log shows the token: %s", log.String())
		}
	}
}
