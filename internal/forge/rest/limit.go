package rest

import (
	"net/http"
	"strconv"
	"sync"
	"time"
)

// limits remembers until when one credential may not ask: servers punish whoever
// asks on. Source: GitHub docs, "Rate limits for the REST API" and "Best practices
// for using the REST API"; GitLab docs, "Rate limits".
type limits struct {
	now   func() time.Time
	about func(body []byte) bool // may be nil

	mu      sync.Mutex
	primary map[string]time.Time // by what requests are counted under
	second  time.Time
	strikes int // secondary limits in a row that did not say how long
}

// Limited is the error of a call that was not made, or was refused, because of a
// rate limit.
type Limited struct {
	Wait time.Duration
	// SlowDown says that it is no limit which is counted, but a word to slow down.
	SlowDown bool
	Status   int // 0 where nothing was sent
}

func (e *Limited) Error() string {
	return "rate limited for " + e.Wait.Round(time.Second).String()
}

const (
	// LeastPause is how long to be still after a secondary limit that does not
	// say; it doubles up to mostPause.
	LeastPause = time.Minute
	mostPause  = 16 * time.Minute
	// MostWait bounds what an answer can make us wait: limits are counted by the hour.
	MostWait = 2 * time.Hour
)

// check returns a *Limited where that may not be asked for yet.
func (l *limits) check(counted string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if wait := l.second.Sub(now); wait > 0 {
		return &Limited{Wait: wait, SlowDown: true}
	}
	if wait := l.primary[counted].Sub(now); wait > 0 {
		return &Limited{Wait: wait}
	}
	return nil
}

// observe learns from an answer and returns a *Limited where it is a refusal
// because of a limit.
func (l *limits) observe(asked string, r *http.Response, body []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if r.StatusCode != http.StatusForbidden && r.StatusCode != http.StatusTooManyRequests {
		if used, wait := exhausted(r, now); used {
			l.primary[asked] = now.Add(wait)
		}
		return nil
	}
	if wait, ok := retryAfter(r, now); ok {
		l.second = now.Add(wait)
		return &Limited{Wait: wait, SlowDown: true, Status: r.StatusCode}
	}
	if used, wait := exhausted(r, now); used {
		l.primary[asked] = now.Add(wait)
		return &Limited{Wait: wait, Status: r.StatusCode}
	}
	if r.StatusCode == http.StatusForbidden && (l.about == nil || !l.about(body)) {
		return nil
	}
	if now.Sub(l.second) > mostPause {
		l.strikes = 0
	}
	wait := min(LeastPause<<min(l.strikes, 8), mostPause)
	l.strikes++
	l.second = now.Add(wait)
	return &Limited{Wait: wait, SlowDown: true, Status: r.StatusCode}
}

// exhausted reports that nothing is left of the primary limit, and for how long.
// Both times are the server's, so that our clock may be wrong.
func exhausted(r *http.Response, now time.Time) (bool, time.Duration) {
	left, at := r.Header.Get("X-RateLimit-Remaining"), r.Header.Get("X-RateLimit-Reset")
	if left == "" {
		left, at = r.Header.Get("RateLimit-Remaining"), r.Header.Get("RateLimit-Reset")
	}
	reset, err := strconv.ParseInt(at, 10, 64)
	if err != nil || left != "0" {
		return false, 0
	}
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		now = date
	}
	return true, bounded(min(time.Unix(reset, 0).Sub(now), MostWait) + time.Second)
}

func retryAfter(r *http.Response, now time.Time) (time.Duration, bool) {
	v := r.Header.Get("Retry-After")
	if v == "" {
		return 0, false
	}
	if s, err := strconv.ParseInt(v, 10, 32); err == nil {
		return bounded(time.Duration(s) * time.Second), true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		now = date
	}
	return bounded(at.Sub(now)), true
}

func bounded(d time.Duration) time.Duration { return min(max(d, time.Second), MostWait) }
