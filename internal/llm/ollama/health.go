package ollama

import (
	"context"
	"errors"
	"time"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
)

// Health is what was last seen of a server and of the models that must be in
// its memory (route §10, health check).
type Health struct {
	Endpoint  string        `json:"endpoint"`
	CheckedAt time.Time     `json:"checked_at,omitzero"` // zero: never yet
	Reachable bool          `json:"reachable"`
	Version   string        `json:"version,omitempty"`
	Error     string        `json:"error,omitempty"` // why it is not reachable, or does not tell what it has loaded
	Models    []ModelHealth `json:"models"`

	LastRestart  time.Time     `json:"last_restart,omitzero"` // by any process of this machine
	Restarts     int           `json:"restarts_in_window"`
	RestartLimit int           `json:"restart_limit"`
	Window       time.Duration `json:"window_ns"`
	LastError    string        `json:"last_error,omitempty"` // of the last repair, where it failed

	healed time.Time // when a repair last ended well
	why    error     // what Error says, in the reader's language
}

// ModelHealth is one required model.
type ModelHealth struct {
	Model         string    `json:"model"`
	Loaded        bool      `json:"loaded"`
	ContextLength int       `json:"context_length"` // tokens it is loaded with; 0 where the server does not tell
	MinContext    int       `json:"min_context"`    // 0: no limit
	MaxContext    int       `json:"max_context"`    // 0: no limit
	ContextOK     bool      `json:"context_ok"`
	Size          int64     `json:"size"`      // bytes of memory
	SizeVRAM      int64     `json:"size_vram"` // of them, on the graphics card
	ExpiresAt     time.Time `json:"expires_at,omitzero"`
}

// Ready reports whether all is as it must be.
func (h *Health) Ready() bool { return len(h.Problems()) == 0 }

// faulty reports whether there is something that a warm-up or a restart may
// mend. A context length is not: whoever loaded the model so would do it again.
func (h *Health) faulty() bool { return !h.Reachable || len(h.missing()) > 0 }

// missing are the indexes of the models that are not loaded, none where the
// server does not tell.
func (h *Health) missing() []int {
	var all []int
	for i, m := range h.Models {
		if h.Reachable && h.Error == "" && !m.Loaded {
			all = append(all, i)
		}
	}
	return all
}

// Problems are i18n errors for people: what is wrong and what to do. What is
// missing comes before context lengths that do not fit.
func (h *Health) Problems() []error {
	switch {
	case h.CheckedAt.IsZero():
		return []error{i18n.E("ollama.unchecked", h.Endpoint)}
	case !h.Reachable:
		return []error{i18n.E("ollama.unreachable", h.Endpoint, h.why)}
	case h.Error != "":
		return []error{i18n.E("ollama.unknown", h.Endpoint, h.why)}
	}
	var all []error
	for _, i := range h.missing() {
		all = append(all, i18n.E("ollama.not_loaded", h.Models[i].Model, h.Endpoint))
	}
	for _, m := range h.Models {
		if m.Loaded && !m.ContextOK {
			all = append(all, i18n.E("ollama.context", m.Model, h.Endpoint, m.ContextLength, m.MinContext, m.MaxContext))
		}
	}
	return all
}

// running is the answer of GET /api/ps. Source: api.ProcessResponse of Ollama.
type running struct {
	Models []struct {
		Name          string    `json:"name"`
		Model         string    `json:"model"`
		Size          int64     `json:"size"`
		SizeVRAM      int64     `json:"size_vram"`
		ExpiresAt     time.Time `json:"expires_at"`
		ContextLength int       `json:"context_length"`
	} `json:"models"`
}

// check asks the server and remembers what it saw. It fails only where ctx
// ended, and waits no longer than the timeout of a check.
func (c *Supervisor) check(ctx context.Context) (Health, error) {
	h := Health{Endpoint: c.endpoint, CheckedAt: c.now(), RestartLimit: c.cfg.RestartLimit, Window: c.cfg.Window}
	for _, r := range c.cfg.Models {
		h.Models = append(h.Models, ModelHealth{Model: r.Model, MinContext: r.MinContext, MaxContext: r.MaxContext})
	}
	if err := c.look(ctx, &h); err != nil {
		return h, err
	}
	st, err := c.book.load(h.CheckedAt)
	if err != nil {
		h.LastError = err.Error()
	} else {
		h.LastRestart, h.Restarts, h.LastError, h.healed = st.LastRestart, len(st.Restarts), st.LastError, st.HealedAt
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !h.CheckedAt.Before(c.last.CheckedAt) {
		c.last = h
	}
	return h, nil
}

func (c *Supervisor) look(ctx context.Context, h *Health) error {
	short, cancel := context.WithTimeout(ctx, c.cfg.CheckTimeout)
	defer cancel()
	var version struct{ Version string }
	err := c.ask(short, "api/version", nil, &version)
	if err != nil && !answered(err) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		h.failed(err)
		return nil
	}
	h.Reachable, h.Version = true, version.Version
	var ps running
	switch err := c.ask(short, "api/ps", nil, &ps); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		h.Reachable = answered(err)
		h.failed(err)
		return nil
	}
	for i := range h.Models {
		m := &h.Models[i]
		for _, p := range ps.Models {
			if SameModel(p.Name, m.Model) || p.Model != "" && SameModel(p.Model, m.Model) {
				m.Loaded, m.ContextLength, m.Size, m.SizeVRAM, m.ExpiresAt = true, p.ContextLength, p.Size, p.SizeVRAM, p.ExpiresAt
			}
		}
		n := m.ContextLength
		m.ContextOK = m.Loaded && (n == 0 || n >= m.MinContext && (m.MaxContext == 0 || n <= m.MaxContext))
	}
	return nil
}

// answered reports whether a server refused, which shows that it runs. A
// gateway's 5xx shows the contrary.
func answered(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Status != 0 && e.Status < 500
}

// errSlow is a look that took too long.
var errSlow = i18n.E("ollama.slow")

// failed notes why a look failed.
func (h *Health) failed(err error) {
	var e *llm.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = errSlow
	case errors.As(err, &e) && e.Err != nil && e.Err.Error() == e.Message:
		err = e.Err
	case errors.As(err, &e):
		err = errors.New(e.Message)
	}
	h.Error, h.why = err.Error(), err
}
