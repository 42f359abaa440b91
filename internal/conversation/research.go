package conversation

import (
	"encoding/json"
	"slices"
	"strings"

	"toritsugi/internal/contract"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/routing"
	"toritsugi/internal/tool"
	"toritsugi/internal/tool/web"
)

// found is what a leg of RESEARCH looked up.
type found struct {
	looked bool     // a search or a page answered
	cited  []string // the addresses that its findings name, of those that were looked up
}

// has reports whether a registry has a tool.
func has(r *tool.Registry, name string) bool {
	return slices.ContainsFunc(r.Definitions(), func(d tool.Definition) bool { return d.Name == name })
}

// given is what the person wrote, of which addresses may be read.
func (t *turn) given(in contract.Input) string {
	text := t.entry.Content
	for _, n := range in.Context.RecentTurns {
		if n.Role == llm.RoleUser {
			text += "\n" + n.Text
		}
	}
	return text
}

// mayLook says why nothing may be looked up: while only local models may work nothing of
// what was said leaves (spec/chat §3). It is asked before each request, so that /local
// holds at once.
func (t *turn) mayLook() error {
	s, err := t.x.state()
	if err == nil && s.LocalOnly {
		err = i18n.E("conversation.web_local")
	}
	return err
}

// finding is one of RESEARCH's.
type finding struct {
	Text   string `json:"text"`
	Source string `json:"source"`
}

// findings are those of a result of RESEARCH.
func findings(result json.RawMessage) []finding {
	var r struct {
		Findings []finding `json:"findings"`
	}
	_ = json.Unmarshal(result, &r) // it was read by its schema
	return r.Findings
}

// unsourced says to a model what its findings lack where something was looked up.
func unsourced(result json.RawMessage, looks *web.Lookup) string {
	if looks == nil || result == nil {
		return ""
	}
	sources := looks.Sources()
	if len(sources) == 0 || slices.ContainsFunc(findings(result), func(f finding) bool { return web.Find(sources, f.Source) != nil }) {
		return ""
	}
	addresses := make([]string, 0, len(sources))
	for _, s := range sources[:min(len(sources), 10)] {
		addresses = append(addresses, s.URL)
	}
	return "findings holds nothing whose source is an address that was looked up, letter by letter: " + strings.Join(addresses, " ") + ". Where none of them answers the question, leave findings out and say so in why."
}

// sourced is a result of RESEARCH without findings whose source was not looked up: nothing
// that was not fetched is asserted (spec/facts §5).
func sourced(result json.RawMessage, looks *web.Lookup) (json.RawMessage, found) {
	var f found
	var sources []web.Source
	if looks != nil {
		sources = looks.Sources()
		f.looked = len(sources) > 0
	}
	var kept []finding
	for _, n := range findings(result) {
		s := web.Find(sources, n.Source)
		if s == nil {
			continue
		}
		kept = append(kept, finding{n.Text, s.URL})
		if !slices.Contains(f.cited, s.URL) {
			f.cited = append(f.cited, s.URL)
		}
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(result, &fields); err != nil {
		return result, f // it was read by its schema
	}
	delete(fields, "findings")
	if len(kept) > 0 {
		fields["findings"], _ = json.Marshal(kept) // texts
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return result, f
	}
	return raw, f
}

// researched tells Chat how what RESEARCH found was found, or that it was not.
func (t *turn) researched(items []Item) {
	looked, not := false, false
	for _, i := range items {
		looked, not = looked || i.Looked, not || i.Route == routing.Research && !i.Looked
		for _, s := range i.Sources {
			if !slices.Contains(t.cited, s) {
				t.cited = append(t.cited, s)
			}
		}
	}
	if looked {
		t.frame("sources", nil)
	}
	if not && !looked {
		t.frame("nothing_fetched", nil)
	}
}

// maxCited is how many sources are told below an answer that leaves them out.
const maxCited = 7

// withSources is an answer with the sources of what it was written from, which Chat is to
// name: those that it left out stand below it.
func (t *turn) withSources(text string) string {
	var missing []string
	for _, s := range t.cited {
		if !strings.Contains(text, strings.TrimRight(s, "/")) && len(missing) < maxCited {
			missing = append(missing, s)
		}
	}
	if len(missing) == 0 {
		return text
	}
	return text + "\n\n" + t.e.Lang.T("conversation.sources") + "\n- " + strings.Join(missing, "\n- ")
}
