package turn

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/tool"
)

// CircleKind is a way in which a run goes round in circles.
type CircleKind string

// What a Guard finds.
const (
	LoopRepeat    CircleKind = "repeat"    // the same call with the same result
	LoopCycle     CircleKind = "cycle"     // a few calls in turn, with the same results each time
	LoopMonologue CircleKind = "monologue" // answers without a call where calls were due, or the same one with calls in between
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

// guardRounds is how often in a row what goes in circles is done until it is found;
// where it goes on, each further stage comes after half as many rounds more.
const guardRounds = 3

// maxPeriod is how many calls a cycle that is looked for has at most.
const maxPeriod = 4

// talkCalls is how many calls after an answer without one end the talk, though the
// same words come again: the run went on.
const talkCalls = 6

// maxTool is how much is kept of the name of a tool, in bytes.
const maxTool = 64

// mostOfTurn is how many calls of one answer are told apart.
const mostOfTurn = 32

// Hash stands for texts; 0 is none. As JSON it is a string, since programs read
// large numbers inexactly.
type Hash uint64

func hashOf(texts ...string) Hash {
	h := fnv.New64a()
	for _, s := range texts {
		_, _ = io.WriteString(h, s+"\x00")
	}
	return Hash(max(h.Sum64(), 1))
}

// Guard is what is remembered of a run to see that it goes round in circles:
// the fold over its calls and answers. It is plain JSON of a bounded size, to be
// persisted with the run. The zero value is that of a run that has done nothing.
// A call that gives another result than before is progress, and no loop; one that
// fails gives the same result, whatever it says.
type Guard struct {
	Turn int64 `json:"turn,omitempty"` // number of the latest answer that was seen

	Recent []Step `json:"recent,omitempty"` // the latest calls, oldest first, at most maxPeriod
	Cycles []int  `json:"cycles,omitempty"` // how many calls on end are the same as 1, 2, 3, 4 calls before
	Calls  []Step `json:"calls,omitempty"`  // of the answer at hand, each once

	Silent int  `json:"silent,omitempty"`      // answers without a call, on end or each with the words of the one before
	Text   Hash `json:"text,string,omitempty"` // the latest
	Since  int  `json:"since,omitempty"`       // calls since then

	Stage Stage `json:"stage,omitempty"` // reached for what is found now
	Talk  bool  `json:"talk,omitempty"`  // which is answers without a call
	Told  int64 `json:"told,omitempty"`  // Turn at that time
}

// Step is a call with its result.
type Step struct {
	Hash Hash   `json:"hash,string"`
	Tool string `json:"tool"`
}

// Circle is a finding that has reached a stage. The zero value says that there
// is nothing to do.
type Circle struct {
	Kind  CircleKind `json:"kind"`
	Stage Stage      `json:"stage"`
	Count int        `json:"count"` // calls or answers that belong to it
	Tools []string   `json:"tools"` // that are called in turn; none of an answer without calls
}

// What says what was found; "" for nothing.
func (f Circle) What(l i18n.Lang) string {
	switch key := "planning.loop." + string(f.Kind); f.Kind {
	case LoopRepeat, LoopCycle:
		return l.T(key, strings.Join(f.Tools, ", "))
	case LoopMonologue:
		return l.T(key)
	}
	return ""
}

// Observe takes in a call that has ended, in the order of the calls: answer is
// the number of the message that made it, growing; args are as the model wrote
// them. Space around a result does not count. The same call with the same result
// counts once per answer, and so does one that is taken in again after a crash. A
// later stage is reached in a later answer only: until then the model has heard of
// none.
func (g *Guard) Observe(answer int64, name, args, result string, failed bool) Circle {
	if answer < g.Turn {
		return Circle{}
	}
	if result = strings.TrimSpace(result); failed {
		result = "\x00"
	}
	step := Step{hashOf(name, normal(args), result), strings.ToValidUTF8(name[:min(len(name), maxTool)], "")}
	if answer > g.Turn {
		g.Turn, g.Calls = answer, nil
	}
	if slices.Contains(g.Calls, step) {
		return Circle{}
	}
	if len(g.Calls) < mostOfTurn {
		g.Calls = append(g.Calls, step)
	}
	if g.Since++; g.Since > talkCalls {
		g.Silent = 0
	}
	if len(g.Cycles) != maxPeriod {
		g.Cycles = make([]int, maxPeriod)
	}
	for i := range g.Cycles {
		if at := len(g.Recent) - 1 - i; at >= 0 && g.Recent[at] == step {
			g.Cycles[i]++
		} else {
			g.Cycles[i] = 0
		}
	}
	g.Recent = append(slices.Clone(g.Recent[max(len(g.Recent)-maxPeriod+1, 0):]), step)
	return g.judge()
}

// Said takes in an answer without a call where a call was due. Answers that were
// asked for, as plans and reflections, are none.
func (g *Guard) Said(answer int64, text string) Circle {
	if answer <= g.Turn {
		return Circle{}
	}
	said := hashOf(strings.TrimSpace(text))
	if said != g.Text && g.Since > 0 {
		g.Silent = 0
	}
	g.Turn, g.Calls, g.Text, g.Since = answer, nil, said, 0
	g.Silent++
	return g.judge()
}

// judge says whether what was found has reached a new stage: the first at its
// limit, each further one after half as much again.
func (g *Guard) judge() Circle {
	var worst Circle
	look := func(kind CircleKind, n, limit, tools int) {
		if stage := min(StageNudge+Stage((n-limit)/((limit+1)/2)), StageStop); n >= limit && stage > worst.Stage {
			worst = Circle{Kind: kind, Stage: stage, Count: n}
			for _, s := range g.Recent[max(len(g.Recent)-tools, 0):] {
				worst.Tools = append(worst.Tools, s.Tool)
			}
		}
	}
	for i, n := range g.Cycles {
		kind, period := LoopCycle, i+1
		if period == 1 {
			kind = LoopRepeat
		}
		if n > 0 {
			look(kind, n+period, guardRounds*period, period)
		}
	}
	look(LoopMonologue, g.Silent, guardRounds, 0)
	if worst.Stage == StageNone {
		g.Stage = StageNone // it has ceased
		return Circle{}
	}
	// What begins while the other has not ceased is told from its first stage on.
	if talk := worst.Kind == LoopMonologue; talk != g.Talk {
		g.Stage, g.Talk = StageNone, talk
	}
	if worst.Stage <= g.Stage || g.Stage != StageNone && g.Turn <= g.Told {
		return Circle{}
	}
	g.Stage++
	g.Told, worst.Stage = g.Turn, g.Stage
	return worst
}

// maxNormal is the length in bytes up to which arguments are normalised; longer
// ones are a file's content, which is compared as it is.
const maxNormal = 1 << 20

// normal is JSON in one form, in which neither the order of fields nor space between
// them counts; no arguments are the same as none named, and what is no JSON stays as
// it is.
func normal(args string) string {
	args = strings.TrimSpace(args)
	if args == "" || args == "null" {
		return "{}"
	}
	if len(args) <= maxNormal && json.Valid([]byte(args)) {
		if b, err := tool.Canonical(json.RawMessage(args)); err == nil {
			return string(b)
		}
	}
	return args
}
