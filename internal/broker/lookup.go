package broker

import (
	"net/url"

	"toritsugi/internal/i18n"
)

// Lookup says why a query, or the address of a page, may not leave to be looked up: it holds a
// secret, or a person's address or number; nil where it may. Nothing is masked in it, with which
// it would find something else. An address is judged as it is written and as it is read.
func (f *Filter) Lookup(text string) error {
	if len(text) > maxURL {
		return i18n.E("broker.lookup_long", len(text), maxURL)
	}
	forms := []string{text}
	for _, read := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} { // a plus is one in the path
		if meant, err := read(text); err == nil && meant != text { // a query may hold any %
			forms = append(forms, meant)
		}
	}
	z := f.o.Sanitizer.Personal()
	for _, s := range forms {
		if found := append(z.Locate(s), f.glued(s)...); len(found) > 0 {
			return i18n.E("broker.lookup", found[0].Token)
		}
	}
	return nil
}
