package pgtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A server stops and starts, and leaves nothing.
func TestOwn(t *testing.T) {
	t.Parallel()
	var dir string
	t.Run("lives", func(t *testing.T) {
		s := Own(t)
		dir = s.dir
		asks := func() error {
			c, err := pgx.Connect(t.Context(), s.URL())
			if err == nil {
				err = errors.Join(c.Ping(t.Context()), c.Close(context.Background()))
			}
			return err
		}
		if err := asks(); err != nil {
			t.Fatal(err)
		}
		s.Stop(t)
		if asks() == nil {
			t.Error("it answers")
		}
		s.Start(t)
		if err := asks(); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(dir); dir != "" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
}
