package githubtest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var closes = regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:([\w.-]+/[\w.-]+))?#(\d{1,9})\b`)

// Merge merges a pull request with a merge commit, as a person does on its page,
// and closes the issues that it says it closes. It fails the test where the two conflict.
func (r *Repo) Merge(number int, by string) (commit string) {
	r.s.t.Helper()
	defer r.lock()()
	i, who := r.mustPull(number), r.s.must(by)
	r.r.sync()
	p := i.pull
	if i.closed || p.draft {
		r.s.t.Fatalf("githubtest: %s#%d cannot be merged: closed %v, draft %v", r.r.full(), number, i.closed, p.draft)
	}
	base := r.r.refs["refs/heads/"+p.base]
	tree, err := r.r.gitOut("merge-tree", "--write-tree", "--no-messages", base, p.headSHA)
	if err != nil {
		r.s.t.Fatalf("githubtest: %s#%d does not merge: %v", r.r.full(), number, err)
	}
	text := fmt.Sprintf("Merge pull request #%d from %s/%s\n\n%s", number, p.headUser.login, p.head, i.title)
	commit = r.r.gitMust("commit-tree", tree, "-p", base, "-p", p.headSHA, "-m", text)
	r.r.gitMust("update-ref", "refs/heads/"+p.base, commit, base)
	i.merged(who, commit)
	r.r.sync()
	return commit
}

// merged marks a pull request as merged by the commit.
func (i *issue) merged(by *account, commit string) {
	p, r := i.pull, i.repo
	said := i.title + "\n" + i.body
	for _, c := range r.commits(p.baseSHA, p.headSHA) {
		said += "\n" + c
	}
	p.merged, p.mergedBy, p.mergeSHA = r.s.now(), by, commit
	i.happened("merged", by).commit = commit
	i.close(by, "", "")
	if p.base != r.o.Branch {
		return
	}
	for _, m := range closes.FindAllStringSubmatch(said, -1) {
		n, _ := strconv.Atoi(m[2])
		if other := r.issue(n); other != nil && other.pull == nil && (m[1] == "" || strings.EqualFold(m[1], r.full())) {
			other.close(by, "completed", commit)
		}
	}
}

// Commit puts files on a branch as a person who pushes there; the branch is made
// from the default one where it is not there. A text of Deleted takes a file away.
func (r *Repo) Commit(branch, by, message string, files map[string]string) (sha string) {
	r.s.t.Helper()
	defer r.lock()()
	return r.r.commit(branch, by, message, files)
}

// Deleted in place of a file's text takes the file away.
const Deleted = "\x00deleted\x00"

func (r *repo) commit(branch, by, message string, files map[string]string) string {
	r.s.t.Helper()
	r.sync()
	var in strings.Builder
	at := r.s.now().Unix()
	fmt.Fprintf(&in, "commit refs/heads/%s\nauthor %s <%[2]s@users.noreply.github.com> %d +0000\ncommitter %[2]s <%[2]s@users.noreply.github.com> %[3]d +0000\ndata %d\n%s\n",
		branch, by, at, len(message), message)
	if from := r.refs["refs/heads/"+branch]; from != "" {
		fmt.Fprintf(&in, "from %s\n", from)
	} else if from := r.refs["refs/heads/"+r.o.Branch]; from != "" {
		fmt.Fprintf(&in, "from %s\n", from)
	}
	paths := make([]string, 0, len(files))
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		if files[path] == Deleted {
			fmt.Fprintf(&in, "D %s\n", path)
			continue
		}
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", path, len(files[path]), files[path])
	}
	if _, err := r.gitIn(in.String(), "fast-import", "--quiet"); err != nil {
		r.s.t.Fatalf("githubtest: commit to %s: %v", r.full(), err)
	}
	r.sync()
	return r.refs["refs/heads/"+branch]
}

// DeleteBranch takes a branch away; its open pull requests are closed.
func (r *Repo) DeleteBranch(branch string) {
	r.s.t.Helper()
	defer r.lock()()
	r.r.gitMust("update-ref", "-d", "refs/heads/"+branch)
	r.r.sync()
}

// Reset moves a branch by force, as after a rewritten history.
func (r *Repo) Reset(branch, commit string) {
	r.s.t.Helper()
	defer r.lock()()
	r.r.gitMust("update-ref", "refs/heads/"+branch, commit)
	r.r.sync()
}

// Branches are the branches and their commits.
func (r *Repo) Branches() map[string]string {
	defer r.lock()()
	r.r.sync()
	out := map[string]string{}
	for name, sha := range r.r.refs {
		out[strings.TrimPrefix(name, "refs/heads/")] = sha
	}
	return out
}

// File is the text of a file at a commit or branch; ok is false where there is none.
func (r *Repo) File(at, path string) (text string, ok bool) {
	defer r.lock()()
	text, err := r.r.gitOut("cat-file", "blob", at+":"+path)
	return text, err == nil
}

// Git runs git in the bare repository and returns what it prints, trimmed.
func (r *Repo) Git(args ...string) (string, error) {
	defer r.lock()()
	out, err := r.r.gitOut(args...)
	r.r.sync()
	return out, err
}
