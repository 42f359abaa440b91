package rest

import (
	"context"
	"strings"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// Reply is that of forge.Threads, for t whose server takes what add writes to a remark.
func (p *Posts) Reply(ctx context.Context, d *Call, t forge.Tracker, k task.Key, remark, marker string, add func(to forge.Comment) (forge.Comment, error)) (forge.Comment, error) {
	if !IsMarker(marker) {
		return forge.Comment{}, d.BadMarker(marker)
	}
	leave, err := p.Turns.Enter(ctx, strings.ToLower(k.String())+"/"+remark)
	if err != nil {
		return forge.Comment{}, d.Explain(ctx, err)
	}
	defer leave()
	all, _, err := t.Comments(ctx, k)
	if err != nil {
		return forge.Comment{}, err
	}
	var to forge.Comment
	for _, c := range all {
		switch {
		case c.Marker == marker:
			return c, nil
		case c.ID == remark && c.Kind == forge.Line && !c.Resolved:
			to = c
		}
	}
	if to.ID == "" {
		return forge.Comment{}, d.Failed(forge.Gone, 0, i18n.E("rest.said_settled"), i18n.E("rest.advice_settled"), nil)
	}
	c, err := add(to)
	c.Item = k.ID
	return c, err
}
