package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/tool"
	"toritsugi/internal/tool/mcp"
)

// npm returns the command of a public server, or skips the test.
func npm(t testing.TB, server string, args ...string) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed; scripts/setup.sh installs it")
	}
	script, err := filepath.Abs("testdata/npm/node_modules/@modelcontextprotocol/server-" + server + "/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		t.Skip("the public MCP servers are not installed; scripts/setup.sh installs them")
	}
	return append([]string{node, script}, args...)
}

// unconfined are the options for servers that the test trusts.
func unconfined() mcp.Options {
	return mcp.Options{Start: mcp.Unconfined, Handshake: 2 * time.Minute}
}

// everything does what a client of server-everything can do, over whatever it
// is connected with.
func everything(t *testing.T, m *mcp.Manager) {
	t.Helper()
	s := status(t, m, "every")
	if s.State != mcp.Ready {
		t.Fatalf("status %+v", s)
	}
	says(t, call(t, m, "every__echo", `{"message":"こんにちは"}`), false, "Echo: こんにちは")
	says(t, call(t, m, "every__get-sum", `{"a":2,"b":40}`), false, "42")
	says(t, call(t, m, "every__get-sum", `{"a":"x","b":40}`), true, "not valid")

	image := call(t, m, "every__get-tiny-image", "")
	says(t, image, false, "[image 1: image/png, ")
	if len(image.Images) != 1 || image.Images[0].MediaType != "image/png" {
		t.Errorf("%d images", len(image.Images))
	}
	weather := call(t, m, "every__get-structured-content", `{"location":"New York"}`)
	var v struct{ Conditions string }
	if err := json.Unmarshal([]byte(weather.Text), &v); err != nil || v.Conditions == "" {
		t.Errorf("structured content is %q: %v", weather.Text, err) // once, not twice
	}
	says(t, call(t, m, "every__get-resource-links", `{"count":2}`), false, "[link to the resource demo://")
	says(t, call(t, m, "every__get-resource-reference", `{"resourceType":"Text","resourceId":1}`), false, "[resource demo://resource/dynamic/text/1]\n")

	says(t, call(t, m, "every__trigger-long-running-operation", `{"duration":0.1,"steps":2}`), false, "completed")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := registry(t, m.Tools()).Call(ctx, "every__trigger-long-running-operation", `{"duration":600,"steps":2}`)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cancelled call: %v", err)
	}
	says(t, call(t, m, "every__echo", `{"message":"still here"}`), false, "Echo: still here")
}

// recording starts servers and keeps the last process of each.
type recording struct {
	mu   sync.Mutex
	last *mcp.Process
	n    int
}

func (r *recording) start(ctx context.Context, c mcp.Command) (*mcp.Process, error) {
	p, err := mcp.Unconfined(ctx, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.n = p, r.n+1
	return p, err
}

func (r *recording) kill(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	p := r.last
	r.mu.Unlock()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
}

func TestEverythingOverStdio(t *testing.T) {
	t.Parallel()
	r := &recording{}
	o := unconfined()
	o.Start = r.start
	m := open(t, o, mcp.Server{Name: "every", Command: npm(t, "everything", "stdio"), Env: map[string]string{"GIVEN": "yes"}})
	everything(t, m)

	env := call(t, m, "every__get-env", "").Text
	if !strings.Contains(env, `"GIVEN"`) || strings.Contains(env, "GOPATH") || strings.Contains(env, `"USER"`) {
		t.Errorf("its environment is %s", env)
	}
	r.kill(t)
	for i := 0; ; i++ { // a call may meet the death itself
		if res := call(t, m, "every__echo", `{"message":"again"}`); !res.IsError {
			break
		} else if i == 100 {
			t.Fatalf("it does not come back: %s", res.Text)
		}
	}
	if r.n < 2 {
		t.Errorf("started %d times", r.n)
	}
	if len(m.Drift()) > 0 {
		t.Errorf("after a restart: drift %+v", m.Drift())
	}
}

func TestEverythingOverHTTP(t *testing.T) {
	t.Parallel()
	argv := npm(t, "everything", "streamableHttp")
	port := freePort(t)
	up := func() *mcp.Process {
		p, err := mcp.Unconfined(t.Context(), mcp.Command{Argv: argv, Env: []string{"PATH=" + os.Getenv("PATH"), "PORT=" + port}})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = drain(p) }()
		for i := 0; ; i++ {
			c, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err == nil {
				_ = c.Close()
				return p
			}
			if i == 6000 {
				t.Fatalf("it does not listen: %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	down := func(p *mcp.Process) {
		_ = p.Kill()
		_ = p.Wait()
		_ = p.Stdin.Close()
	}
	p := up()
	t.Cleanup(func() { down(p) })
	o := unconfined()
	o.Restart = mcp.Restart{First: 10 * time.Millisecond, Max: 100 * time.Millisecond}
	m := open(t, o, mcp.Server{Name: "every", URL: "http://127.0.0.1:" + port + "/mcp"})
	everything(t, m)

	down(p)
	says(t, call(t, m, "every__echo", `{"message":"x"}`), true, "every")
	p = up() // without the session
	for i := 0; ; i++ {
		res := call(t, m, "every__echo", `{"message":"again"}`)
		if !res.IsError {
			break
		}
		if i == 1000 {
			t.Fatalf("it does not come back: %s, %+v", res.Text, status(t, m, "every"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// drain reads what a process says until it ends.
func drain(p *mcp.Process) (int, error) {
	buf := make([]byte, 4096)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 4096)
		for {
			if _, err := p.Stderr.Read(b); err != nil {
				_ = p.Stderr.Close()
				return
			}
		}
	}()
	for {
		if _, err := p.Stdout.Read(buf); err != nil {
			<-done
			return 0, p.Stdout.Close()
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func TestFilesystemServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := open(t, unconfined(), mcp.Server{Name: "fs", Command: npm(t, "filesystem", dir), TrustHints: true, Deny: []string{"move_*"}})
	path, err := json.Marshal(filepath.Join(dir, "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	says(t, call(t, m, "fs__read_text_file", `{"path":`+string(path)+`}`), false, "hello")
	says(t, call(t, m, "fs__read_text_file", `{"path":"/etc/passwd"}`), true, "denied")
	if !find(t, m, "fs__read_text_file").ReadOnly || find(t, m, "fs__write_file").ReadOnly {
		t.Error("what only reads is wrong")
	}
	if offers(m, "fs__move_file") {
		t.Error("a denied tool is offered")
	}
}

func TestMemoryServer(t *testing.T) {
	t.Parallel()
	argv := npm(t, "memory")
	o := unconfined()
	m := open(t, o, mcp.Server{Name: "memory", Command: argv, Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "m.json")}})
	says(t, call(t, m, "memory__create_entities", `{"entities":[{"name":"tori","entityType":"gate","observations":["is red"]}]}`), false, "tori")
	says(t, call(t, m, "memory__search_nodes", `{"query":"red"}`), false, `"tori"`)
	tools, err := mcp.Defer(tool.Limits{}, 500, nil, m.Tools())
	if err != nil {
		t.Fatal(err)
	}
	reg := registry(t, tools)
	if n := len(reg.Definitions()); n != 2 {
		t.Errorf("%d of %q are told of", n, names(tools))
	}
	says(t, ask(t, reg, "find_tools", `{"query":"search for nodes"}`), false, "memory__search_nodes")
	says(t, ask(t, reg, "call_tool", `{"name":"memory__search_nodes","arguments":{"query":"red"}}`), false, `"tori"`)
}
