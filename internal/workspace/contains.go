package workspace

import "context"

// Contains reports whether the work goes on from a commit: it is the head of the
// workspace or one of its ancestors. What cannot be told is false.
func (w *Workspace) Contains(ctx context.Context, commit string) bool {
	if !fullHash(commit) {
		return false
	}
	_, err := w.repo.git(ctx, "merge-base", "--is-ancestor", commit, "refs/heads/"+w.meta.Branch)
	return err == nil
}

// Contains reports whether the head of a source is a commit or goes on from it. What
// cannot be told is false: a history that was rewritten need not have the commit.
func (s *Source) Contains(ctx context.Context, commit string) bool {
	if !fullHash(commit) {
		return false
	}
	_, err := s.repo().git(ctx, "merge-base", "--is-ancestor", commit, s.Head)
	return err == nil
}

// fullHash reports whether a text can be the name of a commit and nothing else.
func fullHash(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 40 || len(s) == 64
}
