package cli

import (
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"toritsugi/internal/forge/github/githubtest"
)

// ready is what a daemon answers at /readyz.
func (w *town) ready(d *daemon) (status int, text string) {
	w.t.Helper()
	at := regexp.MustCompile(`http://([0-9.:]+)/healthz`).FindStringSubmatch(d.out.String())
	if at == nil {
		return 0, ""
	}
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+at[1]+"/readyz", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// A token that is revoked while a daemon works: it says so and how to help, and
// goes on by itself where the token stands in a file and another one is put there.
func TestTheTokenIsReplacedWhileItWorks(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, c := range map[string]struct {
		inFile bool
		says   string
	}{
		"in a file":          {true, "another token in github.token_file is used without a restart"},
		"in the environment": {false, "another token in the setting github.token needs a restart"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, n := asked(t, "")
			file, token := filepath.Join(w.dir, "token"), w.hub.Token("tori-bot")
			if c.inFile {
				raw, _ := readFile(w.config)
				write(t, w.config, strings.Replace(string(raw), "github: {", "github: {token_file: "+file+", ", 1))
				write(t, file, token+"\n")
			}
			d := &daemon{w.serve(), &shared{}}
			if !c.inFile {
				token = secret(d.Cmd)
			}
			d.Stdout, d.Stderr = d.out, d.out
			w.hub.OnRequest((&trouble{after: "git-receive-pack", begun: func() { w.hub.Revoke(token) }, hits: func(*githubtest.Request) bool { return false }}).fate)
			if err := d.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Process.Kill(); _ = d.Wait() })
			w.until(d, "it says that the login is refused", func() bool {
				status, text := w.ready(d)
				return status == http.StatusServiceUnavailable && strings.Contains(text, "github: the login is refused; "+c.says)
			})
			if !strings.Contains(d.out.String(), "github.token_file, which is read again by itself, or set github.token and start tori again") {
				t.Errorf("the log does not say what to do\n%s", d.out)
			}
			w.hub.OnRequest(nil)
			if c.inFile {
				write(t, file, w.hub.Token("tori-bot"))
				w.until(d, "all is delivered", func() bool { return w.labels(n) == "coding agent done" })
				w.until(d, "it is ready", func() bool { status, _ := w.ready(d); return status == http.StatusOK })
			}
			w.end(d)
			log := d.out.String()
			if !c.inFile {
				log += w.look() // with another token in its environment
			}
			w.handed(n, log)
		})
	}
}
