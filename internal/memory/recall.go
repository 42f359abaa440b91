package memory

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/llm"
	"toritsugi/internal/tool"
)

//go:embed recall.md
var recallPage string

const recallSchema = `{"type":"object","properties":{"ref":{"type":"string"},"from_line":{"type":"integer","minimum":1},"pattern":{"type":"string"},` +
	`"limit":{"$comment":"untold","type":"integer","minimum":1,"maximum":2000}},"required":["ref"],"additionalProperties":false}`

// Record is what recall reads of a run. *contextstore.MessageLog has it, beside
// the images.
type Record interface {
	Range(from, to int64, f func(m contextstore.Message, raw []byte) bool) error
	Tail(n int, f func(m contextstore.Message, raw []byte) bool) error
}

// Source is further text that can be recalled, as what an earlier run left. It
// returns the text of a reference that is its own; found is false for others.
type Source func(ctx context.Context, ref string) (text string, found bool, err error)

// Recall is the tool that shows what left the window. It only reads.
type Recall struct {
	Record    Record
	Image     func(contextstore.Image) ([]byte, error) // nil: images are not shown
	SpillDir  string                                   // of outputs that were cut; "" where none are kept
	MaxOutput int                                      // bytes of a result; 0 is tool.DefaultMaxOutput
	Sources   []Source
}

// recallCalls is how many of the latest messages are searched for the id of a
// call: reading back stays bounded.
const recallCalls = 10_000

// A message's reference, and that of an output.
var (
	messageRef = lazyregexp.New(`^m-([0-9]{1,18})$`)
	outputRef  = lazyregexp.New(`^output-[0-9]+(\.txt)?$`)
)

// Definition is what the model is told.
func (*Recall) Definition() tool.Definition {
	description, help, _ := strings.Cut(strings.TrimSpace(recallPage), "\n\n")
	return tool.Definition{Name: "recall", Description: description, Help: help, Schema: tool.Told(recallSchema), Reads: json.RawMessage(recallSchema), ReadOnly: true,
		Aliases: map[string]string{"id": "ref", "name": "ref", "output": "ref", "start_line": "from_line"},
		Names:   map[string]string{"read_output": ""}, Was: wasRecall}
}

// wasRecall tells outputs, which a tool of their own read once, from messages.
func wasRecall(args json.RawMessage) string {
	var a recallArgs
	if json.Unmarshal(args, &a) == nil && outputRef().MatchString(a.Ref) {
		return "read_output"
	}
	return "recall"
}

type recallArgs struct {
	Ref     string      `json:"ref"`
	From    json.Number `json:"from_line"`
	Pattern string      `json:"pattern"`
	Limit   json.Number `json:"limit"`
}

// Call shows what a reference names.
func (r *Recall) Call(ctx context.Context, raw json.RawMessage) (tool.Result, error) {
	var a recallArgs
	if err := json.Unmarshal(raw, &a); err != nil {
		return tool.Failf("The arguments of recall cannot be read: %v.", err), nil
	}
	if r.MaxOutput <= 0 {
		r = &Recall{r.Record, r.Image, r.SpillDir, tool.DefaultMaxOutput, r.Sources}
	}
	a.Ref = strings.Trim(strings.TrimSpace(a.Ref), "[]")
	for _, s := range r.Sources {
		text, found, err := s(ctx, a.Ref)
		switch {
		case ctx.Err() != nil:
			return tool.Result{}, ctx.Err()
		case err != nil:
			return tool.Failf("%s cannot be read: %v.", short(a.Ref), err), nil
		case found:
			return r.show(ctx, a, a.Ref, text)
		}
	}
	if outputRef().MatchString(a.Ref) {
		return r.output(ctx, a)
	}
	m, err := r.find(a.Ref)
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, ctx.Err()
	case err != nil:
		return tool.Failf("The record of this run cannot be read: %v.", err), nil
	case m == nil:
		return tool.Failf("There is nothing by the reference %q. Take it from the line that says what was left out: m- and a number, e.g. m-12, or the name of an output.", short(a.Ref)), nil
	}
	res, err := r.show(ctx, a, ref(m.Seq), original(m))
	if err == nil && a.From == "" && a.Pattern == "" && !res.IsError {
		r.addImages(&res, m)
	}
	return res, err
}

// find returns the message of a reference, nil where there is none.
func (r *Recall) find(name string) (found *contextstore.Message, err error) {
	if n := messageRef().FindStringSubmatch(name); n != nil {
		seq, err := strconv.ParseInt(n[1], 10, 64)
		if err != nil {
			return nil, nil // longer than any number of a message
		}
		err = r.Record.Range(seq, seq, func(m contextstore.Message, _ []byte) bool { found = &m; return false })
		return found, err
	}
	if name == "" {
		return nil, nil
	}
	err = r.Record.Tail(recallCalls, func(m contextstore.Message, _ []byte) bool {
		if string(m.ToolCallID) == name {
			found = &m // the latest, should an id be there twice
		}
		return true
	})
	return found, err
}

func (r *Recall) output(ctx context.Context, a recallArgs) (tool.Result, error) {
	name := strings.TrimSuffix(a.Ref, ".txt")
	f, err := tool.OpenSpill(r.SpillDir, name+".txt")
	if errors.Is(err, fs.ErrNotExist) || r.SpillDir == "" {
		return tool.Failf("There is no output %q. Give the name from the line that said what was cut, e.g. output-000001.", short(a.Ref)), nil
	}
	if err != nil {
		return tool.Failf("The output %s cannot be read.", name), nil
	}
	defer func() { _ = f.Close() }() // it was only read
	return r.excerpt(ctx, a, name, f)
}

// original is a message as it stands in the record.
func original(m *contextstore.Message) string {
	if m.Role == llm.RoleTool {
		return m.Content
	}
	var b strings.Builder
	b.WriteString(m.Content)
	for _, c := range m.ToolCalls {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "call of %s\n", c.Name)
		if err := members(c.Arguments, func(name string, value json.RawMessage) {
			var text string
			if json.Unmarshal(value, &text) != nil {
				text = string(value)
			}
			fmt.Fprintf(&b, "%s:\n%s\n", name, text)
		}); err != nil {
			b.WriteString(c.Arguments)
		}
	}
	return b.String()
}

// show gives a text whole where it fits and no part was asked for.
func (r *Recall) show(ctx context.Context, a recallArgs, name, text string) (tool.Result, error) {
	if a.From == "" && a.Pattern == "" && a.Limit == "" && len(text) <= r.MaxOutput {
		return tool.Text(text), nil
	}
	return r.excerpt(ctx, a, name, strings.NewReader(text))
}

func (r *Recall) excerpt(ctx context.Context, a recallArgs, name string, in io.Reader) (tool.Result, error) {
	from, limit := whole64(a.From), whole64(a.Limit)
	return tool.Excerpt(ctx, name, in, from, limit, a.Pattern, r.MaxOutput)
}

// whole64 reads a number that the schema says is whole; models write 3.0, too.
func whole64(n json.Number) int {
	f, err := n.Float64()
	if err != nil || f < 0 || f > 1e15 {
		return 0
	}
	return int(f)
}

// addImages shows the images of a message again.
func (r *Recall) addImages(res *tool.Result, m *contextstore.Message) {
	for i, image := range m.Images {
		if image.Path == "" || r.Image == nil {
			continue
		}
		data, err := r.Image(image)
		if err != nil {
			res.Text += fmt.Sprintf("\n[image %d cannot be read]", i+1)
			continue
		}
		res.Images = append(res.Images, tool.Image{MediaType: image.MediaType, Data: data})
	}
}
