package models

import (
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// aliveEvery is how often it is told what is waited for.
const aliveEvery = time.Minute

// alive tells in the log, until stop is called, that an answer to so many bytes is
// waited for: a local model computes for minutes, and nobody can tell that from a
// process that hangs. heard is told the answer's text.
func (m *Models) alive(name string, sent int) (heard func(text string), stop func()) {
	var characters, ticks atomic.Int64
	var timer atomic.Pointer[time.Timer]
	timer.Store(time.AfterFunc(aliveEvery, func() {
		t := timer.Load()
		if t == nil {
			return
		}
		waited := time.Duration(ticks.Add(1)) * aliveEvery
		m.Log.Info(m.Lang.T("models.waiting", name, waited.String(), (sent+999)/1000, characters.Load()))
		t.Reset(aliveEvery)
	}))
	return func(text string) { characters.Add(int64(utf8.RuneCountInString(text))) }, func() { timer.Swap(nil).Stop() }
}
