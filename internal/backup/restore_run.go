package backup

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"toritsugi/internal/bucket"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/i18n"
)

// restoreRun brings one run back, beside whatever else uses the base directory.
func (x *restorer) restoreRun(ctx context.Context) error {
	release, err := alone(x.Dir)
	if errors.Is(err, filelock.ErrLocked) {
		return i18n.E("backup.busy", x.Dir).Of(err)
	}
	if err != nil {
		return err
	}
	defer release()
	if err := contextstore.Whole(x.Dir); err != nil { // that is to be ended first
		return err
	}
	var found []unit
	err = x.each(ctx, x.g, func(u unit) error {
		if id, ok := strings.CutPrefix(u.Path, contextstore.DirCompleted+"/"); ok && strings.HasPrefix(id, x.Run) {
			found = append(found, u)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return &RefusedError{i18n.E("backup.no_run", x.Run, x.g.Number, len(found))}
	}
	u := found[0]
	id := filepath.Base(u.Path)
	x.done.Run = id
	staged, names := filepath.Join(x.Dir, restoreDir+"-"+id), []string{filepath.Join(contextstore.DirCompleted, id)}
	if exists(filepath.Join(staged, commitFile)) {
		if err := x.mark(id); err != nil {
			return err
		}
		_, err := x.resume(staged, names)
		return err
	}
	if err := x.FS.RemoveAll(staged); err != nil {
		return err
	}
	there, err := contextstore.FindDir(x.Dir, id)
	if err != nil && !errors.Is(err, contextstore.ErrNotFound) {
		return err
	}
	if err == nil {
		if same, err := x.same(u, there); err != nil || same {
			x.done.Same = same
			return err
		}
		if !x.Force || filepath.Base(filepath.Dir(there)) != contextstore.DirCompleted {
			return i18n.E("backup.run_there", id, there)
		}
	}
	if err := x.stage(ctx, staged, func(o unit) bool { return o.Path == u.Path }); err != nil {
		return err
	}
	if err := x.mark(id); err != nil {
		return err
	}
	c := commit{Generation: x.g.Name}
	if x.Force {
		c.Aside = asidePrefix + id + "-" + x.now().UTC().Format(asideTime)
	}
	if there != "" {
		c.Away = names
	}
	return x.commit(staged, names, c)
}

// mark has whoever opens the base directory next give a run its row.
func (x *restorer) mark(id string) error {
	mark := index.Mark(x.Dir, id)
	if err := x.FS.MkdirAll(filepath.Dir(mark)); err != nil {
		return err
	}
	return x.FS.Replace(mark, nil, true)
}

// same reports whether a directory has what a unit holds.
func (x *restorer) same(u unit, dir string) (bool, error) {
	m := &maker{Repository: x.Repository, Source: Source{Base: x.Dir, Plans: x.Plans}}
	all, err := m.parts(dir)
	if err != nil {
		return false, err
	}
	at, differs := 0, false
	cut := cutter{emit: func(piece []byte) error {
		differs = differs || at >= len(u.Chunks) || bucket.Hash(piece) != u.Chunks[at].Sum
		at++
		return nil
	}}
	err = archive(&cut, all)
	if err == nil {
		err = cut.flush()
	}
	return !differs && at == len(u.Chunks), err
}
