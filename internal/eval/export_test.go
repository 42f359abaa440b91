package eval

import (
	"context"
	"os"
	"path/filepath"
)

// Base judges what cases begin with, without anybody's work.
func Base(ctx context.Context, cases []Case, o Options) (map[string]Verdict, error) {
	r := &runner{o: o, dir: o.Dir}
	if err := r.open(ctx, cases); err != nil {
		return nil, err
	}
	defer r.bench.Close()
	all := map[string]Verdict{}
	for _, c := range r.runnable(cases) {
		dir := filepath.Join(o.Dir, c.Name)
		tree := filepath.Join(dir, "result")
		if err := os.MkdirAll(tree, 0o700); err != nil {
			return nil, err
		}
		if err := write(tree, c.Repo); err != nil {
			return nil, err
		}
		v, err := r.judge(ctx, &c, dir, tree)
		if err != nil {
			return nil, err
		}
		all[c.Name] = v
	}
	return all, nil
}
