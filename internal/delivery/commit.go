package delivery

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/order"
	"toritsugi/internal/progress"
	"toritsugi/internal/task"
	"toritsugi/internal/workspace"
)

// Commit records the run's tree as one commit on the base, with the issue's id, and
// returns its hash, "" where nothing changed; said is what the model says of it.
func (r *Run) Commit(ctx context.Context, said string) (string, error) {
	return r.commit(ctx, r.Workspace, r.Ledger.Metadata(), said)
}

// Reword gives a commit that Commit returned the words that the model says of it since,
// whatever is in the tree by now, and returns the hash of what is the branch then.
func (r *Run) Reword(ctx context.Context, commit, said string) (string, error) {
	tree, err := r.Workspace.CommittedTree(ctx, commit)
	if err != nil {
		return "", err
	}
	return r.commitAs(ctx, r.Workspace, r.Ledger.Metadata(), commitWork{said: said, tree: tree})
}

// commit is Commit for a run that need not be worked on. A patch that holds a secret
// is refused, never rewritten (DESIGN §2.7).
func (s *Service) commit(ctx context.Context, ws *workspace.Workspace, m contextstore.Metadata, said string) (string, error) {
	var patch limited
	if err := ws.PatchText(ctx, &patch); err != nil {
		return "", err
	}
	if found := s.Secrets(addedLines(patch.String())); len(found) > 0 {
		return "", &TaskError{Err: i18n.E("agent.secret_in_patch", strings.Join(found, ", "))}
	}
	return s.commitAs(ctx, ws, m, commitWork{said: said})
}

// commitWork is what a commit is made of.
type commitWork struct {
	said  string // what the model says of it
	tree  string // "" for that of the workspace as it is
	empty bool   // also where nothing is changed
}

// commitAs makes the branch one commit.
func (s *Service) commitAs(ctx context.Context, ws *workspace.Workspace, m contextstore.Metadata, c commitWork) (string, error) {
	w, about := ParseMessage(c.said), m.TaskKey
	if o, err := order.Parse(m); err == nil && o.For != nil {
		about = o.For.Issue
	}
	if w.Subject == "" {
		w.Subject = subject(m.Title, about)
	}
	message, _, err := s.Rules.Filter.Clean(broker.Commit, w.Subject+"\n\n"+wrapped(progress.Head(w.Body, 4000)))
	if err != nil {
		return "", &TaskError{Err: fmt.Errorf("message of the commit: %w", err)}
	}
	hash, err := ws.Commit(ctx, workspace.CommitOptions{
		Message: message, Reword: c.said != "", Tree: c.tree, Empty: c.empty,
		Trailers:   []workspace.Trailer{{Key: trailer(about), Value: about.ID}, {Key: "Tori-Run", Value: m.UUID}},
		AuthorName: s.Author.Name, AuthorEmail: s.Author.Email, When: s.Now(),
	})
	if errors.Is(err, workspace.ErrNothingToCommit) {
		err = nil
	}
	if hash == ws.Base() {
		hash = ""
	}
	return hash, err
}

// trailer is the name of the line that says what a commit is for.
func trailer(k task.Key) string {
	if k.Type == task.TypeMerge { // it has a number of its own
		return "Merge-Request"
	}
	return "Issue"
}

// subject is the first line of a commit whose words have none: what was asked for, and
// its number, where the id is one and not the name of a file.
func subject(title string, k task.Key) string {
	title = progress.OneLine(title)
	if runes := []rune(title); len(runes) > 60 {
		title = strings.TrimSpace(string(runes[:59])) + "…"
	}
	if _, err := strconv.Atoi(k.ID); err == nil {
		title += " (" + k.Number() + ")"
	}
	return title
}

// Patch is the text of what a commit changes; one that is too large to be searched for
// secrets is a *TaskError.
func Patch(ctx context.Context, ws *workspace.Workspace, commit string) (string, error) {
	var patch limited
	err := ws.CommittedText(ctx, commit, &patch)
	return patch.String(), err
}

// maxPatch is how much of a patch is searched for secrets; a larger one is refused.
const maxPatch = 64 << 20

// limited collects up to maxPatch bytes.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxPatch {
		return 0, &TaskError{Err: i18n.E("agent.patch_too_large", maxPatch>>20)}
	}
	return l.Builder.Write(p)
}

// addedLines are the lines that a patch adds, and the names of its files; what
// it removes or shows as context was in the repository before.
func addedLines(patch string) string {
	var b strings.Builder
	for line := range strings.Lines(patch) {
		if strings.HasPrefix(line, "+") {
			b.WriteString(line[1:])
		}
	}
	return b.String()
}
