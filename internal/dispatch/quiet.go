package dispatch

import (
	"context"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
)

// wholeEvery is at each how many looks for work the whole of a quiet repository is looked at:
// not everything moves the time of an item's last change.
const wholeEvery = 4

// stillFor is how far before a look the time lies that the next ones ask for changes since. A
// list may show a change a moment late, and GitLab does not move the time of an item that moved
// within the minute before.
const stillFor = 2 * overlap

// quiet is what is kept of a repository in which nothing goes on and the last look left nothing.
type quiet struct {
	whole time.Time // when the whole of it was looked at
	since time.Time // by the forge's clock: what changed before was seen
}

// lookAt looks at a repository in its turn: at the whole of it, or, where it is quiet, only at
// whether anything changed there.
func (i *Intake) lookAt(ctx context.Context, w *Watch, r forge.Repo, runs []contextstore.Row, all, fresh bool) error {
	name, now := lower(r), quiet{i.Now(), i.clock(w).Add(-stillFor)}
	last, was := w.quiet[name]
	delete(w.quiet, name) // it is not, where something goes wrong
	changes, tells := w.Host.Tracker.(forge.Changes)
	still := tells && fresh && len(runs) == 0
	switch {
	case !still || !was || last.since.After(now.since): // the last one: a clock was wrong
	case now.whole.Sub(last.whole) < wholeEvery*i.Interval-i.Interval/2: // looks begin a little late or early
		changed, err := changes.Changed(ctx, r, last.since)
		if err != nil {
			return err
		}
		if !changed {
			if err = i.followMissed(ctx, w, r); err == nil {
				w.quiet[name] = last
			}
			return err
		}
	default:
		now.since = last.since // as long as the same is asked for, it can be answered as unchanged
	}
	done, err := i.repository(ctx, w, r, w.unsure(runs, all), fresh)
	if err != nil || !done || !still {
		return err
	}
	if w.quiet == nil {
		w.quiet = map[forge.Repo]quiet{}
	}
	w.quiet[name] = now
	return nil
}
