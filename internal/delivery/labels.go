package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/order"
	"toritsugi/internal/task"
)

// deliverLabels delivers the labels: those that the run's status asks for now, which
// may be a later one than that of the effect. A run that is not the newest of
// its task says nothing about it any more.
func (s *Service) deliverLabels(ctx context.Context, uuid string, e contextstore.Effect) (string, error) {
	v, err := s.Store.View(uuid)
	if err != nil {
		return "", err
	}
	h, o, err := s.HostOf(v.Metadata)
	if err != nil {
		return "", err
	}
	came := "a newer run shows how the task stands"
	for _, k := range o.Items(v.Metadata.TaskKey) {
		status, shows, err := s.stands(ctx, v, k)
		if err != nil {
			return "", err
		}
		if !shows {
			continue
		}
		came = h.Labels.Status[status]
		if err := s.label(ctx, h, v, k.Item(), came, strings.HasPrefix(e.Key, QueuedLabels(uuid).Key)); err != nil && (k == v.Metadata.TaskKey || !forge.Is(err, forge.NotFound) && !forge.Is(err, forge.Gone)) {
			return "", err
		}
	}
	return came, nil
}

// stands is how a task stands, one that a run is of or whose work it does; shows is false
// where the run has no say in that any more.
func (s *Service) stands(ctx context.Context, v contextstore.View, k task.Key) (now task.Status, shows bool, err error) {
	uuid := v.Metadata.UUID
	newest, ok, err := Newest(ctx, s.Store, k)
	if err != nil {
		return "", false, err
	}
	if shows = !ok || newest.Metadata.UUID == uuid; !shows && k == v.Metadata.TaskKey {
		last, there, err := s.Store.Latest(ctx, k)
		if err != nil {
			return "", false, err
		}
		if shows = there && last.Metadata.UUID == uuid; shows { // its work goes on elsewhere
			v = newest
		}
	}
	done, err := s.Store.Delivered(ctx, uuid)
	if strings.HasPrefix(done[uuid+"."+EffectTask], NotDelivered) {
		return task.Failed, shows, err // nothing was worked on
	}
	return v.Status(), shows, err
}

// label shows by labels how an item stands; with queued the one that asked for the run goes.
func (s *Service) label(ctx context.Context, h *Host, v contextstore.View, k task.Key, want string, queued bool) error {
	var add, remove []string
	asks := h.Labels.Trigger
	if v.Metadata.TaskKey.Type == task.TypeReview { // how the work on the request stands is not its to say
		asks = h.Labels.Review
	} else {
		add = []string{want}
		for _, name := range h.Labels.Status {
			if !strings.EqualFold(name, want) {
				remove = append(remove, name)
			}
		}
	}
	if queued {
		own, err := s.ownTrigger(ctx, h, v, k, asks)
		if err != nil {
			return err
		}
		if own {
			remove = append(remove, asks)
		}
	}
	if len(add)+len(remove) == 0 {
		return nil
	}
	if h.Labels.Create {
		if err := h.EnsureLabels(ctx, forge.RepoOf(k), h.Labels.All()); err != nil && !optional(err) {
			return err
		}
	}
	return h.SetLabels(ctx, k, add, remove)
}

// ownTrigger reports whether the label on an item that asks is the one that this very run
// took up: one that was put on since, perhaps while the forge was down, asks for
// another.
func (s *Service) ownTrigger(ctx context.Context, h *Host, v contextstore.View, k task.Key, label string) (bool, error) {
	taken, err := order.LastAct(ctx, s.Store, v)
	if err != nil {
		return false, err
	}
	last, err := h.Asked(ctx, k, forge.Trigger{Label: label})
	if errors.Is(err, forge.ErrNotAsked) {
		return false, nil
	}
	return err == nil && !taken.Before(order.Act{At: last.At, Event: last.Event}), err
}

// Labels are the labels that show how a task stands.
type Labels struct {
	Trigger string
	Review  string // asks for a review of a pull request; "" where there are none
	Status  map[task.Status]string
	Create  bool // where a repository lacks them
}

// Ours reports whether a label is one of them.
func (l Labels) Ours(name string) bool {
	own := append(slices.Collect(maps.Values(l.Status)), l.Trigger, l.Review)
	return slices.ContainsFunc(own, func(o string) bool { return strings.EqualFold(name, o) })
}

// Asking are the labels that ask for something, as they are made.
func (l Labels) Asking() []forge.Label {
	all := []forge.Label{{Name: l.Trigger, Color: "0E8A16", Description: "Asks tori to work on this"}}
	if l.Review != "" {
		all = append(all, forge.Label{Name: l.Review, Color: "006B75", Description: "Asks tori to review this"})
	}
	return all
}

// All are the labels as they are made.
func (l Labels) All() []forge.Label {
	out := l.Asking()
	seen := map[string]bool{}
	for _, s := range task.Statuses() {
		name := l.Status[s]
		if look, ok := looks[s]; ok && name != "" && !seen[name] {
			seen[name] = true
			out = append(out, forge.Label{Name: name, Color: look[0], Description: look[1]})
		}
	}
	return out
}

var looks = map[task.Status][2]string{
	task.Running:          {"FBCA04", "tori has this in hand"},
	task.Paused:           {"D93F0B", "tori has paused this"},
	task.AwaitingApproval: {"5319E7", "tori waits for an answer"},
	task.Completed:        {"1D76DB", "tori has completed this"},
	task.Stopped:          {"E99695", "tori was stopped here"},
	task.Failed:           {"B60205", "tori failed here"},
}

// QueuedLabels is the effect of a run that was just enqueued.
func QueuedLabels(uuid string) contextstore.Effect {
	return labelsOf(uuid, string(task.Queued))
}

// labelsOf is the effect that shows a stage of a run by its labels.
func labelsOf(uuid, stage string) contextstore.Effect {
	return contextstore.Effect{Key: uuid + "." + EffectLabels + "." + stage, Kind: EffectLabels, Data: json.RawMessage(`{}`)}
}
