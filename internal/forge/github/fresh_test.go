package github

import (
	"sync/atomic"
	"testing"

	"toritsugi/internal/forge"
	"toritsugi/internal/forge/github/githubtest"
)

// A credential that was revoked is replaced while we run.
func TestAnotherCredential(t *testing.T) {
	t.Parallel()
	t.Run("token", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, githubtest.Options{})
		n := w.Open(w.Person("ken", forge.Write), "x", "x")
		var now atomic.Value
		now.Store(w.token)
		f := w.open(func(o *Options) { o.Fresh = func() []byte { return []byte(now.Load().(string) + "\n") } })
		if _, err := f.Item(t.Context(), issue(n)); err != nil {
			t.Fatal(err)
		}
		w.Revoke(w.token)
		if _, err := f.Item(t.Context(), issue(n)); !forge.Is(err, forge.Unauthorized) {
			t.Errorf("%v", err)
		}
		now.Store("") // it is being written
		if _, err := f.Item(t.Context(), issue(n)); !forge.Is(err, forge.Unauthorized) {
			t.Errorf("%v", err)
		}
		other := w.Token("tori-bot")
		now.Store(other)
		_, err := f.Item(t.Context(), issue(n))
		r, rerr := f.Remote(t.Context(), acme)
		if err != nil || rerr != nil || r.Password != other {
			t.Errorf("%v, %v, git logs in with the new token: %v", err, rerr, r.Password == other)
		}
	})
	t.Run("key of an App", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, githubtest.Options{})
		n := w.Open(w.Person("ken", forge.Write), "x", "x")
		key := w.AddApp(githubtest.App{ID: 7, Slug: "tori"})
		w.Install("tori", "acme")
		var now atomic.Value
		now.Store(key)
		f := w.open(func(o *Options) {
			o.Token, o.App = "", App{ID: 7, Key: key}
			o.Fresh = func() []byte { return now.Load().([]byte) }
		})
		r, err := f.Remote(t.Context(), acme)
		if err != nil {
			t.Fatal(err)
		}
		other := w.RotateKey("tori")
		if _, err := f.Item(t.Context(), issue(n)); !forge.Is(err, forge.Unauthorized) {
			t.Errorf("%v", err)
		}
		now.Store([]byte("half a k"))
		if _, err := f.Item(t.Context(), issue(n)); !forge.Is(err, forge.Unauthorized) {
			t.Errorf("%v", err)
		}
		now.Store(other)
		if _, err := f.Item(t.Context(), issue(n)); err != nil {
			t.Error(err)
		}
		if again, err := f.Remote(t.Context(), acme); err != nil || again.Password == r.Password {
			t.Errorf("%v, git logs in with the revoked token: %v", err, again.Password == r.Password)
		}
	})
}

// What is counted apart is told by the whole path: a repository may be called so.
func TestCounted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, path, want string }{
		{"", "/graphql", "graphql"}, {"", "/repos/acme/graphql", "core"}, {"", "/repos/search/app", "core"},
		{"https://ghe.example", "/api/graphql", "graphql"}, {"https://ghe.example", "/api/v3/repos/acme/graphql", "core"},
	} {
		at, err := parseAddress(c.server)
		if err != nil {
			t.Fatal(err)
		}
		if got := at.counted(c.path); got != c.want {
			t.Errorf("%s%s: %s", c.server, c.path, got)
		}
	}
}
