package rest

import (
	"context"
	"errors"
	"strings"

	"toritsugi/internal/forge"
)

// Pulls are the pull requests of one repository.
type Pulls interface {
	// Ours lists those that our account opened from a branch of the repository itself,
	// open or not.
	Ours(ctx context.Context, branch string) ([]forge.Item, error)
	// Open opens one, with its body as it is. Where there is one by now it is an error of
	// kind Conflict.
	Open(ctx context.Context, p forge.Proposal) (forge.Item, error)
	// Edit gives one of Ours a title and a body; a draft stays one.
	Edit(ctx context.Context, i forge.Item, title, body string) (forge.Item, error)
	// Whole is all that is to be known of one of Ours.
	Whole(ctx context.Context, i forge.Item) (forge.Item, error)
}

// Propose is forge.CodeHost's. Where an answer is lost it is looked whether the pull request
// is there before it is opened again.
func (p *Posts) Propose(ctx context.Context, d *Call, r forge.Repo, pulls Pulls, w forge.Proposal) (forge.Item, error) {
	if !IsMarker(w.Marker) {
		return forge.Item{}, d.BadMarker(w.Marker)
	}
	leave, err := p.Turns.Enter(ctx, "pulls of "+strings.ToLower(r.String()))
	if err != nil {
		return forge.Item{}, d.Explain(ctx, err)
	}
	defer leave()
	w.Body = Mark(w.Body, w.Marker)
	for try := 1; ; try++ {
		all, err := pulls.Ours(ctx, w.Head)
		if err != nil {
			return forge.Item{}, err
		}
		switch i := pick(all, w); {
		case i == nil:
		case !i.Open:
			return *i, nil
		default:
			body := w.Body + BelowMarker(i.Body)
			// A text without our marker is people's, and stays.
			if i.Pull.Marker == "" || i.Title == w.Title && Same(i.Body, body) {
				return pulls.Whole(ctx, *i)
			}
			return pulls.Edit(ctx, *i, w.Title, body)
		}
		i, err := pulls.Open(ctx, w)
		var e *forge.Error
		if try == Tries && errors.As(err, &e) && e.Kind == forge.Conflict {
			e.Kind = forge.Invalid // somebody else's is in the way, and stays
		}
		switch {
		case err == nil:
			return i, nil
		case try == Tries:
			return forge.Item{}, err
		case forge.Is(err, forge.Conflict): // another process was faster
		case forge.Is(err, forge.Unavailable): // it may be there
			if serr := Sleep(ctx, p.delay<<try); serr != nil {
				return forge.Item{}, d.Explain(ctx, serr)
			}
		default:
			return forge.Item{}, err
		}
	}
}

// pick is our open pull request to the base, or else the one with the marker, wherever it
// goes to and whether or not it is open, or else one that people wrote another text for, or
// opened by our account; nil where there is none.
func pick(all []forge.Item, w forge.Proposal) *forge.Item {
	var moved, closed, theirs *forge.Item
	for n := range all {
		i := &all[n]
		switch m, here := i.Pull.Marker, i.Pull.Base.Name == w.Base; {
		case m == "" && i.Open && here:
			theirs = i
		case m == "":
		case i.Open && here:
			return i
		case m != w.Marker:
		case i.Open && moved == nil:
			moved = i
		case !i.Open && closed == nil:
			closed = i
		}
	}
	switch {
	case moved != nil:
		return moved
	case closed != nil:
		return closed
	}
	return theirs
}
