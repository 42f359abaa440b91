package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/llm"
)

// lend makes one call with a body by h and returns what became of its loan.
func lend(t *testing.T, address string, h *http.Client, parts ...[]byte) (*Loan, *llm.Error) {
	t.Helper()
	u, err := Resolve("p", address, "call")
	if err != nil {
		t.Fatal(err)
	}
	l := &Loan{}
	if !l.Back() {
		t.Error("what was not lent is not back")
	}
	c := New(Config{Provider: "p", URL: u, HTTP: h})
	e := c.Once(t.Context(), func(ctx context.Context) (*http.Request, error) {
		return c.PostLent(ctx, l, parts...)
	}, func(_ context.Context, _ *http.Response, in io.Reader) (*llm.Error, error) {
		_, err := io.Copy(io.Discard, in)
		return nil, err
	})
	return l, e
}

// TestLoan: what was lent comes back when the transport wrote it, and may change
// then.
func TestLoan(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[[]byte]
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			got.Store(&b)
		}))
		if srv.EnableHTTP2 = proto == "HTTP/2.0"; srv.EnableHTTP2 {
			srv.StartTLS()
		} else {
			srv.Start()
		}
		t.Cleanup(srv.Close)
		body := bytes.Repeat([]byte("some text "), 10_000)
		for _, parts := range [][][]byte{{body}, {body[:7], body[7:]}} {
			l, e := lend(t, srv.URL, srv.Client(), parts...)
			if e != nil || !bytes.Equal(*got.Load(), body) {
				t.Errorf("%s: %v, %d bytes", proto, e, len(*got.Load()))
			}
			for !l.Back() { // the answer may be a little earlier
				runtime.Gosched()
			}
		}
		copy(body, "another") // the race detector sees whoever still reads
	}
}

// early is a transport that answers before it has written anything.
type early struct{ request *http.Request }

func (tr *early) RoundTrip(r *http.Request) (*http.Response, error) {
	tr.request = r
	return &http.Response{StatusCode: http.StatusBadRequest, Body: http.NoBody, Request: r}, nil
}

func TestLoanOutlastsAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	tr := &early{}
	l, e := lend(t, "http://h", &http.Client{Transport: tr}, []byte("{}"))
	if e == nil || e.Kind != llm.KindBadRequest || l.Back() {
		t.Fatalf("%v, back: %v", e, l.Back())
	}
	if _, err := tr.request.GetBody(); err != nil {
		t.Fatal(err)
	}
	httptrace.ContextClientTrace(tr.request.Context()).WroteRequest(httptrace.WroteRequestInfo{})
	if l.Back() {
		t.Error("back although one of two bodies is still out")
	}
	httptrace.ContextClientTrace(tr.request.Context()).WroteRequest(httptrace.WroteRequestInfo{})
	if !l.Back() {
		t.Error("not back although both were written")
	}
}

// secretive is a transport that tells nothing of what it does.
type secretive struct{}

func (secretive) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, err
}

func TestLoanIsNotBackWhereNobodySays(t *testing.T) {
	t.Parallel()
	if l, e := lend(t, "http://h", &http.Client{Transport: secretive{}}, []byte("{}")); e != nil || l.Back() {
		t.Errorf("%v, back: %v", e, l.Back())
	}
}

// TestRoom: there is room, and nothing is lost.
func TestRoom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		if rapid.Bool().Draw(t, "large") {
			b = append(make([]byte, roomDoubles), b...)
		}
		n := rapid.IntRange(0, 5000).Draw(t, "n")
		if got := Room(b, n); !bytes.Equal(got, b) || cap(got)-len(got) < n {
			t.Fatalf("%d of %d bytes, room for %d, want %d", len(got), len(b), cap(got)-len(got), n)
		}
	})
}

// TestPlainRun: the quick way to find what is escaped finds it where a slow one
// does.
func TestPlainRun(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Repeat("a", rapid.IntRange(0, 20).Draw(t, "plain")) + string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "any"))
		want := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r > '~'+1 })
		if want < 0 {
			want = len(s)
		}
		if got := plainRun(s); got != want {
			t.Fatalf("%q: %d, want %d", s, got, want)
		}
	})
	for c := range 256 {
		s := "1234" + string([]byte{byte(c)}) + "567890"
		raw, err := json.Marshal(string([]rune(s)))
		var back string
		if err != nil || json.Unmarshal(AppendString(nil, s), &back) != nil || back != string([]rune(s)) {
			t.Errorf("%q: %s, %v", s, raw, err)
		}
		if got, want := plainRun(s), len(s); c >= ' ' && c < 0x80 && c != '"' && c != '\\' && got != want || (c < ' ' || c >= 0x80 || c == '"' || c == '\\') && got != 4 {
			t.Errorf("%q: %d", s, got)
		}
	}
}
