package routing

import (
	"encoding/json"
	"strings"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/loosejson"
)

// Delegation is what Chat hands over to a route (spec/chat §4).
type Delegation struct {
	Route Route  // never Chat
	Task  string // "" where Chat gave none: it is asked for once
}

// What of a line may stand before a directive, and around its words.
const decoration = " \t>*_`#-「"

// directive reports whether line holds a DELEGATE: before is what stands in front of it,
// route the word behind its colon, after the rest. At the beginning of a line it is one in
// any case; within one only in capitals, for people delegate, too.
func directive(line string) (before, route, after string, ok bool) {
	half := []rune(halfWidth(line)) // as many characters as line has
	text := string(half)
	at := len(text) - len(strings.TrimLeft(text, decoration))
	const word = "delegate"
	if !strings.HasPrefix(strings.ToLower(text[at:]), word) || !colon(text[at+len(word):]) {
		if at = strings.Index(text, "DELEGATE"); at < 0 || !colon(text[at+len(word):]) {
			return "", "", "", false
		}
	}
	before = string([]rune(line)[:len([]rune(text[:at]))])
	rest := strings.TrimLeft(text[at+len(word):], ": \t*_`\"'")
	end := strings.IndexFunc(rest, func(r rune) bool { return !latin(r) })
	if end < 0 {
		end = len(rest)
	}
	if _, known := ParseRoute(rest[:end]); !known && !strings.HasPrefix(text[at:], "DELEGATE") {
		return "", "", "", false // "Delegate: a type of C#"
	}
	from := len([]rune(text)) - len([]rune(rest[end:]))
	return strings.Trim(before, decoration), rest[:end], string([]rune(line)[from:]), true
}

// colon reports whether a text begins with a colon, behind decoration.
func colon(s string) bool { return strings.HasPrefix(strings.TrimLeft(s, " \t*_`\""), ":") }

// taskLine reports whether a line begins the task of a delegation, and what it says.
func taskLine(line string) (task string, ok bool) {
	runes := []rune(line)
	text := halfWidth(line)
	at := len(text) - len(strings.TrimLeft(text, decoration))
	if !strings.HasPrefix(strings.ToLower(text[at:]), "task") || !colon(text[at+len("task"):]) {
		return "", false
	}
	i := strings.IndexByte(text[at:], ':') + at + 1
	return strings.TrimLeft(string(runes[len([]rune(text[:i])):]), " \t　*_"), true
}

// ParseDelegation finds the first DELEGATE in an answer of Chat's: with prefaces before it,
// in a fence, in any case, with full-width letters. Its task is what follows TASK: to the
// end of the fence, to the next DELEGATE, else to the end of the answer. rest is what else
// the answer says to the user, without any trace of it; the whole answer where there is
// none. A DELEGATE to no known route, or to Chat, is taken out, too, and found is false.
func ParseDelegation(answer string) (d Delegation, rest string, found bool) {
	lines := strings.Split(answer, "\n")
	for i, line := range lines {
		before, route, after, ok := directive(line)
		if !ok {
			continue
		}
		preface := lines[:i]
		fenced := false
		if n := len(preface); n > 0 && fence(preface[n-1]) && strings.Count(strings.Join(preface, "\n"), "```")%2 == 1 {
			preface, fenced = preface[:n-1], true
		}
		task, behind := taskOf(append([]string{after}, lines[i+1:]...), fenced)
		rest = strings.TrimSpace(strings.Join(append(preface[:len(preface):len(preface)], before), "\n"))
		rest = strings.TrimSpace(rest + "\n\n" + strings.Join(behind, "\n"))
		r, known := ParseRoute(route)
		if !known || r == Chat {
			return Delegation{}, rest, false
		}
		return Delegation{r, task}, rest, true
	}
	return Delegation{}, answer, false
}

// fence reports whether a line opens or closes a fence.
func fence(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "```") }

// taskOf is the task in the lines behind a DELEGATE, and the lines that follow the fence
// that it stands in. What follows another DELEGATE is neither. Without a TASK the lines are
// talk that goes nowhere.
func taskOf(lines []string, fenced bool) (task string, behind []string) {
	var said []string
	begun, within, over := false, false, false
	for _, line := range lines {
		if _, _, _, again := directive(line); again {
			break
		}
		if over {
			behind = append(behind, line)
			continue
		}
		if fence(line) {
			if over = fenced && !within && strings.Trim(strings.TrimSpace(line), "`") == ""; over {
				continue
			}
			within = !within
		}
		if first, ok := taskLine(line); ok && !begun {
			begun, line = true, first
		}
		if begun {
			said = append(said, line)
		}
	}
	return strings.TrimSpace(strings.Join(said, "\n")), behind
}

// Proposal is what Chat proposes at the end of its answer (route §3.4).
type Proposal struct {
	Next       bool // propose_next_loop
	Route      Route
	Reason     string
	Confidence float64 // 0 to 1
}

// proposalKey names the field that makes a JSON object a proposal.
const proposalKey = "propose_next_loop"

// fencedBlock finds a fence, closed or cut off by the end of the text.
var fencedBlock = lazyregexp.New("(?s)```[^\n`]*\n?(.*?)(?:```|$)")

// bareProposal finds a proposal at the end of a text without a fence.
var bareProposal = lazyregexp.New(`(?s)\{[^{}]*["']?` + proposalKey + `["']?\s*:[^{}]*\}\s*$`)

// ParseProposal takes the proposal out of an answer of Chat's: its last fenced JSON object
// with propose_next_loop, or one at its very end without a fence. rest is the answer
// without it, also where it is no valid one and ok is false.
func ParseProposal(answer string) (p Proposal, rest string, ok bool) {
	if !strings.Contains(answer, proposalKey) {
		return Proposal{}, answer, false
	}
	var kept strings.Builder
	from, taken, last := 0, false, ""
	for _, at := range fencedBlock().FindAllStringSubmatchIndex(answer, -1) {
		if body := answer[at[2]:at[3]]; strings.Contains(body, proposalKey) && strings.HasPrefix(strings.TrimSpace(body), "{") {
			_, _ = kept.WriteString(answer[from:at[0]])
			from, taken, last = at[1], true, body
		}
	}
	rest = kept.String() + answer[from:]
	if at := bareProposal().FindStringIndex(rest); at != nil {
		taken, last = true, rest[at[0]:]
		rest = rest[:at[0]]
	}
	if !taken {
		return Proposal{}, answer, false
	}
	p, ok = readProposal(last)
	return p, strings.TrimSpace(rest), ok
}

func readProposal(text string) (Proposal, bool) {
	var said struct {
		Next       *bool    `json:"propose_next_loop"`
		Route      *string  `json:"route"`
		Reason     string   `json:"reason"`
		Confidence *float64 `json:"confidence"`
	}
	object, whole, ok := loosejson.Repair(strings.TrimSpace(text))
	if !ok || !whole || json.Unmarshal([]byte(object), &said) != nil || said.Next == nil || said.Route == nil || said.Confidence == nil {
		return Proposal{}, false
	}
	route, known := ParseRoute(*said.Route)
	if !known || *said.Confidence < 0 || *said.Confidence > 1 {
		return Proposal{}, false
	}
	return Proposal{*said.Next, route, cutRunes(said.Reason, maxReason), *said.Confidence}, true
}
