package app

import (
	"context"
	"errors"
	"sync/atomic"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/search"
	"toritsugi/internal/order"
	"toritsugi/internal/planning"
	"toritsugi/internal/task"
)

// searchOptions are where tori search looks.
func (s *system) searchOptions(base string) search.Options {
	return search.Options{BaseDir: base, Plans: planning.HistoryDir(base, s.cfg.Planning.History.Directory), Vectors: s.vectors}
}

// embedding is the model by whose vectors similar runs are found, too. Who has no models makes no vectors. Why it
// cannot be called is logged once, until it can be again or for another reason.
func (s *system) embedding() search.Vectors {
	v := search.Vectors{Model: s.cfg.Search.Similar.Embeddings}
	if v.Model == "" || s.models == nil {
		return v
	}
	e, err := s.models.Embedder(s.opt.LocalOnly)
	if err != nil {
		s.log.Warn(s.env.Lang.Error(err))
		return v
	}
	var told atomic.Value // a string
	told.Store("")
	v.Embed = func(ctx context.Context, texts []string) ([][]float32, error) {
		all, err := e.Embed(ctx, texts)
		why := ""
		if err != nil {
			why = s.env.Lang.T("search.no_vectors", v.Model, err)
		}
		if was := told.Swap(why); why != "" && was != why && !errors.Is(err, context.Canceled) {
			s.log.Warn(why)
		}
		return all, err
	}
	v.May = func(v contextstore.View) bool {
		o, err := order.Parse(v.Metadata)
		return !e.Cloud() || err == nil && !o.LocalOnly
	}
	return v
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
