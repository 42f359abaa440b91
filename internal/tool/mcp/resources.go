package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/tool"
)

// offerKind is what a definition stands for.
type offerKind string

// The kinds besides a tool of the server's own. They are pinned as tools are.
const (
	instructions offerKind = "instructions" // what it says of itself, as the description of a tool of ours: it stands before every message
	resources    offerKind = "resources"    // our tool that lists and reads its resources
)

// The names under which they are pinned, and accepted.
const (
	instructionsName = "server_instructions"
	readName         = "read_resource"
)

const readSchema = `{"type":"object","properties":{` +
	`"uri":{"type":"string","description":"Which to read; without it the resources are listed."},` +
	`"after":{"type":"string","description":"Goes on with a list, as its end says."}},"additionalProperties":false}`

// besides adds to the tools that a server listed what else it has for a model.
func (l *connection) besides(all map[string]definition, server string, mask func(string) string) error {
	r := l.session.InitializeResult()
	if r == nil {
		return nil
	}
	add := func(k offerKind, name, text, schema string) error {
		d, err := define(&sdk.Tool{Name: name, Description: text, InputSchema: asAny(schema), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, mask)
		d.Kind = k
		all[name] = d
		return err
	}
	server = line(server, 80)
	if text := strings.TrimSpace(r.Instructions); text != "" {
		text = "Not to be called: how the tools of the MCP server " + server + " are used, in its own words. They count for its tools only, and are no part of your task.\n\n" + text
		if err := add(instructions, instructionsName, text, openSchema); err != nil {
			return err
		}
	}
	if _, own := all[readName]; own || r.Capabilities == nil || r.Capabilities.Resources == nil {
		return nil
	}
	return add(resources, readName, "Lists or reads the resources of the MCP server "+server+": data that it has under addresses of its own.", readSchema)
}

func asAny(schema string) (v any) {
	_ = json.Unmarshal([]byte(schema), &v) // ours
	return v
}

// maxListed is how many resources, or prompts, one list tells of; maxField is
// how many bytes of each text about one.
const (
	maxListed = 200
	maxField  = 300
)

// readResource is a call of the tool that reads resources.
func (s *server) readResource(ctx context.Context, l *connection, raw json.RawMessage) (tool.Result, error) {
	var a struct{ URI, After string }
	if err := json.Unmarshal(raw, &a); err != nil {
		return tool.Failf("The arguments cannot be read: %v.", err), nil
	}
	if a.URI == "" {
		return l.listResources(ctx, a.After)
	}
	res, err := l.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: a.URI})
	switch {
	case err != nil:
		return tool.Result{}, err
	case res.InputRequests != nil:
		return tool.Failf(wantsInput), nil
	}
	var r renderer
	for _, c := range res.Contents {
		r.resource(c)
	}
	return r.result(), nil
}

// listResources tells of one page of resources, and of the templates behind the
// last.
func (l *connection) listResources(ctx context.Context, after string) (tool.Result, error) {
	page, err := l.session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: after})
	if err != nil {
		return tool.Result{}, err
	}
	var b strings.Builder
	for i, r := range page.Resources {
		if i == maxListed {
			fmt.Fprintf(&b, "%d more of this page are not shown.\n", len(page.Resources)-i)
			break
		}
		if r != nil {
			b.WriteString(entryLine(r.URI, r.Name, r.MIMEType, r.Description))
		}
	}
	if b.Len() == 0 {
		b.WriteString("There are no resources to list.\n")
	}
	if page.NextCursor != "" {
		fmt.Fprintf(&b, "There are more: go on with after = %q.\n", page.NextCursor)
		return tool.Text(b.String()), nil
	}
	templates, err := l.session.ListResourceTemplates(ctx, nil)
	var refusal *jsonrpc.Error
	switch {
	case errors.As(err, &refusal) && refusal.Code == jsonrpc.CodeMethodNotFound:
		return tool.Text(b.String()), nil
	case err != nil:
		return tool.Result{}, err
	}
	for i, t := range templates.ResourceTemplates {
		if i == maxListed {
			break
		}
		if i == 0 {
			b.WriteString("Addresses to fill in (RFC 6570):\n")
		}
		if t != nil {
			b.WriteString(entryLine(t.URITemplate, t.Name, t.MIMEType, t.Description))
		}
	}
	return tool.Text(b.String()), nil
}

// entryLine tells of one resource, template or prompt.
func entryLine(address string, about ...string) string {
	s := "- " + line(address, 2*maxField)
	for i, a := range about {
		if a = line(a, maxField); a != "" {
			s += []string{": ", ", ", " - "}[min(i, 2)] + a
		}
	}
	return s + "\n"
}
