package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/anthropic"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/llm/openai"
)

// The clients of models are measured beside a bare loop of net/http that sends
// the same bytes and reads the same answers, in this process and in turns; the
// server is another process. What our clients do beside that counts as theirs,
// the encoding of messages too.

// llmSize is how much is measured of the clients.
type llmSize struct {
	rounds   int // medians are of these; one more comes before
	talks    int // conversations in a round
	messages int // of a conversation; every second one is answered by a call
	bytes    int // of a message
	answers  int // long answers in a round
	tokens   int // of a long answer
}

func fullLLM() llmSize {
	return llmSize{rounds: 25, talks: 8, messages: 40, bytes: 2000, answers: 4, tokens: 5000}
}

// The names of a client's sample: µs of a call or a token, on each side, and
// the medians of what ours is to the bare one's in a round.
const (
	callCPU, callWall   = "call CPU", "call wall"
	tokenCPU, tokenWall = "token CPU", "token wall"

	rawPrefix, oursPrefix, timesPrefix = "raw ", "ours ", "times "
)

// vendor is a wire format, for both sides.
type vendor struct {
	name   string
	path   string
	header map[string]string
	take   func(line []byte, s *said) error
	client func(base string, hc *http.Client) (llm.Client, error)
}

const dummyKey = "dummy-key"

func vendors() []vendor {
	return []vendor{
		{"openai", openaiPath, map[string]string{"Authorization": "Bearer " + dummyKey}, takeOpenAI, func(base string, hc *http.Client) (llm.Client, error) {
			return openai.New(openai.Config{Provider: "openai", Model: "bench", BaseURL: base, APIKey: dummyKey, HTTP: hc})
		}},
		{"anthropic", anthropicPath, map[string]string{"X-Api-Key": dummyKey, "Anthropic-Version": "2023-06-01"}, takeAnthropic, func(base string, hc *http.Client) (llm.Client, error) {
			return anthropic.New(anthropic.Config{Provider: "anthropic", Model: "bench", BaseURL: base, APIKey: dummyKey, HTTP: hc})
		}},
		{"ollama", ollamaPath, nil, takeOllama, func(base string, hc *http.Client) (llm.Client, error) {
			return ollama.New(ollama.Config{Model: "bench", BaseURL: base, NumCtx: 131072, HTTP: hc})
		}},
	}
}

// llm measures the clients of all vendors.
func (b *bench) llm(ctx context.Context, size llmSize) (map[string]sample, error) {
	base, stop, err := startLLMServer(ctx, b.self)
	if err != nil {
		return nil, err
	}
	defer stop()
	all := map[string]sample{}
	for _, v := range vendors() {
		note("model clients: %s", v.name)
		s, err := v.measure(ctx, base, size)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("the client of %s: %w", v.name, err)
		}
		all[v.name] = s
	}
	return all, nil
}

// side is one of the two clients: a conversation whose every call is answered
// shortly, and a call with a long answer.
type side struct {
	prefix     string
	talk, long func(context.Context) error
}

// measure lets both sides take turns. The first round warms up and is thrown
// away.
func (v *vendor) measure(ctx context.Context, base string, size llmSize) (sample, error) {
	hc := &http.Client{} // with the transport that everybody has
	defer hc.CloseIdleConnections()
	ours, bodies, err := v.ours(ctx, base, size)
	if err != nil {
		return nil, err
	}
	sides := []side{v.raw(hc, base, size, bodies), ours}
	var rounds []sample
	for k := range size.rounds + 1 {
		s := sample{}
		for _, p := range size.parts() {
			for i := range sides {
				if err := p.run(ctx, &sides[(i+k)%2], s); err != nil {
					return nil, err
				}
			}
			for _, name := range []string{p.cpu, p.wall} {
				s[timesPrefix+name] = s[oursPrefix+name] / s[rawPrefix+name]
			}
		}
		if k > 0 {
			rounds = append(rounds, s)
		}
	}
	return medians(rounds), nil
}

// llmPart is a part of a round.
type llmPart struct {
	cpu, wall string // names of the figures
	n, units  int    // how often, and calls or tokens each time
	once      func(context.Context, *side) error
}

func (z llmSize) parts() []llmPart {
	return []llmPart{
		{callCPU, callWall, z.talks, z.messages / 2, func(ctx context.Context, d *side) error { return d.talk(ctx) }},
		{tokenCPU, tokenWall, z.answers, z.tokens, func(ctx context.Context, d *side) error { return d.long(ctx) }},
	}
}

// run adds what the part costs a side, µs of a unit.
func (p llmPart) run(ctx context.Context, d *side, s sample) error {
	runtime.GC() // nobody pays for what another left
	took, used, err := spent(func() error {
		for range p.n {
			if err := p.once(ctx, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", strings.TrimSpace(d.prefix), err)
	}
	units := float64(p.n * p.units)
	s[d.prefix+p.cpu] = float64(used.Microseconds()) / units
	s[d.prefix+p.wall] = float64(took.Microseconds()) / units
	return nil
}

func longBase(base string, size llmSize) string { return base + "/" + strconv.Itoa(size.tokens) }
func shortBase(base string) string              { return base + "/1" }

// sentBodies are the requests that a conversation of ours sends, and that of
// the long answer.
type sentBodies struct {
	talk [][]byte
	long []byte
}

// raw is the bare side.
func (v *vendor) raw(hc *http.Client, base string, size llmSize, bodies *sentBodies) side {
	header := http.Header{"Content-Type": {"application/json"}}
	for name, value := range v.header {
		header.Set(name, value)
	}
	short := &rawClient{hc, shortBase(base) + v.path, header, v.take}
	long := &rawClient{hc, longBase(base, size) + v.path, header, v.take}
	one, many := answerOf(1), answerOf(size.tokens)
	check := func(s *said, err error, want wanted) error {
		if err != nil {
			return err
		}
		return want.check(s.text.String(), s.tokens)
	}
	return side{rawPrefix, func(ctx context.Context) error {
		for _, body := range bodies.talk {
			s, err := short.call(ctx, body)
			if err := check(s, err, one); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context) error {
		s, err := long.call(ctx, bodies.long)
		return check(s, err, many)
	}}
}

// ours is the side of our client, and what it sends.
func (v *vendor) ours(ctx context.Context, base string, size llmSize) (side, *sentBodies, error) {
	seen := &recorder{}
	recorded, err := v.conversations(base, size, &http.Client{Transport: seen})
	if err != nil {
		return side{}, nil, err
	}
	if err := errors.Join(recorded.talk(ctx), recorded.long(ctx)); err != nil {
		return side{}, nil, err
	}
	if n := size.messages/2 + 1; len(seen.bodies) != n {
		return side{}, nil, fmt.Errorf("%d requests were sent, want %d", len(seen.bodies), n)
	}
	last := len(seen.bodies) - 1
	ours, err := v.conversations(base, size, nil)
	return ours, &sentBodies{seen.bodies[:last], seen.bodies[last]}, err
}

func (v *vendor) conversations(base string, size llmSize, hc *http.Client) (side, error) {
	settings := llm.Settings{Tools: []llm.Tool{{Name: "shell", Description: "Runs a command.",
		Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)}}}
	short, err := v.client(shortBase(base), hc)
	if err != nil {
		return side{}, err
	}
	longer, err := v.client(longBase(base, size), hc)
	if err != nil {
		return side{}, err
	}
	texts := make([]string, size.messages)
	for i := range texts {
		texts[i] = (strings.Repeat(fmt.Sprintf("\tif err := f(%d, \"x\"); err != nil { // as it was\n", i), size.bytes/40) + "長い")[:size.bytes]
	}
	long := longer.Open(settings)
	one, many := answerOf(1), answerOf(size.tokens)
	long.Append(llm.Message{Role: llm.RoleUser, Content: texts[0]})
	return side{oursPrefix, func(ctx context.Context) error {
		c := short.Open(settings)
		for i, text := range texts {
			if i%2 == 1 {
				c.Append(llm.Message{Role: llm.RoleAssistant, Content: text})
				continue
			}
			c.Append(llm.Message{Role: llm.RoleUser, Content: text})
			if err := send(ctx, c, one); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context) error { return send(ctx, long, many) }}, nil
}

// send makes a call of ours.
func send(ctx context.Context, c llm.Conversation, want wanted) error {
	heard := 0
	r, err := c.Send(ctx, func(text string) { heard += len(text) })
	switch {
	case err != nil:
		return err
	case r.Usage == nil:
		return errors.New("no usage was understood")
	case heard != len(r.Message.Content):
		return fmt.Errorf("%d bytes of %d were streamed", heard, len(r.Message.Content))
	}
	return want.check(r.Message.Content, r.Usage.CompletionTokens)
}

// wanted is an answer as both sides must get it.
type wanted struct {
	text   string
	tokens int
}

func answerOf(n int) wanted { return wanted{strings.Join(answerPieces(n), ""), n} }

func (w wanted) check(text string, tokens int) error {
	if tokens != w.tokens || text != w.text {
		return fmt.Errorf("an answer of %d bytes and %d tokens, want %d and %d", len(text), tokens, len(w.text), w.tokens)
	}
	return nil
}

// recorder keeps the bodies of the requests that it passes on.
type recorder struct{ bodies [][]byte }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	_ = req.Body.Close() // was read to its end
	r.bodies = append(r.bodies, body)
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(again)
}
