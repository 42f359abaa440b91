package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/database/pgtest"
	"toritsugi/internal/disk"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// cluster is a town whose runs are worked on by processes with a base directory each, as on
// machines of their own, on one server.
type cluster struct {
	*town
	server *pgtest.Server
	mu     sync.Mutex
	all    map[string]*daemon // by name
}

func newCluster(t *testing.T, settings string) *cluster {
	t.Helper()
	c := &cluster{town: newTown(t, "context_storage: {backend: postgres, heartbeat_seconds: 2, stale_seconds: 5, blobs: 'file://"+t.TempDir()+"'}\nqueue: {driver: postgres}\nmonitor: {interval_minutes: 1}\nrecovery: {max_attempts: 9}\n"+settings), server: pgtest.Own(t), all: map[string]*daemon{}}
	url := c.server.URL()
	if err := os.Mkdir(filepath.Join(c.dir, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	keepers.Store(filepath.Join(c.dir, "base"), url)
	c.env = append(c.env, ledgerEnv(filepath.Join(c.dir, "base"))...)
	return c
}

// begin starts a process: tori serve, or tori worker, on a machine of that name.
func (c *cluster) begin(verb, name string) {
	c.t.Helper()
	cmd := c.serve()
	cmd.Args[1] = verb
	for i, arg := range cmd.Args {
		if arg == "--base-dir" {
			cmd.Args[i+1] = filepath.Join(c.dir, name)
		}
	}
	d := &daemon{cmd, &shared{}}
	d.Stdout, d.Stderr = d.out, d.out
	if err := d.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[name] = d
	c.t.Cleanup(func() { _ = d.Process.Kill(); _ = d.Wait() })
}

func (c *cluster) tell(name string, s syscall.Signal) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.all[name].Process.Signal(s); err != nil {
		c.t.Error(err)
	}
}

// logs are what all processes said.
func (c *cluster) logs() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all strings.Builder
	for name, d := range c.all {
		fmt.Fprintf(&all, "---- %s\n%s\n", name, d.out)
	}
	return all.String()
}

// Workers die, hang and come back, and the server is restarted: each task ends once, is told once,
// and has one pull request.
func TestWorkersOfSeveralMachines(t *testing.T) {
	skipShort(t, "it is served by several processes")
	t.Parallel()
	workers, tasks := 3, 12
	if soak := os.Getenv("TORI_SOAK_CLUSTER"); soak != "" { // WORKERSxTASKS
		a, b, _ := strings.Cut(soak, "x")
		workers, _ = strconv.Atoi(a)
		tasks, _ = strconv.Atoi(b)
	}
	c := newCluster(t, "workers: {max: 2, per_repository: "+fmt.Sprint(workers*2)+"}\n")
	c.asks(llmtest.NewServer(t, fortyTwo).URL)
	var issues []int
	for i := range tasks {
		n := c.repo.OpenIssue("hanako", fmt.Sprintf("The answer is wrong %d", i), "It says 41.")
		c.repo.Label(n, "coding agent", "hanako")
		issues = append(issues, n)
	}
	c.begin("serve", "front")
	c.begin("serve", "second")
	for i := range workers {
		c.begin("worker", fmt.Sprint("w", i))
	}
	done := func() (n int) {
		for _, i := range issues {
			if c.labels(i) == "coding agent done" {
				n++
			}
		}
		return n
	}
	reached := func(what string, n int) {
		t.Helper()
		for end := time.Now().Add(4*time.Minute + time.Duration(tasks)*2*time.Second); done() < n; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d of %d tasks are done\n%s", what, done(), n, c.logs())
			}
		}
	}
	restart := func() {
		c.server.Stop(t)
		c.server.Start(t)
	}
	reached("at first", max(tasks/12, 1))
	c.tell("w0", syscall.SIGKILL)
	frozen := fmt.Sprint("w", 1+rand.IntN(workers-2))
	c.tell(frozen, syscall.SIGSTOP)
	reached("with one dead and one frozen", tasks/4)
	restart()
	reached("after a restart of the server", tasks/3)
	c.tell("front", syscall.SIGKILL)
	reached("with another one at the doors", tasks/2)
	c.tell(frozen, syscall.SIGCONT)
	c.tell(fmt.Sprint("w", workers-1), syscall.SIGKILL)
	restart()
	c.begin("worker", "w0")
	reached("after another restart", tasks)
	c.tell("second", syscall.SIGTERM)
	if err := c.all["second"].Wait(); err != nil {
		t.Errorf("%v", err)
	}
	pulls := map[string]int{}
	for _, p := range c.repo.Pulls() {
		pulls[p.Title]++
	}
	for i, n := range issues {
		if _, ours := c.shown(n); len(ours) != 1 || !strings.Contains(ours[0], "Completed") {
			t.Errorf("#%d: comments %q", n, ours)
		}
		if title := fmt.Sprintf("The answer is wrong %d", i); pulls[title] != 1 {
			t.Errorf("%d pull requests %q", pulls[title], title)
		}
	}
	base := filepath.Join(c.dir, "base")
	if err := openLedger(t.Context(), base); err != nil {
		t.Fatal(err)
	}
	l, err := contextstore.List(t.Context(), base, contextstore.Viewer{Admin: true}, contextstore.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	runs := l.Views
	if len(runs) != tasks {
		t.Errorf("%d runs of %d tasks", len(runs), tasks)
	}
	for _, v := range runs {
		if v.Status() != task.Completed {
			t.Errorf("%s is %s", v.Metadata.UUID, v.Status())
		}
		checkNumbers(t, v)
		if n := finals(t, v); n != 1 {
			t.Errorf("%s has %d final summaries", v.Metadata.UUID, n)
		}
	}
	c.sound()
	if t.Failed() {
		t.Log(c.logs())
	}
}

// fortyTwo is a model that writes the answer, and again where the workspace was lost.
func fortyTwo(r *llmtest.Request) llmtest.Answer {
	last := func(what string) int { return bytes.LastIndex(r.Body, []byte(what)) }
	if wrote := last(`the answer is 42`); wrote > max(last("made anew"), last("outcome unknown"), 0) {
		return llmtest.Answer{Text: "The answer is 42 now, as the issue asks."}
	}
	return llmtest.Answer{Text: "I write: the answer is 42.", Calls: []llm.ToolCall{{ID: fmt.Sprint(r.Turn()), Name: "write_file", Arguments: `{"path":"answer.txt","content":"42\n"}`}}}
}

// finals counts the final summaries of a run.
func finals(t *testing.T, v contextstore.View) (n int) {
	t.Helper()
	if err := v.Tail(contextstore.Summaries, -1, func(b []byte) error {
		var s struct{ Final bool }
		err := json.Unmarshal(b, &s)
		if s.Final {
			n++
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	return n
}

// At the doors while the inbox is another one's still, as it puts down its runs or its lease has not
// ended, a process waits for that.
func TestInboxIsFreeLater(t *testing.T) {
	skipShort(t, "it is served")
	t.Parallel()
	c := newCluster(t, "")
	c.env = append(c.env, "TORI_GITHUB_WEBHOOK_SECRET="+hookSecret)
	base := filepath.Join(c.dir, "base")
	c.begin("serve", "first")
	c.saying("first", "This process is at the doors")
	if err := openLedger(t.Context(), base); err != nil {
		t.Fatal(err)
	}
	s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, Redact: func(s string) string { return s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c.tell("first", syscall.SIGTERM)
	if err := c.all["first"].Wait(); err != nil {
		t.Fatal(err)
	}
	inbox, err := s.Alone("inbox")
	if err != nil {
		t.Fatal(err)
	}
	c.begin("serve", "second")
	for end := time.Now().Add(time.Minute); !contextstore.IsAlone(base, "serve") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	inbox.Release()
	c.saying("second", "This process is at the doors")
}

// What a process worked on while its signal file came goes on in another one, and is not forgotten.
func TestSignalFileOfOneMachine(t *testing.T) {
	skipShort(t, "it is served by several processes")
	t.Parallel()
	c := newCluster(t, "")
	gate := make(chan struct{})
	release := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	c.asks(llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		if r.Turn() > 0 {
			<-gate
		}
		return fortyTwo(r)
	}).URL)
	env := c.env
	file := filepath.Join(c.dir, "front.pause")
	c.env = append(slices.Clone(env), "TORI_PAUSE_RESUME_SIGNAL_FILE="+file)
	n := c.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	c.repo.Label(n, "coding agent", "hanako")
	c.begin("serve", "front")
	c.thinks(c.all["front"], n)
	write(t, file, "")
	stands := func(s task.Status) func() bool {
		return func() bool { runs := c.runs(); return len(runs) == 1 && runs[0].Status() == s }
	}
	c.until(c.all["front"], "it is put down", func() bool { return !stands(task.Running)() })
	if runs := c.runs(); runs[0].Status() != task.Queued {
		t.Errorf("it is %s", runs[0].Status())
	}
	release()
	c.env = env
	c.begin("worker", "other")
	c.until(c.all["other"], "it is done", stands(task.Completed))
}

// Who does all there is to do once begins a run, too, that nobody was woken for.
func TestOnceOffersWhatIsMissed(t *testing.T) {
	skipShort(t, "it is served")
	t.Parallel()
	c := newCluster(t, "")
	file := filepath.Join(c.dir, "pause")
	write(t, file, "")
	n := c.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	c.repo.Label(n, "coding agent", "hanako")
	c.once()
	db, err := pgx.Connect(t.Context(), c.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	if tag, err := db.Exec(t.Context(), `DELETE FROM river_job WHERE kind = 'run'`); err != nil || tag.RowsAffected() == 0 { // as if the process had ended before
		t.Fatal(tag, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	d := &daemon{c.serve("--once"), &shared{}}
	d.Stdout, d.Stderr = d.out, d.out
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, func() { _ = d.Process.Kill() })
	defer hung.Stop()
	if err := d.Wait(); err != nil {
		t.Errorf("%v\n%s", err, d.out)
	}
	c.handed(n, d.out.String())
}

// saying waits until a process has said something.
func (c *cluster) saying(name, what string) {
	c.t.Helper()
	c.mu.Lock()
	d := c.all[name]
	c.mu.Unlock()
	for end := time.Now().Add(time.Minute); !strings.Contains(d.out.String(), what); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("%s does not say %q\n%s", name, what, d.out)
		}
	}
}

// A worker without a queue of several machines says what to set, and exits with 2; one whose server is
// away with 1, for which a service starts it again.
func TestWorkerCannotBegin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings, says string
		code           int
	}{
		{"", "set queue.driver and context_storage.backend to postgres", exitUsage},
		{"queue: {driver: postgres}\ncontext_storage: {backend: postgres, postgres: {url: 'postgres://tori:word-of-a-test@127.0.0.1:1/x'}}\n", "cannot be reached", exitFailed},
	} {
		w := newTown(t, c.settings)
		cmd := w.serve()
		cmd.Args[1] = "worker"
		out, err := cmd.CombinedOutput()
		if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.ExitCode() != c.code || !strings.Contains(string(out), c.says) || strings.Contains(string(out), "word-of-a-test") {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// A worker of another machine applies what was granted in a terminal, once, and the terminal is told.
func TestAWorkerDoesWhatAChatLeft(t *testing.T) {
	skipShort(t, "it is served by several processes")
	t.Parallel()
	h := chatHouse(t, "branch", func(*llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: "As I said."} })
	config, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	repo, at := filepath.Join(h.dir, "repo"), pgtest.URL(t)
	keepers.Store(h.base(), at)
	h.config = h.write("config.yaml", strings.TrimSuffix(string(config), "chat: {deliver: branch}\n")+fmt.Sprintf("chat: {deliver: branch, repositories: [{name: repo, path: %q}]}\n"+
		"context_storage: {backend: postgres, postgres: {url: %q}, heartbeat_seconds: 2, stale_seconds: 5}\nqueue: {driver: postgres}\n", repo, at))
	out, code := h.once("/code2 say goodbye")
	if code != exitWaiting || approve.FindString(out) == "" {
		t.Fatalf("%d: %s", code, out)
	}
	worker := h.start("worker", "--config", h.config, "--base-dir", filepath.Join(h.dir, "elsewhere"))
	if out, code := h.once(approve.FindString(out)); code != exitOK {
		t.Errorf("%d: %s", code, out)
	}
	branches := func() string {
		out, err := exec.CommandContext(t.Context(), "git", "-C", repo, "log", "--topo-order", "--format=%s", "--all").CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for end := time.Now().Add(2 * time.Minute); branches() != "say goodbye\nstart\n"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%q\n%s", branches(), worker.out.String())
		}
	}
	if err := openLedger(t.Context(), h.base()); err != nil {
		t.Fatal(err)
	}
	told := 0
	for end := time.Now().Add(time.Minute); told == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		err := disk.Walk(filepath.Join(h.base(), "sessions"), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == "messages.jsonl" {
				b, rerr := disk.Read(path, disk.MaxWhole)
				told, err = told+bytes.Count(b, []byte(`"Applied`)), rerr
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if told != 1 {
		t.Errorf("told %d times\n%s", told, worker.out.String())
	}
}
