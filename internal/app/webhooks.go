package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/inbox"
	"toritsugi/internal/dispatch"
	"toritsugi/internal/forge"
	"toritsugi/internal/forge/hook"
	"toritsugi/internal/i18n"
)

// caller is a forge that calls by webhooks.
type caller struct {
	source   string
	receiver *hook.Receiver
	look     func(context.Context, dispatch.Call) error
}

// webhookSecret is the secret of the webhooks of a forge as it is now, "" for none.
func (s *system) webhookSecret(source string) (string, error) {
	f, is := s.cfg.Forge(source)
	switch {
	case !is: // a folder
		return "", nil
	case f.WebhookSecretFile == "":
		return f.WebhookSecret, nil
	}
	b, err := readCredential(f.WebhookSecretFile)
	if err != nil {
		return "", i18n.E("hook.secret_file", source, f.WebhookSecretFile, err)
	}
	return string(b), nil
}

// webhooks are the forges that call, of those that are watched.
func (d *daemon) webhooks() (all []*caller, err error) {
	for _, w := range d.watches {
		source := w.Host.Source()
		secret, err := d.webhookSecret(source)
		if err != nil {
			return nil, err
		}
		if secret == "" {
			continue
		}
		if d.cfg.Serve.Listen == "" {
			return nil, i18n.E("hook.no_listen", source)
		}
		c := &caller{source: source, look: func(ctx context.Context, call dispatch.Call) error { return d.intake.Call(ctx, w, call) }}
		c.receiver, err = hook.New(hook.Options{Source: source, Watched: w.Watches, Own: w.Own, Keep: d.keep, Now: d.env.Now, Log: d.log, Secret: func() string { return d.secretNow(source) }})
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// secretNow is the secret of the webhooks of a forge for a request; from then on texts mask it.
func (d *daemon) secretNow(source string) string {
	now, err := d.webhookSecret(source)
	if err != nil && d.secretLost.Due(d.env.Now(), time.Minute) {
		d.log.Warn(err.Error())
	}
	d.redact.Learn(now)
	return now
}

// keep puts where to look for a delivery into the inbox. Those of a repository are one queue.
func (d *daemon) keep(ctx context.Context, e hook.Delivery) error {
	call := dispatch.Call{Repo: e.Repo}
	if e.Kind == hook.Changed {
		call.Changed = []dispatch.Changed{{Type: e.ItemType, ID: e.Item}}
	}
	body, err := json.Marshal(call)
	if err != nil {
		return err
	}
	queue := strings.ToLower(e.Repo.String())
	if len(queue) > inbox.MaxID {
		sum := sha256.Sum256([]byte(queue))
		queue = hex.EncodeToString(sum[:])
	}
	return d.inbox.Put(ctx, channel.Event{Channel: channel.Kind(e.Source), ID: e.ID, Queue: queue, Body: body, ReceivedAt: d.env.Now()})
}

// Kind implements inbox.Gatherer.
func (c *caller) Kind() channel.Kind { return channel.Kind(c.source) }

// Gather implements inbox.Gatherer: the events are of one repository.
func (c *caller) Gather(ctx context.Context, events []channel.Event) error {
	var call dispatch.Call
	for _, e := range events {
		var one dispatch.Call
		if err := json.Unmarshal(e.Body, &one); err != nil {
			continue // it would not be another one later; looking at intervals makes up for it
		}
		call.Repo, call.Changed = one.Repo, append(call.Changed, one.Changed...)
	}
	if call.Repo == (forge.Repo{}) {
		return nil
	}
	return c.look(ctx, call)
}
