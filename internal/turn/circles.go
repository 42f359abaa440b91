package turn

import (
	"context"
	"fmt"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// CircleError ends a loop that goes round in circles.
type CircleError struct{ Circle }

func (e *CircleError) Error() string {
	return "the run goes round in circles: the same calls with the same results (" + strings.Join(e.Tools, ", ") + ")"
}

// NoCircles returns a Director that tells the model where it makes the same calls with the same
// results, and ends the loop by a *CircleError where it goes on; base directs the rest.
// What it remembers begins anew with each owner.
func NoCircles(base Director) Director { return &noCircles{Director: base} }

type noCircles struct {
	Director
	guard  Guard
	answer contextstore.Message // the latest
	found  Circle               // and not told yet
}

// After implements Director.
func (n *noCircles) After(m contextstore.Message) error {
	switch m.Role {
	case llm.RoleAssistant:
		n.answer = m
	case llm.RoleTool:
		for _, c := range n.answer.ToolCalls {
			if c.ID == m.ToolCallID {
				if f := n.guard.Observe(n.answer.Seq, m.ToolName, c.Arguments, m.Content, m.Failed); f.Stage != StageNone {
					n.found = f
				}
			}
		}
	}
	return n.Director.After(m)
}

// Before implements Director.
func (n *noCircles) Before(ctx context.Context) ([]contextstore.Message, error) {
	found := n.found
	if n.found = (Circle{}); found.Stage == StageStop {
		return nil, &CircleError{found}
	}
	all, err := n.Director.Before(ctx)
	if err == nil && found.Stage != StageNone {
		all = append(all, contextstore.Message{Role: llm.RoleUser,
			Content: fmt.Sprintf("You make the same calls again (%s), and their results are the same. Try another way, or say what keeps you from going on.", strings.Join(found.Tools, ", "))})
	}
	return all, err
}
