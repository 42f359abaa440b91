package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/channel/slack"
	"toritsugi/internal/disk"
)

// Slack's tokens are kept for the owner alone, masked from then on, and forgotten with another
// refresh token in the settings; a program that only looks keeps none.
func TestSlackTokensAreKept(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "channels: {slack: {bot_token: xoxe.xoxb-0, app_token: xapp-test, refresh_token: xoxe-first, client_id: '1.2', client_secret: hunter2}}\n")
	h.must(os.MkdirAll(h.base, 0o700))
	house := func() *system {
		s := &system{opt: RunOptions{Config: h.config, Quiet: true}, env: h.environment(), fs: &disk.FS{}}
		h.must(s.settle())
		return s
	}
	s := house()
	r := s.slackRotation(h.base, true)
	if r.Refresh != "xoxe-first" || r.ClientID != "1.2" || r.ClientSecret != "hunter2" {
		t.Errorf("%+v", r)
	}
	if got, err := r.Kept(); err != nil || got != (slack.Tokens{}) {
		t.Error(got, err)
	}
	want := slack.Tokens{Access: "plain-access-42", Refresh: "plain-refresh-42", Ends: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	h.must(r.Keep(want))
	if st, err := os.Stat(filepath.Join(h.base, slackTokenFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st, err)
	}
	looks := house()
	r = looks.slackRotation(h.base, false)
	if got, err := r.Kept(); err != nil || got != want || r.Keep != nil {
		t.Error(got, err)
	}
	for _, s := range []*system{s, looks} {
		if got := s.redact.Strict().String("plain-access-42 plain-refresh-42"); strings.Contains(got, "plain") {
			t.Error(got)
		}
	}
	raw, err := os.ReadFile(h.config)
	h.must(err)
	h.write("config.yaml", strings.Replace(string(raw), "xoxe-first", "xoxe-second", 1))
	if got, err := house().slackRotation(h.base, true).Kept(); err != nil || got != (slack.Tokens{}) {
		t.Error(got, err)
	}
	h.must(os.WriteFile(filepath.Join(h.base, slackTokenFile), []byte("{"), 0o600))
	if _, err := house().slackRotation(h.base, true).Kept(); err == nil || !strings.Contains(err.Error(), slackTokenFile) {
		t.Error(err)
	}
	h.write("config.yaml", strings.Replace(string(raw), ", refresh_token: xoxe-first, client_id: '1.2', client_secret: hunter2", "", 1))
	if house().slackRotation(h.base, true) != nil {
		t.Error("tokens are renewed that do not end")
	}
}
