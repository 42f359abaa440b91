package githubtest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"testing"
	"time"
)

// sign makes the token of an app, as its clients do.
func sign(t *testing.T, keyPEM []byte, issuer string, life time.Duration) string {
	t.Helper()
	block, _ := pem.Decode(keyPEM)
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	text := enc([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + enc(fmt.Appendf(nil, `{"iss":%s,"iat":1000,"exp":%d}`, issuer, 1000+int(life.Seconds())))
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + enc(sig)
}

func TestApps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	secret := w.AddRepo("acme", "secret", RepoOptions{Private: true}, map[string]string{"a": "b"})
	w.AddRepo("acme", "other", RepoOptions{Private: true}, nil)
	pemKey := w.AddApp(App{ID: 7, Slug: "tori"})
	id := w.Install("tori", "acme", "app", "secret")

	for name, jwt := range map[string]string{"number": sign(t, pemKey, "7", time.Minute), "text": sign(t, pemKey, `"7"`, 10*time.Minute), "client id": sign(t, pemKey, `"Iv23li00000000000007"`, time.Minute)} {
		if o := w.as(jwt, "GET", "app", nil).ok(200); o["slug"] != "tori" {
			t.Errorf("%s: %v", name, o)
		}
	}
	jwt := sign(t, pemKey, "7", time.Minute)
	for name, bad := range map[string]string{"too long a life": sign(t, pemKey, "7", time.Hour), "another app": sign(t, pemKey, "8", time.Minute),
		"forged": jwt[:len(jwt)-4] + "AAAA", "nonsense": "a.b.c", "a personal token": w.bot} {
		if g := w.as(bad, "GET", "app", nil); g.StatusCode != 401 {
			t.Errorf("%s: %d", name, g.StatusCode)
		}
	}
	w.as(jwt, "GET", "user", nil).ok(401)
	if o := w.as(jwt, "GET", "repos/acme/secret/installation", nil).ok(200); o["id"] != float64(id) || o["repository_selection"] != "selected" {
		t.Errorf("installation: %v", o)
	}
	w.as(jwt, "GET", "repos/acme/other/installation", nil).ok(404)
	w.as(jwt, "GET", "app/installations", nil).list(200)

	at := fmt.Sprintf("app/installations/%d/access_tokens", id)
	w.Revoke(w.as(jwt, "POST", at, json.RawMessage("null")).ok(201)["token"].(string)) // as ghinstallation asks
	o := w.as(jwt, "POST", at, nil).ok(201)
	token := o["token"].(string)
	if o["expires_at"] != "2026-03-01T13:00:00Z" || !slices.Equal(w.Tokens(), []string{token}) {
		t.Errorf("token: %v", o)
	}
	repos := w.as(token, "GET", "installation/repositories", nil).ok(200)
	if repos["total_count"] != 2.0 {
		t.Errorf("repositories: %v", repos)
	}
	secret.OpenIssue("acme", "t", "b")
	if c := w.as(token, "POST", "repos/acme/secret/issues/1/comments", map[string]any{"body": "x"}).ok(201); c["user"].(map[string]any)["login"] != "tori[bot]" || c["user"].(map[string]any)["type"] != "Bot" {
		t.Errorf("comment: %v", c)
	}
	w.as(token, "GET", "user", nil).ok(403)
	w.as(token, "GET", "repos/acme/other", nil).ok(404)
	narrow := w.as(jwt, "POST", at, map[string]any{"repositories": []string{"app"}}).ok(201)["token"].(string)
	w.as(narrow, "GET", "repos/acme/secret", nil).ok(404)
	w.as(jwt, "POST", at, map[string]any{"repositories": []string{"other"}}).ok(422)

	tree := w.clone(token)
	push(t, tree, "x", map[string]string{"x": "x"})
	w.clock.add(time.Hour)
	w.as(token, "GET", "repos/acme/app", nil).ok(401)
	if out, err := gitIn(t, tree, "push", "origin", ":x"); err == nil {
		t.Errorf("pushed with a token that ran out: %s", out)
	}
	token = w.as(jwt, "POST", at, nil).ok(201)["token"].(string)
	w.Suspend(id)
	w.as(token, "GET", "repos/acme/app", nil).ok(403)
	w.as(jwt, "POST", at, nil).ok(403)
}
