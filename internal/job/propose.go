package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/contract"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/order"
	"toritsugi/internal/progress"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
)

// proposing is a run that has not proposed yet.
type proposing struct {
	r     *Runner
	c     *contextstore.Context
	o     order.Order
	at    *place
	tries int
	job   *approval.Job // once it has
	said  contract.Coder
}

// maxTries is how many proposals that cannot be put to anybody go back to the model.
const maxTries = 5

// maxReminders is how often a model that answers without a proposal is asked for one.
const maxReminders = 2

// spillDir holds outputs that were cut, below the directory of the context.
const spillDir = "spill"

// propose has the model read and propose. It is the turn loop of every run, with tools that
// read and one that proposes.
func (r *Runner) propose(ctx context.Context, c *contextstore.Context, o order.Order) (approval.Job, *contract.Coder, error) {
	at, err := r.place(ctx, c, o)
	if err != nil {
		return approval.Job{}, nil, err
	}
	defer func() { _ = at.close() }()
	p := &proposing{r: r, c: c, o: o, at: at}
	if err := p.begin(); err != nil {
		return approval.Job{}, nil, err
	}
	loop, err := p.loop(ctx)
	if err != nil {
		return approval.Job{}, nil, err
	}
	for reminders := 0; ; reminders++ {
		m, err := loop.Run(ctx)
		if err != nil {
			return approval.Job{}, nil, err
		}
		word := remind
		if p.job == nil && strings.Contains(m.Content, "{") { // of a model without tools
			said, err := contract.ReadCoder(m.Content)
			if err == nil {
				err = p.put(ctx, said)
			}
			if err != nil && !refused(err) && !errors.As(err, new(*contract.AnswerError)) {
				return approval.Job{}, nil, err
			}
			if err != nil {
				word = "Your proposal was not taken: " + i18n.English.Error(err) + "\n" + remind
			}
		}
		if p.job != nil {
			return *p.job, &p.said, nil
		}
		if p.tries > maxTries || reminders == maxReminders {
			return approval.Job{}, nil, i18n.E("job.no_proposal")
		}
		if err := loop.Tell(ctx, word); err != nil {
			return approval.Job{}, nil, err
		}
	}
}

// remind asks for a proposal where an answer has none.
const remind = "Nothing was proposed yet. Call the tool propose once, with the plan and the patch; where nothing needs to be changed, with the plan alone."

// begin appends the first messages, unless an earlier owner did.
func (p *proposing) begin() error {
	first := []contextstore.Message{{Role: llm.RoleSystem, Content: p.o.Chat.Prompt}, {Role: llm.RoleUser, Content: p.o.Chat.Request}}
	if n := p.c.LastSeq(); n < int64(len(first)) {
		_, err := p.c.Append(first[n:]...)
		return err
	}
	return nil
}

// loop is the loop of model and tools.
func (p *proposing) loop(ctx context.Context) (*turn.Loop, error) {
	r := p.r
	limits := tool.Limits{MaxOutput: max(min(tool.DefaultMaxOutput, r.Window/2), tool.MinMaxOutput), Filter: r.Filter,
		SpillDir: filepath.Join(p.c.Dir(), spillDir), Disk: r.Store.FS, NoSync: r.Store.NoSync}
	own := slices.DeleteFunc(tool.Builtins(tool.Env{Root: p.at.root, Limits: limits}), func(t tool.Tool) bool { return !t.Definition().ReadOnly })
	own = append(own, &memory.Recall{Record: p.c.MessageLog(), Image: p.c.ReadImage, SpillDir: limits.SpillDir, MaxOutput: limits.MaxOutput}, proposeTool{p})
	tools, err := tool.NewRegistry(limits, own...)
	if err != nil {
		return nil, err
	}
	var offered []llm.Tool
	policy := r.Memory
	policy.Limit, policy.Log = r.Window, r.Log
	for _, d := range tools.Definitions() {
		offered = append(offered, llm.Tool{Name: d.Name, Description: d.Description, Schema: d.Schema})
	}
	policy.Fixed = llm.ToolsBytes(offered)
	w, err := memory.Open(p.c, r.Client.Open(llm.Settings{Tools: offered}), policy)
	if err != nil {
		return nil, err
	}
	s := turn.Settings{Ledger: p.c, Window: w, Tools: tools, Budget: r.Budget, Log: r.Log, Now: r.Now, Scripted: r.Scripted, MaxResults: 2 * r.Window}
	if !r.Days.None() {
		st := p.c.State()
		days := &turn.DayBudget{Store: r.Store, Limits: r.Days, Now: r.Now, Run: contextstore.DayRun{UUID: p.c.UUID(), User: p.o.Chat.User, Settled: st.Taken()}}
		if err := days.Reserve(ctx, st, contextstore.Amount{}); err != nil {
			return nil, err
		}
		s.Days = days
	}
	return turn.New(s, turn.NoCircles(director{p: p})), nil
}

// director ends the loop once the model has proposed.
type director struct {
	turn.NoDirector
	p *proposing
}

// After implements turn.Director: it tells how far the job is.
func (d director) After(m contextstore.Message) error {
	r := d.p.r
	if r.Progress == nil || m.Role != llm.RoleAssistant || len(m.ToolCalls) == 0 {
		return nil
	}
	c := m.ToolCalls[len(m.ToolCalls)-1]
	r.Progress(*d.p.o.Chat, r.Lang.T("job.progress", d.p.c.State().LLMCallCount, c.Name+" "+progress.OneLine(progress.Cut(c.Arguments, 60))))
	return nil
}

// Ends implements turn.Director.
func (d director) Ends(answer contextstore.Message) bool {
	return d.p.job != nil || d.p.tries > maxTries || d.NoDirector.Ends(answer)
}

// proposeTool is the tool with which a coder proposes (spec/chat §6).
type proposeTool struct{ p *proposing }

// Definition implements tool.Tool.
func (t proposeTool) Definition() tool.Definition {
	return tool.Definition{Name: "propose", Schema: contract.CoderSchema(),
		Description: "Propose the change, once: people decide about it, and the program applies exactly this patch. Without a patch it is a review."}
}

// Call implements tool.Tool. The arguments are those that the model wrote, before anything
// of them is masked.
func (t proposeTool) Call(ctx context.Context, args json.RawMessage) (tool.Result, error) {
	var said contract.Coder
	if err := json.Unmarshal(args, &said); err != nil {
		return tool.Failf("The arguments cannot be read: %v", err), nil
	}
	err := t.p.put(ctx, said)
	if refused(err) {
		return tool.Failf("The proposal was not taken: %s\nMend it and propose again: lines of context and the numbers in \"@@\" must fit the files as they are; files with their whole content, in place of patch, need neither.", i18n.English.Error(err)), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Text("Proposed as job " + t.p.job.Job + "."), nil
}

func refused(err error) bool { return errors.As(err, new(*approval.RefusedError)) }

// put puts what the model proposed to people.
func (p *proposing) put(ctx context.Context, said contract.Coder) error {
	p.tries++
	chat := p.o.Chat
	patch, err := p.patch(said)
	if err != nil {
		return &approval.RefusedError{Err: err}
	}
	base, err := p.at.id(ctx)
	if err != nil {
		return err
	}
	d := approval.Draft{Session: chat.Session, Requester: chat.User, Title: chat.Title, Summary: summary(said.Plan), Plan: said.Plan, Patch: patch, Notes: said.Notes, Tests: said.Tests,
		CoderRisk: p.risk(said.Risk), Type: approval.TypeOf(chat.Route, said.TaskType, len(patch) > 0), Base: base, Repository: p.o.Repo, Deliver: approval.Deliver(chat.Deliver),
		Visibility: p.at.visibility, Cost: approval.Cost{Tokens: p.c.State().TotalTokensUsed}}
	if said.CostHint != nil {
		d.Cost.Hint, d.Cost.Near = int64(said.CostHint.EstimatedTokens), said.CostHint.NearLimit
	}
	for _, c := range said.Commands {
		d.Commands = append(d.Commands, c.Cmd)
	}
	job, err := p.r.Approvals.Propose(ctx, p.c, chat.Job, d, p.at.base)
	if err != nil {
		return err
	}
	said.JobID = job.Job
	p.job, p.said = &job, said
	return nil
}

// risk is what the coder said of the risk, in a line.
func (p *proposing) risk(r contract.Risk) string {
	var all []string
	if r.Destructive {
		all = append(all, p.r.Lang.T("job.risk_destructive"))
	}
	if !r.Rollback {
		all = append(all, p.r.Lang.T("job.risk_no_rollback"))
	}
	return strings.Join(append(all, r.Compatibility...), " / ")
}

// summary is the beginning of a plan, three lines at most.
func summary(plan string) (lines []string) {
	for l := range strings.Lines(plan) {
		if l = strings.TrimSpace(l); l != "" && len(lines) < 3 {
			short, _ := contract.Shortened(l, 200)
			lines = append(lines, short)
		}
	}
	return lines
}

// patch is the patch of a proposal: as the model wrote it, with the line end that it left
// out at the end, or made of the files that it gave instead.
func (p *proposing) patch(said contract.Coder) ([]byte, error) {
	if strings.TrimSpace(said.Patch) != "" {
		return []byte(unfenced(said.Patch)), nil
	}
	var b strings.Builder
	for _, f := range said.Files {
		old, err := p.at.root.ReadFile(filepath.Clean(f.Path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, i18n.E("job.file", f.Path, err)
		}
		there := err == nil
		switch {
		case f.Action == "create" && there:
			return nil, i18n.E("job.file_there", f.Path)
		case f.Action != "create" && !there:
			return nil, i18n.E("job.file_gone", f.Path)
		}
		content := f.Content
		if f.Action == "delete" {
			content = ""
		} else if string(old) == content && there {
			continue
		}
		b.WriteString(fileDiff(f, string(old), content))
	}
	return []byte(b.String()), nil
}

// unfenced is a patch without the fence around it, and with the line end that it lacks.
func unfenced(patch string) string {
	patch = strings.Trim(patch, "\n")
	if first, rest, ok := strings.Cut(patch, "\n"); ok && strings.HasPrefix(first, "```") && strings.HasSuffix(rest, "\n```") {
		patch = strings.TrimSuffix(rest, "\n```")
	}
	return patch + "\n"
}

// fileDiff is the part of a patch that makes one file what it is to be.
func fileDiff(f contract.File, before, after string) string {
	from, to, mode := "a/"+f.Path, "b/"+f.Path, ""
	switch f.Action {
	case "create":
		from, mode = "/dev/null", "new file mode 100644\n"
	case "delete":
		to, mode = "/dev/null", "deleted file mode 100644\n"
	}
	return fmt.Sprintf("diff --git a/%s b/%s\n%s%s", f.Path, f.Path, mode, udiff.Unified(from, to, before, after))
}
