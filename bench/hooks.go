package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/inbox"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/hook"
)

// Webhooks: how many come in a second, for how long, of how many repositories, and how large
// they are. Each is answered once it is on the disk.
const (
	hooksRate  = 200
	hooksTime  = 10 * time.Second
	hooksRepos = 50
	hooksSize  = 20 << 10
	maxHook    = 50 // ms, the 99th percentile
)

// The figures of webhooks.
const (
	hookMedian = "median"
	hookLate   = "99th percentile"
	hookWorst  = "worst"
	hookTaken  = "per second"
	hookLost   = "not answered with 200, or kept twice"
)

// looked is who looks where webhooks call: at once, and counts.
type looked struct {
	mu  sync.Mutex
	ids map[string]int
}

func (l *looked) Kind() channel.Kind { return "github" }

func (l *looked) Gather(_ context.Context, all []channel.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range all {
		l.ids[e.ID]++
	}
	return nil
}

// measureHooks sends deliveries at a steady pace over HTTP, whatever the answers take.
func measureHooks(ctx context.Context, dir string) (sample, error) {
	store, err := openStore(ctx, filepath.Join(dir, "base"), contextstore.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	log := slog.New(slog.DiscardHandler)
	in, err := inbox.Open(ctx, store, log, time.Now)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	const secret = "of the bench"
	r, err := hook.New(hook.Options{Source: "github", Secret: func() string { return secret }, Watched: func(forge.Repo) bool { return true }, Own: func(forge.Person) bool { return false }, Now: time.Now, Log: log,
		Keep: func(ctx context.Context, d hook.Delivery) error {
			return in.Put(ctx, channel.Event{Channel: "github", ID: d.ID, Queue: d.Repo.String(), Body: []byte(`{"repository":"` + d.Repo.String() + `"}`), ReceivedAt: time.Now()})
		}})
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	defer func() { _ = srv.Close() }()
	go func() { _ = srv.Serve(l) }() // its end is srv.Close
	there := &looked{ids: map[string]int{}}
	working, stop := context.WithCancel(ctx)
	var worker sync.WaitGroup
	worker.Go(func() { in.Run(working, inbox.Worker{Gatherers: []inbox.Gatherer{there}}) })
	took, bad := sendHooks(ctx, "http://"+l.Addr().String()+hook.Path("github"), secret)
	for in.Waiting() > 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	stop()
	worker.Wait()
	for _, n := range there.ids {
		if n != 1 {
			bad++
		}
	}
	bad += len(took) - len(there.ids)
	return sample{hookMedian: median(took), hookLate: quantile(took, 0.99), hookWorst: quantile(took, 1), hookTaken: float64(len(took)) / hooksTime.Seconds(), hookLost: float64(bad)}, ctx.Err()
}

// sendHooks returns what each answer took, in ms, and how many were not 200.
func sendHooks(ctx context.Context, at, secret string) (took []float64, bad int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	n := int(hooksTime.Seconds()) * hooksRate
	var mu sync.Mutex
	var all sync.WaitGroup
	pace := time.NewTicker(time.Second / hooksRate)
	defer pace.Stop()
	padding := strings.Repeat("a", hooksSize)
	for i := range n {
		body := fmt.Appendf(nil, `{"action":"labeled","issue":{"number":%d,"body":%q},"repository":{"full_name":"acme/r%d"},"sender":{"id":2,"login":"ken"}}`, i+1, padding, i%hooksRepos)
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write(body)
		<-pace.C
		all.Go(func() {
			began := time.Now()
			ok := false
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
			if err == nil {
				r.Header.Set("X-GitHub-Event", "issues")
				r.Header.Set("X-GitHub-Delivery", "d"+strconv.Itoa(i))
				r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
				var a *http.Response
				if a, err = client.Do(r); err == nil {
					ok = a.StatusCode == http.StatusOK
					_ = a.Body.Close()
				}
			}
			answered := ms(time.Since(began))
			mu.Lock()
			defer mu.Unlock()
			took = append(took, answered)
			if !ok {
				bad++
			}
		})
	}
	all.Wait()
	return took, bad
}
