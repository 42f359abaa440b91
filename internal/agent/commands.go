package agent

import (
	"context"
	"encoding/json"
	"log/slog"

	"toritsugi/internal/i18n"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/policy"
)

// judged is the shell tool behind the rules for commands. What they forbid is
// not run, and the model reads why; what a person should be asked about is run
// or not as the settings say, because nobody can be asked yet, and is logged.
type judged struct {
	tool.Tool
	rules  func() (*policy.Policy, error)
	place  policy.Place
	refuse bool // what would be asked about
	log    *slog.Logger
}

func (j judged) Call(ctx context.Context, args json.RawMessage) (tool.Result, error) {
	var a struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(args, &a) != nil {
		return j.Tool.Call(ctx, args) // which says what is wrong with them
	}
	rules, err := j.rules()
	if err != nil {
		return tool.Failf("Not run: the rules for commands cannot be read: %v", err), nil
	}
	v := rules.Judge(a.Command, j.place)
	if v.Decision == policy.Allow {
		return j.Tool.Call(ctx, args)
	}
	run := v.Decision == policy.Ask && !j.refuse
	j.log.Info("Command policy: "+v.Decision.String(), "run", run, "why", v.Text(i18n.English))
	if run {
		return j.Tool.Call(ctx, args)
	}
	return tool.Failf("%s\nDo it in another way, or go on without it and say so at the end.", v.Text(i18n.English)), nil
}

// withPolicy puts the rules before the tools that run commands.
func (r *run) withPolicy(tools []tool.Tool) []tool.Tool {
	if r.Commands == nil {
		return tools
	}
	for i, t := range tools {
		if t.Definition().Name == "shell" {
			tools[i] = judged{t, r.Commands, policy.Place{Workspace: r.ws.Tree(), POSIX: true}, r.RefuseAsked, r.log}
		}
	}
	return tools
}
