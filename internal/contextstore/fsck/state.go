package fsck

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// The values that state.json's status may have besides those of the row
// (store-v2 §3.2).
var fineStatuses = []string{contextstore.Initializing, contextstore.Processing, contextstore.Compressing, contextstore.Completing, contextstore.Timeout}

// checkedFiles are the logs that a checkpoint knows of, in the order of their checks.
var checkedFiles = []string{contextstore.Messages, contextstore.Tools, contextstore.Window, contextstore.Checks, contextstore.Summaries}

// checkState compares state.json with the place the context lies in and with
// its files. A context in use changes it at any moment.
func (i *inspection) checkState() {
	if i.stateErr != nil {
		kind, args := "state", []any{i.stateErr}
		if errors.Is(i.stateErr, os.ErrNotExist) {
			kind, args = "no_state", nil
		}
		f := i.find(contextstore.StateFile, spot{}, kind, args...)
		switch {
		case i.rawState == nil: // nothing stood there
			i.repairable(f, "rebuild").mend = i.rebuildState
		case i.rawState.Mode().IsRegular():
			i.repairable(f, "rebuild_cut").mend = i.rebuildState
		}
		_, f.lost = i.rebuilt()
		return
	}
	old := i.state.TaskStatus == "" && i.meta.Format == 0 // a tree of store-v2
	if !old && !i.held {
		i.checkStatus()
		i.checkPlace()
		i.checkTimes()
	}
	for _, name := range checkedFiles {
		i.checkMark(name)
	}
	if !i.held {
		i.checkCounters()
	}
}

// stateFinding is a finding that a change of state.json mends.
func (i *inspection) stateFinding(kind, action string, change func(*contextstore.State), args ...any) {
	f := i.find(contextstore.StateFile, spot{}, kind, args...)
	i.repairable(f, action).mend = func() error { return i.changeState(change) }
}

func (i *inspection) checkStatus() {
	s := i.state
	if !s.TaskStatus.Valid() {
		i.stateFinding("task_status", "status", func(s *contextstore.State) {
			s.TaskStatus = i.statusByPlace()
			s.Status = fineStatus(s.TaskStatus)
		}, string(s.TaskStatus))
		return
	}
	if !slices.Contains(fineStatuses, s.Status) && !task.Status(s.Status).Valid() {
		i.stateFinding("status", "status", func(s *contextstore.State) { s.Status = fineStatus(s.TaskStatus) }, s.Status)
	}
}

// fineStatus is the status that goes with a task status where nothing says more.
func fineStatus(s task.Status) string {
	switch s {
	case task.Queued:
		return contextstore.Initializing
	case task.Running:
		return contextstore.Processing
	}
	return string(s)
}

// statusByPlace is the status of a context whose state.json does not tell it:
// the row's if that fits the place it lies in, else what the place says.
func (i *inspection) statusByPlace() task.Status {
	if s := i.row.Status; i.hasRow && s.Valid() && contextstore.DirOf(s) == filepath.Base(filepath.Dir(i.dir)) {
		return s
	}
	return contextstore.View{Dir: i.dir, State: contextstore.State{Status: i.state.Status}}.Status()
}

// checkPlace finds a transition that was committed but not carried to its end
// (PROTOCOL "End, pause, wait").
func (i *inspection) checkPlace() {
	s := i.state
	if !s.TaskStatus.Valid() {
		return
	}
	at, want := filepath.Base(filepath.Dir(i.dir)), contextstore.DirOf(s.TaskStatus)
	if at == want && s.Phase == "" {
		return
	}
	i.moving = true
	f := i.find("", spot{}, "half_done", string(s.TaskStatus), at)
	i.repairable(f, "finish", want).mend = i.finishTransition
}

func (i *inspection) checkTimes() {
	s := i.state
	if s.TaskStatus.Final() && s.CompletedAt.IsZero() {
		i.stateFinding("completed_at", "state", func(s *contextstore.State) { s.CompletedAt = i.lastTime() })
	}
	if s.TaskStatus.Valid() && s.Generation < 1 && (!s.StartedAt.IsZero() || s.TaskStatus == task.Running) {
		i.stateFinding("generation", "state", func(s *contextstore.State) { s.Generation = max(i.row.Generation, 1) }, s.Generation)
	}
}

// lastTime is the latest time that the context tells of.
func (i *inspection) lastTime() contextstore.Time {
	for _, t := range []contextstore.Time{i.state.UpdatedAt, i.messages.last.Timestamp, i.state.StartedAt} {
		if !t.IsZero() {
			return t
		}
	}
	return i.meta.CreatedAt
}

// checkMark compares a checkpoint with the file it is about. A checkpoint that
// knows of more lines than there are tells of a loss, which stays on record;
// one that only points to a wrong place is set anew.
func (i *inspection) checkMark(name string) {
	m, ok := i.state.Files[name]
	l := i.logs[name]
	if !ok || m == (contextstore.Mark{}) || l == nil || l.broken || i.slim() {
		return
	}
	right := l.atMark && l.markSeq == m.Seq
	switch {
	case right:
	case l.short:
		i.find(name, spot{}, "short", m.Seq, m.Bytes, l.seq, min(l.good, l.size))
	case i.held:
		i.find(contextstore.StateFile, spot{}, "mark", name, m.Seq, m.Bytes)
	default:
		f := i.find(contextstore.StateFile, spot{}, "mark", name, m.Seq, m.Bytes)
		i.repairable(f, "mark").mend = func() error {
			if err := i.syncLog(name); err != nil {
				return err
			}
			return i.changeState(func(s *contextstore.State) { s.Files[name] = l.mark() })
		}
	}
}

// mark is the checkpoint of a log that is good up to its end.
func (l *logCheck) mark() contextstore.Mark {
	if l.missing {
		return contextstore.Mark{}
	}
	return contextstore.Mark{Bytes: l.good, Seq: l.seq}
}

// checkCounters finds counters that know of more than the files hold.
func (i *inspection) checkCounters() {
	m := i.logs[contextstore.Messages]
	if m.broken || m.short || i.slim() {
		return
	}
	if n := max(i.state.MessageCount, i.state.CommittedSeq); n > m.seq {
		i.find(contextstore.Messages, spot{}, "lost", n, m.seq)
		return
	}
	total := i.cuts
	for _, l := range i.logs {
		if l.broken || l.short {
			return
		}
		total += max(l.size, l.good)
	}
	if i.state.Bytes > total {
		i.stateFinding("bytes", "state", func(s *contextstore.State) { s.Bytes = total }, i.state.Bytes, total)
	}
}

// rebuilt is the state as its last checkpoint, the files, the place and the row
// tell it, with the keys that nothing tells. Then the careful value stands: a
// run counts as unverified, and all the time since its start as its own.
func (i *inspection) rebuilt() (s contextstore.State, lost []string) {
	s = i.state // what was kept of it, if anything
	kept := s.TaskStatus.Valid()
	if !kept {
		status := i.statusByPlace()
		s = contextstore.State{Status: fineStatus(status), TaskStatus: status, StartedAt: i.messages.first, ProcessID: i.meta.ProcessID, Hostname: i.meta.Hostname}
	}
	status, since := s.TaskStatus, s.UpdatedAt
	s.UpdatedAt, s.LastActivity, s.Files = i.messages.last.Timestamp, "repaired", map[string]contextstore.Mark{}
	s.LLMCallCount, s.TotalTokensUsed, s.CurrentContextTokens = i.messages.answers+i.summaries.calls, i.messages.reported+i.summaries.tokens, i.messages.sum
	s.Spending = i.messages.spent
	s.Add(i.summaries.spent)
	s.ToolCallCount, s.CompressionCount, s.MessageCount = i.logs[contextstore.Tools].lines, i.compressions, i.logs[contextstore.Messages].seq
	s.Bytes = 0
	for _, name := range []string{contextstore.Messages, contextstore.Tools, contextstore.Window, contextstore.Checks} {
		s.Bytes += i.logs[name].good
	}
	if i.hasRow && !kept {
		s.Generation, s.Failures = i.row.Generation, i.row.Failures
		if !i.row.StartedAt.IsZero() {
			s.StartedAt = i.row.StartedAt
		}
		if i.row.Status == status {
			s.CompletedAt = i.row.CompletedAt
			if i.row.Error != "" {
				s.Error = &i.row.Error
			}
		}
	}
	if s.UpdatedAt.IsZero() {
		s.UpdatedAt = i.meta.CreatedAt
	}
	if !kept && !s.StartedAt.IsZero() {
		since = s.StartedAt
		lost = i.retell(&s)
	}
	if last := latest(s.UpdatedAt, s.CompletedAt, i.row.HeartbeatAt, i.ended); !since.IsZero() && since.Before(last.Time) {
		s.ActiveMS += last.Sub(since.Time).Milliseconds()
	}
	if status.Final() && s.CompletedAt.IsZero() {
		s.CompletedAt = latest(s.UpdatedAt, i.ended)
	}
	if !s.StartedAt.IsZero() || status == task.Running {
		s.Generation = max(s.Generation, 1)
	}
	for _, name := range checkedFiles[:4] {
		if l := i.logs[name]; !l.broken && !l.missing && l.tail.line == 0 {
			s.Files[name] = l.mark()
		}
	}
	return s, lost
}

// retell fills in what other files than the state tell of a run, and lists what
// none does.
func (i *inspection) retell(s *contextstore.State) (lost []string) {
	if i.outcome == contextstore.Timeout && s.TaskStatus == task.Failed {
		s.Status = contextstore.Timeout
	}
	if s.Unverified = s.TaskStatus == task.Completed && i.outcome != string(task.Completed); s.Unverified && i.outcome != contextstore.Unverified {
		lost = append(lost, "unverified")
	}
	if s.Commit = i.commit; s.Commit == "" {
		lost = append(lost, "commit")
	}
	lost = append(lost, "committed_seq", "active_ms")
	if !i.hasRow || i.row.OutboxPending > 0 {
		lost = append(lost, "outbox")
	}
	return lost
}

func latest(all ...contextstore.Time) contextstore.Time {
	return slices.MaxFunc(all, func(a, b contextstore.Time) int { return a.Compare(b.Time) })
}

// checkLive finds two runs of one key that have both not ended.
func (i *inspection) checkLive() {
	status := contextstore.View{Dir: i.dir, State: i.state}.Status()
	if status.Final() || i.twice || i.toldLive {
		return
	}
	h, id := keyHash(i.meta.TaskKey.String()), uuid.MustParse(i.uuid)
	other, ok := i.c.live[h]
	if !ok {
		i.c.live[h] = id
		return
	}
	if other == id {
		return
	}
	name := other.String()
	dir, err := contextstore.FindDir(i.c.base, name)
	if err != nil {
		i.c.live[h] = id
		return
	}
	if v, err := contextstore.ReadView(dir); err == nil && v.Metadata.TaskKey == i.meta.TaskKey && !v.Status().Final() {
		i.find("", spot{}, "two_live", i.meta.TaskKey.String(), name)
	}
}
