package models

import (
	"net/http"
	"slices"
	"sync"

	"toritsugi/internal/llm/ollama"
)

// maxCares is how many cares are kept. The settings name fewer; more come of
// models that people ask for by name.
const maxCares = 64

// kept is what outlives a client: a process that runs for months asks for a
// client with each task, and gets the same helpers for the same server.
type kept struct {
	mu      sync.Mutex
	clients map[string]*http.Client // by address, as many as the settings have
	cares   []*supervisedModel      // the least lately used first
	ollamas map[string]bool         // whether the server at an address is an Ollama, as far as it said
}

// isOllama is whether an address is an Ollama's, asked once where the answer is sure.
func (k *kept) isOllama(address string, ask func() (yes, sure bool)) bool {
	k.mu.Lock()
	yes, known := k.ollamas[address]
	k.mu.Unlock()
	if known {
		return yes
	}
	yes, sure := ask()
	k.mu.Lock()
	defer k.mu.Unlock()
	if sure {
		if k.ollamas == nil {
			k.ollamas = map[string]bool{}
		}
		k.ollamas[address] = yes
	}
	return yes
}

// supervisedModel is the care of one model of one server for one role.
type supervisedModel struct {
	role, address, key string
	need               ollama.Requirement
	care               *ollama.Supervisor
}

// client is the client of an address, made by first where there is none.
func (k *kept) client(address string, first func() *http.Client) *http.Client {
	k.mu.Lock()
	defer k.mu.Unlock()
	hc, ok := k.clients[address]
	if !ok {
		if k.clients == nil {
			k.clients = map[string]*http.Client{}
		}
		hc = first()
		k.clients[address] = hc
	}
	return hc
}

// careOf is the care of w, made by first where there is none. A care that is
// given up for it makes no repairs any more, for whoever still has it; evicted
// is to be closed.
func (k *kept) careOf(w supervisedModel, first func() (*ollama.Supervisor, error)) (c, evicted *ollama.Supervisor, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.cares, func(o *supervisedModel) bool {
		return o.role == w.role && o.address == w.address && o.key == w.key && o.need == w.need
	})
	if i >= 0 {
		found := k.cares[i]
		k.cares = append(slices.Delete(k.cares, i, i+1), found)
		return found.care, nil, nil
	}
	if w.care, err = first(); err != nil {
		return nil, nil, err
	}
	if len(k.cares) >= maxCares {
		evicted = k.cares[0].care
		k.cares = slices.Delete(k.cares, 0, 1)
	}
	k.cares = append(k.cares, &w)
	return w.care, evicted, nil
}

// take empties k.
func (k *kept) take() (cares []*ollama.Supervisor, clients []*http.Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, o := range k.cares {
		cares = append(cares, o.care)
	}
	for _, hc := range k.clients {
		clients = append(clients, hc)
	}
	k.cares, k.clients = nil, nil
	return cares, clients
}
