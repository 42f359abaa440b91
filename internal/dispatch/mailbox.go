package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// Mailbox keeps what was said about tasks that are worked on, until their runs
// ask for it. It is safe for concurrent use.
type Mailbox struct {
	// House keeps it for the runs of other processes, too; nil where there are none.
	House *contextstore.Store
	Log   *slog.Logger
	Now   func() time.Time

	mu    sync.Mutex
	said  map[task.Key][]forge.Comment
	asked map[task.Key]time.Time // when House was looked into
	quiet channel.Throttle       // for complaints about House
}

// maxSaid bounds what is kept for one run; what is beyond is read from the
// forge when the run is taken up again.
const maxSaid = 500

// askHouse is how often a run has the house looked into.
const askHouse = 2 * time.Second

// saidScope is that of the marks of house.db that are the tasks about which something was said;
// behind it and a slash follows the task for the marks that say what.
const saidScope = "said"

func scopeOf(k task.Key) string { return saidScope + "/" + k.String() + "/" + k.Type }

// Take returns what was said about a task since the last call. What another process put in is
// returned some seconds later.
func (m *Mailbox) Take(k task.Key) []forge.Comment { return m.take(k, false) }

func (m *Mailbox) take(k task.Key, now bool) []forge.Comment {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.House != nil && (now || m.Now().Sub(m.asked[k]) >= askHouse) {
		if len(m.asked) >= maxSaid {
			m.asked = nil
		}
		if m.asked == nil {
			m.asked = map[task.Key]time.Time{}
		}
		m.asked[k] = m.Now()
		if err := m.fetch(k, now); err != nil && m.quiet.Due(m.Now(), time.Minute) {
			m.Log.Warn("What was said cannot be heard yet: "+err.Error(), "task", k.String())
		}
	}
	said := m.said[k]
	delete(m.said, k)
	return said
}

// fetch takes out of the house what lies there about a task; with clear also the mark that something
// does. Its caller has mu.
func (m *Mailbox) fetch(k task.Key, clear bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), askHouse)
	defer cancel()
	names, err := m.House.Marks(ctx, scopeOf(k))
	if err == nil && (clear || len(names) > 0) { // what comes from here on has a mark again
		if err = m.House.SetMark(ctx, saidScope, keyMark(k), ""); err == nil {
			names, err = m.House.Marks(ctx, scopeOf(k))
		}
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		var text string
		var c forge.Comment
		if text, err = m.House.Mark(ctx, scopeOf(k), name); err == nil {
			err = json.Unmarshal([]byte(text), &c)
		}
		if err == nil {
			m.keep(k, c) // once more where the next answer gets lost: a run knows what it was told
			err = m.House.SetMark(ctx, scopeOf(k), name, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Mailbox) put(ctx context.Context, k task.Key, c forge.Comment) error {
	if m.House == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.keep(k, c)
		return nil
	}
	c.Body = m.House.Redact(c.Body)
	b, err := json.Marshal(c)
	if err == nil {
		err = m.House.SetMark(ctx, scopeOf(k), m.Now().UTC().Format(time.RFC3339Nano)+" "+c.ID, string(b))
	}
	if err == nil {
		err = m.House.SetMark(ctx, saidScope, keyMark(k), "1")
	}
	return err
}

// keep adds to what is at hand. Its caller has mu.
func (m *Mailbox) keep(k task.Key, c forge.Comment) {
	if m.said == nil {
		m.said = map[task.Key][]forge.Comment{}
	}
	if len(m.said[k]) < maxSaid {
		m.said[k] = append(m.said[k], c)
	}
}

// keyMark is a task as the name of a mark.
func keyMark(k task.Key) string {
	b, _ := json.Marshal(k) // strings
	return string(b)
}

// keys are the tasks of a source about which something lies here.
func (m *Mailbox) keys(ctx context.Context, source string) (all []task.Key, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range m.said {
		if k.Source == source {
			all = append(all, k)
		}
	}
	if m.House == nil {
		return all, nil
	}
	names, err := m.House.Marks(ctx, saidScope)
	for _, name := range names {
		var k task.Key
		if json.Unmarshal([]byte(name), &k) == nil && k.Source == source {
			all = append(all, k)
		}
	}
	return all, err
}

// clearMailbox clears the mailbox of what runs left there that ended before they took it.
// Reviews that ask for changes are remembered apart; a run that is to go on reads
// the rest from its item.
func (i *Intake) clearMailbox(ctx context.Context, w *Watch) {
	keys, err := i.Mailbox.keys(ctx, w.Host.Source())
	if err != nil {
		i.Log.Warn("What was said: " + err.Error())
	}
	for _, k := range keys {
		last, ok, err := i.latest(ctx, k)
		if err != nil || ok && last.Status() == task.Running {
			continue
		}
		for _, c := range i.Mailbox.take(k, true) {
			if ok && last.Status() == task.AwaitingApproval { // said while it was on its way to wait
				if err := i.answered(ctx, w, k, last, c); err != nil {
					i.Log.Warn("An answer is not heard yet: "+err.Error(), "uuid", last.Metadata.UUID, "task", k.String(), "comment", c.URL)
				}
				continue
			}
			if !ok || last.Status().Final() {
				i.Log.Warn("Said too late for the run", "uuid", last.Metadata.UUID, "task", k.String(), "comment", c.URL)
			}
		}
	}
}
