package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/disk"
	"toritsugi/internal/memory"
	"toritsugi/internal/planning"
)

// lessonsFile is what a run with planning was told of earlier ones, part by part
// (inherit §10): settled as it begins, for the runs it comes from may be gone when
// it is taken up.
const lessonsFile = "lessons.json"

// plansOf is a memory.Heir's Plans: it reads what earlier runs left of their
// planning.
func (r *run) plansOf(ctx context.Context, runs []memory.Ancestor) (memory.Sections, []memory.Ancestor) {
	o := r.Planning.Inherit
	o.File = r.Inheritance.HistoryOf
	o.Warn = func(uuid string, err error) {
		r.log.Warn("The planning of an earlier run is not wholly read", "earlier", uuid, "error", r.Store.Redact(err.Error()))
	}
	var used []memory.Ancestor
	r.past.lessons, used = planning.ReadEarlierRuns(ctx, runs, o)
	return r.past.lessons.Sections(), used
}

// keepLessons settles what is told of earlier runs, once it is known what there
// was room for.
func (r *run) keepLessons(ctx context.Context, in *memory.Inherited) error {
	p := r.past.lessons
	if p == nil {
		return nil
	}
	p.Held = p.Commit != "" && r.out.Workspace.Contains(ctx, p.Commit)
	p.Hidden = slices.Contains(in.LeftOut, memory.LeftPlans)
	return r.noteWhole(lessonsFile, p)
}

// readLessons reads what an earlier owner of the run settled. Without it the run
// has its past all the same: it stands in the conversation.
func (r *run) readLessons() {
	if err := readNoted(r.ledger.Dir(), lessonsFile, &r.past.lessons); err != nil {
		r.past.lessons = nil
		r.log.Warn("What earlier runs showed cannot be told", "error", err)
	}
}

// readNoted reads a file that noteWhole wrote into v, which stays as it is where there is none.
func readNoted(dir, name string, v any) error {
	raw, err := disk.Read(filepath.Join(dir, name), disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", name, err)
	}
	return err
}

// noteWhole writes a file of the context that is written once, in which schemas of tools stay as
// they are.
func (r *run) noteWhole(name string, v any) error {
	raw, err := jsonl.Append(nil, v)
	if err == nil {
		err = r.Store.FS.Replace(filepath.Join(r.ledger.Dir(), name), raw, !r.Store.NoSync)
	}
	return err
}

// learned are the lessons that the model drew, for the final summary; "" for none.
func (r *run) learned() string {
	lead := r.lead.planned.Load()
	if lead == nil || len(lead.Lessons()) == 0 {
		return ""
	}
	return "\nLessons that the model drew:\n- " + strings.Join(lead.Lessons(), "\n- ") + "\n"
}
