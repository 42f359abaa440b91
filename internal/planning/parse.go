package planning

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// MaxAnswer is how much of an answer is read, in bytes: what stands behind is
// not looked at, and an object that goes on there is refused.
const MaxAnswer = 1 << 20

// maxCandidates is how many objects of an answer are looked at closely: the
// last ones that look like what is asked for.
const maxCandidates = 16

// Reply is what the model says as JSON.
type Reply interface {
	Plan | SubtaskResult | Reflection | PlanRevision | Verification | ReplanDecision | Completion
}

// Parse reads the answer of a kind out of what the model wrote: T is the type of
// that kind. Thoughts in <think> are passed over, whether closed or not; of
// several objects the one is taken that has the form of the kind, of several
// of these the last one that is as it must be. What is broken as JSON is mended,
// and what is said in another form than asked for is put into it, where its
// meaning is beyond doubt.
//
// The error is a *ContractError where the answer is at fault, with everything
// that is wrong with it. It costs time and memory in proportion to MaxAnswer at
// most, whatever the text.
func Parse[T Reply](kind AnswerKind, text string) (T, error) {
	var answer T
	if want := kindOf(answer); want != kind {
		return answer, fmt.Errorf("parse an answer: a %T is no answer of kind %q", answer, kind)
	}
	all, err := contracts()
	if err != nil {
		return answer, err
	}
	data, err := all[kind].read(kind, text)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return answer, &ContractError{Kind: kind, Violations: []Violation{{Path: "$", Problem: err.Error()}}, Excerpt: excerpt(text)}
	}
	return answer, nil
}

// kindOf returns the kind of a type of answers.
func kindOf(answer any) AnswerKind {
	switch answer.(type) {
	case Plan:
		return KindPlan
	case SubtaskResult:
		return KindSubtask
	case Reflection:
		return KindReflection
	case PlanRevision:
		return KindRevision
	case Verification:
		return KindVerification
	case ReplanDecision:
		return KindReplan
	default:
		return KindCompletion
	}
}

// Detect returns the kinds whose form an object in the text has, in the order
// of AnswerKinds: an answer may say that a subtask is done and, in the same object or
// another, that everything is. It does not say that Parse will take them.
func Detect(text string) []AnswerKind {
	var found []AnswerKind
	objects(text, func(o object) {
		for _, kind := range AnswerKinds() {
			if _, score := unwrap(kind, o.fields); score > 0 && !o.thought && !slices.Contains(found, kind) {
				found = append(found, kind)
			}
		}
	})
	order := AnswerKinds()
	slices.SortFunc(found, func(a, b AnswerKind) int { return slices.Index(order, a) - slices.Index(order, b) })
	return found
}

// candidate is an object that may be the answer.
type candidate struct {
	object
	score int
}

// read returns the answer of a kind, whose schema s is, in its form.
func (s *shape) read(kind AnswerKind, text string) ([]byte, error) {
	var candidates []candidate
	deep := false
	objects(text, func(o object) {
		if o.deep {
			deep = true
			return
		}
		fields, score := unwrap(kind, o.fields)
		if score == 0 {
			return
		}
		o.fields = fields
		if len(candidates) == maxCandidates {
			candidates = slices.Delete(candidates, 0, 1)
		}
		candidates = append(candidates, candidate{o, score})
	})
	slices.Reverse(candidates)
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		if a.thought != b.thought {
			if a.thought {
				return 1
			}
			return -1
		}
		return b.score - a.score
	})
	var first *ContractError
	for _, o := range candidates {
		fields, _ := s.coerce(o.fields)
		problems := s.violations(fields)
		if o.short || o.cut && len(text) > MaxAnswer {
			problems = append([]Violation{{Path: "$", Problem: "the answer breaks off before it is complete; give all of it, with shorter texts"}}, problems...)
		}
		if len(problems) == 0 {
			return json.Marshal(fields)
		}
		if first == nil {
			first = &ContractError{Kind: kind, Violations: problems, Excerpt: excerpt(string(o.raw))}
		}
	}
	if first != nil {
		return nil, first
	}
	return nil, &ContractError{Kind: kind, Violations: []Violation{{Path: "$", Problem: nothing(text, deep)}}, Excerpt: excerpt(text)}
}

// nothing says why no object of an answer is taken.
func nothing(text string, deep bool) string {
	switch {
	case deep:
		return fmt.Sprintf("the JSON is nested more than %d deep", maxDepth)
	case len(text) > MaxAnswer:
		return fmt.Sprintf("the answer has %d bytes, and no object of this kind stands in the first %d", len(text), MaxAnswer)
	case strings.TrimSpace(text) == "":
		return "the answer is empty"
	case !strings.Contains(text, "{"):
		return "there is no JSON object in the answer"
	default:
		return "no JSON object in the answer has the form that was asked for"
	}
}

// object is a JSON object in an answer.
type object struct {
	fields  map[string]any
	raw     []byte // mended
	thought bool   // it stands in thoughts that were not closed, or before their end
	cut     bool   // it breaks off
	short   bool   // in the middle of a list
	deep    bool   // too deep to be read; there are no fields
}

// objects calls f for the objects of an answer, outermost ones only, in their
// order; for those in thoughts that were not closed last.
func objects(text string, f func(object)) {
	text = strings.TrimSpace(text[:min(len(text), MaxAnswer)])
	if n := scan(text, f); n > 0 {
		return
	}
	// Some put the whole of it in quotes.
	quoted := strings.TrimSpace(text)
	if !strings.HasPrefix(quoted, `"`) {
		quoted = `"` + quoted + `"`
	}
	var inner string
	if strings.Contains(quoted, `{\"`) && json.Unmarshal([]byte(quoted), &inner) == nil {
		scan(inner, f)
	}
}

// scan is objects for a text that is not in quotes as a whole. It returns how
// many it found.
func scan(text string, f func(object)) int {
	var before []object // what may turn out to be a thought
	n, unclosed := 0, false
	for at := 0; ; {
		next := strings.IndexAny(text[at:], "<{")
		if next < 0 {
			break
		}
		at += next
		if text[at] == '<' {
			name, closing, length := thoughtTag(text[at:])
			at += length
			switch {
			case name == "":
			case closing:
				for i := range before {
					before[i].thought = true
				}
				unclosed = false
			case !unclosed:
				if end := indexFold(text[at:], "</"+name); end >= 0 {
					at += end + len(name) + 2
				} else {
					unclosed = true
				}
			}
			continue
		}
		r, used := readObject(text[at:])
		at += used
		if r.none {
			continue
		}
		n++
		o := object{raw: r.out, cut: r.cut, short: r.short, deep: r.deep, thought: unclosed}
		if !o.deep {
			d := json.NewDecoder(strings.NewReader(string(r.out)))
			d.UseNumber()
			if d.Decode(&o.fields) != nil {
				continue
			}
		}
		if before = append(before, o); len(before) > 4*maxCandidates {
			f(before[0])
			before = slices.Delete(before, 0, 1)
		}
	}
	for _, o := range before {
		f(o)
	}
	return n
}

// thoughtTag reads the tag at the beginning of text: its name if what it
// encloses is a thought, and its length in any case.
func thoughtTag(text string) (name string, closing bool, length int) {
	rest := text[1:]
	rest, closing = strings.CutPrefix(rest, "/")
	for _, name := range []string{"thinking", "thought", "think", "reasoning"} {
		if len(rest) > len(name) && strings.EqualFold(rest[:len(name)], name) && (rest[len(name)] == '>' || rest[len(name)] == ' ') {
			return name, closing, len(text) - len(rest) + len(name) + 1
		}
	}
	return "", false, 1
}

// indexFold is strings.Index for an ASCII needle in small letters, whatever the
// letters of text.
func indexFold(text, needle string) int {
	for at := 0; ; at++ {
		i := strings.IndexByte(text[at:], needle[0])
		if i < 0 {
			return -1
		}
		at += i
		if len(text)-at < len(needle) {
			return -1
		}
		if strings.EqualFold(text[at:at+len(needle)], needle) {
			return at
		}
	}
}
