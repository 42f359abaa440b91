package workspace

import "context"

// Contains reports whether the work goes on from a commit: it is the head of the
// workspace or one of its ancestors. What cannot be told is false.
func (w *Workspace) Contains(ctx context.Context, commit string) bool {
	return goesOnFrom(ctx, w.repo, commit, "refs/heads/"+w.meta.Branch)
}

// Contains reports whether the head of a source is a commit or goes on from it. What
// cannot be told is false: a history that was rewritten need not have the commit.
func (s *Source) Contains(ctx context.Context, commit string) bool {
	return goesOnFrom(ctx, s.repo(), commit, s.Head)
}

func goesOnFrom(ctx context.Context, r repo, commit, head string) bool {
	if !isID(commit) {
		return false
	}
	_, err := r.git(ctx, "merge-base", "--is-ancestor", commit, head)
	return err == nil
}
