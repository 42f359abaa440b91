package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/dispatch"
)

// What does not end by itself keeps nobody from ending: who waits for the runs
// waits for a bounded time, and says that they are left.
func TestTheEndIsBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes, want time.Duration
		says        bool
	}{"at once": {0, 0, false}, "just in time": {shutdownTime - time.Second, shutdownTime - time.Second, false}, "never": {time.Hour, shutdownTime, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				d := &daemon{system: &system{log: slog.New(slog.NewTextHandler(&log, nil))}, pool: dispatch.NewPool(dispatch.PoolOptions{})}
				began := time.Now()
				d.pooled(func() { time.Sleep(c.takes) })
				if took := time.Since(began); took != c.want || strings.Contains(log.String(), "the next start takes them up") != c.says {
					t.Errorf("%s: %s", took, log.String())
				}
				time.Sleep(2 * time.Hour) // until what is left has ended
			})
		})
	}
}
