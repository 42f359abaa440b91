package app

import (
	"context"
	"errors"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/search"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
)

// searchOptions are where tori search looks.
func (s *system) searchOptions(base string) search.Options {
	return search.Options{BaseDir: base, Plans: planning.HistoryDir(base, s.cfg.Planning.History.Directory)}
}

// searchable keeps search.db, where there is one, in line with the runs of a store.
func (s *system) searchable(base string) *search.Keeper {
	return search.NewKeeper(s.searchOptions(base), func(err error) { s.log.Warn("search.db: " + err.Error()) })
}

// fillTexts puts into search.db what a kill kept from it, where somebody uses it, beside the work.
func (s *system) fillTexts() {
	if s.cfg.Search.Similar.Enabled || search.Exists(s.store.BaseDir) {
		s.texts.Fill()
	}
}

// similar finds runs that are like what is asked for. What ended since search.db was written last is
// put in meanwhile, and so is all where there is none: later runs find it.
func (s *system) similar(ctx context.Context, k task.Key, title, body string, n int) (all []contextstore.View, err error) {
	made := search.Exists(s.store.BaseDir)
	s.texts.Fill()
	if !made {
		return nil, nil
	}
	d, err := search.Open(ctx, s.searchOptions(s.store.BaseDir))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	found, err := d.Similar(ctx, contextstore.Viewer{Admin: true}, search.Like{Key: k, Title: title, Body: body}, n)
	for _, m := range found {
		all = append(all, m.View)
	}
	return all, err
}
