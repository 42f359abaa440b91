package contextstore

import (
	"context"
	"errors"
	"path/filepath"

	"toritsugi/internal/contextstore/index"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// openWhole opens the index of a base directory for reading. It is an error where there is
// none, or one that does not hold every context: then the directories tell.
func openWhole(ctx context.Context, dir string) (*index.Index, error) {
	i, err := index.OpenReader(ctx, dir)
	if err != nil {
		return nil, err
	}
	whole, err := i.Complete(ctx)
	if err == nil && !whole {
		err = i18n.E("ledger.incomplete_index", i.Path())
	}
	if err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// listRows is a listing as the directories would give it, by the index. A run that has
// ended is what its row says; another one is looked at.
func listRows(ctx context.Context, base string, f Filter) (l Listing, err error) {
	i, err := openWhole(ctx, base)
	if err != nil {
		return Listing{}, err
	}
	defer func() { _ = i.Close() }()
	for first := true; first || len(l.Views) < f.Limit && f.After != ""; first = false {
		p, err := i.List(ctx, f)
		if err != nil {
			return Listing{}, err
		}
		if first {
			l.Total = int(p.Total)
		}
		for _, r := range p.Rows {
			if v, ok := look(base, r); !ok || !takes(f, v) {
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
func look(base string, r Row) (View, bool) {
	v := viewOf(r, base)
	if _, err := disk.Stat(v.Dir); err == nil && r.Status.Final() {
		return v, true
	}
	dir, err := FindDir(base, r.UUID)
	if err != nil {
		return v, false
	}
	v, err = ReadView(dir)
	return v, err == nil
}

// viewOf is the context of a row, as far as the row knows it.
func viewOf(r Row, base string) View {
	v := View{
		Dir: filepath.Join(base, DirOf(r.Status), r.UUID),
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
