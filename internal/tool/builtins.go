package tool

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/lazyregexp"
)

// Env is what the built-in tools act on. Everything in it stays the caller's.
type Env struct {
	Root *os.Root // the task's workspace; required, open for as long as the tools are used
	Dir  string   // the workspace's absolute path as commands see it; "" for Root.Name()

	Shell Shell // runs commands in the sandbox; nil: there is no shell tool
	Git   Git   // answers for the tool git; nil: there is none

	// Numbered has read_file show the number of each line: for whoever names lines and edits
	// nothing (docs/decisions/071).
	Numbered bool

	// Judge says why a command may not be run in dir, a path with slashes
	// relative to the workspace; "" where it may. Nil: every one may.
	Judge func(ctx context.Context, command, dir string) string

	// Jobs are the commands in the background; nil: there are none. Whoever made
	// them closes them at the end of the run.
	Jobs *Jobs

	// Masks returns the first masking token in s, e.g. "[EMAIL]", if there is
	// one. Nil: nothing is masked.
	Masks func(s string) (token string, ok bool)

	Hosts        []string      // what commands may reach, as the settings name it; nil for no network
	ShellTimeout time.Duration // of a command that names none; 0 means 120 s

	Limits Limits // those of the registry
}

// Builtins returns the built-in tools for the workspace of env, sorted by name.
func Builtins(env Env) []Tool {
	env.Limits = env.Limits.withDefaults()
	w := &workspaceFiles{root: env.Root, dirs: []string{env.Root.Name()}, masks: env.Masks, filter: env.Limits.Filter, max: env.Limits.MaxOutput, numbered: env.Numbered}
	if env.Dir != "" {
		w.dirs = append(w.dirs, env.Dir)
	}
	tools := []Tool{editFileTool(w)}
	if env.Git != nil {
		tools = append(tools, gitTool(w, env.Git, env.Shell != nil))
	}
	tools = append(tools, grepTool(w), listFilesTool(w), readFileTool(w))
	if env.Shell != nil {
		c := newCommands(w, env)
		tools = append(tools, shellTool(c))
		if c.jobs != nil {
			tools = append(tools, shellJobTool(c))
		}
	}
	return append(tools, writeFileTool(w))
}

// workspaceFiles is the workspace as the built-ins share it.
type workspaceFiles struct {
	root     *os.Root
	dirs     []string // absolute paths that mean the root
	masks    func(s string) (string, bool)
	filter   func(io.Writer) io.WriteCloser // nil: the model sees what the files hold
	max      int                            // bytes of a result
	numbered bool                           // read_file numbers lines
	write    sync.Mutex                     // held from the read to the rename of a change
}

// builtin is a tool whose arguments are a T.
type builtin[T any] struct {
	def  Definition
	call func(ctx context.Context, args T) (Result, error)
}

// Of is the tool of a definition whose arguments, as its schema has them, are a T.
func Of[T any](d Definition, call func(ctx context.Context, args T) (Result, error)) Tool {
	return builtin[T]{d, call}
}

func (b builtin[T]) Definition() Definition { return b.def }

func (b builtin[T]) Call(ctx context.Context, raw json.RawMessage) (Result, error) {
	var args T
	if err := json.Unmarshal(raw, &args); err != nil {
		return Failf("The arguments of %s cannot be read: %v.", b.def.Name, err), nil
	}
	return b.call(ctx, args)
}

// Describe makes the definition of a tool from its page, whose first paragraph
// is the description and whose rest is the help. aliases are pairs of a name that
// models use and the one that is meant.
func Describe(name, page, schema string, readOnly bool, aliases ...string) Definition {
	description, help, _ := strings.Cut(strings.TrimSpace(page), "\n\n")
	d := Definition{Name: name, Description: description, Help: help, Schema: Told(schema), Reads: json.RawMessage(schema), ReadOnly: readOnly,
		Names:   map[string]string{},
		Aliases: map[string]string{"explanation": saysNothing, "reason": saysNothing, "thought": saysNothing}}
	for _, n := range callNames[name] {
		d.Names[n] = ""
	}
	for i := 0; i < len(aliases); i += 2 {
		d.Aliases[aliases[i]] = aliases[i+1]
	}
	return d
}

// Told is what a model is shown of a schema of ours (Definition.Reads): without the bounds of numbers, which
// are brought within them, the word that there are no other arguments, and the properties whose $comment is
// "untold": the help has them, and the answer names them where they would help.
func Told(schema string) json.RawMessage {
	return json.RawMessage(unsaid().ReplaceAllString(schema, ""))
}

var unsaid = lazyregexp.New(`,"(?:minimum|maximum)":\d+|,"additionalProperties":false|,"\$comment":"argv"|,"\w+":\{"\$comment":"untold"[^}]*\}`)

// callNames are names by which models know the tools.
var callNames = map[string][]string{
	"read_file":  {"open_file", "view_file", "view", "read", "cat"},
	"edit_file":  {"edit", "str_replace", "replace_in_file", "search_replace"},
	"write_file": {"create_file", "write", "save_file"},
	"list_files": {"glob", "find_files", "list_dir", "list_directory", "ls"},
	"grep":       {"search", "search_files", "grep_search", "rg"},
	"web_fetch":  {"fetch", "fetch_url", "open_url", "read_url", "visit"},
	"web_search": {"search_web", "google", "internet_search"},
	"shell":      {"bash", "sh", "run_command", "execute_command", "run_shell_command", "terminal"},
}

// Names by which models know what some arguments of several tools are.
var (
	fileAliases   = []string{"file_path", "path", "filename", "path", "file", "path", "target_file", "path", "filepath", "path"}
	dirAliases    = []string{"directory", "path", "dir", "path", "folder", "path", "dir_path", "path"}
	searchAliases = append([]string{"max_results", "limit", "head_limit", "limit"}, dirAliases...)
)

// Number is an integer that may be written as 10.0, which JSON Schema calls an
// integer (draft 2020-12 §4.2.3) and encoding/json does not.
type Number int

// UnmarshalJSON takes any JSON number and drops what is beyond an int.
func (n *Number) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	*n = Number(min(max(f, -1<<53), 1<<53))
	return nil
}
