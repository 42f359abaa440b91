package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"toritsugi/internal/llm"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	noCommand := func(c *CareConfig) { c.Restart = nil }
	for _, c := range []struct {
		name     string
		call     error
		happens  func(w *world)
		config   func(*CareConfig)
		retry    bool
		err      string // key
		restarts int
		loads    int
	}{
		{name: "all well", happens: func(*world) {}},
		{name: "all well but the call", call: failed, happens: func(*world) {}},
		{name: "gone, the call failed", call: failed, happens: (*world).crash, retry: true, restarts: 1, loads: 2},
		{name: "gone, the call was the last that went well", happens: (*world).crash, restarts: 1, loads: 2},
		{name: "gone, the call was wrong", call: &llm.Error{Kind: llm.KindBadRequest}, happens: (*world).crash, restarts: 1, loads: 2},
		{name: "gone, the request was too long", call: &llm.Error{Kind: llm.KindContext}, happens: (*world).crash, restarts: 1, loads: 2},
		{name: "gone, no command", call: failed, happens: (*world).crash, config: noCommand, err: "ollama.unreachable"},
		{name: "does not come back", call: failed, happens: func(w *world) { w.crash(); w.comesUp = false }, err: "ollama.unreachable", restarts: 1},
		{name: "the command fails", call: failed, happens: func(w *world) { w.crash(); w.cmdErr = errors.New("exit status 1") }, err: "ollama.restart_failed", restarts: 1},
		{name: "one not loaded", call: failed, happens: func(w *world) { delete(w.loaded, workerModel) }, retry: true, loads: 1},
		{name: "one not loaded, the call went well", happens: func(w *world) { delete(w.loaded, workerModel) }, loads: 1},
		{name: "one not loaded, no command", call: failed, config: noCommand, happens: func(w *world) { delete(w.loaded, chatModel) }, retry: true, loads: 1},
		{name: "one not there", call: failed, happens: func(w *world) { delete(w.loaded, workerModel); delete(w.onDisk, workerModel) }, err: "ollama.warmup_failed", loads: 1},
		{name: "loading fails", call: failed, happens: func(w *world) {
			delete(w.loaded, workerModel)
			w.reply["/api/chat"] = reply{500, `{"error":"llama runner process has terminated"}`}
		}, err: "ollama.warmup_failed", restarts: 1, loads: 0},
		{name: "too busy to load", call: failed, happens: func(w *world) {
			delete(w.loaded, workerModel)
			w.reply["/api/chat"] = reply{503, `{"error":"server busy, please try again"}`}
		}, err: "ollama.warmup_failed"},
		{name: "they do not fit", call: failed, happens: func(w *world) { w.room = 1; delete(w.loaded, workerModel) }, err: "ollama.does_not_fit", loads: 1},
		{name: "context too long", call: failed, happens: func(w *world) { w.loaded[chatModel] = 32768 }, err: "ollama.context"},
		{name: "context too short", happens: func(w *world) { w.loaded[chatModel] = 2048 }, err: "ollama.context", config: func(c *CareConfig) { c.Models[0].MinContext = 4096 }},
		{name: "context not told", happens: func(w *world) { w.loaded[chatModel] = 0 }, config: func(c *CareConfig) { c.Models[0].MinContext = 4096 }},
		{name: "not loaded wins over context", happens: func(w *world) {
			w.loaded[chatModel] = 32768
			delete(w.loaded, workerModel)
			delete(w.onDisk, workerModel)
		}, err: "ollama.warmup_failed", loads: 1},
		{name: "locked out", call: failed, happens: func(w *world) { w.reply["/api/ps"] = reply{401, `{"error":"unauthorized"}`} }, err: "ollama.unknown"},
		{name: "no version", call: failed, happens: func(w *world) { w.reply["/api/version"] = reply{404, ""} }},
		{name: "a gateway without a server", call: failed, happens: func(w *world) { w.reply["/api/version"] = reply{502, "bad gateway"} }, err: "ollama.unreachable", restarts: 1},
		{name: "slow once", call: failed, happens: func(w *world) { w.hung = 1 }, retry: true},
		{name: "slow twice", call: failed, happens: func(w *world) { w.hung = 2 }, retry: true},
		{name: "slow three times", call: failed, happens: func(w *world) { w.hung = 3 }, retry: true},
		{name: "hung", call: failed, happens: func(w *world) { w.hung = 7 }, restarts: 1, loads: 2, retry: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(chatModel, workerModel)
				care := w.care(t, dir, c.config)
				began := time.Now()
				time.Sleep(time.Second)
				c.happens(w)
				v := care.After(t.Context(), began, c.call)
				if v.Retry != c.retry || key(v.Err) != c.err || len(w.restarts) != c.restarts || len(w.loads) != c.loads {
					t.Errorf("retry %v, error %v, %d restarts, %d loads; want %v, %s, %d, %d\n%+v",
						v.Retry, v.Err, len(w.restarts), len(w.loads), c.retry, c.err, c.restarts, c.loads, v.Health)
				}
				if v.Health.Ready() != (c.err == "") || (v.Err == nil) != (c.err == "") {
					t.Errorf("ready %v with %v", v.Health.Ready(), v.Err)
				}
				if got := care.Snapshot(); got.Restarts != c.restarts || got.Endpoint == "" || got.LastRestart.IsZero() != (c.restarts == 0) {
					t.Errorf("snapshot %+v", got)
				}
			})
		})
	}
}

// TestRestartsAreSpaced: a server that never comes back is restarted three times
// in any ten minutes: at once, 10 s later, 30 s later; whoever asks how often.
func TestRestartsAreSpaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		w.crash()
		w.comesUp = false
		quick := func(c *CareConfig) { c.StartTimeout = time.Second }
		first := time.Now()
		for i := 0; time.Since(first) < 25*time.Minute; i++ {
			// Each call is another process of its own, as after a crash.
			v := w.care(t, dir, quick).After(t.Context(), time.Now(), failed)
			if v.Retry || v.Err == nil {
				t.Fatalf("call %d: %+v", i, v)
			}
			if i == 3 && key(v.Err) != "ollama.restart_limit" {
				t.Errorf("call %d: %v", i, v.Err)
			}
			time.Sleep(4 * time.Second)
		}
		var at []string
		for _, r := range w.restarts {
			at = append(at, r.Sub(first).Round(time.Second).String())
		}
		if want := "0s 10s 40s 10m0s 10m30s 11m0s 20m0s 20m30s 21m0s"; approximately(at) != want {
			t.Errorf("restarts at %v, want about %s", at, want)
		}
	})
}

// approximately rounds down to ten seconds.
func approximately(at []string) string {
	var all []string
	for _, s := range at {
		d, _ := time.ParseDuration(s)
		all = append(all, (d - d%(10*time.Second)).String())
	}
	return strings.Join(all, " ")
}

// TestWarmUpsAreLimited: two models that push each other out are not loaded in
// turns for ever, and never with a restart.
func TestWarmUpsAreLimited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		w.room = 1
		delete(w.loaded, workerModel)
		care := w.care(t, dir, nil)
		for range 50 {
			if v := care.After(t.Context(), time.Now(), nil); v.Retry || v.Err == nil {
				t.Fatalf("%+v", v)
			}
			time.Sleep(time.Second)
		}
		if len(w.loads) != 3 || len(w.restarts) != 0 {
			t.Errorf("%d loads, %d restarts", len(w.loads), len(w.restarts))
		}
	})
}

// step is what happens at one moment of a story.
type step struct {
	gap   time.Duration
	what  string
	who   int
	calls int
}

var steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
	return step{
		gap:   time.Duration(rapid.SampledFrom([]int{0, 0, 1, 3, 7, 15, 40, 100, 250}).Draw(t, "gap")) * time.Second,
		what:  rapid.SampledFrom([]string{"call", "call", "call", "failed call", "failed call", "crash", "crash", "unload", "foreign context", "breaks", "breaks", "works", "slow", "new process"}).Draw(t, "what"),
		who:   rapid.IntRange(0, 2).Draw(t, "process"),
		calls: rapid.IntRange(1, 5).Draw(t, "calls"),
	}
}), 5, 40)

// TestNeverAStorm: whatever happens to the server and whoever calls, restarts
// stay within the limit and the waits, are never made two at a time nor of a
// server that is well, and only calls that failed are repeated.
func TestNeverAStorm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		story := steps.Draw(rt, "story")
		takes := time.Duration(rapid.IntRange(0, 20).Draw(rt, "takes")) * time.Second
		if wrong := tell(t, fmt.Sprintf("%s/%d", dir, n), story, takes); wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

func tell(t *testing.T, dir string, story []step, takes time.Duration) (wrong string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		w.takes = takes
		quick := func(c *CareConfig) { c.StartTimeout = time.Second }
		processes := []*Supervisor{w.care(t, dir, quick), w.care(t, dir, quick), w.care(t, dir, quick)}
		var mu sync.Mutex
		var group sync.WaitGroup
		complain := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			wrong += fmt.Sprintf(format+"; ", args...)
		}
		call := func(c *Supervisor, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			v := c.After(ctx, time.Now(), err)
			if v.Retry && (err == nil || !v.Health.Reachable || len(v.Health.missing()) > 0) {
				complain("retry after %v: %+v", err, v.Health)
			}
		}
		for _, s := range story {
			time.Sleep(s.gap)
			switch s.what {
			case "crash":
				w.crash()
			case "unload":
				w.set(func() { delete(w.loaded, workerModel) })
			case "foreign context":
				w.set(func() { w.loaded[chatModel] = 32768 })
			case "breaks":
				w.set(func() { w.comesUp = false })
			case "works":
				w.set(func() { w.comesUp = true })
			case "slow":
				w.set(func() { w.hung = min(s.calls, max(w.hung, 5-w.silent)) }) // more on end is no server that is well
			case "new process":
				_ = processes[s.who].Close()
				processes[s.who] = w.care(t, dir, quick)
			default:
				var err error
				if s.what == "failed call" {
					err = failed
				}
				for i := range s.calls {
					c := processes[(s.who+i)%len(processes)]
					group.Go(func() { call(c, err) })
				}
			}
		}
		group.Wait()
		w.set(func() {
			if w.overlap || w.needless > 0 {
				complain("overlap %v, %d restarts of a server that was well", w.overlap, w.needless)
			}
			waits := []time.Duration{0, 10 * time.Second, 30 * time.Second}
			for i, at := range w.restarts {
				within := 0
				for _, earlier := range w.restarts[:i] {
					if at.Sub(earlier) < 10*time.Minute {
						within++
					}
				}
				if within > 2 {
					complain("restart %d is one of %d in ten minutes", i, within+1)
				} else if i > 0 && within > 0 && at.Sub(w.restarts[i-1]) < waits[within] {
					complain("restart %d came %s after the last", i, at.Sub(w.restarts[i-1]))
				}
			}
		})
		for _, p := range processes {
			_ = p.Close()
		}
	})
	return wrong
}

// TestOneRepairsForAll: many calls of many processes fail at once; one restart
// serves them all, and all of them are repeated.
// TestSlowLoad: a model is given the time that is configured, however long.
func TestSlowLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, takes time.Duration
		healed       bool
	}{{0, 4 * time.Minute, true}, {0, 6 * time.Minute, false}, {20 * time.Minute, 19 * time.Minute, true}, {20 * time.Minute, 21 * time.Minute, false}, {time.Minute, 2 * time.Minute, false}} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(chatModel, workerModel)
			w.loading = c.takes
			delete(w.loaded, workerModel)
			care := w.care(t, dir, func(cfg *CareConfig) { cfg.WarmTimeout, cfg.Restart = c.limit, nil })
			var warm []error
			care.cfg.OnEvent = func(e Event) {
				if e.Kind == EventWarmUp {
					warm = append(warm, e.Err)
				}
			}
			care.After(t.Context(), time.Time{}, nil)
			if len(warm) != 1 || (warm[0] == nil) != c.healed {
				t.Errorf("%s within %s: %v", c.takes, c.limit, warm)
			}
		})
	}
}

func TestOneRepairsForAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		w.crash()
		w.takes = 7 * time.Second
		var group sync.WaitGroup
		retries := make([]bool, 60)
		processes := []*Supervisor{w.care(t, dir, nil), w.care(t, dir, nil), w.care(t, dir, nil)}
		for i := range retries {
			group.Go(func() {
				retries[i] = processes[i%3].After(t.Context(), time.Now(), failed).Retry
			})
		}
		group.Wait()
		if len(w.restarts) != 1 || len(w.loads) != 2 || slices.Contains(retries, false) {
			t.Errorf("%d restarts, %d loads, retries %v", len(w.restarts), len(w.loads), retries)
		}
	})
}

// TestOneWarmsUpForAll: the same within one process that keeps no state on disk.
func TestOneWarmsUpForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		delete(w.loaded, chatModel)
		w.loading = time.Minute
		var group sync.WaitGroup
		care := w.care(t, "", func(c *CareConfig) { c.Restart = nil })
		for range 50 {
			group.Go(func() {
				if v := care.After(t.Context(), time.Now(), failed); !v.Retry {
					t.Errorf("%+v", v)
				}
			})
		}
		group.Wait()
		if len(w.loads) != 1 || care.Snapshot().LastError != "" {
			t.Errorf("%d loads", len(w.loads))
		}
	})
}

// TestARepairOutlivesWhoAskedForIt: the first caller leaves, the second has the result.
func TestARepairOutlivesWhoAskedForIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		w.crash()
		w.takes = 20 * time.Second
		care := w.care(t, dir, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if v := care.After(ctx, time.Now(), failed); v.Retry || !errors.Is(v.Err, context.DeadlineExceeded) {
			t.Errorf("%+v", v)
		}
		if v := care.After(t.Context(), time.Now(), failed); !v.Retry || len(w.restarts) != 1 {
			t.Errorf("%+v, %d restarts", v, len(w.restarts))
		}
	})
}

// TestAnotherProcessMendedIt: a call that failed before another process's repair
// ended may be repeated; one that began after it may not.
func TestAnotherProcessMendedIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		ours, theirs := w.care(t, dir, nil), w.care(t, dir, nil)
		began := time.Now()
		time.Sleep(time.Second)
		w.crash()
		if v := theirs.After(t.Context(), began, nil); v.Err != nil {
			t.Fatal(v.Err)
		}
		if v := ours.After(t.Context(), began, failed); !v.Retry {
			t.Errorf("not repeated: %+v", v)
		}
		time.Sleep(time.Second)
		if v := ours.After(t.Context(), time.Now(), failed); v.Retry {
			t.Errorf("repeated: %+v", v)
		}
	})
}

func TestCloseEndsARepair(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		w.crash()
		w.takes = time.Hour
		care := w.care(t, dir, func(c *CareConfig) { c.RestartTimeout = 2 * time.Hour })
		care.notice()
		synctest.Wait()
		began := time.Now()
		if err := care.Close(); err != nil || time.Since(began) != 0 || len(w.restarts) != 1 {
			t.Errorf("%v after %s, %d restarts", err, time.Since(began), len(w.restarts))
		}
		care.notice() // of no effect
		if v := care.After(t.Context(), began, failed); v.Retry || !errors.Is(v.Err, context.Canceled) {
			t.Errorf("after Close: %+v", v)
		}
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		var seen []string
		care := w.care(t, dir, func(c *CareConfig) {
			c.OnEvent = func(e Event) { seen = append(seen, strings.TrimSpace(string(e.Kind)+" "+e.Model+" "+key(e.Err))) }
		})
		w.crash()
		_ = care.After(t.Context(), time.Time{}, nil)
		w.crash()
		_ = care.After(t.Context(), time.Time{}, nil)
		want := []string{"fault  ollama.unreachable", "restart", "warm_up chat-v1:latest", "warm_up worker-v1", "healed"}
		want = append(append(append(slices.Clone(want), want[0], "wait"), want[1:4]...), "healed")
		if !slices.Equal(seen, want) {
			t.Errorf("got  %q\nwant %q", seen, want)
		}
		for _, body := range w.loads {
			if !strings.Contains(body, `"num_ctx":8192`) || !strings.Contains(body, `"keep_alive":-1`) || !strings.Contains(body, `"shift":false`) {
				t.Errorf("loaded with %s", body)
			}
		}
	})
}

// TestHealthAsJSON: what tori health and readiness show.
func TestHealthAsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(chatModel, workerModel)
		care := w.care(t, dir, nil)
		if h := care.Snapshot(); h.Ready() || key(h.Problems()[0]) != "ollama.unchecked" || w.asked != 0 {
			t.Errorf("before any look: %+v", h)
		}
		w.crash()
		_ = care.After(t.Context(), time.Time{}, nil)
		w.set(func() { w.loaded[chatModel] = 32768; w.onDisk = nil; delete(w.loaded, workerModel) })
		h, err := w.care(t, dir, nil).Check(t.Context()) // another process
		if err != nil || len(w.restarts) != 1 {
			t.Fatal(err, w.restarts)
		}
		if p := h.Problems(); len(p) != 2 || key(p[0]) != "ollama.not_loaded" || key(p[1]) != "ollama.context" {
			t.Errorf("problems %v", p)
		}
		raw, _ := json.Marshal(h)
		for _, want := range []string{`"endpoint":"http://ollama.test:11434"`, `"reachable":true`, `"version":"0.33.2"`, `"context_length":32768`, `"context_ok":false`,
			`"loaded":false`, `"size_vram":4294967296`, `"restarts_in_window":1`, `"restart_limit":3`, `"last_restart":"2000-01-01T00:00:00Z"`, `"expires_at":"2318`} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("no %s in %s", want, raw)
			}
		}
	})
}
