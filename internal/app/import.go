package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/fsck"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// Imported is what came of one record.
type Imported struct {
	From string
	View contextstore.View
	Err  error // why it was not imported
}

// Import puts back the runs whose records are in a file, in the *.json files of a directory, or in
// stdin ("-"), and tells each of them. Its errors are *ConfigError where nothing was begun.
func Import(ctx context.Context, env Env, from string, stdin io.Reader, dir, configFile string, each func(Imported)) error {
	s, _, err := asAdmin(env, RunOptions{BaseDir: dir, Config: configFile, Quiet: true}) // a record says whose the run is
	if err != nil {
		return err
	}
	files := []string{from}
	if st, err := os.Stat(from); from != "-" && err != nil {
		return &ConfigError{err}
	} else if from != "-" && st.IsDir() {
		all, err := os.ReadDir(from)
		if err != nil {
			return &ConfigError{err}
		}
		files = nil
		for _, e := range all {
			if filepath.Ext(e.Name()) == ".json" {
				files = append(files, filepath.Join(from, e.Name()))
			}
		}
		if len(files) == 0 {
			return &ConfigError{i18n.E("cli.import_nothing", from)}
		}
	}
	if err := s.open(ctx); err != nil {
		return &ConfigError{err}
	}
	for _, file := range files {
		v, err := s.importFile(ctx, file, stdin)
		if err == nil {
			s.audit("import", v.Metadata.UUID, "")
		} else if ctx.Err() != nil {
			return errors.Join(ctx.Err(), s.store.Close())
		}
		each(Imported{file, v, err})
	}
	return s.store.Close()
}

func (s *system) importFile(ctx context.Context, file string, stdin io.Reader) (v contextstore.View, err error) {
	if file != "-" {
		f, err := disk.OpenPlain(file)
		if err != nil {
			return v, err
		}
		defer func() { _ = f.Close() }() // only read from
		stdin = f
	}
	return s.store.Import(ctx, stdin, func(base string) error { return fsck.Imported(ctx, base) })
}
