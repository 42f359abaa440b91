package ops

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
)

// RoutesOptions say how decisions are printed.
type RoutesOptions struct {
	JSON bool // one object a line
	Lang i18n.Lang
	Mask func(string) string // of messages
}

// Tried is a labelled message with what was decided.
type Tried struct {
	routing.Labelled
	Decision routing.Decision
}

// RoutesTest prints what was decided of labelled messages: those that are wrong, and how many.
func RoutesTest(w io.Writer, all []Tried, o RoutesOptions) error {
	p := &printer{w: w}
	matrix, wrong := routing.Confusion{}, 0
	for _, t := range all {
		d := t.Decision
		if o.JSON {
			p.line(struct {
				Line     int            `json:"line"`
				Expected routing.Route  `json:"expected"`
				Route    routing.Route  `json:"route"`
				Source   routing.Source `json:"source"`
				Label    string         `json:"label"`
			}{t.Line, t.Route, d.PrimaryRoute, d.Source, d.Label})
			continue
		}
		matrix[[2]routing.Route{t.Route, d.PrimaryRoute}]++
		if d.PrimaryRoute == t.Route {
			continue
		}
		if wrong++; wrong == 1 {
			p.printf("%5s %-8s %-8s %-24s %s\n", "LINE", "EXPECTED", "DECIDED", "BY", "MESSAGE")
		}
		p.printf("%5d %-8s %-8s %-24s %s\n", t.Line, t.Route, d.PrimaryRoute, fit(cmp.Or(d.Label, d.Reason), 24), fit(o.Mask(t.Text), 60))
	}
	if !o.JSON {
		p.printf("%s\n%s\n", o.Lang.T("routing.tried", len(all)-wrong, len(all)), matrix)
	}
	return p.err
}

// line prints an object on a line of its own.
func (p *printer) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		p.err = cmp.Or(p.err, err)
		return
	}
	p.raw(string(b) + "\n")
}

// RouteCount is how often one source decided by one piece of evidence, and what became of it.
type RouteCount struct {
	Source     routing.Source        `json:"source"`
	By         string                `json:"by"` // label of a rule, command, or "" of others
	Classifier routing.Route         `json:"classifier_route,omitempty"`
	Route      routing.Route         `json:"route"`
	Messages   int                   `json:"messages"`
	Overridden int                   `json:"overridden"`
	To         map[routing.Route]int `json:"to,omitempty"` // by where they were sent instead
	Rerouted   int                   `json:"rerouted"`     // of Overridden, by a reroute and no person
}

// routeKey is what decisions are counted by.
type routeKey struct {
	source     routing.Source
	by         string
	classifier routing.Route
	route      routing.Route
}

// RouteStats is what the sessions of a base directory tell of their decisions.
type RouteStats struct {
	Counts   []RouteCount // the most frequent first
	Messages int
	Sessions int
	Bad      int // lines that cannot be read
}

// ReadRouteStats reads the events of all sessions below base. It holds one line at a time.
func ReadRouteStats(base string) (RouteStats, error) {
	var s RouteStats
	counts := map[routeKey]*RouteCount{}
	err := contextstore.EachSession(base, func(dir string) error {
		had := s.Messages
		err := s.read(filepath.Join(dir, "events.jsonl"), counts)
		if errors.Is(err, fs.ErrNotExist) { // it has none, or was removed meanwhile
			return nil
		}
		if s.Messages > had {
			s.Sessions++
		}
		return err
	})
	if err != nil {
		return s, fmt.Errorf("read the sessions below %s: %w", base, err)
	}
	for _, c := range counts {
		s.Counts = append(s.Counts, *c)
	}
	slices.SortFunc(s.Counts, func(a, b RouteCount) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Source, b.Source), cmp.Compare(a.By, b.By), cmp.Compare(a.Classifier, b.Classifier), cmp.Compare(a.Route, b.Route))
	})
	return s, nil
}

// maxEvent is the longest line of events that is looked at, in bytes.
const maxEvent = 1 << 20

// read counts the events of one session.
func (s *RouteStats) read(file string, counts map[routeKey]*RouteCount) error {
	f, err := disk.OpenPlain(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	lines := bufio.NewReaderSize(f, 64<<10)
	latest := map[routing.Route]*RouteCount{} // the last decision for each route
	for {
		line, err := readLine(lines)
		s.event(line, counts, latest)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLongLine):
			s.Bad++
		case err != nil:
			return fmt.Errorf("read %s: %w", file, err)
		}
	}
}

// event counts one line; one of another event is passed over.
func (s *RouteStats) event(line []byte, counts map[routeKey]*RouteCount, latest map[routing.Route]*RouteCount) {
	decision, override := bytes.Contains(line, []byte(routing.EventDecision)), bytes.Contains(line, []byte(routing.EventOverride))
	if !decision && !override {
		return
	}
	var e struct {
		routing.DecisionEvent
		From routing.Route `json:"from"`
		To   routing.Route `json:"to"`
		By   string        `json:"by"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		s.Bad++
		return
	}
	switch e.Event {
	case routing.EventDecision:
		k := routeKey{source: e.Source, route: e.InitialRoute}
		if (e.Source == routing.FromRules || e.Source == routing.FromCommand) && len(e.Evidence) > 0 {
			k.by = e.Evidence[0]
		}
		if e.ClassifierRoute != nil {
			k.classifier = *e.ClassifierRoute
		}
		c := counts[k]
		if c == nil {
			c = &RouteCount{Source: k.source, By: k.by, Classifier: k.classifier, Route: k.route, To: map[routing.Route]int{}}
			counts[k] = c
		}
		c.Messages++
		s.Messages++
		latest[k.route] = c
	case routing.EventOverride:
		c := latest[e.From]
		if c == nil {
			return // what it overrode is no longer in the file
		}
		delete(latest, e.From)
		c.Overridden++
		c.To[e.To]++
		if e.By == routing.ByReroute {
			c.Rerouted++
		}
	}
}

var errLongLine = errors.New("a line is too long")

// readLine returns the next line without its break. What is longer than maxEvent is skipped.
func readLine(r *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxEvent {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil && long:
			return nil, errLongLine
		default:
			return bytes.TrimSpace(line), err
		}
	}
}

// RoutesStats prints what decided, how often, and where it was overridden.
func RoutesStats(w io.Writer, base string, s RouteStats, o RoutesOptions) error {
	p := &printer{w: w}
	if o.JSON {
		for _, c := range s.Counts {
			p.line(c)
		}
		return p.err
	}
	if s.Messages == 0 {
		p.printf("%s\n", o.Lang.T("routing.stats_none", base))
	} else {
		p.printf("%s\n%-10s %-22s %-8s %8s %10s  %s\n", o.Lang.T("routing.stats_head", thousands(int64(s.Messages)), s.Sessions), "SOURCE", "BY", "ROUTE", "MESSAGES", "OVERRIDDEN", "TO")
	}
	for _, c := range s.Counts {
		by := c.By
		if c.Classifier != "" && c.Classifier != c.Route {
			by = "said " + string(c.Classifier)
		}
		source := string(c.Source)
		if c.Source == routing.FromLine {
			source = "line"
		}
		to := make([]string, 0, len(c.To))
		for _, r := range slices.Sorted(maps.Keys(c.To)) {
			to = append(to, fmt.Sprintf("%s %d", r, c.To[r]))
		}
		overridden := fmt.Sprint(c.Overridden)
		if c.Overridden > 0 {
			overridden = fmt.Sprintf("%d (%d%%)", c.Overridden, 100*c.Overridden/c.Messages)
		}
		p.printf("%-10s %-22s %-8s %8d %10s  %s\n", source, fit(cmp.Or(clean(by), "-"), 22), clean(string(c.Route)), c.Messages, overridden, strings.Join(to, ", "))
	}
	if s.Bad > 0 {
		p.printf("%s\n", o.Lang.T("routing.stats_bad", s.Bad))
	}
	return p.err
}
