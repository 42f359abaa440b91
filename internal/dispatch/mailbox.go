package dispatch

import (
	"context"
	"sync"

	"toritsugi/internal/forge"
	"toritsugi/internal/task"
)

// Mailbox keeps what was said about tasks that are worked on, until their runs
// ask for it. It is safe for concurrent use.
type Mailbox struct {
	mu   sync.Mutex
	said map[task.Key][]forge.Comment
}

// maxSaid bounds what is kept for one run; what is beyond is read from the
// forge when the run is taken up again.
const maxSaid = 500

// Take returns what was said about a task since the last call.
func (m *Mailbox) Take(k task.Key) []forge.Comment {
	m.mu.Lock()
	defer m.mu.Unlock()
	said := m.said[k]
	delete(m.said, k)
	return said
}

func (m *Mailbox) put(k task.Key, c forge.Comment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.said == nil {
		m.said = map[task.Key][]forge.Comment{}
	}
	if len(m.said[k]) < maxSaid {
		m.said[k] = append(m.said[k], c)
	}
}

// keys are the tasks of a source about which something lies here.
func (m *Mailbox) keys(source string) (all []task.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k := range m.said {
		if k.Source == source {
			all = append(all, k)
		}
	}
	return all
}

// clearMailbox clears the mailbox of what runs left there that ended before they took it.
// Reviews that ask for changes are remembered apart; a run that is to go on reads
// the rest from its item.
func (i *Intake) clearMailbox(ctx context.Context, w *Watch) {
	for _, k := range i.Mailbox.keys(w.Host.Source()) {
		last, ok, err := i.latest(ctx, k)
		if err != nil || ok && last.Status() == task.Running {
			continue
		}
		for _, c := range i.Mailbox.Take(k) {
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
