package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/wire"
)

// Listed is a model that a server has on its disk.
type Listed struct {
	Name       string    `json:"name"` // with its tag
	Size       int64     `json:"size"` // bytes
	ModifiedAt time.Time `json:"modified_at"`
}

// Model is what a server knows of a model.
type Model struct {
	ContextLength int      // tokens it was trained for, a limit of num_ctx; 0 where unknown
	NumCtx        int      // what its Modelfile sets, 0 where it sets none
	Capabilities  []string // as the server names them; nil where it is too old to name any
	Tools         bool
	Vision        bool
	Thinking      bool
}

// api is one server, for what is not a conversation.
type api struct {
	*caller
	base func(path string) string
}

func newAPI(cfg Config) (*api, error) {
	w, base, err := newCaller(cfg)
	if err != nil {
		return nil, err
	}
	return &api{w, func(path string) string { return base.JoinPath(path).String() }}, nil
}

// ask makes one call and decodes its whole answer into out.
func (a *api) ask(ctx context.Context, method, path, body string, out any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e := a.exchange(ctx, method, a.base(path), []byte(body), "", func(_ context.Context, res *http.Response, in io.Reader) (*llm.Error, error) {
		raw, err := io.ReadAll(io.LimitReader(in, maxLine+1))
		if err != nil {
			return nil, err
		}
		if len(raw) > maxLine {
			return tooLong("the answer", maxLine), nil
		}
		if json.Unmarshal(raw, out) != nil {
			return invalid(res.Header.Get("Content-Type"), raw), nil
		}
		return nil, nil
	})
	if e == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	e.Attempts = 1
	return e
}

// ListModels returns the models that the server of cfg has, in its order; of
// cfg only the address, key and HTTP client count. It makes one call. It fails
// with an i18n error for an unusable address or key, ctx's error, or an
// *llm.Error. Source: GET /api/tags of Ollama.
func ListModels(ctx context.Context, cfg Config) ([]Listed, error) {
	a, err := newAPI(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.HTTP == nil {
		defer a.http.CloseIdleConnections()
	}
	var list struct {
		Models *[]Listed `json:"models"`
	}
	if err := a.ask(ctx, http.MethodGet, "api/tags", "", &list); err != nil {
		return nil, err
	}
	if list.Models == nil {
		return nil, a.fail(invalid("application/json", []byte("an object without models")), a.base("api/tags"), nil)
	}
	return *list.Models, nil
}

// Show returns what the server of cfg knows of cfg.Model. Its errors are those
// of ListModels; a model that is not there is llm.KindNotFound.
// Source: POST /api/show of Ollama.
func Show(ctx context.Context, cfg Config) (*Model, error) {
	a, err := newAPI(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.HTTP == nil {
		defer a.http.CloseIdleConnections()
	}
	var s shown
	body := wire.AppendString([]byte(`{"model":`), ModelName(cfg.Model))
	if err := a.ask(ctx, http.MethodPost, "api/show", string(body)+"}", &s); err != nil {
		return nil, err
	}
	return s.model(), nil
}

type shown struct {
	Template     string                     `json:"template"`
	Parameters   string                     `json:"parameters"`
	Capabilities []string                   `json:"capabilities"`
	ModelInfo    map[string]json.RawMessage `json:"model_info"`
	Projector    map[string]json.RawMessage `json:"projector_info"`
}

func (s *shown) model() *Model {
	m := &Model{Capabilities: s.Capabilities, ContextLength: s.contextLength()}
	for line := range strings.Lines(s.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			m.NumCtx = max(number([]byte(f[1])), 0)
		}
	}
	if s.Capabilities == nil { // before 0.6.4: what the template and the files tell
		m.Tools, m.Vision = strings.Contains(s.Template, ".Tools"), len(s.Projector) > 0
		return m
	}
	m.Tools = slices.Contains(s.Capabilities, "tools")
	m.Vision = slices.Contains(s.Capabilities, "vision")
	m.Thinking = slices.Contains(s.Capabilities, "thinking")
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
