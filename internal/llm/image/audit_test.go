package image

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/llm"
)

// fake is a client whose conversations remember what came and fail as told.
type fake struct {
	llm.Client
	moves bool // its conversations are refillable
	convs []*fakeConversation
}

func (f *fake) Provider() string { return "fake" }
func (f *fake) Model() string    { return "m" }
func (f *fake) String() string   { return "fake m" }
func (f *fake) Open(llm.Settings) llm.Conversation {
	c := &fakeConversation{}
	f.convs = append(f.convs, c)
	if f.moves {
		return &movingConversation{c}
	}
	return c
}

type fakeConversation struct {
	msgs   []llm.Message
	sends  int
	err    error
	refill func() error
}

func (c *fakeConversation) Append(m llm.Message) { c.msgs = append(c.msgs, m) }
func (c *fakeConversation) Reset()               { c.msgs = nil }
func (c *fakeConversation) Serialized() []byte   { return fmt.Append(nil, len(c.msgs)) }
func (c *fakeConversation) Send(context.Context, func(string)) (*llm.Reply, error) {
	c.sends++
	if c.refill != nil {
		c.msgs = nil
		if err := c.refill(); err != nil {
			return nil, err
		}
	}
	return &llm.Reply{}, c.err
}

type movingConversation struct{ *fakeConversation }

func (c *movingConversation) OnMove(refill func() error) { c.refill = refill }

// bench is an audited fake and its log.
type bench struct {
	*fake
	llm.Conversation
	log bytes.Buffer
}

func newBench(o Options) *bench {
	b := &bench{fake: &fake{}}
	return b.open(o)
}

func (b *bench) open(o Options) *bench {
	o.Log = slog.New(slog.NewJSONHandler(&b.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	b.Conversation = Audited(b.fake, o).Open(llm.Settings{})
	return b
}

// records returns what was logged and forgets it.
func (b *bench) records(t *testing.T) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(b.log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	b.log.Reset()
	return all
}

func picture(t *testing.T, name string, n int) llm.Image {
	t.Helper()
	p := write(t, t.TempDir(), name, png+strings.Repeat("x", n-len(png)))
	img, dropped := Load(p, DefaultLimits())
	if dropped != "" {
		t.Fatal(dropped)
	}
	return img
}

// route §7.3: an image that was dropped before it became part of a message is on
// record of each request of the message, as one that the model does not take is.
func TestAuditOfWhatWasDroppedBefore(t *testing.T) {
	t.Parallel()
	big := write(t, t.TempDir(), "big.png", png)
	for _, moves := range []bool{false, true} {
		b := &bench{fake: &fake{moves: moves}}
		b.open(Options{URLType: DataURI})
		b.Append(llm.Message{Role: llm.RoleUser, Content: "C", Dropped: []llm.Dropped{{Source: big, Reason: FileTooLarge}, {Source: "gone.png", Reason: ReadFailed}}})
		for _, level := range []string{"WARN", "INFO"} { // whoever looks after the run is told once
			if _, err := b.Send(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			record := func(source, reason string, exists bool, size float64) map[string]any {
				return map[string]any{"level": level, "msg": beforeRequest, "category": "provider.http", "source_path": source, "url_type": "data_uri", "image_url": "", "image_url_length": 0.0,
					"local_exists_before": exists, "local_size_before_bytes": size, "included": false, "drop_reason": reason}
			}
			if diff := cmp.Diff([]map[string]any{record(big, FileTooLarge, true, float64(len(png))), record("gone.png", ReadFailed, false, 0)}, b.records(t)); diff != "" {
				t.Error(diff)
			}
		}
		if m := b.convs[0].msgs[0]; m.Content != "C" || len(m.Images) > 0 {
			t.Errorf("the message was changed: %+v", m)
		}
	}
}

func TestAuditBeforeARequest(t *testing.T) {
	t.Parallel()
	a, gone := picture(t, "a.png", 30), picture(t, "gone.png", 31)
	if err := os.Remove(gone.Source); err != nil {
		t.Fatal(err)
	}
	refused := llm.Image{MediaType: GIF, Data: []byte(gif)}
	for urlType, lengths := range map[string][2]float64{DataURI: {22 + 40, 22 + 44}, Base64: {40, 44}} {
		b := newBench(Options{URLType: urlType, Allow: Only(0, PNG)})
		b.Append(llm.Message{Role: llm.RoleSystem, Content: "S"})
		if _, err := b.Send(t.Context(), nil); err != nil || b.log.Len() > 0 {
			t.Errorf("without an image: %v, %s", err, b.log.String())
		}
		b.Append(llm.Message{Role: llm.RoleUser, Content: "look", Images: []llm.Image{a, refused, gone}})
		if b.log.Len() > 0 {
			t.Errorf("logged before the request: %s", b.log.String())
		}
		record := func(path string, length, size float64, exists bool) map[string]any {
			return map[string]any{"level": "INFO", "msg": "LLM image audit before request", "category": "provider.http", "source_path": path, "url_type": urlType,
				"image_url": "data:image/png;base64,[omitted]", "image_url_length": length, "local_exists_before": exists, "local_size_before_bytes": size,
				"included": true, "drop_reason": ""}
		}
		left := record("", 0, 0, false)
		left["image_url"], left["included"], left["drop_reason"] = "data:image/gif;base64,[omitted]", false, "unsupported_type"
		want := []map[string]any{record(a.Source, lengths[0], 30, true), left, record(gone.Source, lengths[1], 0, false)}
		for n := range 2 { // each request carries them; what is left out is a warning once
			left["level"] = []string{"WARN", "INFO"}[n]
			if _, err := b.Send(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, b.records(t)); d != "" {
				t.Errorf("%s (-want +got):\n%s", urlType, d)
			}
		}
		inner := b.convs[0]
		wantMsg := llm.Message{Role: llm.RoleUser, Content: "look\n[image 2 of this message was left out: unsupported_type]", Images: []llm.Image{a, gone}}
		if d := cmp.Diff(wantMsg, inner.msgs[1]); d != "" || inner.sends != 3 {
			t.Errorf("%d sends (-want +got):\n%s", inner.sends, d)
		}
		b.Reset()
		if _, err := b.Send(t.Context(), nil); err != nil || b.log.Len() > 0 || len(inner.msgs) > 0 {
			t.Errorf("after a reset: %v, %s", err, b.log.String())
		}
	}
}

func TestAModelThatTakesNoImages(t *testing.T) {
	t.Parallel()
	b := newBench(Options{Allow: None})
	mine := []llm.Image{{MediaType: PNG, Data: []byte(png)}, {MediaType: JPEG, Data: []byte(jpeg)}}
	b.Append(llm.Message{Role: llm.RoleUser, Images: mine})
	b.Append(llm.Message{Role: llm.RoleUser, Content: "no image"})
	const want = "[image 1 of this message was left out: model_takes_no_images]\n[image 2 of this message was left out: model_takes_no_images]"
	if m := b.convs[0].msgs; m[0].Content != want || m[0].Images != nil || m[1].Content != "no image" {
		t.Errorf("%+v", m)
	}
	if mine[0].Data == nil {
		t.Error("the caller's images were changed")
	}
	if _, err := b.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.records(t) {
		if r["included"] != false || r["drop_reason"] != NoImages {
			t.Errorf("%v", r)
		}
	}
	// What no vendor can read goes to none.
	b = newBench(Options{})
	b.Append(llm.Message{Role: llm.RoleUser, Images: []llm.Image{{MediaType: PNG}}})
	if m := b.convs[0].msgs[0]; m.Images != nil || !strings.Contains(m.Content, ReadFailed) {
		t.Errorf("%+v", m)
	}
}

func TestAuditAfterATimeout(t *testing.T) {
	t.Parallel()
	a, gone := picture(t, "a.png", 30), picture(t, "gone.png", 31)
	if err := os.Remove(gone.Source); err != nil {
		t.Fatal(err)
	}
	wait := func(err error) *llm.Error { return &llm.Error{Kind: llm.KindTimeout, Err: err} }
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"timeout":         {wait(nil), true},
		"wrapped timeout": {fmt.Errorf("call: %w", wait(errors.New("stalled"))), true},
		"deadline":        {context.DeadlineExceeded, true},
		"inner deadline":  {&llm.Error{Kind: llm.KindUnreachable, Err: context.DeadlineExceeded}, true},
		"cancelled":       {context.Canceled, false},
		"refused":         {&llm.Error{Kind: llm.KindBadRequest}, false},
		"answered":        {nil, false},
	} {
		b := newBench(Options{URLType: DataURI, Allow: Only(0, PNG)})
		b.Append(llm.Message{Role: llm.RoleUser, Images: []llm.Image{a, {MediaType: GIF, Data: []byte(gif)}, gone}})
		b.convs[0].err = c.err
		if _, err := b.Send(t.Context(), nil); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		got := b.records(t)[3:]
		var want []map[string]any
		if c.want {
			want = []map[string]any{
				{"level": "WARN", "msg": "LLM image audit after timeout", "category": "provider.http", "source_path": a.Source, "local_exists_after_timeout": true, "local_size_after_timeout_bytes": 30.0},
				{"level": "WARN", "msg": "LLM image audit after timeout", "category": "provider.http", "source_path": gone.Source, "local_exists_after_timeout": false},
			}
		}
		if d := cmp.Diff(want, got, cmp.Transformer("len", func(m []map[string]any) []any {
			var all []any
			for _, r := range m {
				all = append(all, r)
			}
			return all
		})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// No record holds any of an image's content, whatever a type pretends to be.
func TestRecordsHoldNoContent(t *testing.T) {
	t.Parallel()
	b := newBench(Options{URLType: DataURI})
	content := strings.Repeat("content", 100)
	b.Append(llm.Message{Role: llm.RoleUser, Images: []llm.Image{{MediaType: strings.Repeat("t", 5000), Data: []byte(content), Source: "/x"}}})
	if _, err := b.Send(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if s := b.log.String(); strings.Contains(s, "content") || strings.Contains(s, "Y29udGVud") || len(s) > 1000 {
		t.Errorf("%.2000s", s)
	}
}

// A conversation that begins anew for another form carries what is appended
// again, and is on record with that.
func TestAuditOfAMove(t *testing.T) {
	t.Parallel()
	if _, ok := newBench(Options{}).Conversation.(llm.Refillable); ok {
		t.Error("refillable although the client within is not")
	}
	b := &bench{fake: &fake{moves: true}}
	b.open(Options{URLType: DataURI})
	a, other := picture(t, "a.png", 30), picture(t, "b.png", 40)
	b.Append(llm.Message{Role: llm.RoleUser, Images: []llm.Image{a, other}})
	failed := errors.New("cannot be read again")
	var err error
	b.Conversation.(llm.Refillable).OnMove(func() error {
		b.Append(llm.Message{Role: llm.RoleUser, Images: []llm.Image{other}})
		return err
	})
	for _, want := range [][]string{{"a.png", "b.png", "b.png"}, {"b.png", "b.png"}} {
		if _, err := b.Send(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range b.records(t) {
			got = append(got, filepath.Base(r["source_path"].(string)))
		}
		if d := cmp.Diff(want, got); d != "" || len(b.convs[0].msgs) != 1 {
			t.Errorf("%d messages (-want +got):\n%s", len(b.convs[0].msgs), d)
		}
	}
	err = failed
	if _, got := b.Send(t.Context(), nil); !errors.Is(got, failed) || len(b.records(t)) != 1 {
		t.Errorf("a refill that fails: %v", got)
	}
}

func TestAuditedNamesItsClient(t *testing.T) {
	t.Parallel()
	c := Audited(&fake{}, Options{})
	if c.Provider() != "fake" || c.Model() != "m" || fmt.Sprint(c) != "fake m" {
		t.Errorf("%s, %s, %v", c.Provider(), c.Model(), c)
	}
	v := c.Open(llm.Settings{}) // nobody listens
	v.Append(llm.Message{Role: llm.RoleUser, Images: []llm.Image{{MediaType: PNG, Data: []byte(png)}}})
	if _, err := v.Send(t.Context(), nil); err != nil || string(v.Serialized()) != "1" {
		t.Errorf("%v, %s", err, v.Serialized())
	}
}
