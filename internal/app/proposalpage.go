package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"toritsugi/internal/approval"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/web"
)

// proposalPages are the pages of diffs at serve.public_url, nil without one.
func (d *daemon) proposalPages() (*web.Proposals, error) {
	if d.cfg.Serve.PublicURL == "" || d.cfg.Serve.Listen == "" {
		return nil, nil
	}
	key, err := linkKey(d.fs, d.store.BaseDir)
	if err != nil {
		return nil, err
	}
	return &web.Proposals{Key: key, URL: d.cfg.Serve.PublicURL, Lang: i18n.Lang(d.cfg.Language), Now: d.env.Now, Find: d.proposal,
		Gone: func(err error) bool { return errors.Is(err, approval.ErrUnknown) },
		Read: func(who string, a web.Proposal) error {
			e := contextstore.AuditEntry{Actor: who, Action: "read", UUID: a.Run, What: "diff", Detail: a.Job + " " + a.Hash}
			err := contextstore.Audit(d.fs, d.store.BaseDir, d.env.Now(), d.redact.String, e)
			if err != nil {
				d.log.Error("A diff was not shown, its reader cannot be put on record: "+err.Error(), "job_id", a.Job)
			}
			return err
		}}, nil
}

// linkKey is the key of the base directory that links are signed with; it is made at need. The
// caller is the one tori serve of the directory.
func linkKey(on *disk.FS, base string) ([]byte, error) {
	path := filepath.Join(base, "links.key")
	key, err := disk.Read(path, 2*web.LinkKey)
	switch {
	case err == nil && len(key) == web.LinkKey:
		return key, nil
	case err == nil:
		return nil, i18n.E("app.link_key", path)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the key of links: %w", err)
	}
	key = make([]byte, web.LinkKey)
	_, _ = rand.Read(key) // never fails
	return key, on.Replace(path, key, true)
}

// proposal is a proposal for its page, and how it stands.
func (d *daemon) proposal(ctx context.Context, l i18n.Lang, id string) (a web.Proposal, err error) {
	j, err := d.talks.approvals.Find(ctx, id, contextstore.Viewer{Admin: true}) // the link says who may
	if err == nil {
		a.Approval, err = d.talks.approvals.Request(l, j)
	}
	if err != nil {
		if !errors.Is(err, approval.ErrUnknown) {
			d.log.Error("A diff cannot be shown: "+err.Error(), "job_id", id)
		}
		return a, err
	}
	a.Run = j.Run
	at := j.State.Decided.UTC().Format("2006-01-02 15:04")
	switch j.State.Status {
	case approval.Granted:
		a.Stands = l.T("web.stands_granted", j.State.Approver, at)
	case approval.AutoApproved:
		a.Stands = l.T("web.stands_auto", at)
	case approval.Denied:
		a.Stands = l.T("web.stands_denied", at, j.Denial(l))
	default:
		a.Stands = l.T("web.stands_pending")
	}
	return a, nil
}
