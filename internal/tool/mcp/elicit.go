package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/tool"
)

// Elicitation is what a server wants to know from people before it goes on with a
// call: a form, or an address that they are to open. All of it is a stranger's
// text, cleaned and bounded.
type Elicitation struct {
	Server, Tool string // Tool as it is offered
	Message      string
	URL          string // to be opened; "" for a form
	Fields       []Field
}

// Field is one field of a form.
type Field struct {
	Name, Title string
	Type        string   // "string", "integer", "number", "boolean"; "array" of Options
	Options     []string // of which one is chosen, or of an array some; nil takes any
	Required    bool
	values      []string // of Options, as the server wants them
}

// Bounds of a form.
const (
	maxMessage = 2000
	maxFields  = 20
	maxOptions = 50
)

// pendingCall is a call that its server is working on.
type pendingCall struct {
	ctx  context.Context //nolint:containedctx // of the call, which the SDK does not tell the handler of
	name string
	wait *tool.WaitError // people owe an answer
	note string          // why they were not asked, or what was wrong with the answer
}

// whilePending has s do a call, during which it may ask people. Where they owe an answer
// the error is a *tool.WaitError. note says to the model why the server was given
// no answer.
func (s *server) whilePending(ctx context.Context, name string, do func() (tool.Result, error)) (res tool.Result, note string, err error) {
	f := &pendingCall{ctx: ctx, name: name}
	s.pendingMu.Lock()
	s.pending = append(s.pending, f)
	s.pendingMu.Unlock()
	res, err = do()
	if s.opened(err) {
		res, err = do()
	}
	s.pendingMu.Lock()
	defer s.pendingMu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(o *pendingCall) bool { return o == f })
	if f.wait != nil {
		return tool.Result{}, "", f.wait
	}
	if f.note != "" {
		note = "\n\n[The server wanted to know something from people, and was given no answer: " + f.note + ".]"
	}
	return res, note, err
}

// opened reports whether people opened the addresses that a server refused a call
// for.
func (s *server) opened(err error) bool {
	var refusal *jsonrpc.Error
	var needs struct{ Elicitations []*sdk.ElicitParams }
	if s.m.opts.Elicit == nil || !errors.As(err, &refusal) || refusal.Code != sdk.CodeURLElicitationRequired || json.Unmarshal(refusal.Data, &needs) != nil {
		return false
	}
	for _, p := range needs.Elicitations {
		if p == nil || p.URL == "" {
			return false
		}
		if res, err := s.elicit(context.Background(), &sdk.ElicitRequest{Params: p}); err != nil || res.Action != "accept" {
			return false
		}
	}
	return len(needs.Elicitations) > 0
}

// elicit is the SDK's ElicitationHandler.
func (s *server) elicit(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	s.pendingMu.Lock() // one question at a time
	defer s.pendingMu.Unlock()
	if len(s.pending) != 1 {
		for _, f := range s.pending {
			f.note = "several of its calls were under way, and which one it was for is not known. Make this call alone"
		}
		return &sdk.ElicitResult{Action: "cancel"}, nil
	}
	f := s.pending[0]
	e, err := s.elicitation(f.name, req.Params)
	if err != nil {
		f.note = err.Error()
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	said, err := s.m.opts.Elicit(f.ctx, e)
	switch {
	case errors.As(err, &f.wait):
		return &sdk.ElicitResult{Action: "cancel"}, nil
	case err != nil:
		f.note = err.Error()
		return &sdk.ElicitResult{Action: "cancel"}, nil
	}
	content, err := e.read(said)
	if err != nil {
		f.note = err.Error()
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	return &sdk.ElicitResult{Action: "accept", Content: content}, nil
}

// elicitation reads what a server asks; the SDK has looked at the form of it.
func (s *server) elicitation(name string, p *sdk.ElicitParams) (Elicitation, error) {
	e := Elicitation{Server: s.conf.Name, Tool: name, Message: plain(s.hide(p.Message), maxMessage), URL: p.URL}
	if e.URL != "" {
		if line(e.URL, maxMessage) != e.URL || !strings.HasPrefix(e.URL, "https://") {
			return e, errors.New("the address that people were to open is not one to be shown")
		}
		return e, nil
	}
	type choice struct{ Const, Title string }
	var form struct {
		Properties map[string]struct {
			Type, Title, Description string
			Enum, EnumNames          []string
			OneOf                    []choice
			Items                    struct {
				Enum  []string
				AnyOf []choice
			}
		}
		Required []string
	}
	raw, err := json.Marshal(p.RequestedSchema)
	if err == nil && p.RequestedSchema != nil {
		err = json.Unmarshal(raw, &form)
	}
	if err != nil || len(form.Properties) > maxFields {
		return e, fmt.Errorf("its form cannot be shown, or has more than %d fields", maxFields)
	}
	for _, n := range slices.Sorted(maps.Keys(form.Properties)) {
		q := form.Properties[n]
		f := Field{Name: line(n, 80), Title: line(strings.TrimSpace(q.Title+" "+q.Description), maxField), Type: q.Type, Required: slices.Contains(form.Required, n)}
		f.values, f.Options = slices.Concat(q.Enum, q.Items.Enum), slices.Concat(q.EnumNames, q.Items.Enum)
		if len(q.EnumNames) != len(q.Enum) {
			f.Options = slices.Clone(f.values)
		}
		for _, c := range slices.Concat(q.OneOf, q.Items.AnyOf) {
			f.values, f.Options = append(f.values, c.Const), append(f.Options, c.Title)
		}
		if f.Name != n || len(f.values) > maxOptions {
			return e, fmt.Errorf("the field %q of its form cannot be shown", f.Name)
		}
		for i := range f.Options {
			f.Options[i] = line(f.Options[i], 80)
		}
		e.Fields = append(e.Fields, f)
	}
	return e, nil
}

// What people say to agree, or not to.
var (
	yes = []string{"yes", "y", "ok", "done", "accept", "true", "はい", "了解", "承認", "完了"}
	no  = []string{"no", "n", "decline", "false", "いいえ", "拒否"}
)

// read makes an answer of people the content of a form: the value of its one
// field, or a line "name: value" for each. A form without fields, and an address,
// are agreed to. It fails where they decline, or the answer does not fit.
func (e Elicitation) read(said string) (map[string]any, error) {
	var lines []string
	for l := range strings.Lines(said) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, ">") { // what a reply quotes
			lines = append(lines, l)
		}
	}
	said = strings.Join(lines, "\n")
	word := strings.ToLower(strings.TrimRight(said, ".!。！"))
	switch {
	case word == "decline" || word == "拒否" || len(e.Fields) == 0 && slices.Contains(no, word):
		return nil, errors.New("people declined")
	case len(e.Fields) == 0 && slices.Contains(yes, word):
		return map[string]any{}, nil
	case len(e.Fields) == 0:
		return nil, fmt.Errorf("people did not say yes, but: %s", line(said, maxField))
	}
	given := map[string]string{}
	for _, l := range lines {
		if i := strings.IndexAny(l, ":=："); i > 0 {
			given[strings.ToLower(strings.Trim(l[:i], " -*`"))] = strings.TrimSpace(strings.TrimLeft(l[i:], ":=："))
		}
	}
	named := slices.ContainsFunc(e.Fields, func(f Field) bool { _, ok := given[strings.ToLower(f.Name)]; return ok })
	switch {
	case len(e.Fields) == 1 || named || slices.Contains(yes, word):
	case slices.Contains(no, word):
		return nil, errors.New("people declined")
	default:
		return nil, fmt.Errorf("people answered, but with none of its fields: %s", line(said, maxField))
	}
	content := map[string]any{}
	for _, f := range e.Fields {
		text, ok := given[strings.ToLower(f.Name)]
		if !ok && len(e.Fields) == 1 {
			text, ok = said, said != ""
		}
		switch v, err := f.value(text); {
		case !ok && f.Required:
			return nil, fmt.Errorf("people answered without the field %s: %s", f.Name, line(said, maxField))
		case !ok:
		case err != nil:
			return nil, fmt.Errorf("people answered with what does not fit the field %s: %w", f.Name, err)
		default:
			content[f.Name] = v
		}
	}
	return content, nil
}

// value is the value of a field that people wrote down.
func (f Field) value(text string) (any, error) {
	switch word := strings.ToLower(text); {
	case f.Type == "array":
		var all []any
		for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '、' || r == '\n' }) {
			v, err := f.option(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case len(f.values) > 0:
		return f.option(text)
	case f.Type == "boolean" && slices.Contains(yes, word):
		return true, nil
	case f.Type == "boolean" && slices.Contains(no, word):
		return false, nil
	case f.Type == "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err
	case f.Type == "number":
		n, err := strconv.ParseFloat(text, 64)
		return n, err
	case f.Type == "boolean":
		return nil, fmt.Errorf("%q is neither yes nor no", line(text, 80))
	}
	return text, nil
}

// option is the one of Options that people chose, by its text or its number.
func (f Field) option(text string) (any, error) {
	n, err := strconv.Atoi(text)
	for i, v := range f.values {
		if strings.EqualFold(text, v) || strings.EqualFold(text, f.Options[i]) || err == nil && n == i+1 {
			return v, nil
		}
	}
	return nil, fmt.Errorf("%q is none of %s", line(text, 80), strings.Join(f.Options, ", "))
}
