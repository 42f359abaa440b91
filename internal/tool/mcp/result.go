package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toritsugi/internal/contextstore/jsonl"
	"toritsugi/internal/tool"
)

// Bounds of the images of one result; the rest is told in its text.
const (
	maxImages     = 8
	maxImageBytes = 8 << 20 // of all together
)

// render makes a server's result one that a model can read. Its text is bounded
// by the registry. Nothing is left out without a word.
func render(res *sdk.CallToolResult) tool.Result {
	if res == nil {
		return tool.Failf("The MCP server answered without a result.")
	}
	if res.InputRequests != nil {
		return tool.Failf(wantsInput)
	}
	r := renderer{}
	for _, c := range res.Content {
		r.content(c)
	}
	if res.StructuredContent != nil && !says(r.parts, res.StructuredContent, 2) {
		if b, err := jsonl.Marshal(res.StructuredContent); err == nil {
			r.part(string(b))
		}
	}
	result := r.result()
	result.IsError = res.IsError
	return result
}

const wantsInput = "The MCP server asks for input from a user before it does this, which cannot be given here. Do without it."

func (r *renderer) result() tool.Result {
	if len(r.parts) == 0 {
		r.part("(The result is empty.)")
	}
	return tool.Result{Text: strings.Join(r.parts, "\n\n"), Images: r.images}
}

type renderer struct {
	parts  []string
	images []tool.Image
	bytes  int
}

func (r *renderer) part(s string) { r.parts = append(r.parts, s) }

// says reports whether texts say all of v: servers are asked to send structured
// content twice, and many wrap in it what their text is, once or twice.
func says(texts []string, v any, wraps int) bool {
	for _, p := range append(slices.Clip(texts), strings.Join(texts, "\n")) {
		var said any
		if json.Unmarshal([]byte(p), &said) == nil && reflect.DeepEqual(said, v) {
			return true
		}
		if text, ok := v.(string); ok && strings.TrimSpace(text) == strings.TrimSpace(p) {
			return true
		}
	}
	object, _ := v.(map[string]any)
	list, _ := v.([]any)
	switch {
	case wraps > 0 && len(object) == 1:
		for _, e := range object {
			return says(texts, e, wraps-1)
		}
	case wraps > 0 && len(list) > 0 && len(list) == len(texts): // a text for each
		for i, e := range list {
			if !says(texts[i:i+1], e, wraps-1) {
				return false
			}
		}
		return true
	}
	return false
}

func (r *renderer) content(c sdk.Content) {
	switch c := c.(type) {
	case *sdk.TextContent:
		if c.Text != "" {
			r.part(c.Text)
		}
	case *sdk.ImageContent:
		r.image(c.Data, c.MIMEType)
	case *sdk.AudioContent:
		r.part(fmt.Sprintf("[audio left out: %s, %d bytes]", kind(c.MIMEType), len(c.Data)))
	case *sdk.ResourceLink:
		r.part(linked(c))
	case *sdk.EmbeddedResource:
		r.resource(c.Resource)
	default: // of a kind that a result should not hold
		b, _ := json.Marshal(c) // without one it is of no type
		r.part(leftOut(b))
	}
}

// image keeps what models take, judged by the bytes and not by the name.
func (r *renderer) image(data []byte, claimed string) {
	actual := http.DetectContentType(data)
	switch actual {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		r.part(fmt.Sprintf("[image left out: it is not a PNG, JPEG, GIF or WebP but %s, %d bytes]", kind(claimed), len(data)))
		return
	}
	if len(r.images) == maxImages || r.bytes+len(data) > maxImageBytes {
		r.part(fmt.Sprintf("[image left out: %s, %d bytes; a result may hold %d images of %d MiB together]", actual, len(data), maxImages, maxImageBytes>>20))
		return
	}
	r.images = append(r.images, tool.Image{MediaType: actual, Data: data})
	r.bytes += len(data)
	r.part(fmt.Sprintf("[image %d: %s, %d bytes]", len(r.images), actual, len(data)))
}

func (r *renderer) resource(c *sdk.ResourceContents) {
	switch {
	case c == nil:
		r.part("[an empty resource]")
	case len(c.Blob) > 0 && strings.HasPrefix(c.MIMEType, "image/"):
		r.part("[resource " + line(c.URI, 500) + "]")
		r.image(c.Blob, c.MIMEType)
	case len(c.Blob) > 0:
		r.part(fmt.Sprintf("[resource %s left out: %s, %d bytes]", line(c.URI, 500), kind(c.MIMEType), len(c.Blob)))
	default:
		r.part("[resource " + line(c.URI, 500) + "]\n" + c.Text)
	}
}

func linked(c *sdk.ResourceLink) string {
	s := "[link to the resource " + line(c.URI, 500)
	if name := line(c.Name, 200); name != "" {
		s += ": " + name
	}
	if c.MIMEType != "" {
		s += ", " + kind(c.MIMEType)
	}
	if c.Size != nil {
		s += fmt.Sprintf(", %d bytes", *c.Size)
	}
	s += "]"
	if d := line(c.Description, 500); d != "" {
		s += "\n" + d
	}
	return s
}

func kind(mime string) string {
	if mime = line(mime, 80); mime != "" {
		return mime
	}
	return "of no given type"
}
