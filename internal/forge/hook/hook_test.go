package hook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/forge"
)

const secret = "a secret of webhooks"

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// desk is a receiver, and what it kept.
type desk struct {
	*Receiver
	secret string
	kept   []Delivery
	full   error
}

func newDesk(t *testing.T, source string) *desk {
	t.Helper()
	d := &desk{secret: secret}
	r, err := New(Options{Source: source, Secret: func() string { return d.secret }, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		Watched: func(r forge.Repo) bool { return strings.HasSuffix(r.Owner, "acme") }, Own: func(p forge.Person) bool { return p.ID == 1 },
		Keep: func(_ context.Context, x Delivery) error {
			if d.full == nil {
				d.kept = append(d.kept, x)
			}
			return d.full
		}})
	if err != nil {
		t.Fatal(err)
	}
	d.Receiver = r
	return d
}

// post sends a body with headers, in pairs.
func (d *desk) post(body io.Reader, headers ...string) (status int, text string) {
	r := httptest.NewRequest(http.MethodPost, Path(d.opt.Source), body)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func mac(key []byte, parts ...string) []byte {
	m := hmac.New(sha256.New, key)
	for _, p := range parts {
		_, _ = m.Write([]byte(p))
	}
	return m.Sum(nil)
}

func hexMAC(body string) string { return hex.EncodeToString(mac([]byte(secret), body)) }

func github(event, body string) []string {
	return []string{"X-GitHub-Event", event, "X-GitHub-Delivery", "d1", "X-Hub-Signature-256", "sha256=" + hexMAC(body)}
}

func gitea(event, body string) []string {
	return []string{"X-Gitea-Event", event, "X-GitHub-Event", event, "X-Gitea-Delivery", "d2", "X-Gitea-Signature", hexMAC(body)}
}

func forgejo(event, body string) []string {
	return append(gitea(event, body), "X-Forgejo-Event", event, "X-Forgejo-Delivery", "d3", "X-Forgejo-Signature", hexMAC(body))
}

func gitlab(event string) []string {
	return []string{"X-Gitlab-Event", event, "X-Gitlab-Token", secret, "Idempotency-Key", "d4", "X-Gitlab-Event-UUID", "e4"}
}

// The bodies are extracts of what docs.github.com/webhooks, docs.gitea.com/usage/webhooks and
// docs.gitlab.com/user/project/integrations/webhook_events show.
const (
	issue   = `{"action":"labeled","issue":{"number":7,"title":"t"},"repository":{"full_name":"acme/widgets"},"sender":{"id":2,"login":"ken"}}`
	pull    = `{"action":"opened","number":8,"pull_request":{"number":8},"repository":{"full_name":"acme/widgets"},"sender":{"id":2,"login":"ken"}}`
	elses   = `{"action":"labeled","issue":{"number":7},"repository":{"full_name":"other/widgets"},"sender":{"id":2,"login":"ken"}}`
	own     = `{"action":"labeled","issue":{"number":7},"repository":{"full_name":"acme/widgets"},"sender":{"id":1,"login":"tori"}}`
	glIssue = `{"object_kind":"issue","user":{"id":2,"username":"ken"},"project":{"path_with_namespace":"group/acme/widgets"},"object_attributes":{"id":301,"iid":9}}`
	glNote  = `{"object_kind":"note","user":{"id":2,"username":"ken"},"project":{"path_with_namespace":"group/acme/widgets"},"object_attributes":{"id":1244,"noteable_type":"MergeRequest"},"merge_request":{"id":7,"iid":10}}`
	glDiff  = `{"object_kind":"note","user":{"id":2,"username":"ken"},"project":{"path_with_namespace":"group/acme/widgets"},"object_attributes":{"id":1243,"noteable_type":"Commit"},"commit":{"id":"cfe3"}}`
)

func TestDeliveries(t *testing.T) {
	t.Parallel()
	widgets, nested := forge.Repo{Owner: "acme", Name: "widgets"}, forge.Repo{Owner: "group/acme", Name: "widgets"}
	ken := forge.Person{ID: 2, Login: "ken"}
	for _, c := range []struct {
		name, source, body string
		headers            []string
		status             int
		want               *Delivery
	}{
		{"an issue", "github", issue, github("issues", issue), 200, &Delivery{"github", "d1", widgets, "7", Changed, ken}},
		{"a pull request", "github", pull, github("pull_request", pull), 200, &Delivery{"github", "d1", widgets, "8", Changed, ken}},
		{"a comment", "github", issue, github("issue_comment", issue), 200, &Delivery{"github", "d1", widgets, "7", Said, ken}},
		{"a review", "github", pull, github("pull_request_review", pull), 200, &Delivery{"github", "d1", widgets, "8", Said, ken}},
		{"a ping", "github", `{"zen":"."}`, github("ping", `{"zen":"."}`), 202, nil},
		{"another event", "github", issue, github("push", issue), 202, nil},
		{"of another's repository", "github", elses, github("issues", elses), 202, nil},
		{"our own doing", "github", own, github("issues", own), 202, nil},
		{"another body", "github", pull, github("issues", issue), 401, nil},
		{"another event, forged", "github", pull, github("push", issue), 401, nil},
		{"without a signature", "github", issue, []string{"X-GitHub-Event", "issues", "X-GitHub-Delivery", "d"}, 401, nil},
		{"with the old signature alone", "github", issue, []string{"X-GitHub-Event", "issues", "X-GitHub-Delivery", "d", "X-Hub-Signature", "sha1=00"}, 401, nil},
		{"with another kind of one", "github", issue, append(github("issues", issue), "X-Hub-Signature-256", "sha1="+hexMAC(issue)), 401, nil},
		{"with half of one", "github", issue, append(github("issues", issue), "X-Hub-Signature-256", "sha256=00"), 401, nil},
		{"without an id", "github", issue, append(github("issues", issue), "X-GitHub-Delivery", ""), 400, nil},
		{"with a broken id", "github", issue, append(github("issues", issue), "X-GitHub-Delivery", "a b"), 400, nil},
		{"no JSON", "github", "[", github("issues", "["), 400, nil},
		{"a form", "github", "payload=%7B%7D", append(github("issues", "payload=%7B%7D"), "Content-Type", "application/x-www-form-urlencoded"), 400, nil},
		{"nowhere", "github", "{}", github("issues", "{}"), 400, nil},

		{"Gitea's label", "gitea", issue, gitea("issue_label", issue), 200, &Delivery{"gitea", "d2", widgets, "7", Changed, ken}},
		{"Gitea's comment", "gitea", issue, gitea("issue_comment", issue), 200, &Delivery{"gitea", "d2", widgets, "7", Said, ken}},
		{"Gitea's review", "gitea", pull, gitea("pull_request_rejected", pull), 200, &Delivery{"gitea", "d2", widgets, "8", Said, ken}},
		{"Gitea's pull request", "gitea", pull, gitea("pull_request", pull), 200, &Delivery{"gitea", "d2", widgets, "8", Changed, ken}},
		{"Gitea's push", "gitea", issue, gitea("push", issue), 202, nil},
		{"Forgejo's issue", "gitea", issue, forgejo("issues", issue), 200, &Delivery{"gitea", "d3", widgets, "7", Changed, ken}},
		{"Forgejo's, forged", "gitea", issue, append(forgejo("issues", issue), "X-Forgejo-Signature", hexMAC(pull)), 401, nil},

		{"GitLab's issue", "gitlab", glIssue, gitlab("Issue Hook"), 200, &Delivery{"gitlab", "d4", nested, "9", Changed, ken}},
		{"a confidential one", "gitlab", glIssue, gitlab("Confidential Issue Hook"), 200, &Delivery{"gitlab", "d4", nested, "9", Changed, ken}},
		{"GitLab's merge request", "gitlab", glIssue, gitlab("Merge Request Hook"), 200, &Delivery{"gitlab", "d4", nested, "9", Changed, ken}},
		{"GitLab's note", "gitlab", glNote, gitlab("Note Hook"), 200, &Delivery{"gitlab", "d4", nested, "10", Said, ken}},
		{"a note on a commit", "gitlab", glDiff, gitlab("Note Hook"), 202, nil},
		{"GitLab's push", "gitlab", glIssue, gitlab("Push Hook"), 202, nil},
		{"another token", "gitlab", glIssue, append(gitlab("Issue Hook"), "X-Gitlab-Token", secret+" "), 401, nil},
		{"without a token", "gitlab", glIssue, []string{"X-Gitlab-Event", "Issue Hook", "Idempotency-Key", "d"}, 401, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, c.source)
			status, text := d.post(strings.NewReader(c.body), c.headers...)
			if status != c.status || len(d.kept) > 1 || (len(d.kept) == 1) != (c.want != nil) || c.want != nil && d.kept[0] != *c.want {
				t.Errorf("%d %s, kept %+v", status, text, d.kept)
			}
		})
	}
}

// A server that knows no ids that stay, such as GitLab before 17.4, has one event set off several deliveries.
func TestOldGitLab(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "gitlab")
	for _, body := range []string{glIssue, strings.Replace(glIssue, `"iid":9`, `"iid":11`, 1), glIssue} {
		if status, text := d.post(strings.NewReader(body), "X-Gitlab-Event", "Issue Hook", "X-Gitlab-Token", secret, "X-Gitlab-Event-UUID", "e4"); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	if a, b, c := d.kept[0].ID, d.kept[1].ID, d.kept[2].ID; a == b || a != c || !strings.HasPrefix(a, "e4.") {
		t.Errorf("%s, %s, %s", a, b, c)
	}
}

// GitLab's signing token (since 19.0) signs as the Standard Webhooks say; the secret token is then none.
func TestSigningToken(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{7}, 32)
	signature := func(id, stamp, body string) string {
		return "v1," + base64.StdEncoding.EncodeToString(mac(key, id, ".", stamp, ".", body))
	}
	const stamp, old = "1767323045", "1767322744" // now, and 301 seconds ago
	for name, c := range map[string]struct {
		stamp, signature string
		status           int
	}{
		"right":          {stamp, signature("w1", stamp, glIssue), 200},
		"one of two":     {stamp, "v1," + base64.StdEncoding.EncodeToString(make([]byte, 32)) + " " + signature("w1", stamp, glIssue), 200},
		"another body":   {stamp, signature("w1", stamp, glNote), 401},
		"another id":     {stamp, signature("w2", stamp, glIssue), 401},
		"replayed":       {old, signature("w1", old, glIssue), 401},
		"another time":   {stamp, signature("w1", old, glIssue), 401},
		"none":           {stamp, "", 401},
		"another scheme": {stamp, "v1a," + strings.TrimPrefix(signature("w1", stamp, glIssue), "v1,"), 401},
		"no time":        {"now", signature("w1", "now", glIssue), 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, "gitlab")
			d.secret = "whsec_" + base64.StdEncoding.EncodeToString(key)
			status, text := d.post(strings.NewReader(glIssue), "X-Gitlab-Event", "Issue Hook", "X-Gitlab-Token", d.secret, "Webhook-Id", "w1", "Webhook-Timestamp", c.stamp, "Webhook-Signature", c.signature)
			if status != c.status || len(d.kept) > 0 && d.kept[0].ID != "w1" {
				t.Errorf("%d %s, %+v", status, text, d.kept)
			}
		})
	}
}

// Without a secret nobody is let in, whatever they send.
func TestNoSecret(t *testing.T) {
	t.Parallel()
	for _, source := range Sources() {
		d := newDesk(t, source)
		for _, secret := range []string{"", "whsec_", "whsec_?"} {
			if d.secret = secret; source != "gitlab" && secret != "" {
				continue
			}
			sum := hex.EncodeToString(mac([]byte(secret), issue))
			status, _ := d.post(strings.NewReader(issue), "X-GitHub-Event", "issues", "X-GitHub-Delivery", "d", "X-Hub-Signature-256", "sha256="+sum, "X-Gitea-Event", "issues", "X-Gitea-Delivery", "d", "X-Gitea-Signature", sum,
				"X-Gitlab-Event", "Issue Hook", "X-Gitlab-Token", secret, "Idempotency-Key", "d", "Webhook-Id", "d", "Webhook-Timestamp", "1767323045", "Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac(nil, "d.1767323045.", issue)))
			if status != http.StatusUnauthorized || len(d.kept) > 0 {
				t.Errorf("%s, %q: %d", source, secret, status)
			}
		}
	}
}

// endless is a body that goes on and on, and counts what is read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

// What is too large is not read to its end; what is not signed at all, or says how long it is, not at its beginning.
func TestLarge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headers []string
		says    int64
		status  int
		most    int
	}{
		"50 MB":                 {github("issues", "x"), 50 << 20, 413, 0},
		"unsigned":              {[]string{"X-GitHub-Event", "issues"}, -1, 401, 0},
		"endless":               {github("issues", "x"), -1, 413, MaxBody + 1<<16},
		"endless, none of ours": {github("push", "x"), -1, 413, MaxBody + 1<<16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, body := newDesk(t, "github"), &endless{}
			r := httptest.NewRequest(http.MethodPost, "/webhooks/github", body)
			r.ContentLength = c.says
			for i := 0; i < len(c.headers); i += 2 {
				r.Header.Set(c.headers[i], c.headers[i+1])
			}
			w := httptest.NewRecorder()
			d.ServeHTTP(w, r)
			if w.Code != c.status || body.read > c.most || w.Header().Get("Connection") != "close" {
				t.Errorf("%d, %d bytes read", w.Code, body.read)
			}
		})
	}
	d := newDesk(t, "github")
	large := `{"padding":"` + strings.Repeat("a", 20<<20) + `",` + issue[1:]
	if status, text := d.post(strings.NewReader(large), github("issues", large)...); status != http.StatusOK {
		t.Errorf("20 MB: %d %s", status, text)
	}
}

// torn is a body whose sender goes away.
type torn struct{ io.Reader }

func (b torn) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestNotTaken(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "github")
	if status, _ := d.post(torn{strings.NewReader(issue)}, github("issues", issue)...); status != http.StatusBadRequest || len(d.kept) > 0 {
		t.Errorf("cut short: %d", status)
	}
	d.full = errors.New("the disk is full")
	if status, _ := d.post(strings.NewReader(issue), github("issues", issue)...); status != http.StatusServiceUnavailable {
		t.Errorf("not kept: %d", status)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/webhooks/github", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
	if _, err := New(Options{Source: "folder"}); err == nil {
		t.Error("a folder sends no webhooks")
	}
}

// Whatever comes is answered, and what is kept names an item of a repository.
func FuzzBody(f *testing.F) {
	for _, body := range []string{issue, pull, glIssue, glNote, "{", "null", `{"issue":{"number":1e99}}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for source, v := range vendors() {
			for _, kind := range []Kind{Said, Changed} {
				d := Delivery{Source: source, Kind: kind}
				if v.read(body, &d) == nil && (d.Repo.Owner == "" || d.Repo.Name == "" || d.Item == "0") || !json.Valid(body) && d.Item != "" {
					t.Errorf("%s: %+v", source, d)
				}
			}
		}
	})
}
