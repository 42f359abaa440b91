package rest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"toritsugi/internal/forge"
)

// Notes are the notes on one item. Of one that our account did not write Marker is "".
type Notes interface {
	// Changed lists the notes that were written or edited at or after a time, all for
	// the zero time; others may be among them.
	Changed(ctx context.Context, since time.Time) ([]forge.Comment, error)
	// Note is one of them, an error of kind NotFound or Gone where it was deleted.
	Note(ctx context.Context, id string) (forge.Comment, error)
	Add(ctx context.Context, text string) (forge.Comment, error)
	Edit(ctx context.Context, id, text string) (forge.Comment, error)
	Delete(ctx context.Context, id string) error
}

// NotesOf are Notes that the server has as T.
type NotesOf[T any] struct {
	On interface {
		Getter
		Send(ctx context.Context, method, at string, body, v any) (*Answer, error)
	}
	List    string // the path of all
	Each    string // that of one without its number
	Method  string // that edits one
	Read    func(ctx context.Context, since time.Time) ([]*T, error)
	Comment func(*T) forge.Comment
}

// Changed implements Notes.
func (n *NotesOf[T]) Changed(ctx context.Context, since time.Time) (all []forge.Comment, err error) {
	list, err := n.Read(ctx, since)
	for _, g := range list {
		all = append(all, n.Comment(g))
	}
	return all, err
}

func (n *NotesOf[T]) at(id string) string {
	return n.Each + "/" + Path(strings.TrimPrefix(id, string(forge.Note)+"/"))
}

// Note implements Notes.
func (n *NotesOf[T]) Note(ctx context.Context, id string) (forge.Comment, error) {
	var g T
	_, err := n.On.Get(ctx, n.at(id), nil, &g)
	return n.Comment(&g), err
}

func (n *NotesOf[T]) put(ctx context.Context, method, at, text string) (forge.Comment, error) {
	var g T
	_, err := n.On.Send(ctx, method, at, map[string]string{"body": text}, &g)
	return n.Comment(&g), err
}

// Add implements Notes.
func (n *NotesOf[T]) Add(ctx context.Context, text string) (forge.Comment, error) {
	return n.put(ctx, http.MethodPost, n.List, text)
}

// Edit implements Notes.
func (n *NotesOf[T]) Edit(ctx context.Context, id, text string) (forge.Comment, error) {
	return n.put(ctx, n.Method, n.at(id), text)
}

// Delete implements Notes.
func (n *NotesOf[T]) Delete(ctx context.Context, id string) error {
	_, err := n.On.Send(ctx, http.MethodDelete, n.at(id), nil, nil)
	return err
}
