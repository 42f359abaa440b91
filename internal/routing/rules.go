package routing

import (
	"os"
	"sync"

	"toritsugi/internal/disk"
	"toritsugi/internal/document"
	"toritsugi/internal/i18n"
)

// Rules is the dictionary in force: the shipped one, or a file that is read again when it
// changed. It is safe for concurrent use.
type Rules struct {
	path   string
	report func(error)

	mu      sync.Mutex
	loaded  *Dictionary
	seen    os.FileInfo // of the file that was last tried, nil for none
	trouble error       // why that is not in force
}

// OpenRules reads the dictionary of path, or the shipped one where it is "". A later
// change that does not load leaves the former dictionary in force and is reported once,
// by an *i18n.Error; report may be called from any goroutine that calls Current.
func OpenRules(path string, report func(error)) (*Rules, error) {
	r := &Rules{path: path, report: report}
	var err error
	if path == "" {
		r.loaded, err = ParseDictionary("dictionary.yaml", shipped)
		return r, err
	}
	if err = r.load(); err != nil {
		return nil, err
	}
	return r, nil
}

// Current is the dictionary in force. It looks at the file's time and size, and blocks
// while a changed one is read.
func (r *Rules) Current() *Dictionary {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.path == "" {
		return r.loaded
	}
	st, err := os.Stat(r.path)
	switch {
	case err == nil && unchanged(r.seen, st), err != nil && r.seen == nil:
		return r.loaded
	case err == nil:
		err = r.load()
	default:
		r.seen, err = nil, i18n.E("routing.unreadable", r.path, err)
	}
	r.trouble = nil
	if err != nil {
		r.trouble = i18n.E("routing.not_reloaded", err)
		r.report(r.trouble)
	}
	return r.loaded
}

// Trouble is why the file as it is now is not in force, nil where it is.
func (r *Rules) Trouble() error {
	r.Current()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.trouble
}

// unchanged reports whether a file is the one that it was.
func unchanged(was, is os.FileInfo) bool {
	return was != nil && is.ModTime().Equal(was.ModTime()) && is.Size() == was.Size() && os.SameFile(is, was)
}

// load reads the file; what does not load changes nothing but what was seen.
func (r *Rules) load() error {
	st, err := os.Stat(r.path) // before it is read: a later change is seen
	if err != nil {
		return i18n.E("routing.unreadable", r.path, err)
	}
	r.seen = st
	data, err := disk.Read(r.path, document.MaxBytes)
	if err != nil {
		return i18n.E("routing.unreadable", r.path, err)
	}
	d, err := ParseDictionary(r.path, data)
	if err != nil {
		return err
	}
	r.loaded = d
	return nil
}
