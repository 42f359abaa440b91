package approval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/workspace"
)

// rollbacksFile lies in the context of a job that was applied and names the jobs that
// take it back.
const rollbacksFile contextstore.Records[Rollback] = "rollbacks.jsonl"

// Rollback is a line of rollbacks.jsonl.
type Rollback struct {
	Timestamp contextstore.Time `json:"timestamp"`
	Job       string            `json:"job_id"`
	Run       string            `json:"uuid"`
	By        string            `json:"by"`
}

// Reverse is the patch that takes an applied job back, and what the draft of it has in
// common with the job. Base, Onto, Requester and Session are the caller's to fill in.
func (j *Jobs) Reverse(l i18n.Lang, job Job) (Draft, Application, error) {
	a, err := ReadApplication(job.Dir, job.Job)
	switch {
	case err != nil:
		return Draft{}, a, err
	case !a.Applied():
		return Draft{}, a, i18n.E("approval.not_to_take_back", job.Job, a.Outcome(l))
	case a.Rollback == "":
		return Draft{}, a, i18n.E("approval.no_snapshot", job.Job)
	}
	raw, err := disk.Read(patchPath(job.Dir, a.Rollback), disk.MaxWhole)
	if err == nil && sumOf(raw) != a.Rollback {
		err = errors.New("its bytes are not those that were kept")
	}
	if err != nil {
		return Draft{}, a, fmt.Errorf("patch that takes job %s back: %w", job.Job, err)
	}
	return Draft{Title: l.T("approval.rollback_title", job.Title), Summary: []string{l.T("approval.rollback_summary", job.Job)}, Patch: raw, Type: job.Type,
		Repository: job.Repository, Deliver: job.Deliver, Visibility: Private, Reverts: job.Job}, a, nil
}

// Untouched reports whether the files of a patch are what its headers say, so that
// nobody has built on them.
func Untouched(p *workspace.Patch, t workspace.Trial) bool {
	said := map[string]string{}
	for _, f := range p.Files {
		if f.Action != workspace.PatchMode {
			said[f.Path] = f.OldID
		}
	}
	for _, c := range t.Touched {
		if id, is := said[c.Path]; is && c.Old.ID != "" && c.Old.ID != id {
			return false
		}
	}
	return true
}

// TakeBack calls f with the latest job that takes another back, or with a zero Job, while
// nobody else does so, and records the job that f begins.
func (j *Jobs) TakeBack(ctx context.Context, job Job, f func(last Job) (begun *Rollback, err error)) error {
	return lockedFile(ctx, func() (string, error) {
		v, err := j.Store.View(job.Run)
		job.Dir = v.Dir
		return filepath.Join(v.Dir, string(rollbacksFile)), err
	}, func() error {
		var last Job
		var line Rollback
		if _, err := rollbacksFile.Each(job.Dir, func(r Rollback) { line = r }); err != nil {
			return err
		}
		if line.Run != "" {
			v, err := j.Store.View(line.Run)
			if err == nil {
				last, err = Read(v.Dir)
			}
			if err != nil && !errors.Is(err, contextstore.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		begun, err := f(last)
		if begun != nil {
			begun.Timestamp = contextstore.Time{Time: j.Now().UTC()}
			err = errors.Join(err, rollbacksFile.Append(j.Store, job.Dir, *begun, true))
		}
		return err
	})
}
