package contextstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"toritsugi/internal/i18n"
)

// Index is tasks.db opened for reading: listings and statistics that do not
// read the directories. It works on a read-only disk.
type Index struct {
	base string
	ix   *index
}

// OpenIndex opens the index of a base directory for reading. It is an error
// where there is none, or one that does not hold every context: then the
// directories tell, and tori reindex makes it whole.
func OpenIndex(ctx context.Context, base string) (*Index, error) {
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, err
	}
	ix, err := openReader(ctx, base)
	if err != nil {
		return nil, err
	}
	whole, err := ix.complete(ctx)
	if err == nil && !whole {
		err = i18n.E("ledger.incomplete_index", ix.path)
	}
	if err != nil {
		return nil, errors.Join(err, ix.close())
	}
	return &Index{base, ix}, nil
}

// Close closes the index.
func (x *Index) Close() error { return x.ix.close() }

// List returns the newest rows that a filter takes. Whoever is no administrator
// sees the rows of their own name.
func (x *Index) List(ctx context.Context, who Viewer, f Filter) (Page, error) {
	if !who.Admin {
		if who.User == "" || f.User != "" && f.User != who.User {
			return Page{}, nil
		}
		f.User = who.User
	}
	return x.ix.list(ctx, f)
}

// Stats returns sums over the runs that a filter takes. Whoever is no
// administrator sees their own (store-v2 §6.2).
func (x *Index) Stats(ctx context.Context, who Viewer, f StatsFilter) (Stats, error) {
	if !who.Admin {
		if who.User == "" || f.User != "" && f.User != who.User {
			return Stats{}, nil
		}
		f.User = who.User
	}
	return x.ix.stats(ctx, f)
}

// views is a listing as the directories would give it. A run that has ended is
// what its row says; another one is looked at.
func (x *Index) views(ctx context.Context, f Filter) (l Listing, err error) {
	for first := true; first || len(l.Views) < f.Limit && f.After != ""; first = false {
		p, err := x.ix.list(ctx, f)
		if err != nil {
			return Listing{}, err
		}
		if first {
			l.Total = int(p.Total)
		}
		for _, r := range p.Rows {
			if v, ok := x.look(r); !ok || !f.takes(v) {
				l.Total-- // the row is behind
			} else if len(l.Views) < f.Limit {
				l.Views = append(l.Views, v)
			}
		}
		f.After = p.Next
	}
	return l, nil
}

// look returns the context of a row; false where there is none.
func (x *Index) look(r Row) (View, bool) {
	v := r.view(x.base)
	if _, err := os.Stat(v.Dir); err == nil && r.Status.Final() {
		return v, true
	}
	dir, err := findExact(x.base, r.UUID)
	if err != nil {
		return v, false
	}
	v, err = view(dir)
	return v, err == nil
}

// view is the context of a row, as far as the row knows it.
func (r Row) view(base string) View {
	v := View{
		Dir: filepath.Join(base, dirOf(r.Status), r.UUID),
		Metadata: Metadata{UUID: r.UUID, TaskKey: r.Key, CreatedAt: r.CreatedAt, User: r.User, Title: r.Title,
			Config: MetadataConfig{Provider: r.Provider, Model: r.Model, ContextLength: int(r.ContextLength)}},
		State: State{Status: string(r.Status), TaskStatus: r.Status, StartedAt: r.StartedAt, UpdatedAt: r.HeartbeatAt, CompletedAt: r.CompletedAt,
			LLMCallCount: r.LLMCalls, ToolCallCount: r.ToolCalls, TotalTokensUsed: r.Tokens, CompressionCount: r.Compressions, Failures: r.Failures,
			Generation: r.Generation, ProcessID: int(r.ProcessID), Hostname: r.Hostname, MessageCount: r.MessageCount, Bytes: r.Bytes, Phase: r.Phase,
			Spending: r.Spending},
	}
	if r.Error != "" {
		v.State.Error = &r.Error
	}
	return v
}
