package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/image"
	"toritsugi/internal/progress"
)

// pictures are the images of a request.
type pictures struct {
	images []contextstore.Image // those that are shown, and those that are dropped
	shown  []string             // by name, in order
	left   []string             // by name, each with the reason why the model does not see it
	limits image.Limits
	seen   map[string]bool // by path
}

// pictures reads the images that the command line and the issue name, in this
// order, and stores those that can be shown. Each one that is dropped is told to
// the user here, and to the model by tell.
func (r *run) pictures(ctx context.Context) (*pictures, error) {
	p := &pictures{limits: image.DefaultLimits(), seen: map[string]bool{}}
	for _, path := range r.out.Order.Images {
		if p.seen[path] {
			continue
		}
		target := `""`
		if path != "" {
			target = filepath.Base(path)
		}
		img, dropped := image.Load(path, p.limits)
		if err := r.picture(p, target, path, img, dropped); err != nil {
			return nil, err
		}
	}
	shows, ok := r.out.Host.Tracker.(forge.Images)
	if !ok {
		return p, nil
	}
	named, more, err := shows.Images(ctx, r.ledger.Metadata().TaskKey, r.out.Host.Repository)
	if err != nil {
		return nil, err
	}
	for _, i := range named {
		path, dropped := i.Path(), i.Dropped
		if i.Link {
			p.left = append(p.left, name(i.Target)+": a link, which is not fetched")
			continue
		}
		if path != "" && p.seen[path] {
			continue
		}
		var img llm.Image
		if dropped == "" {
			img, dropped = loadIn(i.Root, i.Name, path, p.limits)
		}
		if err := r.picture(p, i.Target, path, img, dropped); err != nil {
			return nil, err
		}
	}
	if more > 0 {
		r.log.Warn(r.Reader.T("image.more", more))
		p.left = append(p.left, fmt.Sprintf("%d more that the issue names", more))
	}
	return p, nil
}

func loadIn(dir, name, path string, l image.Limits) (llm.Image, string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return llm.Image{}, image.ReadFailed
	}
	defer func() { _ = root.Close() }()
	return image.LoadIn(root, name, path, l)
}

// picture takes one image, or notes why it is dropped. path is "" where it is
// not known.
func (r *run) picture(p *pictures, target, path string, img llm.Image, dropped string) error {
	if path != "" {
		p.seen[path] = true
	}
	if dropped != "" {
		if path == "" {
			path = target
		}
		r.log.Warn(r.Reader.T("image.dropped", name(target), reason(r.Reader, dropped)))
		p.images = append(p.images, contextstore.Image{Source: name(path), Dropped: dropped})
		p.left = append(p.left, name(target)+": "+dropped)
		return nil
	}
	stored, err := r.ledger.SaveImage(img.Data, img.MediaType)
	if err != nil {
		return err
	}
	stored.Source = path
	p.images = append(p.images, stored)
	p.shown = append(p.shown, name(target))
	p.limits = p.limits.Less(img)
	return nil
}

// reason says for people why an image is dropped.
func reason(l i18n.Lang, dropped string) string {
	switch dropped {
	case image.FileTooLarge:
		return l.T("image."+dropped, image.MaxFile>>20)
	case image.TooMany:
		return l.T("image."+dropped, image.MaxImages, image.MaxBytes>>20)
	}
	return l.T("image." + dropped)
}

// tell names the images for the model, "" where there are none.
func (p *pictures) tell() string {
	var b strings.Builder
	if len(p.shown) > 0 {
		b.WriteString("\nImages of the task, shown after this text in this order:\n")
		for n, s := range p.shown {
			fmt.Fprintf(&b, "%d. %s\n", n+1, s)
		}
	}
	if len(p.left) > 0 {
		b.WriteString("\nImages of the task that are not shown to you:\n")
		for _, s := range p.left {
			b.WriteString("- " + s + "\n")
		}
	}
	return b.String()
}

// maxName is how much of an image's name is told, characters: it may be a whole
// image in base64.
const maxName = 200

// name makes what somebody wrote for an image fit into a line.
func name(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return progress.Cut(s, maxName)
}
