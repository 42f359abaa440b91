package memory

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/llm"
)

// The parts of which requests are told apart by what they hold, in the order in
// which a bill lists them.
const (
	BillTools   = "tools"   // the definitions that stand before every message
	BillSystem  = "system"  // the system prompt with the rules of the project
	BillMap     = "map"     // of the project's files
	BillTask    = "task"    // the message that says what is asked for
	BillCarried = "carried" // what an earlier run left, summaries, and what stands for messages that are not shown
	BillPlan    = "plan"    // what planning asks, and what it is answered
	BillResults = "results" // of tools
	BillAnswers = "answers" // what the model said and called before
	BillNews    = "news"    // what it was told meanwhile, the checks among it
)

var billParts = []string{BillTools, BillSystem, BillMap, BillTask, BillCarried, BillPlan, BillResults, BillAnswers, BillNews}

// BillParts are the parts of a bill in their order.
func BillParts() []string { return slices.Clone(billParts) }

// Calls is what some requests took, in tokens. Cached are those of Sent with
// which the request before began, too.
type Calls struct {
	Requests int64 `json:"requests"`
	Sent     int64 `json:"sent_tokens"`
	Cached   int64 `json:"cached_tokens"`
	Answered int64 `json:"answered_tokens"`
}

func (c *Calls) add(o Calls) {
	c.Requests, c.Sent, c.Cached, c.Answered = c.Requests+o.Requests, c.Sent+o.Sent, c.Cached+o.Cached, c.Answered+o.Answered
}

// tokens is c of bytes in tokens.
func (c Calls) tokens() Calls {
	return Calls{c.Requests, c.Sent / billed, c.Cached / billed, c.Answered / billed}
}

// TokenUsage is what all requests of a run took, in tokens as estimated: a fourth of
// the bytes of what was sent, whatever a provider's format writes around it. It
// is the same for a script and for a model.
type TokenUsage struct {
	Calls                  // of all requests
	Parts map[string]int64 `json:"parts"` // of Sent without Summaries and Final, by BillParts
	First map[string]int64 `json:"first"` // of the first request, by BillParts
	// Verification are the requests made while the result was judged, whole.
	Verification Calls `json:"verification"`
	// Summaries and Final are requests beside the conversation, as their provider
	// reported them: for summaries on the way, and for the one at the end.
	Summaries Calls `json:"summaries"`
	Final     Calls `json:"final_summary"`
}

// planCalls are the tools by which a model answers what planning asks.
var planCalls = []string{"submit_plan", "report_subtask", "reflect", "decide_replan", "submit_verification"}

// mapHead is where in the system prompt the map of the project begins
// (project.Prompt).
const mapHead = "\n<project_files>\n"

// askVerify is the kind of the messages that ask for a verification; askAside
// those that interrupt no verification (planning).
const askVerify = "verify"

var askAside = []string{"", "nudge", "remark", "plan_state"}

// billed is how many bytes count as a token: a text of code and English.
const billed = 4

// sizes are bytes by billParts.
type sizes [9]int64

func (s *sizes) add(o sizes) {
	for i := range s {
		s[i] += o[i]
	}
}

func (s *sizes) sum() (n int64) {
	for _, b := range s {
		n += b
	}
	return n
}

func (s *sizes) tokens() map[string]int64 {
	all := map[string]int64{}
	for i, p := range billParts {
		all[p] = s[i] / billed
	}
	return all
}

func (s *sizes) put(part string, n int) { s[slices.Index(billParts, part)] += int64(n) }

// piece is a message of a conversation.
type piece struct {
	hash uint64
	size sizes
}

// Tally adds up what the requests of one conversation take. It holds a few words
// for each message that is shown. The zero Tally is of a conversation without tools.
type Tally struct {
	seed      maphash.Seed
	pieces    []piece // of the conversation as it stands
	window    sizes   // of them
	asked     int     // pieces of the latest request
	known     int64   // bytes of it
	before    []piece // the latest request, where the conversation began anew since
	verifying bool

	all, verification Calls // bytes
	parts, first      sizes
	buf               []byte
}

// NewTally begins a conversation whose requests begin with so many bytes of tools.
func NewTally(tools int) *Tally {
	t := &Tally{seed: maphash.MakeSeed()}
	t.window.put(BillTools, tools)
	return t
}

// Show appends a message to the conversation. part is PartSystem and the like, kind
// that of the message in the ledger.
func (t *Tally) Show(m llm.Message, part, kind string) {
	if part == PartRecent && !slices.Contains(askAside, kind) {
		t.verifying = kind == askVerify || strings.HasPrefix(kind, askVerify+"/")
	}
	p := piece{size: t.size(m, part, kind), hash: maphash.Bytes(t.seed, t.buf)}
	t.pieces = append(t.pieces, p)
	t.window.add(p.size)
}

// size is that of a message, which buf holds then.
func (t *Tally) size(m llm.Message, part, kind string) (s sizes) {
	t.buf, _ = jsonl.Append(t.buf[:0], Form(m, false)) // texts and numbers always encode
	all := len(t.buf) + len(m.Images)*imageTokens*billed
	split := func(name string, text int, rest string) { // escapes are shared out
		n := all * text / max(len(bulkOf(m)), 1)
		s.put(name, min(n, all))
		s.put(rest, all-min(n, all))
	}
	switch {
	case part == PartSystem:
		_, files, _ := strings.Cut(m.Content, mapHead)
		split(BillMap, len(files), BillSystem)
	case part == PartRequest:
		s.put(BillTask, all)
	case part != PartRecent:
		s.put(BillCarried, all)
	case m.Role == llm.RoleTool && kind != "" && !slices.Contains(planCalls, m.ToolName):
		_, question := (&contextstore.Message{Role: m.Role, Kind: kind, Content: m.Content}).Result()
		split(BillPlan, len(question), BillResults)
	case kind != "", slices.Contains(planCalls, m.ToolName):
		s.put(BillPlan, all)
	case m.Role == llm.RoleTool:
		s.put(BillResults, all)
	case m.Role == llm.RoleUser:
		s.put(BillNews, all)
	default:
		split(BillPlan, planBytes(m), BillAnswers)
	}
	return s
}

// bulkOf are the texts of a message.
func bulkOf(m llm.Message) string {
	var b strings.Builder
	b.WriteString(m.Reasoning + m.Content)
	for _, c := range m.ToolCalls {
		b.WriteString(c.Name + c.Arguments)
	}
	return b.String()
}

// planBytes is how much of an answer is one to planning.
func planBytes(m llm.Message) (n int) {
	for _, c := range m.ToolCalls {
		if slices.Contains(planCalls, c.Name) {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	return n
}

// again begins the conversation anew: what follows is shown instead of all before.
func (t *Tally) again() {
	if t.before == nil {
		t.before = t.pieces[:t.asked]
	}
	tools := t.window[0]
	t.pieces, t.window, t.asked = nil, sizes{tools}, 0
}

// Asked counts a request of the conversation as it stands, and its answer, which
// is not shown by that.
func (t *Tally) Asked(answer llm.Message) {
	if t.before != nil {
		t.known = t.window[0]
		for i := 0; i < min(len(t.before), len(t.pieces)) && t.before[i].hash == t.pieces[i].hash; i++ {
			t.known += t.pieces[i].size.sum()
		}
		t.before = nil
	}
	one := Calls{Requests: 1, Sent: t.window.sum(), Cached: t.known, Answered: int64(len(bulkOf(answer)))}
	if t.all.Requests == 0 {
		t.first = t.window
	}
	t.all.add(one)
	t.parts.add(t.window)
	if t.verifying {
		t.verification.add(one)
	}
	t.asked, t.known = len(t.pieces), one.Sent
}

// Bill is what the requests took so far.
func (t *Tally) Bill() TokenUsage {
	return TokenUsage{Calls: t.all.tokens(), Parts: t.parts.tokens(), First: t.first.tokens(), Verification: t.verification.tokens()}
}

// Add adds the bill of another run.
func (b *TokenUsage) Add(o TokenUsage) {
	b.add(o.Calls)
	b.Verification.add(o.Verification)
	b.Summaries.add(o.Summaries)
	b.Final.add(o.Final)
	b.Parts, b.First = plus(b.Parts, o.Parts), plus(b.First, o.First)
}

func plus(a, b map[string]int64) map[string]int64 {
	if len(b) == 0 {
		return a
	}
	sum := maps.Clone(b)
	for k, n := range a {
		sum[k] += n
	}
	return sum
}
