package gitlab

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"

	"toritsugi/internal/checks"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/rest"
	"toritsugi/internal/i18n"
	"toritsugi/internal/lazyregexp"
)

// mostLogs is of how many failed jobs the log is read.
const mostLogs = 10

// CheckRuns implements forge.CodeHost: the jobs of a commit's pipelines and what other
// services say of it. Of jobs of one name the newest counts. Of a failed one it is the end
// of its log.
func (f *Forge) CheckRuns(ctx context.Context, r forge.Repo, commit string) ([]forge.CheckRun, error) {
	d, err := f.at(r, i18n.E("rest.do_checks", commit))
	if err != nil {
		return nil, err
	}
	if !rest.IsCommit(commit) {
		return nil, d.NoCommit()
	}
	jobs, err := rest.Pages[gitlab.CommitStatus](ctx, d, d.below("repository", "commits", commit, "statuses"), nil)
	if err == nil && len(jobs) == 0 {
		jobs, err = d.merged(ctx, commit)
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(jobs, func(a, b *gitlab.CommitStatus) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(b.ID, a.ID))
	})
	jobs = slices.CompactFunc(jobs, func(a, b *gitlab.CommitStatus) bool { return a.Name == b.Name })
	slices.SortFunc(jobs, func(a, b *gitlab.CommitStatus) int { return cmp.Compare(a.ID, b.ID) })
	var all []forge.CheckRun
	var unread error
	read := 0
	for _, j := range jobs {
		c := forge.CheckRun{Name: j.Name, State: checkState(j)}
		if c.State == forge.CheckFailed {
			c.Output = rest.CutOutput(j.Description)
			if read < mostLogs && unread == nil {
				read++
				log, err := d.log(ctx, j.ID)
				switch {
				case err == nil:
					c.Output = cmp.Or(log, c.Output)
				case forge.Is(err, forge.Forbidden):
					unread = err
				// Another service's check has no log, and one that was erased, or is too
				// long to come in time, is none.
				case !forge.Is(err, forge.NotFound) && !forge.Is(err, forge.Unavailable), ctx.Err() != nil:
					return nil, err
				}
			}
		}
		all = append(all, c)
	}
	return all, unread
}

// merged are the jobs of the pipelines that ran on what a merge of the commit would be:
// those are another commit's. Source: GitLab docs, "Merged results pipelines".
func (d *call) merged(ctx context.Context, commit string) ([]*gitlab.CommitStatus, error) {
	merges, err := rest.Pages[gitlab.BasicMergeRequest](ctx, d, d.below("repository", "commits", commit, "merge_requests"), nil)
	if err != nil {
		return nil, gone(err)
	}
	for _, m := range merges {
		var g gitlab.MergeRequest
		if m.SHA != commit || m.State != "opened" {
			continue
		}
		if _, err := d.Get(ctx, d.below("merge_requests", m.IID), nil, &g); err != nil {
			return nil, err
		}
		if p := g.HeadPipeline; p != nil && p.SHA != commit && p.SHA != "" {
			return rest.Pages[gitlab.CommitStatus](ctx, d, d.below("repository", "commits", p.SHA, "statuses"), query("pipeline_id", strconv.FormatInt(p.ID, 10)))
		}
	}
	return nil, nil
}

// checkState is what became of a job. One that may fail leaves its pipeline green.
func checkState(j *gitlab.CommitStatus) string {
	switch j.Status {
	case "success":
		return forge.CheckPassed
	case "skipped":
		return forge.CheckSkipped
	case "failed", "canceled":
		if j.AllowFailure {
			return forge.CheckPassed
		}
		return forge.CheckFailed
	case "manual": // it waits for a person, unless nothing waits for it
		if j.AllowFailure {
			return forge.CheckSkipped
		}
	}
	return forge.CheckPending
}

// log is the end of a job's log, as people read it.
func (d *call) log(ctx context.Context, job int64) (string, error) {
	a, err := d.Get(ctx, d.below("jobs", job, "trace"), nil, nil)
	if err != nil {
		return "", err
	}
	return readable(string(a.Text)), nil
}

// section is what begins and ends a part of a log that can be folded. Source: GitLab docs, "Job
// logs".
var section = lazyregexp.New(`section_(?:start|end):\d+:[^\r\n]*\r`)

// readable is the last part of a log without what is meant for a terminal, within what a
// check may print.
func readable(log string) string {
	var lines []string
	for line := range strings.SplitSeq(section().ReplaceAllString(log, ""), "\n") {
		lines = append(lines, strings.TrimRight(checks.Plain(line), " \t"))
	}
	log = strings.ToValidUTF8(strings.TrimSpace(strings.Join(lines, "\n")), "\uFFFD")
	if len(log) <= rest.MaxOutput {
		return log
	}
	const mark = "… "
	log = log[len(log)-rest.MaxOutput+len(mark):]
	if _, whole, ok := strings.Cut(log, "\n"); ok {
		log = whole // the first line is the rest of one
	}
	return mark + strings.ToValidUTF8(log, "")
}

// tailed keeps of the logs of jobs, which may have hundreds of megabytes, the end alone.
type tailed struct{ next http.RoundTripper }

// mostTail is enough for rest.MaxOutput of a log full of colours, bytes.
const mostTail = 64 << 10

// RoundTrip implements http.RoundTripper.
func (t tailed) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasSuffix(r.URL.EscapedPath(), "/trace") {
		return resp, err
	}
	end, err := tail(resp.Body)
	_ = resp.Body.Close() // what it held was read
	if err != nil {
		return nil, err
	}
	resp.Header.Del("Etag") // it is not kept
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(end)), int64(len(end))
	return resp, nil
}

func tail(r io.Reader) ([]byte, error) {
	kept := make([]byte, 0, 2*mostTail)
	for {
		n, err := r.Read(kept[len(kept):cap(kept)])
		kept = kept[:len(kept)+n]
		if err == io.EOF {
			return kept[max(0, len(kept)-mostTail):], nil
		}
		if err != nil {
			return nil, err
		}
		if len(kept) == cap(kept) {
			kept = append(kept[:0], kept[mostTail:]...)
		}
	}
}

// Remote implements forge.CodeHost. GitLab takes any name with a token.
func (f *Forge) Remote(_ context.Context, r forge.Repo) (forge.Remote, error) {
	if _, err := f.at(r, i18n.E("rest.do_remote")); err != nil {
		return forge.Remote{}, err
	}
	return forge.Remote{URL: rest.Git(f.web, r), User: "oauth2", Password: f.token.Now()}, nil
}
