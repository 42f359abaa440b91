package memory

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/llm/texttool"
	"toritsugi/internal/task"
)

// picture is n bytes that no text holds by chance.
func picture(n int) []byte {
	r := rand.NewChaCha8([32]byte{1, byte(n)})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return append([]byte("\x89PNG\r\n\x1a\n"), b...)
}

func openaiClient(t *testing.T) llm.Client {
	t.Helper()
	c, err := openai.New(openai.Config{Provider: "openai", Model: "m", BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A run that was taken up again sends the same bytes as the live one, images
// included, also if what they were made from is gone.
func TestResumeSendsTheSameImages(t *testing.T) {
	t.Parallel()
	client := openaiClient(t)
	base := t.TempDir()
	claim := func(id string) (*contextstore.Store, *contextstore.Context, string) {
		t.Helper()
		s, err := contextstore.Open(t.Context(), contextstore.Options{BaseDir: base, NoSync: true, Redact: func(s string) string { return strings.ReplaceAll(s, "secret", "[X]") }})
		if err == nil && id == "" {
			id, err = s.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{ID: "1"}})
		}
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := s.Claim(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return s, c, id
	}
	s, c, id := claim("")
	one, err := c.SaveImage(picture(3000), "image/png")
	if err != nil {
		t.Fatal(err)
	}
	two, err := c.SaveImage([]byte("GIF89a…"), "image/gif")
	if err != nil {
		t.Fatal(err)
	}
	one.Source = "/home/secret/one.png"
	_, err = c.Append(contextstore.Message{Role: "system", Content: "S"},
		contextstore.Message{Role: "user", Content: "look at the secret", Images: []contextstore.Image{one, {Source: "b.bmp", Dropped: "unsupported_type"}, two}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(c, client.Open(llm.Settings{}), Policy{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	more, err := c.Append(contextstore.Message{Role: "assistant", Content: "I see."}, contextstore.Message{Role: "user", Content: "and now?", Images: []contextstore.Image{two}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range more {
		w.Add(m)
	}
	live := bytes.Clone(w.Conversation().Serialized())
	if n := bytes.Count(live, []byte(`"url":"data:image/`)); n != 3 || !bytes.Contains(live, []byte(base64.StdEncoding.EncodeToString(picture(3000)))) {
		t.Fatalf("%d images in %.300s", n, live)
	}
	_ = c.Close()
	_ = s.Close()
	s, c, _ = claim(id)
	defer func() { _, _ = c.Close(), s.Close() }()
	again, err := Open(c, client.Open(llm.Settings{}), Policy{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(live, again.Conversation().Serialized()) {
		t.Errorf("other bytes:\n%.400s\n%.400s", live, again.Conversation().Serialized())
	}
	if w.Tokens() != again.Tokens() {
		t.Errorf("%d tokens, %d after a resume", w.Tokens(), again.Tokens())
	}
	// An image that was removed since is told in words.
	if err := os.Remove(filepath.Join(c.Dir(), one.Path)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again, err = Open(c, client.Open(llm.Settings{}), Policy{Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		b := again.Conversation().Serialized()
		if bytes.Count(b, []byte(`"url":"data:image/`)) != 2 || !bytes.Contains(b, []byte(`look at the [X]\n[image 1 of this message was left out: its file is missing or damaged]`)) {
			t.Errorf("%.400s", b)
		}
	}
	m := again.message(contextstore.Message{Role: "user", Images: []contextstore.Image{one, {Source: "b.bmp", Dropped: "unsupported_type"}, two}})
	if diff := cmp.Diff([]llm.Dropped{{Source: one.Source, Reason: "read_failed"}, {Source: "b.bmp", Reason: "unsupported_type"}}, m.Dropped); diff != "" || len(m.Images) != 1 {
		t.Errorf("for the audit: %s", diff)
	}
}

// An image counts as an image, however many bytes it has, with every client.
func TestImagesAreNotCountedAsText(t *testing.T) {
	t.Parallel()
	clients := map[string]llm.Client{"openai": openaiClient(t)}
	var err error
	if clients["anthropic"], err = anthropic.New(anthropic.Config{Provider: "anthropic", Model: "m", BaseURL: "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	if clients["ollama"], err = ollama.New(ollama.Config{Provider: "ollama", Model: "m", BaseURL: "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	clients["text tools"] = texttool.New(clients["openai"])
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &ledger{images: map[string][]byte{"a": picture(1 << 20), "b": picture(300_000)}}
			w, err := Open(l, client.Open(llm.Settings{}), Policy{Limit: 8000})
			if err != nil {
				t.Fatal(err)
			}
			shown := []contextstore.Image{{Path: "a", MediaType: "image/png"}, {Path: "b", MediaType: "image/png"}}
			w.Add(l.append(contextstore.Message{Role: "system", Content: "SYSTEM"}))
			w.Add(l.append(contextstore.Message{Role: "user", Content: strings.Repeat("x", 8000), Images: shown}))
			if n := w.Tokens(); n < 2*imageTokens+2000 || n > 2*imageTokens+2200 {
				t.Errorf("%d tokens for 8000 bytes and two images", n)
			}
			story(l, w, 2, 100)
			w.Add(l.append(contextstore.Message{Role: "user", Images: shown[:1]}))
			for range 40 { // until it does not fit
				story(l, w, 2, 1000)
				if err := w.Fit(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if len(l.events) < 2 {
				t.Errorf("%d rewrites of the window", len(l.events))
			}
			size := w.taken
			if size.images != 2 || size.text < 8000 || size.text > 40_000 {
				t.Errorf("%+v", size)
			}
			again, err := Open(l, client.Open(llm.Settings{}), Policy{Limit: 8000})
			if err != nil || again.taken != size || !bytes.Equal(again.Conversation().Serialized(), w.Conversation().Serialized()) {
				t.Errorf("after a resume %+v, before %+v: %v", again.taken, size, err)
			}
		})
	}
}

// What the provider reports counts its images, too.
func TestCalibrationBesideImages(t *testing.T) {
	t.Parallel()
	for _, perImage := range []int{85, imageTokens, 1600} {
		l := &ledger{images: map[string][]byte{"a": picture(100_000)}}
		w, err := Open(l, &wire{}, Policy{Limit: 1_000_000})
		if err != nil {
			t.Fatal(err)
		}
		w.Add(l.append(contextstore.Message{Role: "system", Content: "SYSTEM"}))
		w.Add(l.append(contextstore.Message{Role: "user", Content: "look", Images: []contextstore.Image{{Path: "a"}, {Path: "a"}, {Path: "a"}}}))
		for i := range 30 {
			story(l, w, 1, 900)
			prompt := w.taken.text/3 + 3*perImage
			w.Add(l.append(contextstore.Message{Role: "assistant", Content: fmt.Sprint(i), Usage: &contextstore.Usage{Prompt: prompt}}))
			if n := w.Tokens(); i > 3 && n < prompt*9/10 || i > 20 && n > prompt*13/10+100 {
				t.Errorf("%d tokens a picture, answer %d: %d tokens, the provider counted %d", perImage, i, n, prompt)
			}
		}
	}
}

// withoutImages is a client that shows its model no images.
type withoutImages struct{ wire }

func (c *withoutImages) Append(m llm.Message) {
	m.Images = nil
	c.wire.Append(m)
}

func TestImagesThatAClientLeavesOut(t *testing.T) {
	t.Parallel()
	l := &ledger{images: map[string][]byte{"a": picture(100_000), "empty": nil}}
	for _, conv := range []llm.Conversation{&withoutImages{}, &wire{}} {
		w, err := Open(l, conv, Policy{Limit: 1_000_000})
		if err != nil {
			t.Fatal(err)
		}
		w.Add(contextstore.Message{Role: "user", Content: strings.Repeat("x", 4000), Images: []contextstore.Image{{Path: "empty"}, {Path: "a"}, {Path: "lost"}}})
		want := 1000
		if _, all := conv.(*wire); all {
			want += imageTokens
		}
		if n := w.Tokens(); n < want || n > want+200 {
			t.Errorf("%d tokens, want about %d", n, want)
		}
	}
}
