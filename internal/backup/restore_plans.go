package backup

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"toritsugi/internal/contextstore"
)

// movePlans puts the histories of planning where the settings have them. One that is there stays in
// force, unless a directory is given for it. It may be done again from any point.
func (x *restorer) movePlans(staged, aside string) error {
	if x.Plans == "" {
		return nil
	}
	return contextstore.Walk(staged, []string{contextstore.DirCompleted}, func(dir string) error {
		plain := filepath.Base(dir) + ".jsonl"
		for _, name := range []string{plain, plain + ".gz"} {
			from, to := filepath.Join(dir, plansDir, name), filepath.Join(x.Plans, name)
			there, err := alike(from, to) // the call before was cut short between copying and removing
			if err != nil {
				return err
			}
			if !exists(from) || !there && aside == "" && (exists(filepath.Join(x.Plans, plain)) || exists(filepath.Join(x.Plans, plain+".gz"))) {
				continue
			}
			if name == plain { // the other one, if it is there too, is of a compression that was cut short
				if err := x.FS.Remove(from + ".gz"); err != nil {
					return err
				}
			}
			if aside != "" && !there {
				if err := x.clearPlans(plain, name, filepath.Join(aside, plansDir)); err != nil {
					return err
				}
			}
			if !there {
				if err := x.copy(to, from); err != nil {
					return err
				}
			}
			if err := x.FS.Remove(from); err != nil {
				return err
			}
		}
		return nil
	})
}

// alike reports that two files are there and have the same content.
func alike(a, b string) (bool, error) {
	var sums []string
	for _, path := range []string{a, b} {
		sum := sha256.New()
		st, err := os.Lstat(path)
		if err == nil {
			err = copyFile(sum, path, st.Size())
		}
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		sums = append(sums, string(sum.Sum(nil)))
	}
	return sums[0] == sums[1], nil
}

// clearPlans copies what there is of a history of planning to a directory, and removes it but for
// what lies under a name that is written next. It goes by copies: the two may be of different disks.
func (x *restorer) clearPlans(plain, next, aside string) error {
	for _, name := range []string{plain, plain + ".gz"} {
		was, to := filepath.Join(x.Plans, name), filepath.Join(aside, name)
		if !exists(was) {
			continue
		}
		if !exists(to) {
			if err := x.copy(to, was); err != nil {
				return err
			}
		}
		if name != next {
			if err := x.FS.Remove(was); err != nil {
				return err
			}
		}
	}
	return nil
}
