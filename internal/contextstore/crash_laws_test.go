package contextstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"toritsugi/internal/disk"
	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/task"
)

// verify opens what a crash left as the next process does, and checks that the
// laws hold: before it is mended, after, and after it was led to its end.
func verify(ctx context.Context, base string, b bounds) error {
	dirs := contextDirs(base)
	if len(dirs) > 1 {
		return fmt.Errorf("more than one context: %v", dirs)
	}
	if len(dirs) == 0 {
		if b.floor.uuid != "" {
			return errors.New("the context is gone")
		}
		l, err := nextLife(ctx, base)
		if err != nil {
			return err
		}
		defer l.die()
		_, err = l.run(ctx, append([]step{enqueuing}, afterlife()...), 0)
		return err
	}
	seen, err := ReadView(dirs[0])
	if err != nil {
		return err
	}
	uuid := filepath.Base(dirs[0])
	if owed := owes(seen.State); owed != owes(b.floor.state) && owed != owes(b.ceil.state) {
		return fmt.Errorf("the outbox holds %q, acknowledged was %q and on its way %q", owed, owes(b.floor.state), owes(b.ceil.state))
	}
	if s := seen.Status(); s != b.floor.state.TaskStatus && s != b.ceil.state.TaskStatus {
		return fmt.Errorf("status is %s, acknowledged was %q and on its way %q", s, b.floor.state.TaskStatus, b.ceil.state.TaskStatus)
	}
	left := readLogs(dirs[0])
	l, err := nextLife(ctx, base)
	if err != nil {
		return err
	}
	defer l.die()
	l.uuid = uuid
	err = l.take(ctx, claiming)
	if seen.Status().Final() != errors.Is(err, ErrEnded) || err != nil && !errors.Is(err, ErrEnded) {
		return fmt.Errorf("claim of what was %s: %w", seen.Status(), err)
	}
	if err := mended(base, uuid, b, left, l.repairs); err != nil {
		return err
	}
	if seen.Status().Final() {
		return over(base, uuid, seen.Status())
	}
	if b.floor.state.TaskStatus.Final() {
		return fmt.Errorf("%s was taken back", b.floor.state.TaskStatus)
	}
	if b.brief {
		_, err := l.run(ctx, afterlife()[:2], 1)
		return err
	}
	before := readLogs(contextDirs(base)[0])
	if _, err := l.run(ctx, afterlife(), 1); err != nil {
		return fmt.Errorf("going on: %w", err)
	}
	return wentOn(ctx, l, before)
}

// nextLife is a process that starts after the crash.
func nextLife(ctx context.Context, base string) (*life, error) {
	l := newLife(base, &disk.FS{Flush: disktest.NoFlush})
	l.clock.Store(100_000)
	l.uuids = 100
	return l, l.take(ctx, opening)
}

// mended checks a context that was just claimed, or whose end was finished.
func mended(base, uuid string, b bounds, left map[string][]byte, repairs []string) error {
	dirs := contextDirs(base)
	if len(dirs) != 1 || filepath.Base(dirs[0]) != uuid {
		return fmt.Errorf("after the claim there is %v", dirs)
	}
	now, err := ReadState(dirs[0])
	if err != nil {
		return err
	}
	logs := readLogs(dirs[0])
	shrank := false
	for name, was := range left {
		shrank = shrank || strings.HasSuffix(name, ".jsonl") && len(logs[name]) < len(was)
	}
	if shrank && len(repairs) == 0 {
		return errors.New("something was cut off and nobody was told")
	}
	for name, b := range logs {
		if !strings.HasSuffix(name, ".jsonl") || untouched(now, name) {
			continue
		}
		if err := wellFormed(name, b); err != nil {
			return err
		}
		if !bytes.HasPrefix(left[name], b[:max(0, len(b)-1)]) {
			return fmt.Errorf("%s was changed by the repair", name)
		}
		if cut := left[name][min(len(b), len(left[name])):]; !bytes.HasSuffix(logs[name+".cut"], cut) {
			return fmt.Errorf("what was cut off %s is not kept", name)
		}
	}
	for name, need := range b.floor.sizes {
		if name == Tools && b.powerCut {
			need = b.floor.tools
		}
		if name == Window && b.powerCut {
			need = b.floor.window
		}
		if name == Messages && b.powerCut {
			need = b.floor.messages
		}
		if int64(len(logs[name])) < need {
			return fmt.Errorf("%s has %d bytes, %d were acknowledged; repairs: %q", name, len(logs[name]), need, repairs)
		}
	}
	for name, whole := range b.ref {
		if !strings.HasSuffix(name, ".jsonl") || untouched(now, name) {
			continue
		}
		if !bytes.HasPrefix(whole, logs[name]) {
			return fmt.Errorf("%s is not what was written:\n%s", name, logs[name])
		}
		if int64(len(logs[name])) > b.ceil.sizes[name] {
			return fmt.Errorf("%s has %d bytes, %d were written at most", name, len(logs[name]), b.ceil.sizes[name])
		}
	}
	return stateKept(now, b, logs)
}

// owes is what the outbox holds.
func owes(s State) string {
	var keys []string
	for _, e := range s.Outbox {
		keys = append(keys, e.Key+string(e.Data))
	}
	return strings.Join(keys, " ")
}

// untouched tells of a log that a claim does not open: it is mended when the
// next line is written.
func untouched(s State, log string) bool {
	_, marked := s.Files[log]
	return !marked && !s.TaskStatus.Final()
}

// stateKept checks that state.json says what was acknowledged and what the logs
// hold.
func stateKept(s State, b bounds, logs map[string][]byte) error {
	f, c := b.floor.state, b.ceil.state
	if g := [2]any{s.CommittedSeq, s.Commit}; g != [2]any{f.CommittedSeq, f.Commit} && g != [2]any{c.CommittedSeq, c.Commit} {
		return fmt.Errorf("commit %v was acknowledged, %v is there", [2]any{f.CommittedSeq, f.Commit}, g)
	}
	if !f.StartedAt.IsZero() && !s.StartedAt.Equal(f.StartedAt.Time) {
		return fmt.Errorf("it started at %s, now at %s", f.StartedAt, s.StartedAt)
	}
	if s.Generation < f.Generation {
		return fmt.Errorf("generation %d after %d", s.Generation, f.Generation)
	}
	var answers, tokens, runs int64
	for line := range bytes.Lines(logs[Messages]) {
		if m, err := DecodeMessage(line); err == nil && m.Role == "assistant" {
			answers++
			tokens += m.Usage.Sum()
		}
	}
	runs = int64(bytes.Count(logs[Tools], []byte("\n")))
	if got, want := [3]int64{s.LLMCallCount, s.TotalTokensUsed, s.ToolCallCount}, [3]int64{answers, tokens, runs}; got != want {
		return fmt.Errorf("state.json counts calls, tokens and tool runs as %v, the logs hold %v", got, want)
	}
	if want := spentIn(logs[Messages]); s.Spending != want {
		return fmt.Errorf("state.json says %+v was spent, the logs hold %+v", s.Spending, want)
	}
	return nil
}

// over checks a run that has ended: it lies where it should, once, with
// nothing left to do.
func over(base, uuid string, status task.Status) error {
	dir := filepath.Join(base, DirCompleted, uuid)
	s, err := ReadState(dir)
	if err != nil {
		return err
	}
	if s.TaskStatus != status || s.Phase != "" || s.CompletedAt.IsZero() {
		return fmt.Errorf("it ended as %s, phase %q at %s", s.TaskStatus, s.Phase, s.CompletedAt)
	}
	if _, err := os.Stat(filepath.Join(dir, LockFile)); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s stays: %w", LockFile, err)
	}
	logs := readLogs(dir)
	var last Summary
	for line := range bytes.Lines(logs[Summaries]) {
		if last, err = DecodeSummary(line); err != nil {
			return err
		}
	}
	if !last.Final {
		return fmt.Errorf("the final summary is %+v", last)
	}
	for name, b := range logs {
		if err := wellFormed(name, b); err != nil {
			return err
		}
	}
	return nil
}

// wentOn checks a context that was led to its end after the crash.
func wentOn(ctx context.Context, l *life, before map[string][]byte) error {
	dirs := contextDirs(l.base)
	if len(dirs) != 1 {
		return fmt.Errorf("at the end there is %v", dirs)
	}
	after := readLogs(dirs[0])
	for name, b := range before {
		if strings.HasSuffix(name, ".jsonl") && name != Summaries && (!bytes.HasPrefix(after[name], b) || len(after[name]) == len(b)) {
			return fmt.Errorf("%s lost something on the way to the end", name)
		}
	}
	if err := over(l.base, l.uuid, task.Completed); err != nil {
		return err
	}
	if _, _, err := l.store.Claim(ctx, l.uuid); !errors.Is(err, ErrEnded) {
		return fmt.Errorf("claim after the end: %w", err)
	}
	return nil
}

// wellFormed checks that a log is whole lines numbered from 1 without gaps.
func wellFormed(name string, b []byte) error {
	if !strings.HasSuffix(name, ".jsonl") {
		return nil
	}
	if len(b) > 0 && b[len(b)-1] != '\n' {
		return fmt.Errorf("%s ends in the middle of a line", name)
	}
	n := int64(0)
	for line := range bytes.Lines(b) {
		var v struct{ Seq, ID int64 }
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("%s line %d: %w", name, n+1, err)
		}
		if n++; max(v.Seq, v.ID) != n {
			return fmt.Errorf("%s line %d has number %d", name, n, max(v.Seq, v.ID))
		}
	}
	return nil
}
