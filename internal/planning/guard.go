package planning

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
)

// Kind is a way in which a run goes round in circles.
type Kind string

// What a Guard finds.
const (
	LoopRepeat    Kind = "repeat"    // the same call with the same result
	LoopFailing   Kind = "failing"   // the same call, which fails, whatever it says
	LoopCycle     Kind = "cycle"     // a few calls in turn, with the same results each time
	LoopMonologue Kind = "monologue" // answers without a call where calls were due
	LoopEcho      Kind = "echo"      // the same answer without a call, again and again, be there calls in between
)

// Stage is what is done about a finding; each is reached once, in this order,
// until the finding ceases (DESIGN §4).
type Stage int

// The stages.
const (
	StageNone Stage = iota
	StageNudge
	StageReplan
	StageStop
)

// String is the stage's name.
func (s Stage) String() string {
	return [...]string{"none", "nudge", "replan", "stop"}[min(max(s, StageNone), StageStop)]
}

// GuardLimits are how often what may come; a limit of 0 looks for nothing.
type GuardLimits struct {
	Repeat    int // same call, same result
	Failing   int // same call, failing
	Cycle     int // calls of an alternation between two; of three or four, as many rounds
	Monologue int // answers without a call; same answers
}

// DefaultGuardLimits are 3, 3, 6 and 3.
func DefaultGuardLimits() GuardLimits { return GuardLimits{3, 3, 6, 3} }

// maxPeriod is how many calls a cycle that is looked for has at most.
const maxPeriod = 4

// echoCalls is how many calls after an answer without one end its echo: the
// run went on.
const echoCalls = 6

// mostOfTurn is how many calls of one answer are told apart.
const mostOfTurn = 32

// Hash stands for a text; 0 is none. As JSON it is a string, since programs read
// large numbers inexactly.
type Hash uint64

// HashText is the hash of a result or an answer. Space around it does not count.
func HashText(s string) Hash {
	h := fnv.New64a()
	_, _ = io.WriteString(h, strings.TrimSpace(s))
	return Hash(max(h.Sum64(), 1))
}

// Guard is what is remembered of a run to see that it goes round in circles:
// the fold over its calls and answers. It is plain JSON of a bounded size, to be
// persisted with the run. The zero value is that of a run that has done nothing.
// A call that gives another result than before is progress, and no loop.
type Guard struct {
	Turn int64 `json:"turn,omitempty"` // number of the latest answer that was seen

	Call    Hash   `json:"call,string,omitempty"` // the latest call
	Repeats int    `json:"repeats,omitempty"`     // how often it came with its latest result
	Fails   int    `json:"fails,omitempty"`       // how often it failed, to the latest
	Recent  []Step `json:"recent,omitempty"`      // the latest calls, oldest first, at most maxPeriod
	Cycles  []int  `json:"cycles,omitempty"`      // how many calls on end are the same as 2, 3, 4 calls before
	Calls   []Step `json:"calls,omitempty"`       // of the answer at hand, each once

	Silent int  `json:"silent,omitempty"` // answers without a call since the latest call
	Text   Hash `json:"text,string,omitempty"`
	Echoes int  `json:"echoes,omitempty"` // how often Text was the answer without a call
	Since  int  `json:"since,omitempty"`  // calls since then

	Stage Stage `json:"stage,omitempty"` // reached for what is found now
	Talk  bool  `json:"talk,omitempty"`  // which is answers without a call
	Told  int64 `json:"told,omitempty"`  // Turn at that time
}

// Step is a call with its result.
type Step struct {
	Hash Hash   `json:"hash,string"`
	Tool string `json:"tool"`
}

// Found is a finding that has reached a stage. The zero value says that there
// is nothing to do.
type Found struct {
	Kind  Kind     `json:"kind"`
	Stage Stage    `json:"stage"`
	Count int      `json:"count"` // calls or answers that belong to it
	Tools []string `json:"tools"` // that are called in turn; none of an answer without calls
}

// What says what was found; "" for nothing.
func (f Found) What(l i18n.Lang) string {
	switch key := "planning.loop." + string(f.Kind); f.Kind {
	case LoopRepeat, LoopFailing, LoopCycle:
		return l.T(key, strings.Join(f.Tools, ", "))
	case LoopMonologue, LoopEcho:
		return l.T(key)
	}
	return ""
}

// Observe takes in a call that has ended, in the order of the calls: answer is
// the number of the message that made it, growing; args are as the model wrote
// them; result is the HashText of what it gave. The same call with the same
// result counts once per answer, and so does one that is taken in again after a
// crash. A later stage is reached in a later answer only: until then the model
// has heard of none.
func (g *Guard) Observe(answer int64, tool string, args []byte, result Hash, failed bool, l GuardLimits) Found {
	if answer < g.Turn {
		return Found{}
	}
	call := hashCall(tool, args)
	step := Step{mix(call, result), short(tool)}
	if answer > g.Turn {
		g.Turn, g.Calls = answer, nil
	}
	if slices.Contains(g.Calls, step) {
		return Found{}
	}
	if len(g.Calls) < mostOfTurn {
		g.Calls = append(g.Calls, step)
	}
	same := call == g.Call
	g.Repeats = count(g.Repeats, same && len(g.Recent) > 0 && g.Recent[len(g.Recent)-1] == step)
	switch {
	case !failed:
		g.Fails = 0
	default:
		g.Fails = count(g.Fails, same)
	}
	g.Call, g.Silent = call, 0
	if g.Since++; g.Since > echoCalls {
		g.Text, g.Echoes, g.Since = 0, 0, 0
	}
	g.cycle(step)
	return g.judge(l)
}

// count is one more of the same, or the first of another.
func count(n int, same bool) int {
	if same {
		return n + 1
	}
	return 1
}

func (g *Guard) cycle(step Step) {
	if len(g.Cycles) != maxPeriod-1 {
		g.Cycles = make([]int, maxPeriod-1)
	}
	for i := range g.Cycles {
		period := i + 2
		if at := len(g.Recent) - period; at >= 0 && g.Recent[at] == step {
			g.Cycles[i]++
		} else {
			g.Cycles[i] = 0
		}
	}
	g.Recent = append(g.Recent, step)
	if n := len(g.Recent) - maxPeriod; n > 0 {
		g.Recent = slices.Delete(g.Recent, 0, n)
	}
}

// Said takes in an answer without a call where a call was due; text is its
// HashText. Answers that were asked for, as plans and reflections, are none.
func (g *Guard) Said(answer int64, text Hash, l GuardLimits) Found {
	if answer <= g.Turn {
		return Found{}
	}
	g.Turn, g.Calls = answer, nil
	g.Silent++
	g.Echoes = count(g.Echoes, text == g.Text)
	g.Text, g.Since = text, 0
	return g.judge(l)
}

// judge says whether what was found has reached a new stage: the first at its
// limit, each further one after half as much again.
func (g *Guard) judge(l GuardLimits) Found {
	var worst Found
	look := func(kind Kind, n, limit int, tools int) {
		if limit <= 0 || n < limit {
			return
		}
		stage := min(StageNudge+Stage((n-limit)/((limit+1)/2)), StageStop)
		if stage > worst.Stage {
			worst = Found{kind, stage, n, g.tools(tools)}
		}
	}
	look(LoopRepeat, g.Repeats, l.Repeat, 1)
	look(LoopFailing, g.Fails, l.Failing, 1)
	for i, n := range g.Cycles {
		if period := i + 2; n > 0 {
			look(LoopCycle, n+period, l.Cycle/2*period, period)
		}
	}
	look(LoopMonologue, g.Silent, l.Monologue, 0)
	look(LoopEcho, g.Echoes, l.Monologue, 0)
	if worst.Stage == StageNone {
		g.Stage = StageNone // it has ceased
		return Found{}
	}
	// What begins while the other has not ceased is told from its first stage on.
	if talk := worst.Kind == LoopMonologue || worst.Kind == LoopEcho; talk != g.Talk {
		g.Stage, g.Talk = StageNone, talk
	}
	if worst.Stage <= g.Stage || g.Stage != StageNone && g.Turn <= g.Told {
		return Found{}
	}
	g.Stage++
	g.Told, worst.Stage = g.Turn, g.Stage
	return worst
}

// tools are the names of the latest n calls.
func (g *Guard) tools(n int) (names []string) {
	for _, s := range g.Recent[max(len(g.Recent)-n, 0):] {
		names = append(names, s.Tool)
	}
	return names
}

// maxToolName is how much of a tool's name is kept: a model may make one up.
const maxToolName = 64

func short(name string) string {
	if len(name) <= maxToolName {
		return strings.ToValidUTF8(name, "�")
	}
	return strings.ToValidUTF8(name[:maxToolName], "") + "…"
}

func mix(a, b Hash) Hash {
	h := fnv.New64a()
	var buf [16]byte
	for i := range 8 {
		buf[i], buf[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	_, _ = h.Write(buf[:])
	return Hash(max(h.Sum64(), 1))
}

// maxNormal is the length in bytes up to which arguments are normalised; longer
// ones are a file's content, which is compared as it is.
const maxNormal = 1 << 20

// hashCall is the hash of a tool with its arguments: neither the order of fields
// nor space between them makes two calls different.
func hashCall(tool string, args []byte) Hash {
	args = bytes.TrimSpace(args)
	if len(args) <= maxNormal {
		args = normal(args)
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, tool)
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(args)
	return Hash(max(h.Sum64(), 1))
}

// normal is JSON in one form; no arguments are the same as none named, and what
// is no JSON stays as it is.
func normal(args []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.InputOffset() != int64(len(args)) {
		if len(args) == 0 {
			return []byte("{}")
		}
		return args
	}
	if v == nil {
		return []byte("{}")
	}
	b, err := json.Marshal(v) // the fields of an object in order
	if err != nil {
		return args
	}
	return b
}
