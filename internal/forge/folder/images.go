package folder

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"

	"toritsugi/internal/forge"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/llm/image"
	"toritsugi/internal/task"
)

// maxImages is how many images an issue and its comments name at most, each
// once; what else they name is counted only.
const maxImages = 100

// Images implements forge.Images. A file is looked for below the directory and,
// through it, below repository.
func (f *Forge) Images(ctx context.Context, k task.Key, repository string) (all []forge.Image, more int, err error) {
	it, err := f.Item(ctx, k)
	if err != nil || it.URL == "" {
		return nil, 0, err
	}
	said, _, err := f.Comments(ctx, k)
	texts := []string{it.Body}
	for _, c := range said {
		if !c.Author.Bot {
			texts = append(texts, c.Body)
		}
	}
	all, more = images(it.URL, texts, repository)
	return all, more, err
}

// images lists the images that the texts of the issue at path show, in Markdown or by an
// img element, outside of code and comments.
func images(path string, texts []string, repository string) (all []forge.Image, more int) {
	roots := []string{filepath.Dir(path)}
	if repository != "" {
		roots = append(roots, repository)
	}
	for n, r := range roots {
		if real, err := filepath.EvalSymlinks(r); err == nil {
			roots[n] = real
		}
	}
	seen := map[string]bool{}
	for _, text := range texts {
		imageTargets(text, func(target string) {
			switch {
			case seen[target]:
			case len(all) == maxImages:
				more++
			default:
				seen[target] = true
				all = append(all, locate(target, roots))
			}
		})
	}
	return all, more
}

// scheme begins an address; one letter is a drive.
var scheme = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]+:`)

// locate finds the file that a target means, relative to the first of roots.
func locate(target string, roots []string) forge.Image {
	img := forge.Image{Target: target}
	switch kind := strings.ToLower(scheme().FindString(target)); {
	case kind == "data:":
		img.Dropped = image.UnsupportedType
		return img
	case kind == "file:":
		img.Dropped = image.OutsideDirectory
		return img
	case kind != "" || strings.HasPrefix(target, "//"):
		img.Link = true
		return img
	}
	path := target
	if end := strings.IndexAny(path, "?#"); end >= 0 {
		path = path[:end]
	}
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	if path == "" {
		img.Dropped = image.EmptyPath
		return img
	}
	img.Dropped = image.OutsideDirectory
	if filepath.IsAbs(path) {
		return img
	}
	path = filepath.Join(roots[0], path)
	// A link is followed here, so that what it leads to is judged; later, by
	// whoever reads the file below Root, it is not.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, root := range roots {
		if name, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(name) {
			img.Root, img.Name, img.Dropped = root, name, ""
			return img
		}
	}
	return img
}
