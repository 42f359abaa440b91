package folder

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"
)

// Marks keeps texts by scope and name, as contextstore.Store does.
type Marks interface {
	Mark(ctx context.Context, scope, name string) (string, error)
	SetMark(ctx context.Context, scope, name, value string) error
}

// brief is a memory that ends with the Forge.
type brief map[[2]string]string

func (b brief) Mark(_ context.Context, scope, name string) (string, error) {
	return b[[2]string{scope, name}], nil
}

func (b brief) SetMark(_ context.Context, scope, name, value string) error {
	b[[2]string{scope, name}] = value
	return nil
}

// Remember makes the Forge know over restarts what it saw; it is called before
// anything else is.
func (f *Forge) Remember(m Marks) { f.marks = m }

// What is remembered of an issue: since when it bears each of its labels, and its
// comments. A file has no history, and people write no dates into it.
const (
	labelsMark = " labels"
	notesMark  = " comments"
)

// recall reads what was remembered of an issue into v; what cannot be read was never seen.
func (f *Forge) recall(ctx context.Context, id, what string, v any) error {
	raw, err := f.marks.Mark(ctx, f.o.Dir, id+what)
	if err == nil && raw != "" {
		_ = json.Unmarshal([]byte(raw), v)
	}
	return err
}

func (f *Forge) remember(ctx context.Context, id, what string, v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		err = f.marks.SetMark(ctx, f.o.Dir, id+what, string(raw))
	}
	return err
}

// bearsSince tells since when an issue bears each of its labels, in lower
// case: since a label was seen first, without having been gone in between.
func (f *Forge) bearsSince(ctx context.Context, id string, labels []string, now time.Time) (map[string]time.Time, error) {
	before, since := map[string]time.Time{}, map[string]time.Time{}
	if err := f.recall(ctx, id, labelsMark, &before); err != nil {
		return nil, err
	}
	for _, l := range labels {
		l = strings.ToLower(l)
		at, known := before[l]
		if !known {
			at = now.UTC()
		}
		since[l] = at
	}
	if maps.EqualFunc(before, since, time.Time.Equal) {
		return since, nil
	}
	return since, f.remember(ctx, id, labelsMark, since)
}

// tookAway forgets labels that we took away: one that is put on again is another one.
func (f *Forge) tookAway(ctx context.Context, id string, labels []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := map[string]time.Time{}
	if err := f.recall(ctx, id, labelsMark, &since); err != nil {
		return err
	}
	maps.DeleteFunc(since, func(l string, _ time.Time) bool { return in(labels, l) })
	return f.remember(ctx, id, labelsMark, since)
}

// notes are what was seen of a comments file.
type notes struct {
	Seen time.Time       `json:"seen"` // when the file was written that was read last
	All  map[string]note `json:"all"`  // by id of the comment
}

type note struct {
	Text    uint64    `json:"text"` // its hash
	Created time.Time `json:"created"`
	Edited  time.Time `json:"edited"`
}
