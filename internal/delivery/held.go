package delivery

import (
	"context"
	"fmt"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/workspace"
)

// HeldError says that people must agree to a change before it goes out.
type HeldError struct {
	Kinds []approval.RiskKind // of its risks
	Draft approval.Draft      // what they are to be asked about
}

func (e *HeldError) Error() string { return fmt.Sprintf("people must agree to it: %v", e.Kinds) }

// held is a *HeldError where what a run on a forge changes has risks that go beyond what
// whoever asked for it agreed to, and nobody did since.
func (s *Service) held(ctx context.Context, m contextstore.Metadata, dir string, p Place, ws *workspace.Workspace, commit string) error {
	h, o, err := s.HostOf(m)
	if s.Approvals == nil || err != nil || h.Code == nil || o.Act == nil {
		return err
	}
	repo := forge.RepoOf(m.TaskKey)
	writer := h.Least >= forge.Write || p.Private
	if !writer {
		have, err := h.Permission(ctx, repo, o.Act.By)
		if err != nil {
			return err
		}
		writer = have >= forge.Write
	}
	jobs, err := s.Approvals()
	if err != nil {
		return err
	}
	kinds := jobs.Settings.Beyond(writer)
	if len(kinds) == 0 {
		return nil
	}
	patch, err := ws.CommitPatch(ctx, commit)
	if err != nil {
		return err
	}
	d := approval.Draft{Requester: Requester(m.TaskKey.Source, o.Act.By), Title: m.Title, Patch: patch, Type: approval.Codegen, Base: ws.Base(), Repository: m.TaskKey.Source + ":" + repo.String(),
		Deliver: approval.PullRequest, Onto: p.Branch, Visibility: Hosted{Private: p.Private}.Visibility()}
	found, err := jobs.Held(ctx, dir, d, ws, kinds)
	if err == nil && len(found) > 0 {
		err = &HeldError{found, d}
	}
	return err
}

// Requester is a person of a forge as approvals name them.
func Requester(source string, p forge.Person) string { return fmt.Sprintf("%s:%d", source, p.ID) }
