// Package tool is the registry of tools that a model may call, and the built-in ones. A failure
// of a tool is a result that the model reads, never an error of the run. Tools reach only the
// task's workspace, and run commands only in the sandbox.
package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"toritsugi/internal/disk"
)

// Definition is what the model is told about a tool, and how its calls are read.
type Definition struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments, an object
	ReadOnly    bool            // changes nothing: may run in parallel, and again after a crash
	Waits       bool            // for people: may end in a *WaitError, and is called after the other calls of an answer

	// What follows is not told.

	// Deferred has the tool callable and not among Registry.Definitions.
	Deferred bool
	// Reads is the schema that arguments are read by, where it bounds them more than
	// Schema, which costs tokens with each request, does; nil where it does not.
	Reads json.RawMessage
	// Help is told the first time that the arguments of a call cannot be read.
	Help string
	// Aliases are other names that models give to arguments, with the name that is
	// meant, or "-" for those that say nothing to the tool.
	Aliases map[string]string
	// Prose says that the arguments are words for readers: what has another form than the
	// schema's is put into it, see prose.go.
	Prose bool
	// Names are further names of the tool: those of tools that it took the place of,
	// and what models call it. Each has the arguments that it stands for besides
	// those of the call, as a JSON object, or "".
	Names map[string]string
	// Was is the name of the tool that once did what a call does: rules for tools may
	// say that. nil: the tool's own.
	Was func(args json.RawMessage) string
}

// WaitError ends a call whose result people owe. The run is put aside; when it is
// taken up the call is made again, as one that only reads: it had no effect.
type WaitError struct {
	For   string // what is waited for, for people
	Cause error  // why it cannot be found out whether it came; nil where it did not
}

func (e *WaitError) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("waiting for people: %s: %v", e.For, e.Cause)
	}
	return "waiting for people: " + e.For
}

func (e *WaitError) Unwrap() error { return e.Cause }

type callKey struct{}

// WithCall returns a context for one call, which its id tells from all others of a
// run, also when it is made again.
func WithCall(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, callKey{}, id)
}

// CallID is the id of the call that ctx is for; "" where it has none.
func CallID(ctx context.Context) string {
	id, _ := ctx.Value(callKey{}).(string)
	return id
}

// Result is what a call gave, as the model reads it.
type Result struct {
	Text    string
	Images  []Image // that belong to the text, which says what each is
	IsError bool

	// Args are the arguments with which the registry made the call, where they were
	// valid or could be made so; nil else.
	Args json.RawMessage
}

// Image is a picture in a result.
type Image struct {
	MediaType string // e.g. "image/png"; judged by the data
	Data      []byte
}

// Tool is one tool. Call gets arguments that are valid against the schema, and
// returns an error only where ctx ended, or a *WaitError; every other failure is a
// Result with IsError, whose text says what to do.
type Tool interface {
	Definition() Definition
	Call(ctx context.Context, args json.RawMessage) (Result, error)
}

// Text returns the result of a call that did what was asked.
func Text(text string) Result { return Result{Text: text} }

// Failf returns the result of a call that could not do what was asked. The
// text is a sentence for the model: what happened, to what, what to do next.
func Failf(format string, args ...any) Result {
	return Result{Text: fmt.Sprintf(format, args...), IsError: true}
}

// Limits bounds what one call may put into the conversation and onto the disk.
// The registry and the built-ins of one run are given the same Limits.
type Limits struct {
	// MaxOutput is the most bytes a result's text may have, the note about a
	// cut included; 0 means DefaultMaxOutput, the least is MinMaxOutput.
	MaxOutput int
	// SpillDir is the directory that gets the full text of cut results, as
	// output-NNNNNN.txt, for recall to read; it is made where missing.
	// Empty: what is cut is gone.
	SpillDir string
	// MaxSpill is the most bytes of one spilled output that are kept; 0 means
	// DefaultMaxSpill. MaxSpillAll is the most of all in SpillDir together, those
	// of an earlier process included; 0 means DefaultMaxSpillAll.
	MaxSpill, MaxSpillAll int64
	// NoSync leaves spilled outputs in the page cache (durability "os").
	NoSync bool
	// MaxPrint is the most bytes that one command may print before it is
	// stopped; 0 means DefaultMaxPrint.
	MaxPrint int64
	// Disk writes the spilled texts; nil means a new one that writes for real.
	Disk *disk.FS
	// Filter wraps the writer of every text that is cut, before it is cut and
	// before it is spilled, so that no secret is split or reaches the disk.
	// Close must flush. Nil: the text is kept as it is.
	Filter func(w io.Writer) io.WriteCloser
}

// The bounds of Limits where none are given, in bytes.
const (
	DefaultMaxOutput   = 30_000
	MinMaxOutput       = 1_024
	DefaultMaxSpill    = 64 << 20
	DefaultMaxSpillAll = 1 << 30
	DefaultMaxPrint    = 256 << 20
)

// withDefaults returns l with its zero values replaced.
func (l Limits) withDefaults() Limits {
	l.MaxOutput = max(cmp.Or(l.MaxOutput, DefaultMaxOutput), MinMaxOutput)
	l.MaxSpill = cmp.Or(max(l.MaxSpill, 0), DefaultMaxSpill)
	l.MaxSpillAll = cmp.Or(max(l.MaxSpillAll, 0), DefaultMaxSpillAll)
	l.MaxPrint = cmp.Or(max(l.MaxPrint, 0), DefaultMaxPrint)
	l.Disk = cmp.Or(l.Disk, new(disk.FS))
	return l
}
