package folder

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"toritsugi/internal/llm/image"
)

// maxImages is how many images an issue and its comments name at most, each
// once; what else they name is counted only.
const maxImages = 100

// Image is an image that an issue names.
type Image struct {
	Target string // as it is written there
	// Link says that it is an address of the network, which is not fetched.
	Link bool
	// Root is the directory that it may lie in, absolute, and Name where in it,
	// without a link in it that leads elsewhere. Both are "" where it is dropped.
	Root, Name string
	// Dropped is why it may not be read, one of package image's reasons:
	// outside_directory, empty_path, or unsupported_type for what stands in the
	// text itself (data: …).
	Dropped string
}

// Path is where the image lies, "" where it may not be read.
func (i Image) Path() string {
	if i.Root == "" {
		return ""
	}
	return filepath.Join(i.Root, i.Name)
}

// Images lists the images that the issue and its comments show, in order, each
// once: in Markdown or by an img element, outside of code and comments. A file
// is looked for below the issue's directory and, through it, below repository,
// an absolute path or "". more is how many were left out because there are more
// than 100.
func (i *Issue) Images(repository string) (all []Image, more int) {
	roots := []string{filepath.Dir(i.Path)}
	if repository != "" {
		roots = append(roots, repository)
	}
	for n, r := range roots {
		if real, err := filepath.EvalSymlinks(r); err == nil {
			roots[n] = real
		}
	}
	seen := map[string]bool{}
	texts := []string{i.Body}
	for _, c := range People(i.Comments) {
		texts = append(texts, c.Body)
	}
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
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`)

// locate finds the file that a target means, relative to the first of roots.
func locate(target string, roots []string) Image {
	img := Image{Target: target}
	switch kind := strings.ToLower(scheme.FindString(target)); {
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
