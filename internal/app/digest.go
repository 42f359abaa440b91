package app

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/config"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

// digestEvery is how often it is looked whether a digest is due, and digestTitles how many of the
// runs that wait for people it names.
const (
	digestEvery  = time.Minute
	digestTitles = 5
)

// digest is the last one of a conversation, as a mark in house.db.
type digest struct {
	At time.Time `json:"at"`
	// Ended are the runs that had ended at the time, by status, since its day began.
	Ended map[task.Status]contextstore.Tally `json:"ended"`
	// Text is what is yet to be told, "" for nothing; Key that of its post.
	Text string `json:"text,omitempty"`
	Key  string `json:"key,omitempty"`
}

// digestScope is that of the marks.
const digestScope = "digest"

// digests tells what happened, once a day, until ctx ends.
func (d *daemon) digests(ctx context.Context) {
	every(ctx, digestEvery, func(ctx context.Context) {
		if err := d.tellDigests(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("A digest is not told: " + err.Error())
		}
	})
}

// tellDigests tells those that are due.
func (d *daemon) tellDigests(ctx context.Context) (err error) {
	for _, c := range d.cfg.Channels.On() {
		if c.DigestAt == "" || d.quiet(channel.Kind(c.Kind)) {
			continue
		}
		for _, session := range c.Notify {
			err = errors.Join(err, d.tellDigest(ctx, c.People, session))
		}
	}
	return err
}

// tellDigest tells a conversation its digest where it is due. The text is kept before it is told,
// with the counters that the next one begins from: a kill loses and doubles nothing.
func (d *daemon) tellDigest(ctx context.Context, c config.People, session string) error {
	raw, err := d.store.Mark(ctx, digestScope, session)
	if err != nil {
		return err
	}
	var last digest
	_ = json.Unmarshal([]byte(raw), &last) // one that cannot be read counts as none
	now := d.env.Now().In(time.Local)
	due, _ := c.NextDigest(last.At.In(time.Local))
	if last.Text == "" {
		if !last.At.IsZero() && now.Before(due) {
			return nil
		}
		if last, err = d.nextDigest(ctx, last, now, "digest/"+due.Format(time.DateOnly)); err != nil {
			return err
		}
		if err := d.putDigest(ctx, session, last); err != nil || last.Text == "" {
			return err
		}
	}
	if err := d.notifyOne(ctx, session, last.Key, last.Text); err != nil {
		return err
	}
	last.Text, last.Key = "", ""
	return d.putDigest(ctx, session, last)
}

func (d *daemon) putDigest(ctx context.Context, session string, g digest) error {
	raw, err := json.Marshal(g)
	if err != nil {
		return err
	}
	return d.store.SetMark(ctx, digestScope, session, string(raw))
}

// nextDigest is the digest of what happened since the last one. The first one tells nothing.
func (d *daemon) nextDigest(ctx context.Context, last digest, now time.Time, key string) (next digest, err error) {
	next = digest{At: now}
	if next.Ended, err = d.store.EndedFrom(ctx, contextstore.DayOf(now)); err != nil || last.At.IsZero() {
		return next, err
	}
	ended, err := d.store.EndedFrom(ctx, contextstore.DayOf(last.At))
	if err != nil {
		return next, err
	}
	var all contextstore.Tally
	var counts []string
	for _, s := range []task.Status{task.Completed, task.Failed, task.Stopped} {
		now, had := ended[s], last.Ended[s]
		if n := now.Runs - had.Runs; n > 0 {
			counts = append(counts, d.talks.lang.T("app.digest_"+string(s), n))
			all.Runs += n
		}
		all.Tokens += max(now.Tokens-had.Tokens, 0)
		all.MicroUSD += max(now.MicroUSD-had.MicroUSD, 0)
	}
	waiting, titles := 0, ""
	err = d.store.Live(ctx, func(r contextstore.Row) error {
		if r.Status != task.AwaitingApproval {
			return nil
		}
		if waiting++; waiting <= digestTitles {
			titles += "\n- " + d.talks.homeTitle(r.UUID)
		}
		return nil
	})
	if err != nil || all.Runs == 0 && waiting == 0 {
		return next, err
	}
	lines := []string{d.talks.lang.T("app.digest", last.At.In(time.Local).Format("2006-01-02 15:04"))}
	if all.Runs > 0 {
		lines = append(lines, d.talks.lang.T("app.digest_ended", strings.Join(counts, d.talks.lang.T("app.digest_and")), all.Tokens, contextstore.Dollars(all.MicroUSD)))
	}
	if waiting > 0 {
		lines = append(lines, d.talks.lang.T("app.digest_waiting", waiting)+titles)
	}
	if waiting > digestTitles {
		lines = append(lines, d.talks.lang.T("app.digest_more", waiting-digestTitles))
	}
	next.Text, next.Key = d.redact.Strict().String(strings.Join(lines, "\n")), key
	return next, nil
}
