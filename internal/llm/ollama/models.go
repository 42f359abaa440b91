package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/llm/wire"
)

// Listed is a model that a server has on its disk.
type Listed struct {
	Name         string    `json:"name"` // with its tag
	ModifiedAt   time.Time `json:"modified_at"`
	RemoteHost   string    `json:"remote_host"`  // as Model.RemoteHost
	Capabilities []string  `json:"capabilities"` // nil where the server, which is older than that, does not tell
}

// Model is what a server knows of a model.
type Model struct {
	ContextLength int  // tokens it was trained for, a limit of num_ctx; 0 where unknown
	Chat          bool // it answers conversations, as a model for embeddings does not; true where unknown
	Tools         bool
	Thinking      bool
	Vision        bool
	RemoteHost    string // the cloud that the server passes every call on to; "" where it runs the model itself
}

// once is cfg for a call that is no conversation: what is a token of one has no
// meaning in it.
func once(cfg Config) Config {
	cfg.FirstTokenTimeout = 0
	return cfg
}

// ListModels returns the models that the server of cfg has, in its order; of
// cfg only the address, key, HTTP client and limits of time count. It makes one call. It fails
// with an i18n error for an unusable address or key, ctx's error, or an
// *llm.Error. Source: GET /api/tags of Ollama.
func ListModels(ctx context.Context, cfg Config) ([]Listed, error) {
	s, err := newServer(once(cfg))
	if err != nil {
		return nil, err
	}
	if cfg.HTTP == nil {
		defer s.http.CloseIdleConnections()
	}
	var list struct {
		Models *[]Listed `json:"models"`
	}
	const path = "api/tags"
	if err := s.ask(ctx, path, nil, &list); err != nil {
		return nil, err
	}
	if list.Models == nil {
		e := wire.Invalid("a list of models", "application/json", []byte("an object without models"))
		e.Provider, e.Endpoint, e.Attempts = s.provider, s.at(path).Endpoint(), 1
		return nil, e
	}
	return *list.Models, nil
}

// Version returns the version of the Ollama of cfg. It makes one call, and fails as
// ListModels where there is none. Source: GET /api/version of Ollama.
func Version(ctx context.Context, cfg Config) (string, error) {
	s, err := newServer(once(cfg))
	if err != nil {
		return "", err
	}
	if cfg.HTTP == nil {
		defer s.http.CloseIdleConnections()
	}
	var is struct{ Version string }
	err = s.ask(ctx, "api/version", nil, &is)
	return is.Version, err
}

// Show returns what the server of cfg knows of cfg.Model. It is asked again as cfg
// says. Its errors are those of ListModels; a model that is not there is llm.KindNotFound.
// Source: POST /api/show of Ollama.
func Show(ctx context.Context, cfg Config) (*Model, error) {
	s, err := newServer(once(cfg))
	if err != nil {
		return nil, err
	}
	if cfg.HTTP == nil {
		defer s.http.CloseIdleConnections()
	}
	var m shown
	body := wire.AppendString([]byte(`{"model":`), ModelName(cfg.Model))
	if err := s.ask(ctx, "api/show", append(body, '}'), &m); err != nil {
		return nil, err
	}
	return m.model(), nil
}

type shown struct {
	Template     string                     `json:"template"`
	Capabilities []string                   `json:"capabilities"`
	ModelInfo    map[string]json.RawMessage `json:"model_info"`
	Projector    map[string]json.RawMessage `json:"projector_info"`
	RemoteHost   string                     `json:"remote_host"`
}

func (s *shown) model() *Model {
	m := &Model{ContextLength: s.contextLength(), RemoteHost: s.RemoteHost}
	if s.Capabilities == nil { // before 0.6.4: what the template and the files tell
		m.Chat, m.Tools, m.Vision = true, strings.Contains(s.Template, ".Tools"), len(s.Projector) > 0
		return m
	}
	m.Chat = slices.Contains(s.Capabilities, "completion")
	m.Tools = slices.Contains(s.Capabilities, "tools")
	m.Thinking = slices.Contains(s.Capabilities, "thinking")
	m.Vision = slices.Contains(s.Capabilities, "vision")
	return m
}

// contextLength is the one of the model's architecture: models with parts of
// another architecture, as for images, have more than one.
func (s *shown) contextLength() int {
	var arch string
	_ = json.Unmarshal(s.ModelInfo["general.architecture"], &arch)
	if n := number(s.ModelInfo[arch+".context_length"]); n > 0 {
		return n
	}
	var all []string
	for key := range s.ModelInfo {
		if strings.HasSuffix(key, ".context_length") {
			all = append(all, key)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, key := range all {
		if n := number(s.ModelInfo[key]); n > 0 {
			return n
		}
	}
	return 0
}

// number is a whole number, also where it is written as 8192.0 or 1.31072e+05.
func number(raw []byte) int {
	var n float64
	if json.Unmarshal(raw, &n) != nil || n < 0 || n > 1<<40 {
		return 0
	}
	return int(n)
}
