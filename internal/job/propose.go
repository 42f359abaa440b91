package job

import (
	"cmp"
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
	"toritsugi/internal/planning"
	"toritsugi/internal/routing"
	"toritsugi/internal/tool"
	"toritsugi/internal/turn"
	"toritsugi/internal/workspace"
)

// proposing is a run that has not proposed yet, or whose proposal is not judged.
type proposing struct {
	r       *Runner
	c       *contextstore.Context
	o       order.Order
	at      *place
	loop    *turn.Loop
	history *planning.History     // nil where no plan leads the run
	plan    *planning.Coordinator // likewise
	earlier *planning.EarlierRuns // what earlier jobs left of their planning; nil for nothing

	tries   int           // proposals that could be read and not be put to anybody
	refusal error         // why the last of them could not
	warned  bool          // that a proposal drops what the one before changed
	bare    bool          // that a proposal changes nothing
	problem string        // with the last proposal that was written as text
	remarks []string      // on it
	job     *approval.Job // once it has proposed
}

// maxTries is how many proposals of a job are tried: one that cannot be put to anybody goes
// back to the model, with why (spec/chat §6). One of a wrong form is none of them.
const maxTries = 3

// maxReminders is how often a model that answers without a proposal is asked for one.
const maxReminders = 2

// spillDir holds outputs that were cut, below the directory of the context.
const spillDir = "spill"

// propose has the model read and propose, and judge what it proposed where a plan leads it.
// It is the turn loop of every run, with tools that read and one that proposes. made is what
// an earlier owner proposed, nil for nothing.
func (r *Runner) propose(ctx context.Context, c *contextstore.Context, o order.Order, made *approval.Job) (approval.Job, error) {
	at, err := r.place(ctx, c, o)
	if err != nil {
		return approval.Job{}, err
	}
	defer func() { _ = at.close() }()
	p := &proposing{r: r, c: c, o: o, at: at, job: made}
	defer p.close()
	if err := p.begin(ctx); err != nil {
		return approval.Job{}, err
	}
	if err := p.open(ctx); err != nil {
		return approval.Job{}, err
	}
	for reminders := 0; ; {
		if p.plan != nil {
			_, err = p.plan.Run(ctx, p.loop)
		} else if p.job == nil {
			_, err = p.loop.Run(ctx)
		}
		if err != nil {
			return p.unjudged(ctx, err)
		}
		if p.job == nil {
			if reminders++; reminders > maxReminders {
				return approval.Job{}, p.nothing()
			}
			if err := p.loop.Ask(ctx, planning.AskRemark, p.problem+r.Lang.T("job.remind")); err != nil {
				return approval.Job{}, err
			}
			continue
		}
		again, err := p.judged(ctx)
		if err != nil {
			return p.unjudged(ctx, err)
		}
		if !again {
			return *p.job, nil
		}
	}
}

// unjudged is what comes of a failure: where the model failed that was to judge what it had
// proposed, or its budget is used up, people decide about that all the same.
func (p *proposing) unjudged(ctx context.Context, err error) (approval.Job, error) {
	failed := errors.As(err, new(*llm.Error)) || errors.As(err, new(*turn.BudgetError)) || errors.As(err, new(*turn.CircleError)) || errors.As(err, new(*planning.StuckError))
	if ctx.Err() != nil || p.job == nil || !p.job.Grantable() || !failed {
		return approval.Job{}, err
	}
	p.r.Log.Warn("A proposal is put to people without its judgement: "+err.Error(), "job_id", p.job.Job)
	return *p.job, nil
}

// nothing says that no proposal came that can be put to anybody, and what was wrong with the
// last one.
func (p *proposing) nothing() error {
	if p.refusal == nil {
		return i18n.E("job.no_proposal")
	}
	return i18n.E("job.no_proposal_why", p.refusal)
}

// spent reports whether no more proposals are tried.
func (p *proposing) spent() bool { return p.job == nil && p.tries >= maxTries }

// open opens the loop of model and tools, and the plan that leads it.
func (p *proposing) open(ctx context.Context) error {
	r := p.r
	limits := tool.Limits{MaxOutput: max(min(tool.DefaultMaxOutput, r.Window/2), tool.MinMaxOutput), Filter: r.Filter,
		SpillDir: filepath.Join(p.c.Dir(), spillDir), Disk: r.Store.FS, NoSync: r.Store.NoSync}
	own := slices.DeleteFunc(tool.Builtins(tool.Env{Root: p.at.root, Limits: limits}), func(t tool.Tool) bool { return !t.Definition().ReadOnly })
	own = append(own, &memory.Recall{Record: p.c.MessageLog(), Image: p.c.ReadImage, SpillDir: limits.SpillDir, MaxOutput: limits.MaxOutput}, proposeTool{p})
	if p.history != nil {
		own = append(own, planning.Tools()...)
	}
	tools, err := tool.NewRegistry(limits, own...)
	if err != nil {
		return err
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
		return err
	}
	s := turn.Settings{Ledger: p.c, Window: w, Tools: tools, Budget: r.Budget, Log: r.Log, Now: r.Now, Scripted: r.Scripted, MaxResults: 2 * r.Window, KeepLast: p.history != nil}
	if !r.Days.None() {
		st := p.c.State()
		days := &turn.DayBudget{Store: r.Store, Limits: r.Days, Now: r.Now, Run: contextstore.DayRun{UUID: p.c.UUID(), User: p.c.Metadata().User, Settled: st.Taken()}}
		if err := days.Reserve(ctx, st, contextstore.Amount{}); err != nil {
			return err
		}
		s.Days = days
	}
	if p.history == nil {
		p.loop = turn.New(s, turn.NoCircles(director{p: p}))
		return nil
	}
	if p.plan, err = p.coordinator(); err == nil {
		p.loop = turn.New(s, led{p.plan, p})
	}
	return err
}

// director ends the loop once the model has proposed.
type director struct {
	turn.NoDirector
	p *proposing
}

// Before implements turn.Director: the model is not asked again once no proposal is tried any
// more.
func (d director) Before(ctx context.Context) ([]contextstore.Message, error) {
	if d.p.spent() {
		return nil, d.p.nothing()
	}
	return d.NoDirector.Before(ctx)
}

// Read implements turn.Director: what a model without tools proposes as text is a call.
func (d director) Read(r *llm.Reply) { d.p.read(r) }

// After implements turn.Director: it tells how far the job is.
func (d director) After(m contextstore.Message) error {
	r := d.p.r
	if r.Progress == nil || m.Role != llm.RoleAssistant || len(m.ToolCalls) == 0 {
		return nil
	}
	r.Progress(*d.p.o.Chat, called(r.Lang, d.p.c.State().LLMCallCount, m.ToolCalls[len(m.ToolCalls)-1]))
	return nil
}

// Ends implements turn.Director.
func (d director) Ends(answer contextstore.Message) bool {
	return d.p.job != nil || d.NoDirector.Ends(answer)
}

// read makes a call of a proposal that is written as text: as JSON, or as words with the diff in
// a fence where nothing but the proposal is left to do.
func (p *proposing) read(r *llm.Reply) {
	m := &r.Message
	if p.problem, p.remarks = "", nil; r.FinishReason == llm.FinishLength || slices.ContainsFunc(m.ToolCalls, func(c llm.ToolCall) bool { return c.Name == proposeName }) {
		return
	}
	said, err := contract.ReadCoder(m.Content)
	if diff, words := contract.Fenced(m.Content); err != nil && diff != "" && len(m.ToolCalls) == 0 && (p.plan == nil || p.plan.Ending()) {
		said, err = contract.Coder{Plan: cmp.Or(words, p.o.Chat.Title), Patch: diff, Risk: said.Risk}, nil
	}
	if err != nil {
		if strings.Contains(m.Content, "{") {
			p.problem = p.r.Lang.T("job.malformed", problemOf(err)) + "\n"
		}
		return
	}
	if p.plan != nil && said.Patch == "" && len(said.Files)+len(said.Commands) == 0 && said.TaskType == "" {
		return // an answer about the plan may have a word of that name
	}
	args, err := json.Marshal(said)
	if err != nil {
		return
	}
	m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: fmt.Sprintf("said_%d", p.c.LastSeq()+1), Name: proposeName, Arguments: string(args)})
	m.Content, r.FinishReason, p.remarks = "", llm.FinishToolCalls, said.Remarks
}

// proposeTool is the tool with which a coder proposes (spec/chat §6).
type proposeTool struct{ p *proposing }

const proposeName = "propose"

// Definition implements tool.Tool.
func (t proposeTool) Definition() tool.Definition {
	// It is read by the contract's own reader, as what is written as text.
	return tool.Definition{Name: proposeName, Schema: contract.CoderSchema(), Reads: json.RawMessage(`{"type":"object"}`),
		Description: "Propose the change: people decide about it, and the program applies exactly this patch. Where nothing is to be changed, task_type is review."}
}

// Call implements tool.Tool. The arguments are those that the model wrote, before anything
// of them is masked.
func (t proposeTool) Call(ctx context.Context, args json.RawMessage) (res tool.Result, err error) {
	said, err := contract.ReadCoder(string(args))
	remarks := slices.Concat(t.p.remarks, said.Remarks)
	defer func() {
		if len(remarks) > 0 {
			res.Text += "\n[" + strings.Join(remarks, "; ") + "]"
		}
	}()
	if wrong := (*contract.AnswerError)(nil); errors.As(err, &wrong) {
		return tool.Failf("%s", t.p.r.Lang.T("job.malformed", wrong.Problem)+t.p.alsoWrong(args)), nil
	}
	if err == nil {
		err = t.p.put(ctx, said)
	}
	if refused(err) {
		if t.p.tries, t.p.refusal = t.p.tries+1, err; t.p.spent() {
			return tool.Failf("%s", t.p.r.Lang.T("job.refused_last", t.p.r.Lang.Error(err))), nil
		}
		return tool.Failf("%s", t.p.r.Lang.T("job.refused", t.p.r.Lang.Error(err))), nil
	}
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Text(t.p.r.Lang.T("job.proposed", t.p.job.Job)), nil
}

// problemOf is what is wrong with the form of a proposal.
func problemOf(err error) string {
	if wrong := (*contract.AnswerError)(nil); errors.As(err, &wrong) {
		return wrong.Problem
	}
	return err.Error()
}

// alsoWrong is what is wrong with the patch of a proposal whose form is wrong, "" where nothing
// is or that cannot be told.
func (p *proposing) alsoWrong(args json.RawMessage) string {
	var said struct {
		Patch string `json:"patch"`
	}
	if json.Unmarshal(args, &said) != nil || strings.TrimSpace(said.Patch) == "" {
		return ""
	}
	if _, err := workspace.ParsePatch(p.mended(said.Patch)); err != nil {
		return "\n" + p.r.Lang.Error(err)
	}
	return ""
}

func refused(err error) bool { return errors.As(err, new(*approval.RefusedError)) }

// put puts what the model proposed to people.
func (p *proposing) put(ctx context.Context, said contract.Coder) error {
	if p.spent() { // a further call of the same answer
		return &approval.RefusedError{Err: p.refusal}
	}
	chat := p.o.Chat
	patch, err := p.patch(said)
	if err != nil {
		return &approval.RefusedError{Err: err}
	}
	if len(patch) == 0 && !p.bare && isBare(chat.Route, said) {
		p.bare = true
		return &approval.RefusedError{Err: i18n.E("job.bare")}
	}
	if lost := p.drops(patch); lost != "" {
		return &approval.RefusedError{Err: i18n.E("job.drops", lost)}
	}
	base, err := p.at.id(ctx)
	if err != nil {
		return err
	}
	d := approval.Draft{Session: chat.Session, Requester: chat.User, Title: chat.Title, Summary: summary(said.Plan), Plan: said.Plan, Patch: patch, Notes: said.Notes, Tests: said.Tests, Checks: p.at.checks,
		CoderRisk: p.risk(said.Risk), Type: approval.TypeOf(chat.Route, said.TaskType, len(patch) > 0), Base: base, Repository: p.o.Repo, Deliver: approval.Deliver(chat.Deliver),
		Visibility: p.at.visibility, Cost: p.taken()}
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
	p.job = &job
	return nil
}

// isBare reports whether a coder proposes to change nothing, and does not say that this is its
// review, or a design: models give the change by a name that is not known, or forget it.
func isBare(route string, said contract.Coder) bool {
	t := approval.TaskType(said.TaskType)
	return len(said.Commands) == 0 && t != approval.Review && t != approval.Design && route != string(routing.Code1)
}

// drops names the files that the proposal before changed and a patch does not, the first time
// that there are some: models take what they proposed for applied, and propose what is to be
// added.
func (p *proposing) drops(patch []byte) string {
	if p.job == nil || p.warned {
		return ""
	}
	lost := slices.Clone(p.job.Files)
	if next, err := workspace.ParsePatch(patch); err == nil {
		lost = slices.DeleteFunc(lost, func(f approval.File) bool {
			return slices.ContainsFunc(next.Files, func(n workspace.PatchFile) bool { return n.Path == f.Path || n.From == f.Path })
		})
	}
	names := make([]string, len(lost))
	for i, f := range lost {
		names[i] = f.Path
	}
	p.warned = len(lost) > 0
	return strings.Join(names, ", ")
}

// taken is what the job took until now.
func (p *proposing) taken() approval.Cost {
	s := p.c.State()
	return approval.Cost{Tokens: s.TotalTokensUsed, MicroUSD: s.CostMicroUSD}
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
			lines = append(lines, contract.Headline(l, 200))
		}
	}
	return lines
}

// patch is the patch of a proposal: as the model wrote it, with the line end that it left
// out at the end, the counts of its hunks and what git has before a path, or made of the files
// that it gave instead.
func (p *proposing) patch(said contract.Coder) ([]byte, error) {
	if strings.TrimSpace(said.Patch) != "" {
		patch := p.mended(said.Patch)
		return patch, p.misplaced(patch)
	}
	var b strings.Builder
	for _, f := range said.Files {
		if rel, ok := tool.Rooted(p.at.root, f.Path); ok && filepath.IsAbs(f.Path) {
			f.Path = rel
		}
		if f.Path = filepath.Clean(f.Path); !filepath.IsLocal(f.Path) {
			return nil, i18n.E("job.file_outside", f.Path)
		}
		old, err := p.at.root.ReadFile(f.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, i18n.E("job.file", f.Path, err)
		}
		there := err == nil
		switch {
		case f.Action == "create" && there:
			return nil, i18n.E("job.file_there", f.Path)
		case f.Action != "create" && !there:
			return nil, cmp.Or(p.elsewhere(f.Path), error(i18n.E("job.file_gone", f.Path)))
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

// mended is a patch of a model as it is read.
func (p *proposing) mended(patch string) []byte {
	return workspace.Recounted(workspace.Named([]byte(unfenced(patch)), p.there, p.o.Chat.Repository))
}

// there reports whether the repository has a path.
func (p *proposing) there(path string) bool {
	_, err := p.at.root.Lstat(path)
	return err == nil
}

// misplaced is the first path of a patch that is one of the repository but for what stands before
// it, nil for none.
func (p *proposing) misplaced(raw []byte) error {
	patch, err := workspace.ParsePatch(raw)
	if err != nil {
		return nil // whoever judges it says so
	}
	for _, f := range patch.Files {
		if f.Action == workspace.PatchCreate {
			continue
		}
		if err := p.elsewhere(cmp.Or(f.From, f.Path)); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere says where a file is that a model puts below the name of the repository, nil where
// it is in place, or nowhere.
func (p *proposing) elsewhere(path string) error {
	if _, rest, deep := strings.Cut(path, "/"); deep && !p.there(path) && p.there(rest) {
		return i18n.E("job.file_elsewhere", path, rest)
	}
	return nil
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
