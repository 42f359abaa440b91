package config

import "strings"

// Forget has the key at path, or each of the section at path, count as set by
// nobody, for who has replaced its value: IsSet then says no.
func (c *Config) Forget(path string) {
	for p := range c.meta.origins {
		if p == path || strings.HasPrefix(p, path+".") {
			delete(c.meta.origins, p)
		}
	}
}
