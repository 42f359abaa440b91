package job

import (
	"context"
	"fmt"
	"io"

	"toritsugi/internal/agent"
	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
	"toritsugi/internal/order"
	"toritsugi/internal/planning"
	"toritsugi/internal/scan"
	"toritsugi/internal/workspace"
)

// plans reports whether settings have a plan lead a job: those of CODE2 and CODE3.
func plans(p *agent.Planning, o order.Order) bool {
	return p != nil && (o.Chat.Route == "CODE2" || o.Chat.Route == "CODE3")
}

// AsksModel reports whether a model is still asked in the run of o, with a Runner of p: for
// what is proposed, made being nil, or for its judgement where a plan leads the job, before
// which a kill may have come.
func AsksModel(p *agent.Planning, o order.Order, made *approval.Job) bool {
	if made == nil {
		return o.Chat.Reverts == ""
	}
	return plans(p, o) && made.Reverts == "" && made.State.Status == approval.Pending && made.Judged == nil
}

// begin appends the first messages, unless an earlier owner did: system prompt, what earlier
// jobs of the conversation left, the request. Whether a plan leads the run is decided with
// them, for the system prompt says so.
func (p *proposing) begin(ctx context.Context) error {
	start, err := memory.ReadFirstMessages(p.c)
	if err != nil {
		return err
	}
	if p.plans(start) {
		if p.history, err = p.r.Planning.OpenHistory(p.r.Store, p.c, p.r.Now, p.r.Log, nil); err != nil {
			return err
		}
	}
	if start.Whole {
		return nil
	}
	in, err := p.inherit(ctx)
	if err != nil {
		return err
	}
	system, request := contextstore.Message{Role: llm.RoleSystem, Content: p.o.Chat.Prompt}, contextstore.Message{Role: llm.RoleUser, Content: p.o.Chat.Request}
	if p.history != nil {
		system.Content += "\n\n" + p.prompts().System()
	}
	first := []contextstore.Message{system}
	if in != nil {
		first = append(first, contextstore.Message{Role: llm.RoleAssistant, Content: in.Content})
		request.Content = p.r.Lang.T("job.earlier") + p.request(in.View)
	}
	first = append(first, request)
	// After a power cut some of them may be there already.
	_, err = p.c.Append(first[min(p.c.LastSeq(), int64(len(first)-1)):]...)
	return err
}

// plans reports whether a plan leads the run.
func (p *proposing) plans(start memory.FirstMessages) bool {
	if !plans(p.r.Planning, p.o) {
		return false
	}
	if !start.Whole {
		return true
	}
	return p.r.Planning.HasHistory(p.r.Store, p.c)
}

// close gives up what the job held.
func (p *proposing) close() {
	if p.history == nil {
		return
	}
	if err := p.history.Close(); err != nil {
		p.r.Log.Warn("The planning history: " + err.Error())
	}
}

// prompts are those of a run that proposes, and that nobody answers questions of.
func (p *proposing) prompts() planning.Prompts {
	text := p.r.Planning.Prompts
	text.MayAsk, text.Proposes = false, true
	return text
}

// coordinator is what leads the run by a plan.
func (p *proposing) coordinator() (*planning.Coordinator, error) {
	s := p.r.Planning.Settings
	s.Hands, s.Earlier = proposeName, p.earlier
	return planning.Open(p.c, p.history, director{p: p}, p.prompts(), s, p.r.Log)
}

// led is the director of a loop that a plan leads.
type led struct {
	*planning.Coordinator
	p *proposing
}

// Read implements turn.Director.
func (d led) Read(r *llm.Reply) {
	d.Coordinator.Read(r)
	d.p.read(r)
}

// judged has the model judge what it proposed: again reports that there is more work. What
// is open at the end is shown to people, who decide all the same. By nothing but the patch:
// it is applied, and checked, once they have. The patch itself stands in the model's call.
// Of one small step in which nothing stands out the model knows no more than it said: that
// goes on as without a plan.
func (p *proposing) judged(ctx context.Context) (again bool, err error) {
	if p.plan == nil || !p.job.Grantable() {
		return false, nil
	}
	e, err := p.evidence(ctx)
	if err != nil {
		return false, err
	}
	var v planning.Result
	if view := p.plan.View(); len(e.Findings) > 0 || !small(view.Plan) {
		if v, err = p.plan.Verify(ctx, p.loop, e); err != nil || v.Again {
			return v.Again, err
		}
	}
	j := approval.Judged{Subtasks: len(p.plan.View().Items), Criteria: len(v.Criteria), Open: v.Open}
	for _, c := range v.Criteria {
		if c.Met {
			j.Met++
		}
	}
	return false, p.r.Approvals.Judge(ctx, p.job, j, p.taken())
}

// small reports whether a plan is one step that the model finds easy, or planned nothing of.
func small(p *planning.Plan) bool {
	return p != nil && len(p.Decomposition.Subtasks) == 1 && (p.Fallback || p.Decomposition.Subtasks[0].Complexity == "low")
}

// evidence is what is known of the proposal from others than the model.
func (p *proposing) evidence(ctx context.Context) (e planning.Evidence, err error) {
	for _, f := range p.job.Files {
		e.Changed = append(e.Changed, fmt.Sprintf("%s %s (+%d -%d)", f.Action, f.Path, f.Added, f.Removed))
		e.Tests = e.Tests || scan.IsTest(f.Path)
	}
	raw, err := p.job.ReadPatch()
	if err != nil {
		return e, err
	}
	patch, err := workspace.ParsePatch(raw)
	if err != nil {
		return e, err
	}
	if h, ok := p.at.base.(*approval.HandTree); ok {
		h.Base = p.job.Base // of who proposed it, who may have been killed since
	}
	// What is judged is the whole of each file: of a few lines around a change nobody can tell
	// which function they are of.
	found, err := scan.Written(func(to io.Writer) error { return p.at.base.ReviewPatch(ctx, patch, scan.Whole, to) }, scan.Options{})
	if ctx.Err() != nil {
		return e, context.Cause(ctx)
	}
	if err != nil { // it fails no job
		p.r.Log.Warn("The proposal cannot be looked through: " + p.r.Store.Redact(err.Error()))
		return e, nil
	}
	for _, f := range found.Findings {
		text := p.r.Store.Redact(fmt.Sprintf("%s:%d: %s %s", f.Path, f.Line, i18n.English.T("scan."+string(f.Why)), f.Text))
		if e.Findings = append(e.Findings, text); f.Kind == scan.Placeholder {
			e.Placeholders = append(e.Placeholders, text)
		}
	}
	return e, nil
}
