package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/endpoint"
	"toritsugi/internal/llm/ollama"
	"toritsugi/internal/models"
	"toritsugi/internal/progress"
)

// ModelsOptions choose how models are shown.
type ModelsOptions struct {
	JSON bool
	Lang i18n.Lang
	Mask func(string) string // of what a server says
}

// Models prints the roles, and who fills them.
func Models(w io.Writer, rows []models.Row, o ModelsOptions) error {
	if o.JSON {
		return encode(w, modelsJSON(rows, o))
	}
	p := &printer{w: w}
	for _, r := range rows {
		o.row(p, r)
	}
	return p.err
}

// row prints one role: who, where, and what is known, a line each.
func (o ModelsOptions) row(p *printer, r models.Row) {
	name := r.Role
	if r.Fallback > 0 {
		name = fmt.Sprintf("  %d", r.Fallback+1)
	}
	who := clean(r.Provider + "/" + ollama.ModelName(r.Model))
	if r.Provider == "" {
		who = "-"
	}
	if r.Alias != "" {
		who += " (" + clean(r.Alias) + ")"
	}
	p.printf("%-10s  %s\n", name, who)
	if r.Endpoint != "" {
		where := "models.local"
		if r.Cloud {
			where = "models.cloud"
		}
		p.printf("%12s%s, %s, %s\n", "", clean(r.Endpoint), o.Lang.T(where), o.reach(r))
	}
	if configured := r.Problem == nil || r.Reachable != models.Unknown; configured && r.Provider != "" && r.Provider != "script" {
		p.printf("%12s%s\n", "", o.Lang.T("models.facts", r.Context, o.Lang.T("models."+string(r.Tools)), o.Lang.T("models."+string(r.Images)), o.price(r.Price)))
	}
	for _, err := range []error{r.Forbidden, r.Problem, r.Advice} {
		if err != nil {
			p.printf("%12s%s\n", "", clean(o.text(err)))
		}
	}
}

// reach says in a word how the server of a model is.
func (o ModelsOptions) reach(r models.Row) string {
	key := "models.unasked"
	switch {
	case r.Present == models.Yes:
		key = "models.ready"
	case r.Reachable == models.Yes && r.Present == models.No:
		key = "models.absent"
	case r.Reachable == models.Yes:
		key = "models.reachable"
	case r.Reachable == models.No:
		key = "models.unreachable"
	}
	return o.Lang.T(key)
}

func (o ModelsOptions) price(p *models.Prices) string {
	switch {
	case p == nil:
		return o.Lang.T("models.no_price")
	case p.Input == 0 && p.Output == 0:
		return o.Lang.T("models.free")
	}
	return o.Lang.T("models.price", dollars(p.Input), dollars(p.Output))
}

// dollars is an amount without more digits than it has.
func dollars(x float64) string {
	s := fmt.Sprintf("%.4f", x)
	for strings.HasSuffix(s, "0") && len(s)-strings.IndexByte(s, '.') > 3 {
		s = s[:len(s)-1]
	}
	return "$" + s
}

// modelsJSON is the rows for programs.
func modelsJSON(rows []models.Row, o ModelsOptions) []any {
	all := []any{}
	for _, r := range rows {
		all = append(all, struct {
			models.Row
			Problem   string `json:"problem,omitempty"`
			Forbidden string `json:"forbidden,omitempty"`
			Advice    string `json:"advice,omitempty"`
		}{r, o.text(r.Problem), o.text(r.Forbidden), o.text(r.Advice)})
	}
	return all
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Trial prints what one call of a model showed.
func Trial(w io.Writer, t models.Trial, o ModelsOptions) error {
	t.Text = o.Mask(t.Text)
	if o.JSON {
		return encode(w, t)
	}
	p := &printer{w: w}
	p.printf("%s\n", o.Lang.T("models.answered", t.Role, clean(t.AnsweredBy), clean(t.Named)))
	p.printf("%s\n", o.Lang.T("models.latency", t.First.Round(time.Millisecond).String(), t.Total.Round(time.Millisecond).String()))
	if t.PerSecond > 0 {
		p.printf("%s\n", o.Lang.T("models.speed", fmt.Sprintf("%.1f", t.PerSecond)))
	}
	p.printf("%s\n", o.usage(t.Usage))
	line, _, _ := strings.Cut(strings.TrimSpace(t.Text), "\n")
	p.printf("%s\n", o.Lang.T("models.said", clean(progress.Cut(line, 60))))
	return p.err
}

func (o ModelsOptions) usage(u *llm.Usage) string {
	if u == nil {
		return o.Lang.T("models.no_usage")
	}
	cost := o.Lang.T("models.no_price")
	if u.Cost != nil {
		cost = dollars(float64(*u.Cost) / 1e6)
		if *u.Cost > 0 && *u.Cost < 100 {
			cost = fmt.Sprintf("$%.6f", float64(*u.Cost)/1e6)
		}
	}
	return o.Lang.T("models.usage", u.PromptTokens, u.CachedTokens, u.CompletionTokens, u.ReasoningTokens, cost)
}

// health prints whether the models in use can be called.
func (o ModelsOptions) health(p *printer, h models.Health) {
	verdict := "models.health_ready"
	if !h.Ready {
		verdict = "models.health_not_ready"
	}
	p.printf("%s\n", o.Lang.T(verdict))
	for _, r := range h.Models {
		o.row(p, r)
	}
	for _, s := range h.Ollama {
		o.server(p, s)
	}
	for _, q := range h.Queues {
		for _, party := range q.Parties {
			key := "models.waits"
			if party.Holding {
				key = "models.calls"
			}
			p.printf("%s\n", o.Lang.T(key, clean(q.Endpoint), clean(o.Mask(party.Who)), party.PID, stamp(contextstore.Time{Time: party.Since})))
		}
	}
	if h.Err != nil {
		for line := range strings.SplitSeq(o.text(h.Err), "\n") {
			p.printf("%s", detailAt(0, line))
		}
	}
}

func (o ModelsOptions) text(err error) string {
	var failed *llm.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &failed):
		return o.Mask(failed.Explain(o.Lang))
	}
	return o.Mask(o.Lang.Error(err))
}

// servers is what was seen of each Ollama, with its problems in words.
func (o ModelsOptions) servers(all []ollama.Health) []any {
	out := []any{}
	for _, h := range all {
		h.Error, h.LastError = o.Mask(h.Error), o.Mask(h.LastError)
		problems := []string{}
		for _, err := range h.Problems() {
			problems = append(problems, o.text(err))
		}
		out = append(out, struct {
			ollama.Health
			Ready    bool     `json:"ready"`
			Problems []string `json:"problems"`
		}{h, h.Ready(), problems})
	}
	return out
}

// queues are the queues with what their parties say of themselves masked.
func (o ModelsOptions) queues(all []endpoint.Queue) []endpoint.Queue {
	out := make([]endpoint.Queue, len(all))
	for i, q := range all {
		q.Parties = slices.Clone(q.Parties)
		for j := range q.Parties {
			q.Parties[j].Who = o.Mask(q.Parties[j].Who)
		}
		out[i] = q
	}
	return out
}

// server prints what was seen of one Ollama.
func (o ModelsOptions) server(p *printer, h ollama.Health) {
	p.printf("Ollama %s %s\n", clean(h.Endpoint), clean(h.Version))
	for _, m := range h.Models {
		state := o.Lang.T("models.not_loaded")
		if m.Loaded {
			state = o.Lang.T("models.loaded", m.ContextLength, m.MinContext, m.MaxContext, m.SizeVRAM>>20)
		}
		p.printf("  %-30s  %s\n", clean(ollama.ModelName(m.Model)), state)
	}
	p.printf("  %s\n", o.Lang.T("models.restarts", h.Restarts, h.RestartLimit, h.Window.String()))
	for _, err := range h.Problems() {
		p.printf("  %s\n", clean(o.text(err)))
	}
	if h.LastError != "" {
		p.printf("  %s\n", o.Lang.T("models.last_repair", clean(o.Mask(h.LastError))))
	}
}
