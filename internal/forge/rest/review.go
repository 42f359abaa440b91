package rest

import (
	"fmt"
	"strings"

	"toritsugi/internal/forge"
)

// RemarkText is the text of a remark as it stands on its line: with its suggestion in a fence
// of that info string, and its marker.
func RemarkText(r forge.Remark, info string) string {
	return Mark(r.Body+suggested(r, info), r.Marker)
}

func suggested(r forge.Remark, info string) string {
	if r.Suggestion == nil {
		return ""
	}
	fence := "```"
	for strings.Contains(*r.Suggestion, fence) {
		fence += "`"
	}
	text := strings.TrimSuffix(*r.Suggestion, "\n")
	if text != "" {
		text += "\n"
	}
	return "\n\n" + fence + info + "\n" + text + fence
}

// WithRemarks is the text of a review with remarks that have no place on their lines.
func WithRemarks(body string, all []forge.Remark) string {
	for _, r := range all {
		body += fmt.Sprintf("\n\n---\n\n`%s:%d`\n\n%s%s", strings.ReplaceAll(r.Path, "`", "'"), r.Line, r.Body, suggested(r, ""))
	}
	return body
}
