package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/openai"
	"toritsugi/internal/memory"
	"toritsugi/internal/redact"
)

// The names of the memory part's sample. Memory is MB of the heap in use by one
// context and its window, requests are bytes. Few and many are calls of tools.
const (
	memoryCalls = "memory calls"     // many
	memoryFew   = "memory few"       // after fewCalls
	memoryMany  = "memory many"      // after many
	memoryShort = "memory summaries" // after many, of which summaries were written
	memoryNaive = "memory naive"     // after many, where all is loaded and sent
	memoryThen  = "memory naive few" // after few, likewise

	fullFew  = "full few"  // the most up to fewCalls, with a window that is full by then
	fullMany = "full many" // the most of all, likewise
	sentFew  = "sent few"  // its longest request up to fewCalls
	sentMany = "sent many" // its longest of all

	requestMany  = "request many"  // the longest
	requestNaive = "request naive" // the last one, of everything
	requestSent  = "request sent"  // all together
	naiveSent    = "naive sent"    // all together
	requestKept  = "request kept"  // share of all that was sent which the provider has seen just so, at the same place
	requestCuts  = "request cuts"  // requests that do not begin with the one before
	decisions    = "decisions"     // that rewrite the window

	turnEarly = "turn early" // µs to append a turn and fit the window, up to fewCalls
	turnLate  = "turn late"  // the same of the last fewCalls
	turnRead  = "turn read"  // bytes read by the last turn

	warmOpen   = "warm open"   // ms to assemble the window, in the page cache
	warmOpened = "warm opened" // bytes read by it
	warmOwn    = "warm own"    // bytes of the messages in it
	warmNaive  = "warm naive"  // ms to decode and encode everything
)

const (
	fewCalls   = 100
	callOutput = 1000 // bytes
	fullWindow = 8000 // tokens; it is full before fewCalls
	lookEvery  = 5    // turns, where the most is looked for
)

// measureMemory measures what the window of a run takes and sends.
func measureMemory(ctx context.Context, dir string, calls int) (sample, error) {
	s := sample{memoryCalls: float64(calls)}
	one, err := grow(ctx, filepath.Join(dir, "one"), 1, windowTokens, false) // what is made once
	if err != nil {
		return nil, err
	}
	one.close()
	for name, run := range map[string]struct {
		calls     int
		summaries bool
	}{memoryFew: {fewCalls, false}, memoryShort: {calls, true}} {
		g, err := grow(ctx, filepath.Join(dir, name), run.calls, windowTokens, run.summaries)
		if err != nil {
			return nil, err
		}
		s[name] = g.mb
		g.close()
	}
	full, err := grow(ctx, filepath.Join(dir, "full"), calls, fullWindow, false)
	if err != nil {
		return nil, err
	}
	s[fullFew], s[fullMany], s[sentFew], s[sentMany] = full.mostFew, full.most, float64(full.longestFew), float64(full.longest)
	full.close()
	g, err := grow(ctx, filepath.Join(dir, memoryMany), calls, windowTokens, false)
	if err != nil {
		return nil, err
	}
	defer g.close()
	s[memoryMany] = g.mb
	s[requestMany], s[requestSent] = float64(g.longest), float64(g.sent)
	s[requestKept], s[requestCuts], s[decisions] = float64(g.same)/float64(g.sent), float64(g.cuts), float64(g.decided)
	s[turnEarly], s[turnLate] = median(g.took[:fewCalls]), median(g.took[len(g.took)-fewCalls:])
	read, err := readBy(func() error { return g.turn(ctx) })
	if err != nil {
		return nil, err
	}
	s[turnRead] = float64(read)
	if s[peak], err = ownPeak(); err != nil { // without what the naive way takes
		return nil, err
	}
	return s, s.addAll(ctx, g)
}

// addAll measures the window as it is opened again, and the naive way: every
// message is loaded, kept, and sent.
func (s sample) addAll(ctx context.Context, g *grown) (err error) {
	s[warmOpen], err = timed(ctx, longRounds, nil, func() (err error) {
		read, err := readBy(func() error {
			_, err := memory.Open(g.ctx, g.client.Open(llm.Settings{}), g.policy)
			return err
		})
		s[warmOpened] = float64(read)
		return err
	})
	if err != nil {
		return err
	}
	event, err := g.ctx.LastWindow()
	if err != nil {
		return err
	}
	st, err := os.Stat(filepath.Join(g.ctx.Dir(), contextstore.Messages))
	if err != nil {
		return err
	}
	s[warmOwn] = float64(st.Size() - event.Offset)
	for name, most := range map[string]int64{memoryThen: 2 + 2*fewCalls, memoryNaive: 1 << 40} {
		var all []contextstore.Message
		var conv llm.Conversation
		before := heapInUse()
		start := time.Now()
		all, conv = nil, g.client.Open(llm.Settings{})
		sent := 0
		err := g.ctx.Messages(0, func(m contextstore.Message) bool {
			if m.Seq > most {
				return false
			}
			all = append(all, m)
			conv.Append(llm.Message{Role: m.Role, Content: m.Content, ToolCallID: string(m.ToolCallID), ToolName: m.ToolName, ToolCalls: toolCalls(m)})
			if m.Role == llm.RoleTool {
				sent += len(conv.Serialized())
			}
			return true
		})
		if err != nil {
			return err
		}
		s[warmNaive] = ms(time.Since(start))
		s[requestNaive], s[naiveSent] = max(s[requestNaive], float64(len(conv.Serialized()))), max(s[naiveSent], float64(sent))
		s[name] = heapInUse() - before
		runtime.KeepAlive(all)
		runtime.KeepAlive(conv)
	}
	return nil
}

func toolCalls(m contextstore.Message) (all []llm.ToolCall) {
	for _, c := range m.ToolCalls {
		all = append(all, llm.ToolCall{ID: string(c.ID), Name: c.Name, Arguments: c.Arguments})
	}
	return all
}

// heapInUse is what is live on the heap, MB.
func heapInUse() float64 {
	runtime.GC()
	runtime.GC() // what the first one finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}

// grown is a run with a window of 32k tokens, and what it took.
type grown struct {
	store  *contextstore.Store
	ctx    *contextstore.Context
	win    *memory.Window
	client llm.Client
	policy memory.Policy

	mb                        float64
	mostFew, most             float64 // MB, looked at now and then where the window is full
	n                         int     // turns
	before                    []byte
	longestFew, longest       int
	sent, same, cuts, decided int
	took                      []float64 // µs, by turn
}

// grow works so many turns, as a run does, and says what stays in memory.
func grow(ctx context.Context, base string, calls, window int, summaries bool) (*grown, error) {
	client, err := openai.New(openai.Config{Provider: "openai", Model: "bench", BaseURL: "http://127.0.0.1:1", APIKey: "dummy"})
	if err != nil {
		return nil, err
	}
	const ratio, minMessages, keepRecent, keepTurns, minShare = 0.7, 10, 5, 10, 0.1 // store-v3 §9
	g := &grown{client: client, policy: memory.Policy{Limit: window, Context: window * 10 / 7, Threshold: ratio, MinMessages: minMessages, KeepRecent: keepRecent,
		Masking: memory.Masking{Enabled: true, KeepTurns: keepTurns, MinShare: minShare}}}
	if summaries {
		g.policy.Summarizer = func(context.Context) (memory.Summarizer, error) {
			return memory.Summarizer{Name: "bench/short", Window: windowTokens, Ask: func(context.Context, string, int) (memory.Answer, error) {
				return memory.Answer{Text: "The tests of the project were run again and again."}, nil
			}}, nil
		}
	}
	took := make([]float64, 0, calls+1)
	heap := heapInUse()
	// "os": a sync changes nothing of what is in memory, and takes long.
	if g.store, err = openStore(ctx, base, contextstore.Options{NoSync: true}); err != nil {
		return nil, err
	}
	if g.ctx, err = claimNew(ctx, g.store, 1); err != nil {
		return nil, err
	}
	if g.win, err = memory.Open(g.ctx, client.Open(llm.Settings{}), g.policy); err != nil {
		return nil, err
	}
	if err := g.put(contextstore.Message{Role: llm.RoleSystem, Content: strings.Repeat("s", 4000)}, contextstore.Message{Role: llm.RoleUser, Content: prompt}); err != nil {
		return nil, err
	}
	for range calls {
		start := time.Now()
		if err := g.turn(ctx); err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(start).Nanoseconds())/1e3)
		g.compare()
		if window == fullWindow && g.n%lookEvery == 0 {
			g.most = max(g.most, heapInUse()-heap)
			if g.n <= fewCalls {
				g.mostFew = g.most
			}
		}
	}
	g.before = nil
	g.mb = heapInUse() - heap
	g.took = took
	return g, nil
}

func (g *grown) close() {
	_ = g.ctx.Close() // nothing of it is kept
	_ = g.store.Close()
}

func (g *grown) put(all ...contextstore.Message) error {
	written, err := g.ctx.Append(all...)
	for _, m := range written {
		g.win.Add(m)
	}
	return err
}

// turn makes room, and appends an answer with a call and its result.
func (g *grown) turn(ctx context.Context) error {
	if err := g.win.Fit(ctx); err != nil {
		return err
	}
	g.n++
	call := redact.Opaque(fmt.Sprint("call_", g.n))
	err := g.put(contextstore.Message{Role: llm.RoleAssistant, Content: "step", ToolCalls: []contextstore.ToolCall{{ID: call, Name: "shell", Arguments: `{"command":"go test ./..."}`}}})
	if err != nil {
		return err
	}
	return g.put(contextstore.Message{Role: llm.RoleTool, ToolCallID: call, ToolName: "shell", Content: strings.Repeat("o", callOutput)})
}

// compare looks at the request as it would be sent now.
func (g *grown) compare() {
	now := g.win.Conversation().Serialized()
	g.sent += len(now)
	g.longest = max(g.longest, len(now))
	if g.n <= fewCalls {
		g.longestFew = g.longest
	}
	if bytes.HasPrefix(now, g.before) {
		g.same += len(g.before)
	} else {
		g.cuts++
		for i := range min(len(now), len(g.before)) {
			if now[i] != g.before[i] {
				break
			}
			g.same++
		}
	}
	_, g.decided = g.win.Decision()
	g.before = append(g.before[:0], now...)
}
