package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"toritsugi/internal/blobs"
	"toritsugi/internal/bucket/buckettest"
	"toritsugi/internal/forge/github/githubtest"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// storing is a town whose workspaces go to a bucket (scheme s3) or container (azure) of s, with a model that does its work in two
// steps and then stalls until a run goes on without them in its workspace.
func storing(t *testing.T, kind, scheme string, s *buckettest.Server, settings string) (w *town, toldAgain *atomic.Int64) {
	at := s.Endpoint + "&region=" + s.Region
	if scheme == "azure" {
		at = s.Azure.Endpoint
	}
	w = newTown(t, fmt.Sprintf("context_storage: {blobs: '%s://b/runs?endpoint=%s'}\nbackup: {s3: {access_key: %s, secret_key: %q, session_token: %q}, azure: {account: %s, key: %s}}\n%s",
		scheme, at, s.AccessKey, s.SecretKey, s.Token, s.Azure.Account, s.Azure.Key, settings))
	w.keep(kind)
	toldAgain = &atomic.Int64{}
	w.asks(llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		do := func(tool, args string) llmtest.Answer {
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: fmt.Sprint(r.Turn()), Name: tool, Arguments: args}}}
		}
		again := bytes.Count(r.Body, []byte("made again from what was last stored of it"))
		switch {
		case r.Turn() == 0:
			return do("write_file", `{"path":"answer.txt","content":"42\n"}`)
		case r.Turn() == 1:
			return do("shell", `{"command":"mkdir docs && echo because >docs/why.txt && chmod +x check.sh"}`)
		case bytes.Contains(r.Body, []byte("every change made so far is gone")):
			return llmtest.Answer{Text: "All is lost."}
		case again == 1 && r.Turn() == 2:
			return do("edit_file", `{"path":"docs/why.txt","old_string":"because","new_string":"because of the second"}`)
		case again < 2:
			return llmtest.Answer{Stall: llmtest.StallAtOnce}
		}
		toldAgain.Add(1)
		return llmtest.Answer{Text: "The answer is 42 now, as the issue asks."}
	}).URL)
	return w, toldAgain
}

// elsewhere makes what follows another machine's: of the one before only the ledger and the bucket are left. Two
// machines take turns where the ledger is on a server, so that the third time is the first one's again.
func (w *town) elsewhere() {
	w.t.Helper()
	base := filepath.Join(w.dir, "base")
	if servedAt(base) != "" {
		aside := base + " aside"
		_, err := os.Stat(aside)
		err = errors.Join(os.Rename(base, base+" left"), cmp.Or(err, os.Rename(aside, base)))
		if err = errors.Join(err, os.Rename(base+" left", aside)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.t.Fatal(err)
		}
		return
	}
	for _, name := range []string{"workspaces", "mirrors", "setup"} {
		if err := os.RemoveAll(filepath.Join(base, name)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// stored waits until a step of the only run is in the bucket.
func (w *town) stored(d *daemon, label string) *blobs.Snapshot {
	w.t.Helper()
	var of *blobs.Snapshot
	w.until(d, "the workspace is stored after "+label, func() bool {
		all := w.runs()
		if len(all) == 0 {
			return false
		}
		of, _ = blobs.Read(all[0].Dir) // it may just be moved
		return of != nil && of.Label == label
	})
	return of
}

func (w *town) proposed(why, log string) {
	w.t.Helper()
	pulls := w.repo.Pulls()
	if len(pulls) != 1 {
		w.t.Fatalf("%d pull requests\n%s", len(pulls), log)
	}
	for path, want := range map[string]string{"answer.txt": "42", "docs/why.txt": why} {
		if text, err := w.repo.File(pulls[0].Pull.Head, path); text != want {
			w.t.Errorf("%s is %q and not %q: %v\n%s", path, text, want, err, log)
		}
	}
}

// A worker dies with work that is nowhere but in its workspace. Another machine, which has only the
// ledger and the bucket, waits while the bucket refuses, then goes on with that work, which nobody did
// again. It dies, too, and the first one hands over what both did, whatever its own old workspace holds.
func TestAnotherMachineGoesOn(t *testing.T) {
	t.Parallel()
	for i, kind := range backends {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := buckettest.New(t)
			w, told := storing(t, kind, []string{"s3", "azure"}[i%2], s, patient+"setup: ['grep -q 41 answer.txt && echo packages >installed'] # of the base alone\n")
			d := w.start()
			n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
			w.repo.Label(n, "coding agent", "hanako")
			w.stored(d, "shell")
			if err := d.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = d.Wait()
			w.elsewhere()

			refused := make(chan struct{})
			once := sync.OnceFunc(func() { close(refused) })
			s.Refuse(func(_ int, q *http.Request) int {
				if q.Method == http.MethodGet {
					once()
					return http.StatusServiceUnavailable
				}
				return 0
			})
			d = w.start()
			<-refused
			w.until(d, "it waits for the bucket", func() bool {
				all := w.runs()
				return len(all) == 1 && all[0].Status() == task.Queued
			})
			w.end(d) // which would try again in a minute
			s.Refuse(nil)
			d = w.start()
			w.stored(d, "edit_file")
			if err := d.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = d.Wait()
			w.elsewhere()
			d = w.start()
			w.until(d, "it is handed over", func() bool { return w.labels(n) == "coding agent done" })
			w.end(d)
			if told.Load() == 0 {
				t.Errorf("the model was not told\n%s", d.out)
			}
			if strings.Contains(d.out.String(), "made anew from the base") {
				t.Errorf("its work was done again\n%s", d.out)
			}
			w.proposed("because of the second", d.out.String())
			w.ended(t, n, "coding agent done", d.out.String(), "Completed")
		})
	}
}

// A worker dies when its run has ended, before its branch is out. Another machine delivers that.
func TestAnotherMachineDelivers(t *testing.T) {
	t.Parallel()
	s := buckettest.New(t)
	w, _ := storing(t, "postgres", "s3", s, patient)
	w.model = "" // the script
	write(t, filepath.Join(w.dir, "script.yaml"), `
- calls: [{tool: write_file, args: {path: answer.txt, content: "42\n"}}, {tool: shell, args: {command: "mkdir docs && echo because >docs/why.txt"}}]
- say: The answer is 42 now, as the issue asks.
`)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	d := w.serve("--once")
	var out shared
	d.Stdout, d.Stderr = &out, &out
	var killed atomic.Bool
	w.hub.OnRequest(func(*githubtest.Request) *githubtest.Fault {
		if runs := w.runs(); len(runs) != 1 || runs[0].Status() != task.Completed || !killed.CompareAndSwap(false, true) {
			return nil
		}
		_ = d.Process.Kill()
		return &githubtest.Fault{Drop: true}
	})
	if err := d.Run(); err == nil || !killed.Load() {
		t.Fatalf("it was not killed: %v\n%s", err, &out)
	}
	w.hub.OnRequest(nil)
	if len(w.repo.Pulls()) > 0 || len(w.repo.Branches()) != 1 {
		t.Fatalf("it is delivered already\n%s", &out)
	}
	w.elsewhere()
	log := w.once()
	w.proposed("because", log)
	w.ended(t, n, "coding agent done", log, "Completed")
}

// A bucket that refuses from the beginning costs a run nothing, and is told of.
func TestABucketThatRefuses(t *testing.T) {
	t.Parallel()
	s := buckettest.New(t)
	w, _ := storing(t, "jsonl", "s3", s, "")
	w.model = ""
	s.Refuse(func(int, *http.Request) int { return http.StatusForbidden })
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	if all, code, text := w.checked(); code != 1 || !strings.HasSuffix(parts(all), " bucket!") || !strings.Contains(text, "403") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	log := w.once()
	w.ended(t, n, "coding agent done", log, "Completed")
	if c := strings.Count(log, "is not stored in s3://b/runs for now"); c != 1 {
		t.Errorf("told %d times\n%s", c, log)
	}
	if of, err := blobs.Read(w.runs()[0].Dir); of != nil || err != nil {
		t.Errorf("it refers to what is not there: %+v, %v", of, err)
	}
	s.Refuse(nil)
	if all, _, text := w.checked(); !strings.HasSuffix(parts(all), " bucket") {
		t.Errorf("%s", text)
	}
}
