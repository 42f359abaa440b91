package routing

import (
	"context"
	_ "embed" // the prompt
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/loosejson"
)

// prompt is the classifier's one fixed prompt. It changes only where a route is added
// (route §2.5), and is no file of the users'.
//
//go:embed classifier.md
var prompt string

// Classified is what became of the one call of the classifier.
type Classified struct {
	// Route and Confidence are what the model said, "" and 0 where that could not be
	// read. They need not be the decision's.
	Route      Route
	Confidence float64
	// Error is why the answer was not followed, "" where it was.
	Error ClassifierError
	// Raw is the answer, or the error of the call; at most 2,000 bytes, unmasked.
	Raw string

	reason   string
	evidence []string
}

// ClassifierError is why what the classifier said is not followed.
type ClassifierError string

// The reasons (spec/chat §3). The last two are decisions and no failures: Failure is false.
const (
	InvalidOutput ClassifierError = "invalid_output"
	MissingField  ClassifierError = "missing_field"
	UnknownRoute  ClassifierError = "unknown_route"
	OutOfRange    ClassifierError = "out_of_range"
	CallFailed    ClassifierError = "call_failed"
	LowConfidence ClassifierError = "low_confidence"
	NoEvidence    ClassifierError = "code_without_evidence"
)

// Failure reports whether a classifier.error is to be written.
func (e ClassifierError) Failure() bool { return e != "" && e != LowConfidence && e != NoEvidence }

// Bounds of what goes to the classifier and what is kept of its answer.
const (
	maxShown    = 6000 // characters of a message
	shownTail   = 1500 // of these, how many of its end
	maxRaw      = 2000 // bytes
	maxReason   = 200  // characters
	maxEvidence = 2    // pieces
)

// classify makes the one call and reads its answer by the settings' thresholds.
func (r *Router) classify(ctx context.Context, ask Ask, text string, denied bool) *Classified {
	answer, err := ask(ctx, prompt, "<message>\n"+shown(text)+"\n</message>")
	if err != nil {
		return &Classified{Error: CallFailed, Raw: bounded(err.Error())}
	}
	c := readClassified(answer, text)
	c.Raw = bounded(answer)
	switch {
	case c.Error != "":
	case c.Confidence < r.s.MinConfidence:
		c.Error = LowConfidence
	case c.Route == Code && (c.Confidence < r.s.MinConfidenceForCode || !denied && !StrongEvidence(text)):
		c.Error = NoEvidence
	}
	return c
}

// readClassified reads the four fields. Evidence that is no piece of text is left out, and
// none is none: what CODE needs is a test of its own (StrongEvidence).
func readClassified(answer, text string) *Classified {
	var said struct {
		Route      *string `json:"route"`
		Confidence *number `json:"confidence"`
		Reason     *string `json:"reason"`
		Evidence   pieces  `json:"evidence"`
	}
	object, ok := objectIn(answer, "route")
	if !ok || json.Unmarshal([]byte(object), &said) != nil {
		return &Classified{Error: InvalidOutput}
	}
	if said.Route == nil || said.Confidence == nil || said.Reason == nil {
		return &Classified{Error: MissingField}
	}
	route, _ := ParseRoute(*said.Route)
	if !slices.Contains(routes[:6], route) {
		return &Classified{Error: UnknownRoute}
	}
	if c := *said.Confidence; !(c >= 0 && c <= 1) { // NaN is neither
		return &Classified{Error: OutOfRange}
	}
	c := &Classified{Route: route, Confidence: float64(*said.Confidence), reason: cutRunes(*said.Reason, maxReason), evidence: []string{}}
	within := fold(text[:min(len(text), maxHead)])
	for _, e := range said.Evidence {
		if e = strings.TrimSpace(e); e != "" && len(c.evidence) < maxEvidence && strings.Contains(within, fold(e)) {
			c.evidence = append(c.evidence, cutRunes(e, maxFragment))
		}
	}
	return c
}

// number is a number, also one that is written as a text.
type number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(raw []byte) error {
	f, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(raw), `"`)), 64)
	*n = number(f)
	return err
}

// pieces are texts, also one that stands alone; what else there is in their place is none.
type pieces []string

// UnmarshalJSON implements json.Unmarshaler.
func (p *pieces) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		*p = pieces{one}
		return nil
	}
	var all []any
	_ = json.Unmarshal(raw, &all) // else there are none
	for _, e := range all {
		if s, ok := e.(string); ok {
			*p = append(*p, s)
		}
	}
	return nil
}

// objectIn returns the first JSON object of an answer, in prose or in a fence; one with
// the field where there are several.
func objectIn(answer, field string) (string, bool) {
	const tries = 20
	first, last := strings.IndexByte(answer, '{'), strings.LastIndexByte(answer, '}')
	for at, n := first, 0; at >= 0 && n < tries; n++ {
		if end := jsonValue(answer[at:]); end > 0 {
			if object := answer[at : at+end]; strings.Contains(object, `"`+field+`"`) {
				return object, true
			}
			at += end - 1
		}
		next := strings.IndexByte(answer[at+1:], '{')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	if first < 0 || last < first {
		return "", false
	}
	object, whole, ok := loosejson.Repair(answer[first : last+1])
	return object, ok && whole && strings.HasPrefix(object, "{")
}

// shown is what the classifier sees of a message.
func shown(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > 4*maxShown || utf8.RuneCountInString(text) > maxShown {
		tail := []rune(strings.ToValidUTF8(text[max(0, len(text)-4*shownTail):], ""))
		text = cutRunes(text, maxShown-shownTail) + "\n[…]\n" + string(tail[max(0, len(tail)-shownTail):])
	}
	return strings.ReplaceAll(text, "</message", "< /message")
}

// cutRunes is at most the first n characters of s.
func cutRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

func bounded(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxRaw)], "") }
