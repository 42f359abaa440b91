package config

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/redact"
)

// serverSecrets lists what the servers of tools are given to log in with. A
// name says little about a value that somebody wrote down for one server: every
// value counts that is long enough and not plainly a setting.
func (c *Config) serverSecrets() []string {
	var all []string
	for _, s := range c.MCPServers {
		all = append(all, addressSecrets(s.URL)...)
		if s.OAuth.ClientSecret != "" {
			all = append(all, s.OAuth.ClientSecret)
		}
		for name, value := range s.Env {
			all = append(all, EnvSecrets([]string{name + "=" + value})...)
			if secretValue(value) {
				all = append(all, value)
			}
		}
		for _, value := range s.Headers {
			if _, key, ok := strings.Cut(value, " "); ok && len(key) >= minSecret { // Bearer KEY
				all = append(all, key)
			}
			if secretValue(value) {
				all = append(all, value)
			}
		}
	}
	return all
}

var (
	// plainPath is an absolute path below a directory that machines have.
	plainPath = lazyregexp.New(`^/(bin|data|dev|etc|home|mnt|opt|proc|root|run|srv|sys|tmp|usr|var|work|workspace)(/[^/\s]{0,64})*$`)
	// plainWords are what programs are told to be.
	plainWords = map[string]bool{"production": true, "development": true, "application/json": true, "text/event-stream": true, "en_US.UTF-8": true, "ja_JP.UTF-8": true}
)

// secretValue reports whether a value may be a secret, whatever its name says:
// it is no number, time, flag, path, or address without anything behind its host.
func secretValue(value string) bool {
	value = strings.TrimSpace(value)
	if len(value) < minSecret || plainWords[value] || plainPath().MatchString(value) {
		return false
	}
	if _, err := strconv.ParseBool(value); err == nil {
		return false
	}
	if _, err := time.ParseDuration(value); err == nil {
		return false
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n < 1e9 { // longer ones are numbers of accounts, or PINs
		return false
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return true
	}
	if pass, _ := u.User.Password(); len(pass) >= minSecret && u.RawQuery == "" {
		return false // the password is one, and EnvSecrets knows it
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		return u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != ""
	}
	return true
}

// arguments refuses secrets among the arguments of a server: everybody on the
// machine can read them in the list of processes.
func (p *parser) arguments(environ []string) {
	var known []string
	for _, s := range p.config.MCPServers {
		for name, value := range s.Env {
			known = append(known, EnvSecrets([]string{name + "=" + value})...)
		}
	}
	if len(p.config.MCPServers) == 0 {
		return
	}
	known = append(append(known, EnvSecrets(environ)...), p.settings()...)
	known = slices.DeleteFunc(known, func(s string) bool { return len(s) < minSecret })
	shapes := redact.New(known, nil)
	at := p.at(p.config.meta.origins["mcp_servers"])
	for i, s := range p.config.MCPServers {
		for n, word := range s.Command {
			if len(shapes.FindSecrets(word)) > 0 {
				p.problem("config.mcp_argument", at, i, n, short(s.Name))
			} else if secretFlag(s.Command, n) {
				p.warn("config.warn.mcp_argument", at, i, n, short(s.Name))
			}
		}
	}
}

// secretFlag reports whether the name of an option says that this word is a
// secret, and it is written out.
func secretFlag(words []string, n int) bool {
	flag, value, ok := strings.Cut(words[n], "=")
	if !ok && n > 0 {
		flag, value = words[n-1], words[n]
	}
	name := strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "_")
	return strings.HasPrefix(flag, "-") && secretName(name) && len(value) >= minSecret && !strings.ContainsAny(value, "$/") && !strings.HasPrefix(value, "-")
}

// environment lists the variables that tools are given, as os.Environ does.
func (c *Config) environment() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.Sandbox.Env)) {
		all = append(all, name+"="+c.Sandbox.Env[name])
	}
	return all
}
