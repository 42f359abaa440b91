package app

import (
	"maps"
	"slices"
	"strings"

	"toritsugi/internal/delivery"
	"toritsugi/internal/disk"
	"toritsugi/internal/forge/hook"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// watchEvent watches the one item that the event of a CI job is about. Which forge it
// came from the settings tell: there is a login at that one alone.
func (d *daemon) watchEvent() error {
	forges := maps.Clone(d.hosts)
	maps.DeleteFunc(forges, func(_ string, h *delivery.Host) bool { return h.Code == nil })
	sources := slices.Sorted(maps.Keys(forges))
	switch len(sources) {
	case 1:
	case 0:
		return i18n.E("app.event_no_forge")
	default:
		return i18n.E("app.event_forges", strings.Join(sources, ", "))
	}
	body, err := disk.Read(d.event, hook.MaxBody)
	if err != nil {
		return i18n.E("app.event", d.event, err)
	}
	e, err := hook.Read(sources[0], body)
	if err != nil {
		return i18n.E("app.event", d.event, err)
	}
	w := d.watch(d.hosts[sources[0]])
	w.Patterns, w.Only = []string{e.Repo.String()}, task.Key{Type: e.ItemType, ID: e.Item}
	d.sources[sources[0]] = true
	d.watches = append(d.watches, w)
	return nil
}
