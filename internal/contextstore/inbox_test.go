package contextstore

import (
	"bytes"
	"net"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/contextstore/database"
	"toritsugi/internal/contextstore/database/pgtest"
)

// What comes again adds nothing; what is settled is no longer there, and what is numbered comes in
// that order.
func TestInbox(t *testing.T) {
	engines(t, func(t *testing.T) {
		s := open(t, Options{})
		event := func(id string) Incoming {
			return Incoming{Channel: "slack", ID: id, Queue: "q", Body: []byte{0, 0xff, 'x'}, ReceivedAt: s.now()}
		}
		fresh, err := s.ChangeInbox(t.Context(), []Incoming{event("a"), event("b"), event("a")}, nil)
		must(t, err)
		if len(fresh) != 2 || fresh[0].ID != "a" || fresh[1].Seq <= fresh[0].Seq {
			t.Errorf("%+v", fresh)
		}
		if body, err := s.InboxBody(t.Context(), fresh[0].Seq); !bytes.Equal(body, fresh[0].Body) || err != nil {
			t.Error(body, err)
		}
		again, err := s.ChangeInbox(t.Context(), []Incoming{event("b"), event("c")}, []Settled{{Seq: fresh[0].Seq}})
		must(t, err)
		if len(again) != 1 || again[0].ID != "c" {
			t.Errorf("%+v", again)
		}
		waits := func() (ids string) {
			all, err := s.WaitingInbox(t.Context())
			must(t, err)
			for _, e := range all {
				ids += e.ID
			}
			return ids
		}
		if got := waits(); got != "bc" {
			t.Error(got)
		}
		if _, err := s.InboxBody(t.Context(), fresh[0].Seq); err == nil {
			t.Error("the body of what is settled")
		}
		must(t, s.ForgetInbox(t.Context(), s.Now().Add(time.Hour)))
		if fresh, err = s.ChangeInbox(t.Context(), []Incoming{event("a"), event("b")}, nil); err != nil || len(fresh) != 1 || waits() != "bca" {
			t.Error(fresh, err)
		}
	})
}

// The answer to a commit is lost with the connection: the event is told all the same, once.
func TestInboxWhoseCommitIsNotAnswered(t *testing.T) {
	databaseFiles(t)
	t.Parallel()
	at, err := url.Parse(pgtest.URL(t))
	must(t, err)
	q := at.Query()
	if !filepath.IsAbs(q.Get("host")) {
		t.Skip("the server is not at a socket: unset " + pgtest.Env)
	}
	var cut atomic.Bool
	q.Set("host", cutting(t, filepath.Join(q.Get("host"), ".s.PGSQL.5432"), &cut))
	at.RawQuery = q.Encode()
	server, err := database.Dial(t.Context(), database.ServerOptions{URL: at.String()})
	must(t, err)
	t.Cleanup(server.Close)
	base := t.TempDir()
	t.Cleanup(server.Serve(base))
	s := open(t, Options{BaseDir: base})
	event := Incoming{Channel: "slack", ID: "a", Body: []byte("x"), ReceivedAt: s.now()}
	cut.Store(true)
	fresh, err := s.ChangeInbox(t.Context(), []Incoming{event}, nil)
	if err != nil || len(fresh) != 1 || cut.Load() {
		t.Fatal(fresh, err, cut.Load())
	}
	if all, err := s.WaitingInbox(t.Context()); err != nil || len(all) != 1 || all[0].Seq != fresh[0].Seq {
		t.Errorf("%+v %v", all, err)
	}
	if fresh, err = s.ChangeInbox(t.Context(), []Incoming{event}, nil); err != nil || len(fresh) != 0 {
		t.Error(fresh, err)
	}
}

// cutting is the directory of a socket that passes all to another one, and, once where it is told so,
// cuts the connection after a commit was made and before it is answered.
func cutting(t *testing.T, to string, cut *atomic.Bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	pass := func(client net.Conn) {
		defer func() { _ = client.Close() }()
		server, err := net.Dial("unix", to)
		if err != nil {
			return
		}
		defer func() { _ = server.Close() }()
		var mute atomic.Bool
		go func() {
			buf := make([]byte, 1<<16)
			for {
				n, err := client.Read(buf)
				end := bytes.Contains(buf[:n], []byte("commit\x00")) && cut.CompareAndSwap(true, false)
				if end {
					mute.Store(true)
				}
				if _, werr := server.Write(buf[:n]); err != nil || werr != nil {
					_ = server.Close()
					return
				}
			}
		}()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			if err != nil || mute.Load() { // it has answered, which nobody hears
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go pass(c)
		}
	}()
	return dir
}
