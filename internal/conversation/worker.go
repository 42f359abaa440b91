package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contract"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/models"
	"toritsugi/internal/routing"
	"toritsugi/internal/telemetry"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/web"
	turns "toritsugi/internal/turn"
)

// The limits of what a worker answers (spec/facts §4), and of a leg: calls of its model.
const (
	maxResultChars = 8000
	maxQuestions   = 3
	maxActions     = 3
	maxCalls       = 12
)

// windowShare is the part of a model's window that a request may fill.
const windowShare = 0.75

// work has a worker answer on a route: with tools that read the session's repository, in
// a record of its own, without the session's history.
func (t *turn) work(ctx context.Context, route routing.Route, in contract.Input) (_ contract.Output, err error) {
	ctx, span := telemetry.Start(ctx, "invoke_agent", string(route))
	span.Text(telemetry.Operation, "invoke_agent")
	span.Text(telemetry.AgentName, string(route))
	defer func() { span.End(err) }()
	c, spec, s, err := t.client(ctx, models.Use{Role: models.Worker, Route: string(route)})
	if err != nil {
		return contract.Output{}, err
	}
	defer t.l.begins(activity{Alias: spec.Alias, Route: route, Since: t.e.Now()})()
	ctx, cancel := t.limited(ctx, 0, true)
	defer cancel()
	window := int(float64(spec.Context) * windowShare)
	tools, looks, done, err := t.readers(ctx, route, &s, window, in)
	if err != nil {
		return contract.Output{}, err
	}
	defer done()
	in.Tooling.RepoRead, in.Tooling.WebSearch = has(tools, "read_file"), has(tools, "web_search")
	in.UserText = fitting(t.e.Lang, in.UserText, window/3)
	system, err := t.e.prompts.worker(route)
	if err != nil {
		return contract.Output{}, err
	}
	if route == routing.Research {
		system += "\n\n" + t.e.prompts.text(map[bool]string{true: "workers/research_web.md", false: "workers/research_plan.md"}[looks != nil])
	}
	asked, err := json.Marshal(in)
	if err != nil {
		return contract.Output{}, err
	}
	t.legs++
	var partial strings.Builder
	ledger := &leg{e: t.e, x: t.x, name: fmt.Sprintf("%d.%d", t.entry.Seq, t.legs)}
	if _, err := ledger.Append(contextstore.Message{Role: llm.RoleSystem, Content: system}, contextstore.Message{Role: llm.RoleUser, Content: string(asked)}); err != nil {
		return contract.Output{}, err
	}
	var offered []llm.Tool
	for _, d := range tools.Definitions() {
		offered = append(offered, llm.Tool{Name: d.Name, Description: d.Description, Schema: d.Schema})
	}
	w, err := memory.Open(ledger, c.Open(llm.Settings{Tools: offered}), memory.Policy{Limit: window, Fixed: llm.ToolsBytes(offered), Lang: t.e.Lang, Log: t.e.Log,
		Masking: memory.Masking{Enabled: true, KeepTurns: 4, MinShare: 0.1}})
	if err != nil {
		return contract.Output{}, err
	}
	ready := t.warms(ctx, &spec)
	defer ready(false)
	loop := turns.New(turns.Settings{Ledger: ledger, Window: w, Tools: tools, Budget: turns.Budget{Turns: maxCalls}, Log: t.e.Log, Now: t.e.Now,
		MaxResults: 2 * window}, director{heard: func() { ready(true) }, partial: &partial})
	out, err := t.answer(ctx, loop, route, func(o contract.Output) string { return unsourced(o.Result, looks) })
	if err != nil {
		t.unfinished(route, in.UserText, ledger.messages, partial.String(), err)
	}
	if err == nil && route == routing.Research {
		out.Result, t.found = sourced(out.Result, looks)
	}
	return out, err
}

// answer runs a worker's loop and reads its answer; one that does not keep to the contract
// is asked for once more, as one is that complaint finds something wrong with.
func (t *turn) answer(ctx context.Context, loop *turns.Loop, route routing.Route, complaint func(contract.Output) string) (contract.Output, error) {
	for again := false; ; again = true {
		m, err := loop.Run(ctx)
		if err != nil {
			return contract.Output{}, cause(ctx, err)
		}
		out, err := contract.ReadOutput(route, m.Content)
		problem := ""
		switch wrong := (*contract.AnswerError)(nil); {
		case errors.As(err, &wrong):
			problem = wrong.Problem
		case err == nil:
			problem = complaint(out)
		}
		if problem == "" || again {
			return out, err
		}
		if err := loop.Tell(ctx, t.e.Lang.T("conversation.answer_again", problem)); err != nil {
			return contract.Output{}, err
		}
	}
}

// director tells that a model has begun to answer, and holds what there is of an answer.
type director struct {
	turns.NoDirector
	heard   func()
	partial *strings.Builder
}

// Stream implements turn.Director.
func (d director) Stream(delta string) {
	d.heard()
	d.partial.WriteString(delta)
}

// Read implements turn.Director.
func (d director) Read(*llm.Reply) { d.partial.Reset() } // it is in the leg's record

// readers are the tools that read the session's repository, none where it has none, and
// for RESEARCH those that look things up; looks is nil where there are none of these.
func (t *turn) readers(ctx context.Context, route routing.Route, s *State, window int, in contract.Input) (r *tool.Registry, looks *web.Lookup, done func(), err error) {
	limits := tool.Limits{MaxOutput: max(min(tool.DefaultMaxOutput, window/2), tool.MinMaxOutput)}
	done = func() {}
	var all []tool.Tool
	if repo, ok := t.e.repository(t.x.ID, t.m.User, s); ok {
		root, end, err := t.e.tree(ctx, repo)
		if err != nil {
			return nil, nil, done, err
		}
		done = end
		all = slices.DeleteFunc(tool.Builtins(tool.Env{Root: root, Limits: limits, Numbered: true}), func(b tool.Tool) bool { return !b.Definition().ReadOnly })
	}
	if route == routing.Research && t.e.Web != nil && !s.LocalOnly {
		looks = t.e.Web.Open(web.Leg{Limits: limits, Given: t.given(in), Private: len(all) > 0, May: t.mayLook})
		all = append(all, looks.Tools()...)
	}
	if r, err = tool.NewRegistry(limits, all...); err == nil {
		r, err = r.Restrict(t.e.Access...)
	}
	return r, looks, done, err
}

// tree opens the files of a repository.
func (e *Engine) tree(ctx context.Context, r Repository) (root *os.Root, done func(), err error) {
	if r.URL != "" {
		if e.Tree == nil {
			return nil, nil, i18n.E("conversation.no_forge", r.Name, r.URL)
		}
		return e.Tree(ctx, r)
	}
	root, err = os.OpenRoot(r.Path)
	return root, func() { _ = root.Close() }, err // only read from
}

// input is what a worker is given of the session and the task.
func (t *turn) input(route routing.Route, task string, former json.RawMessage) (contract.Input, error) {
	s, err := t.x.state()
	if err != nil {
		return contract.Input{}, err
	}
	recent, err := t.recent(&s)
	if err != nil {
		return contract.Input{}, err
	}
	in := contract.Input{Route: route, UserText: task,
		Session: contract.Session{SessionID: t.x.ID, Channel: t.x.kind, TargetOS: t.targetOS(), Timezone: t.e.zone(), Now: t.e.Now().In(t.e.Zone).Format(time.RFC3339)},
		Context: contract.Context{ShortMemory: s.ShortMemory, RecentTurns: recent, FormerResult: former},
		Flags:   contract.Flags{LocalOnly: s.LocalOnly, PrevPrimaryRoute: s.PrevRoute},
		Limits:  contract.Limits{MaxResultChars: maxResultChars, MaxQuestions: maxQuestions, MaxNextActions: maxActions}}
	for _, a := range t.m.Attachments {
		if textual(a) {
			in.UserText += "\n\n" + t.file(a)
		}
	}
	if repo, ok := t.e.repository(t.x.ID, t.m.User, &s); ok {
		in.Session.Repo = &contract.Repo{Name: repo.Name}
	}
	return in, nil
}

// zone is the name of the house's time zone, "" where it has none.
func (e *Engine) zone() string {
	if e.Zone == time.Local {
		return ""
	}
	return e.Zone.String()
}

// targetOS is the system that instructions are for: that of the terminal is this one's,
// who writes from elsewhere may have any.
func (t *turn) targetOS() string {
	if t.x.kind != "terminal" {
		return "unknown"
	}
	switch runtime.GOOS {
	case "linux", "windows":
		return runtime.GOOS
	case "darwin":
		return "mac"
	}
	return "unknown"
}

// maxRecent is how much of one text a worker is given of what was said before, in
// characters.
const maxRecent = 1500

// recent are the latest texts of the session before the message at hand.
func (t *turn) recent(s *State) ([]contract.Turn, error) {
	said := []Entry{t.entry}
	err := t.x.current(func(n Entry) bool {
		if n.Seq <= s.CutSeq || len(said) > 2*t.e.RecentTurns {
			return false
		}
		if n.said() && n.Seq < t.entry.Seq {
			said = append(said, n)
		}
		return true
	})
	slices.Reverse(said)
	said = unrepeated(said)
	all := []contract.Turn{}
	for _, n := range said[:len(said)-1] {
		text, _ := contract.Shortened(n.text(), maxRecent)
		all = append(all, contract.Turn{Role: n.Role, Text: text})
	}
	return all, err
}

// repository is the one that a session works on: the one it was given, where it was
// started, the one its channel is mapped to, the only one there is (spec/chat §1).
func (e *Engine) repository(id, user string, s *State) (Repository, bool) {
	mine := e.named(id, user)
	if s.Repository != "" {
		i := slices.IndexFunc(mine, func(r Repository) bool { return r.Name == s.Repository })
		if i >= 0 {
			return mine[i], true
		}
	}
	if e.Here != nil && kindOf(id) == "terminal" {
		return *e.Here, true
	}
	for _, r := range mine {
		if r.mapped(id) {
			return r, true
		}
	}
	if len(mine) == 1 {
		return mine[0], true
	}
	return Repository{}, false
}

// named are the repositories that a user may name in a session.
func (e *Engine) named(id, user string) (mine []Repository) {
	if e.Here != nil && kindOf(id) == "terminal" {
		mine = append(mine, *e.Here)
	}
	for _, r := range e.Repositories {
		if len(r.Users) > 0 && !slices.Contains(r.Users, user) || len(r.Channels) > 0 && !r.mapped(id) {
			continue
		}
		mine = append(mine, r)
	}
	return mine
}

// mapped reports whether a session is of one of the repository's channels.
func (r Repository) mapped(id string) bool {
	return slices.ContainsFunc(r.Channels, func(c string) bool { return id == c || len(id) > len(c) && id[:len(c)] == c && id[len(c)] == ':' })
}
