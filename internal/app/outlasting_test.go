package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A delivery goes on while nobody interrupts, and ends a while after somebody did.
func TestOutlasting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		late, end := outlasting(ctx, time.Minute)
		defer end()
		time.Sleep(time.Hour)
		interrupt()
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		if late.Err() != nil {
			t.Error("it ended with the other")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if late.Err() == nil {
			t.Error("it goes on")
		}
	})
}
