package llmtest

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// embedRequest is what the two formats of a request for embeddings have in common.
type embedRequest struct {
	Model string   `json:"model"`
	Input []string `json:"input"`
}

func parseEmbed(body []byte) (r embedRequest, err error) {
	if err = strictly(body, &r); err == nil && (r.Model == "" || len(r.Input) == 0) {
		err = errors.New("a request for embeddings without a model or without texts")
	}
	return r, err
}

// embeddings answers as OpenAI does, which refuses empty texts. Source: POST /embeddings of its API description.
func (s *Server) embeddings(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	r, err := parseEmbed(body)
	if err == nil && slices.ContainsFunc(r.Input, func(t string) bool { return strings.TrimSpace(t) == "" }) {
		err = errors.New("'$.input' is invalid: it has an empty text")
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(chatError(http.StatusBadRequest, "", err.Error())) // the client may have left
		return
	}
	data := []object{}
	for i, t := range r.Input {
		data = append(data, object{"object": "embedding", "index": i, "embedding": s.Embed(t)})
	}
	slices.Reverse(data) // their order is said by the index alone
	s.mu.Lock()
	s.embedded = append(s.embedded, r.Input...)
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(object{"object": "list", "model": r.Model, "data": data, "usage": object{"prompt_tokens": 8, "total_tokens": 8}}) // the client may have left
}

// Embedded returns the texts that embeddings were made of so far.
func (s *Server) Embedded() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.embedded)
}

// embed answers as Ollama does. Source: api.EmbedRequest and api.EmbedResponse of Ollama.
func (o *Ollama) embed(w http.ResponseWriter, body []byte) error {
	r, err := parseEmbed(body)
	if err != nil {
		return err
	}
	if _, there := o.find(r.Model); !there {
		o.document(w, http.StatusNotFound, object{"error": `model "` + r.Model + `" not found, try pulling it first`})
		return nil
	}
	all := [][]float32{}
	for _, t := range r.Input {
		all = append(all, o.Embed(t))
	}
	o.document(w, http.StatusOK, object{"model": r.Model, "embeddings": all, "total_duration": 14143917, "load_duration": 1019500, "prompt_eval_count": 8})
	return nil
}
