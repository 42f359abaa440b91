package app

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// The example of a bridge speaks with tori serve: what is typed is answered, once.
func TestServeSpeaksWithTheExampleBridge(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	program := filepath.Join(t.TempDir(), "http-channel")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../contrib/http-channel").CombinedOutput(); err != nil { //nolint:gosec // what is built is ours
		t.Fatalf("%v\n%s", err, out)
	}
	var bridge atomic.Pointer[url.URL] // is known before tori says anything
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(bridge.Load()) }})
	defer proxy.Close()
	h := newChatHouse(t, "serve: {listen: '127.0.0.1:0'}\nchannels: {http: {secret: '"+secret+"', url: '"+proxy.URL+"', allow_from: [me], entry: chat}}\n")
	raw, err := os.ReadFile(h.config)
	h.must(err)
	h.write("config.yaml", strings.Replace(string(raw), "serve: {listen: ''}\n", "", 1))
	h.write("script.yaml", "- {say: The answer is 42.}\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan ServeStarted, 1)
	var ended error
	race(func() {
		ended = Serve(ctx, h.environment(), ServeOptions{Config: h.config, AllowUnsandboxed: true}, func(s ServeStarted) { started <- s })
		close(started)
	}, func() {
		defer cancel()
		s := <-started
		if !slices.Contains(s.Sources, "http") {
			t.Errorf("%+v", s)
			return
		}
		p := exec.CommandContext(ctx, program, "-listen", "127.0.0.1:0", "-tori", "http://"+s.Listen+"/webhooks/http")
		p.Env = append(os.Environ(), "BRIDGE_SECRET="+secret)
		typed, err := p.StdinPipe()
		h.must(err)
		printed, err := p.StdoutPipe()
		h.must(err)
		logged, err := p.StderrPipe()
		h.must(err)
		h.must(p.Start())
		defer func() { _ = p.Process.Kill(); _ = p.Wait() }()
		first, err := bufio.NewReader(logged).ReadString('\n')
		h.must(err)
		_, at, _ := strings.Cut(strings.TrimSpace(first), "listening on ")
		bridge.Store(&url.URL{Scheme: "http", Host: at})
		_, err = io.WriteString(typed, "What is the answer?\n/show channel\n")
		h.must(err)
		var said bytes.Buffer
		lines := bufio.NewScanner(printed)
		for strings.Count(said.String(), "\n") < 2 && lines.Scan() {
			said.WriteString(lines.Text() + "\n")
		}
		for _, want := range []string{"[answer] The answer is 42.", "Channel http, session http:terminal"} {
			if strings.Count(said.String(), want) != 1 {
				t.Errorf("%q is not in %s", want, said.String())
			}
		}
	})
	if ended != nil {
		t.Error(ended)
	}
}
