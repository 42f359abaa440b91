// Package contract is what the legs of a conversation hand each other: what a worker is
// given and gives back, and what a coder proposes, as Go types with a JSON Schema each
// (route §4, §5; spec/facts §4, §5). It reads what models write and calls none.
package contract

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"toritsugi/internal/channel"
	"toritsugi/internal/loosejson"
	"toritsugi/internal/routing"
	"toritsugi/internal/tool"
)

//go:embed schemas/*.json
var schemas embed.FS

// Input is what a worker is given: WorkerInput (spec/facts §4).
type Input struct {
	Route    routing.Route `json:"route"`
	Session  Session       `json:"session"`
	UserText string        `json:"user_text"`
	Context  Context       `json:"context"`
	Flags    Flags         `json:"flags"`
	Limits   Limits        `json:"limits"`
	Tooling  Tooling       `json:"tooling"`
}

// Session is where the work comes from.
type Session struct {
	SessionID string       `json:"session_id"`
	Channel   channel.Kind `json:"channel"`
	TargetOS  string       `json:"target_os"` // linux, windows, mac or unknown
	Timezone  string       `json:"timezone,omitempty"`
	Now       string       `json:"now_iso,omitempty"`
	Repo      *Repo        `json:"repo_hint,omitempty"`
}

// Repo is the session's repository.
type Repo struct {
	Name string `json:"name"`
	Path string `json:"path,omitempty"`
}

// Context is what was said before.
type Context struct {
	ShortMemory string `json:"short_memory"`
	RecentTurns []Turn `json:"recent_turns"`
	// FormerResult is what the same worker came to in the loop before; nil for none.
	FormerResult json.RawMessage `json:"former_result,omitempty"`
}

// Turn is one text of somebody; Role is user or assistant.
type Turn struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// Flags are the session's.
type Flags struct {
	LocalOnly        bool           `json:"local_only"`
	PrevPrimaryRoute *routing.Route `json:"prev_primary_route"`
}

// Limits are what the answer may have.
type Limits struct {
	MaxResultChars int `json:"max_result_chars"`
	MaxQuestions   int `json:"max_questions"`
	MaxNextActions int `json:"max_next_actions"`
}

// Tooling is what the worker has.
type Tooling struct {
	WebSearch bool `json:"web_search_available"`
	RepoRead  bool `json:"repo_read_available"`
}

// Output is what a worker gives back: WorkerOutput (route §4.4).
type Output struct {
	Result        json.RawMessage `json:"result"` // nil where the work fits another route
	NeedsNextLoop bool            `json:"needs_next_loop"`
	Why           string          `json:"why"`
	NextActions   []string        `json:"next_actions"`       // at most 3
	Questions     []string        `json:"questions_for_user"` // at most 3
	Confidence    float64         `json:"confidence"`         // 0 to 1
	Risk          string          `json:"risk"`               // low, medium or high
	Fit           *bool           `json:"fit,omitempty"`
	Suggested     string          `json:"suggested_route,omitempty"`
}

// Loop is what routing goes by.
func (o Output) Loop() routing.Result {
	return routing.Result{NeedsNextLoop: o.NeedsNextLoop, Confidence: o.Confidence, Risk: o.Risk, Questions: o.Questions, Fit: o.Fit, SuggestedRoute: o.Suggested}
}

// Coder is what a coder proposes (route §5.1). JobID is the program's, whatever the
// model wrote.
type Coder struct {
	JobID        string    `json:"job_id"`
	Plan         string    `json:"plan"`
	Patch        string    `json:"patch,omitempty"` // a unified diff
	Files        []File    `json:"files,omitempty"`
	Commands     []Command `json:"commands,omitempty"`
	Risk         Risk      `json:"risk"`
	NeedApproval bool      `json:"need_approval"`
	CostHint     *CostHint `json:"cost_hint,omitempty"`
	TaskType     string    `json:"task_type,omitempty"` // design, codegen, review or refactor; "" was not said
	Notes        []string  `json:"notes,omitempty"`     // at most 5
	Tests        []string  `json:"tests,omitempty"`     // at most 5

	Remarks []string `json:"-"` // for the model: what of its proposal was not known and is left out
}

// File is a file in place of a patch.
type File struct {
	Path    string `json:"path"`
	Action  string `json:"action"` // create, modify or delete
	Content string `json:"content,omitempty"`
}

// Command is a command that a coder wants run after the patch.
type Command struct {
	OS    string `json:"os,omitempty"`
	Shell string `json:"shell,omitempty"`
	Cmd   string `json:"cmd"`
	Why   string `json:"why,omitempty"`
}

// Risk is what a coder says of the risk; the program computes its own.
type Risk struct {
	Destructive   bool     `json:"destructive"`
	Compatibility []string `json:"compatibility_issues"`
	Rollback      bool     `json:"rollback_possible"`
}

// CostHint is what a coder thinks that its proposal costs.
type CostHint struct {
	EstimatedTokens int  `json:"estimated_tokens"`
	NearLimit       bool `json:"near_limit"`
}

// Output is a proposal as a worker's answer, after which the loop ends (spec/chat §6).
func (c Coder) Output() (Output, error) {
	raw, err := json.Marshal(c)
	risk := routing.RiskLow
	switch {
	case c.Risk.Destructive:
		risk = routing.RiskHigh
	case !c.Risk.Rollback || len(c.Risk.Compatibility) > 0:
		risk = routing.RiskMedium
	}
	return Output{Result: raw, Why: firstLine(c.Plan), NextActions: []string{}, Questions: []string{}, Confidence: 1, Risk: risk}, err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// MaxAnswer is the longest answer of a worker that is read, in bytes, maxProposal the longest
// proposal: a patch may have 8 MiB, and more of them within JSON.
const (
	MaxAnswer   = 1 << 20
	maxProposal = 24 << 20
)

// ReadOutput reads a worker's answer, the JSON in it wherever it stands. Lists that are
// longer than they may be are cut. One that only says which route the work fits (spec/chat §5) needs
// nothing else. The error says to the model all that is wrong.
func ReadOutput(route routing.Route, answer string) (Output, error) {
	c, err := outputOf(route)
	if err != nil {
		return Output{}, err
	}
	var o Output
	if _, err := c.read(answer, &o); err != nil {
		if u, ok := readUnfit(answer); ok {
			return u, nil
		}
		return Output{}, err
	}
	return o, nil
}

// readUnfit reads a worker's answer that the work is not of its kind: with the route that is, and no
// result. Who does not say how sure that is, is not.
func readUnfit(answer string) (Output, bool) {
	c, err := unfit()
	if err != nil {
		return Output{}, false // its test says so
	}
	o := Output{NextActions: []string{}, Questions: []string{}, Risk: routing.RiskLow}
	if _, err := c.read(answer, &o); err != nil || o.Fit == nil || *o.Fit {
		return Output{}, false
	}
	o.Result, o.NeedsNextLoop = nil, false
	_, known := routing.ParseRoute(o.Suggested)
	return o, known
}

// ReadCoder reads a proposal: the arguments of a call, or what a model without tools wrote
// as text. What is optional and cannot be read is left out, but for what is to be done: patch,
// files and commands are read whole. A risk that it does not tell is none. The error says to the
// model all that is wrong.
func ReadCoder(answer string) (Coder, error) {
	c, err := coder()
	if err != nil {
		return Coder{}, err
	}
	p := Coder{Risk: Risk{Rollback: true, Compatibility: []string{}}}
	p.Remarks, err = c.read(answer, &p)
	return p, err
}

// patchNames are other names that models have for the patch.
var patchNames = map[string]string{"diff": "patch", "unified_diff": "patch", "patch_text": "patch"}

// CoderSchema is the JSON Schema of a proposal as models are shown it: of the arguments of
// propose.
func CoderSchema() json.RawMessage {
	c, err := coder()
	if err != nil {
		return nil // its test says so
	}
	return c.shown
}

// ShownOutput is what a model is told of the answer that is expected for a route.
func ShownOutput(route routing.Route) (string, error) {
	c, err := outputOf(route)
	if err != nil {
		return "", err
	}
	return string(c.shown), nil
}

// shape is a schema with what reads by it.
type shape struct {
	schema *jsonschema.Schema
	args   *tool.Arguments
	shown  []byte   // to models: without what is for the reader alone
	most   int      // bytes that are read
	whole  []string // properties of which nothing is left out
}

func newShape(raw []byte, most int, aliases map[string]string, whole ...string) (*shape, error) {
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, err
	}
	args, err := tool.NewArguments(tool.Definition{Schema: raw, Aliases: aliases, Prose: true, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return nil, err
	}
	shown, err := json.Marshal(forModels(plain))
	return &shape{s, args, shown, most, whole}, err
}

// forModels takes out of a schema which property a text stands for (tool.Definition.Prose), and
// what the program sets itself (readOnly).
func forModels(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, text := v["main"].(string); text {
			delete(v, "main")
		}
		for k := range v {
			if p, ok := v[k].(map[string]any); ok && p["readOnly"] == true {
				delete(v, k)
				continue
			}
			v[k] = forModels(v[k])
		}
	case []any:
		for i := range v {
			v[i] = forModels(v[i])
		}
	}
	return v
}

var coder = sync.OnceValues(func() (*shape, error) {
	raw, err := schemas.ReadFile("schemas/coder_output.json")
	if err != nil {
		return nil, err
	}
	return newShape(raw, maxProposal, patchNames, "patch", "files", "commands")
})

// outputs are the shapes of answers by the worker's name, made when they are first needed.
var outputs = func() map[string]func() (*shape, error) {
	all := map[string]func() (*shape, error){}
	for _, name := range []string{"plan", "analyze", "ops", "research"} {
		all[name] = sync.OnceValues(func() (*shape, error) { return outputShape(name) })
	}
	return all
}()

func outputOf(route routing.Route) (*shape, error) {
	made := outputs[strings.ToLower(string(route))]
	if made == nil {
		return nil, fmt.Errorf("no worker answers on route %s", route)
	}
	return made()
}

// unfit is the shape of an answer that names another route.
var unfit = sync.OnceValues(func() (*shape, error) {
	return workerShape(func(whole map[string]any) { whole["required"] = []string{"fit", "suggested_route"} })
})

// outputShape is the schema of WorkerOutput with that of a worker's result in it.
func outputShape(name string) (*shape, error) {
	raw, err := schemas.ReadFile("schemas/" + name + ".json")
	if err != nil {
		return nil, err
	}
	return workerShape(func(whole map[string]any) {
		whole["properties"].(map[string]any)["result"] = json.RawMessage(raw) //nolint:forcetypeassert // the file is ours
	})
}

// workerShape is the schema of WorkerOutput with something put in its place.
func workerShape(put func(whole map[string]any)) (*shape, error) {
	raw, err := schemas.ReadFile("schemas/worker_output.json")
	if err != nil {
		return nil, err
	}
	var whole map[string]any
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, err
	}
	delete(whole, "$schema")
	put(whole)
	raw, err = json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	return newShape(raw, MaxAnswer, nil)
}

// AnswerError says to a model what is wrong with its answer.
type AnswerError struct{ Problem string }

func (e *AnswerError) Error() string { return "the answer does not keep to the contract: " + e.Problem }

// read finds the object of the schema in a text and decodes it into v. notes are what was not
// known in it.
func (c *shape) read(text string, v any) (notes []string, err error) {
	if len(text) > c.most {
		return nil, &AnswerError{fmt.Sprintf("it is %d bytes long, the most is %d.", len(text), c.most)}
	}
	found := objects(strings.ToValidUTF8(text, "\uFFFD"))
	if len(found) == 0 {
		return nil, &AnswerError{"it holds no JSON object."}
	}
	valid := slices.DeleteFunc(slices.Clone(found), func(s string) bool { return !json.Valid([]byte(s)) })
	if len(valid) == 0 {
		fixed, whole, ok := loosejson.Repair(found[0])
		switch {
		case !ok:
			return nil, &AnswerError{"it is not valid JSON."}
		case !whole && len(c.whole) > 0: // half a patch may only delete
			return nil, &AnswerError{"it ends in the middle of its JSON."}
		}
		valid = []string{fixed}
	}
	problem := ""
	for _, s := range valid {
		var plain any
		if err := json.Unmarshal([]byte(s), &plain); err != nil {
			return nil, err
		}
		raw, err := json.Marshal(c.cut(c.schema, plain))
		if err != nil {
			return nil, err
		}
		args, notes, wrong := c.args.Read(string(raw))
		if wrong != "" && c.fits(raw, &args) {
			wrong = ""
		}
		if wrong == "" {
			return notes, json.Unmarshal(args, v)
		}
		if problem = wrong; c.like(plain) {
			break
		}
	}
	return nil, &AnswerError{problem}
}

// fits takes what of an answer cannot be read out of what was read of it, and reports whether
// the rest is an answer: it has what is required, and all of what must be whole.
func (c *shape) fits(raw []byte, args *json.RawMessage) bool {
	var given, good map[string]any
	if json.Unmarshal(raw, &given) != nil || json.Unmarshal(*args, &good) != nil {
		return false
	}
	if !required(c.schema, good) {
		return false
	}
	for _, k := range c.whole {
		was, list := given[k].([]any)
		is, _ := good[k].([]any)
		if list && len(is) != len(was) || given[k] != nil && good[k] == nil {
			return false
		}
	}
	left, err := json.Marshal(good)
	if err != nil {
		return false
	}
	read, _, wrong := c.args.Read(string(left))
	*args = read
	return wrong == ""
}

// required takes entries of lists and properties out of a value that lack what their schema
// requires, and reports whether the value itself has it.
func required(s *jsonschema.Schema, v any) bool {
	object, ok := v.(map[string]any)
	if !ok {
		return true
	}
	for k, p := range s.Properties {
		e, there := object[k]
		list, ok := e.([]any)
		if ok = ok && p.Items != nil && len(list) > 0; ok {
			list = slices.DeleteFunc(list, func(e any) bool { return !required(p.Items, e) })
			object[k] = list
		}
		if there && !required(p, e) || ok && len(list) == 0 {
			delete(object, k)
		}
	}
	return !slices.ContainsFunc(s.Required, func(k string) bool { return object[k] == nil })
}

// like reports whether an object is meant to be one of the schema: it has most of what
// is required.
func (c *shape) like(v any) bool {
	object, _ := v.(map[string]any)
	n := 0
	for _, k := range c.schema.Required {
		if _, ok := object[k]; ok {
			n++
		}
	}
	return 2*n >= len(c.schema.Required)
}

// cut shortens each list of v to what the schema allows.
func (c *shape) cut(s *jsonschema.Schema, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, p := range s.Properties {
			if e, ok := v[k]; ok {
				v[k] = c.cut(p, e)
			}
		}
	case []any:
		if s.MaxItems != nil && len(v) > *s.MaxItems {
			v = v[:*s.MaxItems]
		}
		if s.Items != nil {
			for i := range v {
				v[i] = c.cut(s.Items, v[i])
			}
		}
		return v
	}
	return v
}

// maxObjects is how many objects of an answer are tried.
const maxObjects = 8

// objects are the texts in an answer that may be the JSON that was asked for, the likeliest
// first: the whole, fenced blocks, those marked as JSON before others, then what stands between
// brackets that match. One that was cut off comes last.
func objects(text string) []string {
	text = strings.TrimSpace(text)
	var marked, fenced []string
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, "```")
		if !ok {
			break
		}
		info, body, _ := strings.Cut(after, "\n")
		block, next, closed := strings.Cut(body, "```")
		if block = strings.TrimSpace(block); strings.HasPrefix(block, "{") {
			if strings.EqualFold(strings.TrimSpace(info), "json") {
				marked = append(marked, block)
			} else {
				fenced = append(fenced, block)
			}
		}
		if !closed {
			break
		}
		rest = next
	}
	var all []string
	if strings.HasPrefix(text, "{") {
		all = append(all, text)
	}
	all = append(append(all, marked...), fenced...)
	all = append(all, balanced(text)...)
	if i := strings.IndexByte(text, '{'); i > 0 {
		all = append(all, text[i:])
	}
	var once []string
	for _, a := range all {
		if !slices.Contains(once, a) && len(once) < maxObjects {
			once = append(once, a)
		}
	}
	return once
}

// balanced are the outermost objects of a text; brackets within strings do not count.
func balanced(text string) (all []string) {
	depth, start, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			i++
		case c == '"' && depth > 0:
			quoted = !quoted
		case quoted:
		case c == '{':
			if depth == 0 {
				start = i
			}
			depth++
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				all = append(all, text[start:i+1])
			}
		}
	}
	return all
}

// Shortened is at most max characters of s, cut at the end of a line where there is one in
// the second half of it, and how many characters were left out.
func Shortened(s string, most int) (short string, left int) {
	if len(s) <= most {
		return s, 0
	}
	n := utf8.RuneCountInString(s)
	if n <= most {
		return s, 0
	}
	end, count := len(s), 0
	for i := range s {
		if count == most {
			end = i
			break
		}
		count++
	}
	short = s[:end]
	if i := strings.LastIndexByte(short, '\n'); i > end/2 {
		short = short[:i]
	}
	return short, n - utf8.RuneCountInString(short)
}

// Headline is the first line of a text, of a longer one the beginning of at most so many
// characters, "…" at its end: no word is cut, and no quotation is left open.
func Headline(s string, most int) string {
	r := []rune(strings.TrimSpace(firstLine(s)))
	if len(r) <= most {
		return string(r)
	}
	inWord := func(c rune) bool { return c < 0x2E80 && !unicode.IsSpace(c) } // those of Japanese may stand by themselves
	end := most - 1
	for end > most/2 && inWord(r[end-1]) && inWord(r[end]) {
		end--
	}
	short := string(r[:end])
	for _, pair := range []string{`""`, "``", "「」", "『』", "（）", "()"} {
		begin, stop := []rune(pair)[0], []rune(pair)[1]
		open := strings.Count(short, string(begin)) > strings.Count(short, string(stop))
		if begin == stop {
			open = strings.Count(short, string(begin))%2 == 1
		}
		if i := strings.LastIndex(short, string(begin)); open && i > 0 {
			short = short[:i]
		}
	}
	return strings.TrimRight(short, " 、。,.…") + "…"
}
