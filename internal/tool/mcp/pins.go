package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/contextstore/filelock"
	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/tool"
)

// pinsFormat is the format of pins.json that is written.
const pinsFormat = 1

// pinFile is the content of pins.json: what each server's tools were when they
// were first seen, or last accepted, and how each server is best greeted.
type pinFile struct {
	Format    int                              `json:"format"`
	Servers   map[string]map[string]definition `json:"servers"`
	Greetings map[string]greeting              `json:"greetings,omitempty"`
}

// greeting is the way in which a server answered last.
type greeting struct {
	Of    string `json:"of"` // a hash of what is started or called
	Older bool   `json:"older,omitempty"`
}

// pins is pins.json. Other processes may change it at the same time: it is
// read and replaced under a lock.
type pins struct {
	disk *disk.FS
	path string

	mu  sync.Mutex
	now pinFile // as last read or written; its maps are never changed
}

func openPins(d *disk.FS, path string) (*pins, error) {
	p := &pins{disk: d, path: path}
	return p, p.read()
}

// read reads the file. It fails rather than to take a file that it cannot read for an
// empty one: everything would be pinned anew, unasked.
func (p *pins) read() error {
	raw, err := disk.Read(p.path, disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		p.now = pinFile{Format: pinsFormat}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pinned MCP tools: %w", err)
	}
	var f pinFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return i18n.E("mcp.pins", p.path, err)
	}
	if f.Format > pinsFormat {
		return i18n.E("mcp.pins_newer", p.path, f.Format, pinsFormat)
	}
	p.now = f
	return nil
}

// of returns what is pinned for a server, and whether it was ever seen.
func (p *pins) of(server string) (map[string]definition, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tools, known := p.now.Servers[server]
	return tools, known
}

// first pins the tools of a server that was never seen.
func (p *pins) first(server string, tools map[string]definition) error {
	if _, known := p.of(server); known {
		return nil
	}
	return p.update(func(f *pinFile) {
		if _, known := f.Servers[server]; !known { // another process may have been quicker
			f.Servers[server] = maps.Clone(tools)
		}
	})
}

// greeted returns how a server answered last, and whether it is known.
func (p *pins) greeted(server, of string) (older, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.now.Greetings[server]
	known = ok && g.Of == of
	return known && g.Older, known
}

// remember keeps how a server answered.
func (p *pins) remember(server string, g greeting) error {
	if older, known := p.greeted(server, g.Of); known && older == g.Older {
		return nil
	}
	return p.update(func(f *pinFile) { f.Greetings[server] = g })
}

// update changes the file so that no change of another process is lost, and is
// on the disk when it returns.
func (p *pins) update(change func(*pinFile)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.disk.MkdirAll(filepath.Dir(p.path)); err != nil {
		return fmt.Errorf("lock the pinned MCP tools: %w", err)
	}
	unlock, err := lockFile(p.path + ".lock") // for the time of one small write
	if err != nil {
		return fmt.Errorf("lock the pinned MCP tools: %w", err)
	}
	defer unlock()
	if err := p.read(); err != nil {
		return err
	}
	next := pinFile{Format: pinsFormat, Servers: map[string]map[string]definition{}, Greetings: map[string]greeting{}}
	maps.Copy(next.Greetings, p.now.Greetings)
	for name, tools := range p.now.Servers {
		next.Servers[name] = maps.Clone(tools)
	}
	change(&next)
	raw, err := jsonl.Marshal(next) // schemas are to come back byte for byte
	if err != nil {
		return fmt.Errorf("write the pinned MCP tools: %w", err)
	}
	if err := p.disk.Replace(p.path, append(raw, '\n'), true); err != nil {
		return fmt.Errorf("write the pinned MCP tools: %w", err)
	}
	p.now = next
	return nil
}

// Drift is a tool whose definition is not the pinned one, or that a pinned
// server did not have. It is withheld until Accept.
type Drift struct {
	Server, Tool string   // Tool in the server's own words
	Old, New     string   // hashes of the definitions; Old is "" of a new tool
	What         []string // what changed: "new", or of "description", "schema"
	Was, Is      Shown
}

// Shown is a definition as a model would get it, for the person who decides.
type Shown struct {
	Description string
	Schema      json.RawMessage
	Hints       Hints
}

func shown(d definition) Shown {
	return Shown{Description: d.Description, Schema: d.Schema, Hints: d.Hints}
}

// compare returns how the tools of a server differ from the pinned ones.
func compare(server string, pinned, live map[string]definition) []Drift {
	var all []Drift
	for name, is := range live {
		was, known := pinned[name]
		if known && was.is(is) {
			continue
		}
		d := Drift{Server: server, Tool: name, Old: was.Hash, New: is.Hash, Was: shown(was), Is: shown(is)}
		switch {
		case !known:
			d.What = []string{"new"}
		default:
			if was.DescriptionHash != is.DescriptionHash {
				d.What = append(d.What, "description")
			}
			if !was.sameSchema(is) {
				d.What = append(d.What, "schema")
			}
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Drift) int { return strings.Compare(a.Tool, b.Tool) })
	return all
}

// Drift returns the tools that differ from what is pinned for their server,
// sorted by server and tool; those that the server's Allow and Deny leave out
// are not among them.
func (m *Manager) Drift() []Drift {
	var all []Drift
	for _, s := range m.servers {
		live, listed := s.listing()
		pinned, known := m.pins.of(s.conf.Name)
		if !listed || !known {
			continue
		}
		for _, d := range compare(s.conf.Name, pinned, live) {
			if s.allows(d.Tool) {
				all = append(all, d)
			}
		}
	}
	return all
}

// Withheld returns stand-ins for the tools of Drift that are not among Tools: a call
// is answered with why there is none. They are Deferred.
func (m *Manager) Withheld() []tool.Tool {
	offered := m.Tools()
	var all []tool.Tool
	for _, d := range m.Drift() {
		name := Name(d.Server, d.Tool)
		if !slices.ContainsFunc(offered, func(t tool.Tool) bool { return t.Definition().Name == name }) {
			all = append(all, withheld{d, name})
		}
	}
	return all
}

// withheld is a tool that is not to be called.
type withheld struct {
	drift Drift
	name  string
}

func (w withheld) Definition() tool.Definition {
	return tool.Definition{Name: w.name, Schema: json.RawMessage(openSchema), Deferred: true}
}

func (w withheld) Call(context.Context, json.RawMessage) (tool.Result, error) {
	return tool.Failf("The tool %s of the MCP server %s is withheld: it is not what a person accepted (%s). %s", w.name, w.drift.Server,
		strings.Join(w.drift.What, ", "), acceptable(w.drift.Server, w.name)), nil
}

// acceptable says what becomes of a tool that is withheld.
func acceptable(server, name string) string {
	return fmt.Sprintf("Do without it, and say so where the work needs it: tori mcp accept %s %s shows a person the change and accepts it.", server, name)
}

// Accept pins the new definitions that a person has agreed to: the next Open offers
// them. A drift that is not the present one any more, because the tool
// changed again, is refused, and with it all of them.
func (m *Manager) Accept(drift ...Drift) error {
	present := map[[2]string]definition{}
	for _, d := range drift {
		s := m.server(d.Server)
		if s == nil {
			return i18n.E("mcp.accept", d.Server, d.Tool)
		}
		live, _ := s.listing()
		is, ok := live[d.Tool]
		if !ok || is.Hash != d.New {
			return i18n.E("mcp.accept", d.Server, d.Tool)
		}
		present[[2]string{d.Server, d.Tool}] = is
	}
	if len(present) == 0 {
		return nil
	}
	return m.pins.update(func(f *pinFile) {
		for at, is := range present {
			if f.Servers[at[0]] == nil {
				f.Servers[at[0]] = map[string]definition{}
			}
			f.Servers[at[0]][at[1]] = is
		}
	})
}

// lockFile waits for a lock among processes, which their end releases, no longer than for a minute.
func lockFile(path string) (unlock func(), err error) {
	return filelock.OpenWait(context.Background(), path, time.Minute)
}
