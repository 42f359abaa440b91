package userconfig

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/i18n"
)

// Whatever a server answers is settings, none, or an error that says what to look at and holds no key.
func TestAPI(t *testing.T) {
	t.Parallel()
	const key = "the-key-of-the-api"
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for _, c := range []struct {
		name, login string
		status      int
		kind, body  string
		want        string // the settings, "none", or a part of the error
	}{
		{"settings", "Hanako-T", 200, "application/json", `{"status":"success","data":{"llm":{"provider":"openai","openai":{"api_key":"sk-\ud83d\ude00","base_url":"","model":null,"max_token":40960}},"system_prompt":"a: b\n</x>","max_llm_process_num":1000,"empty":{"a":null}}}`,
			`{"llm":{"openai":{"api_key":"sk-😀"},"provider":"openai"},"max_llm_process_num":1000,"system_prompt":"a: b\n</x>"}`},
		{"no such user", "ken", 404, "application/json", `{"detail":"User not found"}`, "none"},
		{"no such path", "ken", 404, "application/json", `{"detail":"Not Found"}`, "answered HTTP 404, 200 was expected"},
		{"another server", "ken", 404, "text/html", `<html>nginx</html>`, "answered HTTP 404, 200 was expected"},
		{"a login page", "ken", 200, "text/html", `<html>Log in</html>`, "a login page or a proxy may be in the way"},
		{"an error of its own", "ken", 200, "application/json", `{"status":"error","data":{}}`, "answered with something else"},
		{"no data", "ken", 200, "application/json", `{"status":"success","data":null}`, "answered with something else"},
		{"cut", "ken", 200, "application/json", `{"status":"success","data":{"llm":{"openai":{"api_key":"sk-`, "answered with something else"},
		{"too much", "ken", 200, "application/json", `{"status":"success","data":{"system_prompt":"` + strings.Repeat("x", maxSettings) + `"}}`, "answered with something else"},
		{"the wrong key", "ken", 401, "application/json", `{"detail":"Invalid ` + key + `"}`, "refuses the key (HTTP 401)"},
		{"a redirect", "ken", 302, "", "", "answered HTTP 302"},
		{"down", "ken", 503, "text/html", "<html>", "answered HTTP 503"},
		{"silent", "ken", 0, "", "", "does not answer"},
		{"a path", "../../admin", 200, "", "", "is no login"},
		{"dots", "a..b", 200, "", "", "is no login"},
		{"a query", "a?b=c", 200, "", "", "is no login"},
		{"nobody", "", 200, "", "", "is no login"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				if got := r.Method + " " + r.RequestURI + " " + r.Header.Get("Authorization"); got != "GET /api/config/gitlab/"+c.login+" Bearer "+key {
					t.Error(got)
				}
				if c.status == 0 {
					select {
					case <-hang:
					case <-r.Context().Done():
					}
					return
				}
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = fmt.Fprint(w, c.body)
			}))
			t.Cleanup(s.Close)
			client := &http.Client{}
			if c.status == 0 {
				client.Timeout = 50 * time.Millisecond
			}
			got, err := API{URL: s.URL + "/api/", Key: key, HTTP: client}.Read(t.Context(), "gitlab", c.login)
			text := strings.TrimSpace(string(got.Data))
			switch {
			case errors.Is(err, ErrNone):
				text = "none"
			case err != nil:
				text = i18n.English.Error(err)
			}
			if text != c.want && (err == nil || !strings.Contains(text, c.want)) || strings.Contains(text, key) || calls > 1 || strings.Contains(text, "no login") && calls > 0 {
				t.Errorf("%s after %d calls\nexpected %s", text, calls, c.want)
			}
		})
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, mode := range map[string]os.FileMode{"github/hanako.yaml": 0o600, "github/open.yaml": 0o644, "secret.yaml": 0o600, "github/long.yaml": 0o600} {
		text := "max_llm_process_num: 5\n"
		if strings.Contains(path, "long") {
			text = strings.Repeat("#", maxSettings+1)
		}
		file := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), mode), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ dir, login, want, warning string }{
		{dir, "Hanako", "max_llm_process_num: 5\n", ""},
		{dir, "open", "max_llm_process_num: 5\n", "can be read or changed by other users"},
		{dir, "ken", "none", ""},
		{dir, "../secret", "is no login", ""},
		{dir, ".hidden", "is no login", ""},
		{dir, "long", "cannot read the settings of a user", ""},
		{filepath.Join(dir, "gone"), "hanako", "cannot read the settings of a user", ""}, // a mistake is not nobody's settings
	} {
		s, err := Directory(c.dir).Read(t.Context(), "github", c.login)
		text, warning := string(s.Data), ""
		switch {
		case errors.Is(err, ErrNone):
			text = "none"
		case err != nil:
			text = i18n.English.Error(err)
		}
		if s.Warning != nil {
			warning = i18n.English.Error(s.Warning)
		}
		if !strings.Contains(text, c.want) || (warning != "") != (c.warning != "") || !strings.Contains(warning, c.warning) {
			t.Errorf("%s: %q, %q", c.login, text, warning)
		}
	}
}
