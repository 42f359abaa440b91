package rest

import (
	"context"
	"net/url"
	"testing"
	"testing/synctest"

	"toritsugi/internal/forge"
)

// pulls has none, and counts who looks.
type pulls struct {
	Pulls
	looks int
	wait  chan struct{}
}

func (p *pulls) Ours(context.Context, string) ([]forge.Item, error) {
	p.looks++
	<-p.wait
	return nil, nil
}

func (p *pulls) Open(context.Context, forge.Proposal) (forge.Item, error) { return forge.Item{}, nil }

// To forges names that differ in case are one repository: what is proposed to it goes one after another.
func TestProposalsOfOneRepository(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPosts(New(Options{Home: &url.URL{Scheme: "https", Host: "forge.example"}}))
		fake := &pulls{wait: make(chan struct{})}
		for _, r := range []forge.Repo{{Owner: "acme", Name: "app"}, {Owner: "Acme", Name: "App"}} {
			go func() {
				if _, err := p.Propose(context.Background(), &Call{}, r, fake, forge.Proposal{Head: "fix", Base: "main", Marker: "m"}); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if fake.looks != 1 {
			t.Errorf("%d at once", fake.looks)
		}
		close(fake.wait)
	})
}
