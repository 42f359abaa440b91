package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/i18n"
)

// maxPrompt is how many bytes of a prompt are given out.
const maxPrompt = 64 << 10

// Prompt is a text of a server that a person may ask for, to give it to a model.
type Prompt struct {
	Name, Description string
	Arguments         []PromptArgument
}

// PromptArgument is what a prompt is filled in with.
type PromptArgument struct {
	Name     string
	Required bool
}

// String is the prompt on one line, as a person asks for it: arguments that may be
// left out stand in brackets.
func (p Prompt) String() string {
	s := p.Name
	for _, a := range p.Arguments {
		form := " %s=…"
		if !a.Required {
			form = " [%s=…]"
		}
		s += fmt.Sprintf(form, a.Name)
	}
	if p.Description != "" {
		s += ": " + p.Description
	}
	return s
}

// Prompts lists the prompts of a server, cleaned and bounded, by name.
func (m *Manager) Prompts(ctx context.Context, server string) (all []Prompt, err error) {
	s, l, err := m.ready(ctx, server)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.conf.Timeout)
	defer cancel()
	if r := l.session.InitializeResult(); r == nil || r.Capabilities == nil || r.Capabilities.Prompts == nil {
		return nil, nil
	}
	params := &sdk.ListPromptsParams{}
	for range maxPages {
		page, err := l.session.ListPrompts(ctx, params)
		if err != nil {
			return nil, s.told(ctx, l, err)
		}
		for _, p := range page.Prompts {
			if p == nil || len(all) == maxListed {
				continue
			}
			q := Prompt{Name: line(p.Name, maxName), Description: line(p.Description, maxField)}
			for _, a := range p.Arguments[:min(len(p.Arguments), maxListed)] {
				if a != nil {
					q.Arguments = append(q.Arguments, PromptArgument{line(a.Name, maxName), a.Required})
				}
			}
			all = append(all, q)
		}
		if params.Cursor = page.NextCursor; params.Cursor == "" || len(all) == maxListed {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b Prompt) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Prompt returns the text of a prompt, filled in with args, cleaned and bounded.
// Of several messages each is told with who says it.
func (m *Manager) Prompt(ctx context.Context, server, name string, args map[string]string) (string, error) {
	s, l, err := m.ready(ctx, server)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.conf.Timeout)
	defer cancel()
	res, err := l.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		return "", s.told(ctx, l, err)
	}
	var r renderer
	for _, p := range res.Messages {
		if p == nil {
			continue
		}
		before := len(r.parts)
		r.content(p.Content)
		if len(res.Messages) > 1 && len(r.parts) > before {
			r.parts[before] = line(string(p.Role), 20) + ":\n" + r.parts[before]
		}
	}
	return plain(s.hide(strings.Join(r.parts, "\n\n")), maxPrompt), nil
}

// ready returns the connection to a server that is up.
func (m *Manager) ready(ctx context.Context, name string) (*server, *connection, error) {
	s := m.server(name)
	if s == nil {
		return nil, nil, i18n.E("mcp.down", name, "")
	}
	l, problem := s.up(ctx)
	if problem != "" {
		return nil, nil, i18n.E("mcp.down", name, problem)
	}
	return s, l, nil
}

// told is what a person is told of a request that failed.
func (s *server) told(ctx context.Context, l *connection, err error) error {
	return i18n.E("mcp.refused", s.conf.Name, errors.New(s.failed(ctx, l, err).Text))
}
