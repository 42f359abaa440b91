package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"toritsugi/internal/channel/slack"
	"toritsugi/internal/disk"
)

const (
	slackTokenFile = "slack.token" // in the base directory, for its owner alone
	maxSlackToken  = 16 << 10
	// watchEvery is how often it is looked whether a vendor takes the token of a channel, or that
	// is to be renewed, while nothing is said.
	watchEvery = time.Minute
)

// keptTokens is that file. First is the SHA-256 of the refresh token of the settings that it
// began with: another one there begins anew.
type keptTokens struct {
	First string `json:"first"`
	slack.Tokens
}

// slackRotation is how the bot token of Slack is renewed, nil where it does not end. renews says
// that this program does: the one tori serve of a base directory.
func (s *system) slackRotation(base string, renews bool) *slack.Rotation {
	c := s.cfg.Channels.Slack
	if c.RefreshToken == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(c.RefreshToken))
	first, path := hex.EncodeToString(sum[:]), filepath.Join(base, slackTokenFile)
	r := &slack.Rotation{ClientID: c.ClientID, ClientSecret: c.ClientSecret, Refresh: c.RefreshToken, Kept: func() (t slack.Tokens, err error) {
		raw, err := disk.Read(path, maxSlackToken)
		if errors.Is(err, fs.ErrNotExist) {
			return t, nil
		}
		var k keptTokens
		if err == nil {
			err = json.Unmarshal(raw, &k)
		}
		if err != nil {
			return t, fmt.Errorf("read %s: %w", path, err)
		}
		if k.First == first {
			t = k.Tokens
		}
		s.redact.Learn(t.Access, t.Refresh)
		return t, nil
	}}
	if renews {
		r.Keep = func(t slack.Tokens) error {
			s.redact.Learn(t.Access, t.Refresh)
			raw, err := json.Marshal(keptTokens{first, t})
			if err != nil {
				return err
			}
			return s.fs.Replace(path, raw, true)
		}
	}
	return r
}
