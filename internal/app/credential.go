package app

import (
	"bytes"
	"sync"

	"toritsugi/internal/disk"
)

// mostCredential is the most bytes of a file with a token or a key.
const mostCredential = 64 << 10

// readCredential reads a file that holds a token or a key.
func readCredential(path string) ([]byte, error) {
	b, err := disk.Read(path, mostCredential)
	return bytes.TrimSpace(b), err
}

// known are the secrets that the sanitizer is told of.
func (s *system) known() []string {
	all := s.cfg.Secrets()
	for _, f := range s.cfg.Forges() {
		for _, file := range []string{f.TokenFile, f.WebhookSecretFile} {
			if secret, err := readCredential(file); err == nil { // else openHosts and webhooks tell of it
				all = append(all, string(secret))
			}
		}
	}
	return all
}

// fresh reads the credential in a file again and again, so that who changes it
// need not restart us. What the sanitizer would not mask in texts is not used: it
// knows what was there at the start, and what looks like a secret.
func (s *system) fresh(path string, first []byte) func() []byte {
	var mu sync.Mutex
	last, seen, trouble := first, first, ""
	return func() []byte {
		mu.Lock()
		defer mu.Unlock()
		b, err := readCredential(path)
		switch {
		case err != nil:
			if err.Error() != trouble {
				trouble = err.Error()
				s.log.Warn("The credential cannot be read again: " + trouble)
			}
			return last
		case bytes.Equal(b, seen):
			return last
		}
		trouble, seen = "", b
		if text := string(b); len(b) == 0 || s.redact.Strict().String(text) == text {
			s.log.Warn("What the file holds now does not look like a token or a key; it is used after a restart", "file", path)
			return last
		}
		s.log.Info("There is a new credential", "file", path)
		last = b
		return last
	}
}
