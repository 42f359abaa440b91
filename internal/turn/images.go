package turn

import (
	"fmt"
	"strings"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// maxImages is how many images the results of one answer may show.
const maxImages = 10

// images is the message that shows the model what its calls brought to look at:
// no format but one has images in results, and a message of its own keeps the
// results together. None where there is nothing to show.
func (l *Loop) images(results []done) ([]contextstore.Message, error) {
	m := contextstore.Message{Role: llm.RoleUser}
	var text strings.Builder
	for _, d := range results {
		for _, i := range d.result.Images {
			if len(m.Images) >= maxImages || len(i.Data) == 0 || len(i.Data) > contextstore.MaxImage || !readable(i.MediaType) {
				fmt.Fprintf(&text, "\n- of %s: left out (%s, %d bytes)", d.call.Name, i.MediaType, len(i.Data))
				continue
			}
			stored, err := l.Ledger.SaveImage(i.Data, i.MediaType)
			if err != nil {
				return nil, fmt.Errorf("keep an image of %s: %w", d.call.Name, err)
			}
			stored.Source = "tool:" + d.call.Name
			m.Images = append(m.Images, stored)
			fmt.Fprintf(&text, "\n- image %d: of %s", len(m.Images), d.call.Name)
		}
	}
	if text.Len() == 0 {
		return nil, nil
	}
	m.Content = "Images of the results above:" + text.String()
	return []contextstore.Message{m}, nil
}

func readable(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}
