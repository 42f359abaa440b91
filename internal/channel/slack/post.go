package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"toritsugi/internal/channel"
)

const (
	// maxShown is how long the text of a message is at most: Slack shows 40,000 characters,
	// advises 4,000, and takes no more than those in a message that is edited.
	maxShown = 4000
	// throttle is how often the progress of a job is shown anew at most.
	throttle = 3 * time.Second
	// backTo is how far back a thread is searched for what was said before a restart; an
	// approval is waited for for less.
	backTo = 7 * 24 * time.Hour
	// skew is by how much Slack's clock and ours may differ.
	skew = 5 * time.Minute
	// eventType marks our messages' metadata.
	eventType = "tori_post"
)

// metadata is what a message carries that no person sees: it tells what was said already.
type metadata struct {
	Type    string  `json:"event_type"`
	Payload payload `json:"event_payload"`
}

type payload struct {
	Key string `json:"key"`
	Job string `json:"job,omitempty"` // of a request
}

// part is one message of what is said.
type part struct {
	text   string
	blocks []any
	job    string // whose request it is
}

// parts are the messages of a Markdown text.
func parts(text string) (all []part) {
	for _, t := range split(mrkdwn(text), maxShown) {
		all = append(all, part{text: t})
	}
	return all
}

// maxTries is how often a call is made that Slack neither took nor refused.
const maxTries = 3

// Post implements channel.Channel.
func (s *Slack) Post(ctx context.Context, p channel.Post) error {
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := s.post(ctx, p)
		if err != nil && (undone(err) || ctx.Err() != nil) {
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithMaxTries(maxTries))
	return err
}

// post is one try of Post.
func (s *Slack) post(ctx context.Context, p channel.Post) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at, err := placeOf(p.SessionID)
	if err != nil {
		return err
	}
	switch {
	case p.Kind == channel.Progress:
		return s.progress(ctx, at, p)
	case p.Kind == channel.Request && p.Approval != nil:
		return s.request(ctx, at, p)
	case p.Kind == channel.Decided && p.Approval != nil:
		return s.decided(ctx, at, p)
	case p.Question != nil && p.Question.Over:
		return s.settled(ctx, at, p)
	case p.Question != nil:
		return s.asks(ctx, at, p)
	}
	return s.say(ctx, at, p.Key, parts(p.Text), s.mayBeOld(at, p.ReplyTo))
}

// mayBeOld reports whether an earlier process may have said something already: what it
// answers, or the thread, is older than this process.
func (s *Slack) mayBeOld(at place, replyTo string) bool {
	ts, _, _ := strings.Cut(at.thread, ".")
	if parts := strings.Split(replyTo, "."); len(parts) > 2 { // CHANNEL.TS, and what of it
		ts = parts[1]
	}
	seconds, err := strconv.ParseInt(ts, 10, 64)
	return err != nil || !time.Unix(seconds, 0).After(s.started.Add(skew))
}

// partKey is the key of the nth message of what is said.
func partKey(at place, key string, n int) string {
	return fmt.Sprintf("%s:%s/%s#%d", at.channel, at.thread, key, n)
}

// told is the ts of a message that was said, if it is remembered.
func (s *Slack) told(key string) (ts string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.Get(key)
}

func (s *Slack) remember(key, ts string) {
	s.mu.Lock()
	s.said.Put(key, ts)
	s.mu.Unlock()
}

// say shows messages, each once: those that are there already are left out. old says that
// some may be there of an earlier process.
func (s *Slack) say(ctx context.Context, at place, key string, all []part, old bool) error {
	leave, err := s.lines.Enter(ctx, at.channel+":"+at.thread)
	if err != nil {
		return err
	}
	defer leave()
	return s.saying(ctx, at, key, all, old)
}

// saying is say of whose turn it is.
func (s *Slack) saying(ctx context.Context, at place, key string, all []part, old bool) error {
	for n, p := range all {
		k := partKey(at, key, n)
		if _, done := s.told(k); done && key != "" {
			continue
		}
		s.mu.Lock()
		_, unsure := s.unsure.Get(k)
		s.mu.Unlock()
		if (old || unsure) && key != "" {
			if err := s.lookBack(ctx, at); err != nil {
				return err
			}
			if _, done := s.told(k); done {
				continue
			}
		}
		args, err := p.args(at)
		if err != nil {
			return err
		}
		about, err := json.Marshal(metadata{eventType, payload{k, p.job}})
		if err != nil {
			return err
		}
		args.Set("metadata", string(about))
		args.Set("unfurl_links", "false")
		args.Set("unfurl_media", "false")
		var answer struct{ TS string }
		if err := s.api.call(ctx, s.opt.BotToken, "chat.postMessage", args, &answer); err != nil {
			if !undone(err) { // it may be there: the next attempt looks
				s.mu.Lock()
				s.looked.Drop(at.channel + ":" + at.thread)
				s.unsure.Put(k, "")
				s.mu.Unlock()
			}
			return err
		}
		s.remember(k, answer.TS)
		if p.job != "" {
			s.remember(latestKey(at, p.job), answer.TS)
		}
	}
	return nil
}

// args are the arguments with which a message is shown at a place.
func (p part) args(at place) (url.Values, error) {
	args := url.Values{"channel": {at.channel}, "text": {p.text}}
	if at.thread != "" {
		args.Set("thread_ts", at.thread)
	}
	if p.blocks != nil {
		b, err := json.Marshal(p.blocks)
		if err != nil {
			return nil, err
		}
		args.Set("blocks", string(b))
	}
	return args, nil
}

// caller is api.call or api.try.
type caller func(ctx context.Context, token, method string, args url.Values, out any) error

// rewrite puts a message in the place of another one of ours.
func (s *Slack) rewrite(ctx context.Context, at place, ts string, p part, call caller) error {
	args, err := p.args(place{channel: at.channel})
	if err != nil {
		return err
	}
	args.Set("ts", ts)
	return call(ctx, s.opt.BotToken, "chat.update", args, nil)
}

// lookBack remembers what the program has said at a place, once.
func (s *Slack) lookBack(ctx context.Context, at place) error {
	id := at.channel + ":" + at.thread
	s.mu.Lock()
	_, done := s.looked.Get(id)
	s.mu.Unlock()
	if done || !strings.HasPrefix(at.channel, "C") && !strings.HasPrefix(at.channel, "G") && !strings.HasPrefix(at.channel, "D") {
		return nil
	}
	me, err := s.who(ctx)
	if err != nil {
		return err
	}
	oldest := strconv.FormatInt(s.opt.Now().Add(-backTo).Unix(), 10)
	args, method := url.Values{"channel": {at.channel}, "oldest": {oldest}, "limit": {"200"}, "include_all_metadata": {"true"}}, "conversations.history"
	if at.thread != "" {
		method = "conversations.replies"
		args.Set("ts", at.thread)
	}
	const pages = 30 // more than 5,000 messages
	for range pages {
		var page struct {
			Messages []message `json:"messages"`
			Meta     struct {
				Cursor string `json:"next_cursor"`
			} `json:"response_metadata"`
		}
		err := s.api.call(ctx, s.opt.BotToken, method, args, &page)
		if code(err) == "thread_not_found" { // its first message was deleted, or is not there yet
			break
		}
		if err != nil {
			return err
		}
		s.recognize(me, at, page.Messages)
		if page.Meta.Cursor == "" {
			break
		}
		args.Set("cursor", page.Meta.Cursor)
	}
	s.mu.Lock()
	s.looked.Put(id, "")
	s.mu.Unlock()
	return nil
}

// recognize remembers messages of ours. Anybody can put such metadata on a message of their
// own.
func (s *Slack) recognize(me identity, at place, all []message) {
	for _, m := range all {
		if !me.own(&m) {
			continue
		}
		if m.Metadata != nil && m.Metadata.Type == eventType {
			s.remember(m.Metadata.Payload.Key, m.TS)
			latest := latestKey(at, m.Metadata.Payload.Job)
			if ts, _ := s.told(latest); m.Metadata.Payload.Job != "" && m.TS > ts {
				s.remember(latest, m.TS)
			}
		}
		for _, f := range m.Files {
			s.remember(partKey(at, "file/"+f.Title, 0), m.TS)
		}
	}
}

// progress is how far a job is, as one message shows it.
type progress struct {
	at      place
	text    string // yet to be shown
	shown   time.Time
	pending *time.Timer // shows text when it is time
}

// stop gives up what is yet to be shown. The caller holds Slack.mu.
func (p *progress) stop(running *sync.WaitGroup) {
	if p.pending != nil && p.pending.Stop() {
		running.Done()
	}
	p.pending = nil
}

// progressKey is the key of a job's message.
func progressKey(job string) string { return "progress/" + job }

// progress shows how far a job is, now or a little later.
func (s *Slack) progress(ctx context.Context, at place, p channel.Post) error {
	if strings.TrimSpace(p.Text) == "" {
		return s.progressEnd(ctx, at, p.Job, s.mayBeOld(at, p.ReplyTo))
	}
	s.mu.Lock()
	j := s.jobs[p.Job]
	if j == nil {
		j = &progress{}
		s.jobs[p.Job] = j
	}
	j.at, j.text = at, short(mrkdwn(p.Text), maxShown)
	wait := throttle - s.opt.Now().Sub(j.shown)
	if s.closed || j.pending != nil {
		s.mu.Unlock()
		return nil
	}
	if wait > 0 {
		s.flushes.Add(1)
		j.pending = time.AfterFunc(wait, func() {
			defer s.flushes.Done()
			ctx, cancel := context.WithTimeout(context.Background(), callTime)
			defer cancel()
			if err := s.showProgress(ctx, p.Job, false); err != nil {
				s.log.Info(s.opt.Mask("Progress was not shown: " + err.Error()))
			}
		})
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	return s.showProgress(ctx, p.Job, s.mayBeOld(at, p.ReplyTo))
}

// showProgress shows what a job's progress is by now.
func (s *Slack) showProgress(ctx context.Context, job string, old bool) error {
	s.mu.Lock()
	j := s.jobs[job]
	if j == nil { // it has ended
		s.mu.Unlock()
		return nil
	}
	at := j.at
	s.mu.Unlock()
	leave, err := s.lines.Enter(ctx, at.channel+":"+at.thread)
	if err != nil {
		return err
	}
	defer leave()
	s.mu.Lock()
	if s.jobs[job] != j {
		s.mu.Unlock()
		return nil
	}
	p := part{text: j.text}
	j.shown, j.pending = s.opt.Now(), nil
	s.mu.Unlock()
	if old {
		if err := s.lookBack(ctx, at); err != nil {
			return err
		}
	}
	if ts, ok := s.told(partKey(at, progressKey(job), 0)); ok {
		err := s.rewrite(ctx, at, ts, p, s.api.try)
		var l *limited
		if errors.As(err, &l) { // it keeps no answer waiting: the next progress is shown
			return nil
		}
		return err
	}
	return s.saying(ctx, at, progressKey(job), []part{p}, false)
}

// progressEnd takes away the message of a job of which nothing goes on any more.
func (s *Slack) progressEnd(ctx context.Context, at place, job string, old bool) error {
	s.mu.Lock()
	if j := s.jobs[job]; j != nil {
		j.stop(&s.flushes)
		delete(s.jobs, job)
	}
	s.mu.Unlock()
	leave, err := s.lines.Enter(ctx, at.channel+":"+at.thread)
	if err != nil {
		return err
	}
	defer leave()
	if old {
		if err := s.lookBack(ctx, at); err != nil {
			return err
		}
	}
	key := partKey(at, progressKey(job), 0)
	ts, ok := s.told(key)
	if !ok {
		return nil
	}
	err = s.api.call(ctx, s.opt.BotToken, "chat.delete", url.Values{"channel": {at.channel}, "ts": {ts}}, nil)
	if err != nil && code(err) != "message_not_found" {
		return err
	}
	s.mu.Lock()
	s.said.Drop(key)
	s.mu.Unlock()
	return nil
}
