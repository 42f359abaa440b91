package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/spelling"
	"toritsugi/internal/telemetry"
)

// Registry is the fixed set of tools of one run. Its order never changes, so
// that the definitions a provider caches stay byte-equal. It is safe for
// concurrent use as far as its tools are; read-only tools always are.
type Registry struct {
	limit   Limits
	spill   *spiller
	entries []entry // sorted by name

	others   map[string]other  // further names of the tools
	withheld map[string]string // tools that may not be used, and why
}

type entry struct {
	tool    Tool
	def     Definition
	args    *Arguments
	rules   []Access     // for the uses that were tools of their own
	advised *atomic.Bool // the model had the help
}

// other is what a further name of a tool stands for.
type other struct {
	name string
	args map[string]any
}

// toolName is what every provider accepts as a function's name (OpenAI and
// Anthropic API references, "tools").
var toolName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// NewRegistry returns the registry of tools. It fails on a name that is taken
// or that providers refuse, on a schema that is not a valid JSON Schema of an
// object, and on a MaxOutput below MinMaxOutput.
func NewRegistry(limit Limits, tools ...Tool) (*Registry, error) {
	if limit.MaxOutput != 0 && limit.MaxOutput < MinMaxOutput {
		return nil, fmt.Errorf("tool registry: MaxOutput is %d bytes, the least is %d", limit.MaxOutput, MinMaxOutput)
	}
	limit = limit.withDefaults()
	r := &Registry{limit: limit, spill: newSpiller(limit), others: map[string]other{}}
	for _, t := range tools {
		def := t.Definition()
		if !toolName().MatchString(def.Name) {
			return nil, fmt.Errorf("tool registry: %q is no valid name of a tool: use 1 to 64 of a-z A-Z 0-9 _ -", def.Name)
		}
		args, err := NewArguments(def)
		if err != nil {
			return nil, fmt.Errorf("tool registry: schema of %s: %w", def.Name, err)
		}
		var told bytes.Buffer
		if err := json.Compact(&told, def.Schema); err != nil {
			return nil, fmt.Errorf("tool registry: schema of %s: %w", def.Name, err)
		}
		def.Schema = told.Bytes()
		r.entries = append(r.entries, entry{tool: t, def: def, args: args, advised: new(atomic.Bool)})
		for name, fixed := range def.Names {
			o := other{name: def.Name}
			if err := json.Unmarshal([]byte(cmp.Or(fixed, "{}")), &o.args); err != nil {
				return nil, fmt.Errorf("tool registry: %s as %s: %w", def.Name, name, err)
			}
			r.others[name] = o
		}
	}
	slices.SortFunc(r.entries, func(a, b entry) int { return strings.Compare(a.def.Name, b.def.Name) })
	for i := 1; i < len(r.entries); i++ {
		if name := r.entries[i].def.Name; name == r.entries[i-1].def.Name {
			return nil, fmt.Errorf("tool registry: two tools are named %s", name)
		}
	}
	return r, nil
}

// Definitions returns the definitions of all tools but the Deferred ones, sorted
// by name. The slice is the caller's; the schemas are shared and must not be changed.
func (r *Registry) Definitions() []Definition {
	defs := make([]Definition, 0, len(r.entries))
	for _, e := range r.entries {
		if !e.def.Deferred {
			defs = append(defs, e.def)
		}
	}
	return defs
}

// ReadOnly reports whether the named tool changes nothing; false for a name
// that is not known.
func (r *Registry) ReadOnly(name string) bool {
	e := r.find(name)
	return e != nil && e.def.ReadOnly
}

// Own is the own name of the tool that a name stands for; the name itself where no
// tool has it, or where it stands for a call with arguments of its own.
func (r *Registry) Own(name string) string {
	if e := r.find(name); e != nil && len(r.others[name].args) == 0 {
		return e.def.Name
	}
	return name
}

// Waits reports whether the named tool may have to wait for people.
func (r *Registry) Waits(name string) bool {
	e := r.find(name)
	return e != nil && e.def.Waits
}

// Call runs the named tool with the arguments as the model wrote them and
// blocks until it ends. The result's text is valid UTF-8 without NULs and at
// most MaxOutput bytes long. The error is not nil only where ctx ended, or is a
// *WaitError.
func (r *Registry) Call(ctx context.Context, name, rawArgs string) (Result, error) {
	ctx, span := telemetry.Start(ctx, "execute_tool", r.traced(name))
	res, err := r.call(ctx, name, rawArgs)
	if span != nil {
		endSpan(span, r.traced(name), rawArgs, res, err)
	}
	return res, err
}

func (r *Registry) call(ctx context.Context, name, rawArgs string) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("call tool %s: %w", name, err)
	}
	res, err := r.dispatch(ctx, name, rawArgs)
	if err != nil {
		if ctx.Err() != nil {
			return Result{}, fmt.Errorf("call tool %s: %w", name, ctx.Err())
		}
		if errors.As(err, new(*WaitError)) {
			return Result{}, err
		}
		res = Failf("The tool %s failed: %v", name, err)
	}
	return r.bounded(res), nil
}

func (r *Registry) dispatch(ctx context.Context, name, rawArgs string) (Result, error) {
	e := r.find(name)
	if e == nil {
		return r.unknown(name), nil
	}
	var fixed map[string]any
	if e.def.Name != name {
		fixed = r.others[name].args
	}
	args, notes, problem := e.args.read(rawArgs, fixed)
	if problem != "" {
		if e.def.Help != "" && !e.advised.Swap(true) {
			problem += "\n\n" + e.def.Help
		}
		return Failf("The arguments of %s are not valid: %s", name, problem), nil
	}
	if e.def.Was != nil {
		if was := e.def.Was(args); refusal(e.rules, e.def.Name, was) != "" {
			return withheld(was, refusal(e.rules, e.def.Name, was)), nil
		}
	}
	res, err := r.protected(ctx, e, args)
	res.Args = args
	if len(notes) > 0 {
		res.Text = strings.TrimSuffix(res.Text, "\n") + "\n[" + strings.Join(notes, "; ") + "]"
	}
	return res, err
}

// protected calls the tool and turns a panic into a result: one broken tool
// must not end a run that has hours of work behind it.
func (r *Registry) protected(ctx context.Context, e *entry, args json.RawMessage) (res Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = Failf("The tool %s crashed: %v. This is a defect of the tool; try another way.", e.def.Name, clip(fmt.Sprint(v), 500)), nil
		}
	}()
	return e.tool.Call(ctx, args)
}

// find returns the tool of a name, its own or another, nil for none.
func (r *Registry) find(name string) *entry {
	own := func(name string) *entry {
		i, ok := slices.BinarySearchFunc(r.entries, name, func(e entry, n string) int { return strings.Compare(e.def.Name, n) })
		if !ok {
			return nil
		}
		return &r.entries[i]
	}
	if e := own(name); e != nil || r.withheld[name] != "" {
		return e
	}
	return own(r.others[name].name)
}

func withheld(name, reason string) Result {
	return Failf("The tool %s may not be used here: %s. Do it another way, or say that it cannot be done.", name, reason)
}

func (r *Registry) unknown(name string) Result {
	for _, n := range []string{name, r.others[name].name} {
		if reason := r.withheld[n]; reason != "" {
			return withheld(name, reason)
		}
	}
	var known, names []string
	for _, e := range r.entries {
		names = append(names, e.def.Name)
		if !e.def.Deferred {
			known = append(known, e.def.Name)
		}
	}
	for n, o := range r.others {
		if r.withheld[o.name] == "" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	hint := ""
	if n := spelling.Nearest(name, names); n != "" {
		hint = fmt.Sprintf(" Did you mean %s?", cmp.Or(r.others[n].name, n))
	}
	return Failf("There is no tool named %q.%s Known tools: %s.", clip(name, 100), hint, strings.Join(known, ", "))
}

// bounded makes the text of res fit for the conversation.
func (r *Registry) bounded(res Result) Result {
	if len(res.Text) <= r.limit.MaxOutput && utf8.ValidString(res.Text) && strings.IndexByte(res.Text, 0) < 0 {
		return res
	}
	c := newCapture(r.limit, r.spill)
	_, _ = c.Write([]byte(res.Text)) // a capture never refuses: a failed spill is told in the text
	res.Text = c.Finish(r.limit.MaxOutput)
	return res
}
