package config

import (
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"toritsugi/internal/i18n"
	"toritsugi/internal/spelling"
)

// envPrefix begins every variable of our own.
const envPrefix = "TORI_"

// minSecret is the length in bytes from which a variable's value counts as a
// secret; shorter ones stand in too many innocent texts.
const minSecret = 8

// environment overrides scalar keys: the seeds' own names win over the file,
// TORI_ names over both (store-v3 §9.2).
func (p *parser) environment() {
	for _, f := range p.schema.fields {
		for _, name := range slices.Backward(f.envNames()) {
			if text := p.getenv(name); text != "" {
				p.variable(f, name, text)
			}
		}
	}
}

func (p *parser) variable(f *field, name, text string) {
	o := origin{env: name}
	var shown error = i18n.E("config.found.string", short(text))
	if f.secret || hasLogin(reflect.ValueOf(text)) {
		shown = i18n.E("config.found.secret")
	}
	v, ok := fromText(f.kind, text)
	if !ok {
		p.problem("config.value", p.at(o), f.path, i18n.E(wants(f.kind)), shown)
		return
	}
	if !utf8.ValidString(text) {
		p.problem("config.value", p.at(o), f.path, i18n.E("config.want.utf8"), shown)
		return
	}
	if want := f.rules.value(v); want != nil {
		p.problem("config.value", p.at(o), f.path, want, shown)
		return
	}
	p.target.FieldByIndex(f.index).Set(v)
	p.config.meta.origins[f.path] = o
}

// fromText reads a scalar from the environment or a tag.
func fromText(k kind, text string) (reflect.Value, bool) {
	switch k {
	case kindInt:
		n, err := strconv.Atoi(strings.TrimSpace(text))
		return reflect.ValueOf(n), err == nil
	case kindFloat:
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		return reflect.ValueOf(x), err == nil && !math.IsInf(x, 0) && !math.IsNaN(x)
	case kindBool:
		b := strings.ToLower(strings.TrimSpace(text))
		return reflect.ValueOf(b == "true"), b == "true" || b == "false"
	}
	return reflect.ValueOf(text), true
}

// misspelt warns of variables of our own that set nothing.
func (p *parser) misspelt(environ []string) {
	known := map[string]*field{}
	var names []string
	for _, f := range p.schema.fields {
		known[f.env()] = f
		if f.kind.scalar() {
			names = append(names, f.env())
		}
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, envPrefix) || value == "" || name == fileVar {
			continue
		}
		if f, ok := known[name]; ok {
			if !f.kind.scalar() {
				p.warn("config.warn.env_plain", name, f.path)
			}
			continue
		}
		if near := spelling.Nearest(name, names); near != "" {
			p.warn("config.warn.env_near", clean(name), near)
		} else {
			p.warn("config.warn.env", clean(name))
		}
	}
}

// expand replaces ${NAME} by the variable's value; $${ stands for ${. A
// variable that is not set or empty becomes nothing and is listed in unset. ok
// is false where ${ does not begin a variable.
func expand(s string, getenv func(string) string) (out string, unset []string, ok bool) {
	if !strings.Contains(s, "${") {
		return s, nil, true
	}
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), unset, true
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		name, rest, closed := strings.Cut(s[i+2:], "}")
		if !closed || !envName(name) {
			return "", nil, false
		}
		value := getenv(name)
		if value == "" {
			unset = append(unset, name)
		}
		// A file is UTF-8; what a variable adds to it is made so.
		b.WriteString(strings.ToValidUTF8(value, "\uFFFD"))
		s = rest
	}
}

// Secrets lists every secret value: the keys marked as such, passwords in
// addresses, what EnvSecrets finds in the environment and in sandbox.env, and
// what the servers of tools are given.
func (c *Config) Secrets() []string { return slices.Clone(c.meta.secrets) }

func (p *parser) secrets(environ []string) []string {
	all := append(p.settings(), p.config.serverSecrets()...)
	all = append(all, headerSecrets(p.config.Telemetry.Traces.Headers)...)
	for _, name := range headerVariables {
		all = append(all, headerSecrets(p.getenv(name))...)
	}
	all = append(all, EnvSecrets(append(slices.Clip(environ), p.config.environment()...))...)
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

// settings lists the values of the keys that are secret, and the passwords in
// addresses.
func (p *parser) settings() []string {
	var all []string
	for _, f := range p.schema.fields {
		if f.kind != kindString {
			continue
		}
		text := p.target.FieldByIndex(f.index).String()
		if f.secret {
			all = append(all, text)
		}
		if f.rules.isURL() || f.secret { // that of a database is both
			all = append(all, addressSecrets(text)...)
		}
	}
	return all
}

// addressSecrets are the password of an address and, from eight bytes on, the
// values of the parameters whose names say that they hold a secret, each as it
// is and as it is written: servers answer with either.
func addressSecrets(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var all []string
	if pass, ok := u.User.Password(); ok {
		all = append(all, pass)
	}
	for parameter := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		if !secretParameter(name) || len(value) < minSecret {
			continue
		}
		all = append(all, value)
		if plain, err := url.QueryUnescape(value); err == nil {
			all = append(all, plain)
		}
	}
	return all
}

// secretParameter reports whether a parameter of an address holds a secret.
func secretParameter(name string) bool {
	parts := []string{"key", "token", "secret", "pass", "pwd", "sig", "auth", "code", "credential"}
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(strings.ToLower(name), part) })
}

// EnvSecrets lists the values of the variables whose names say that they hold a
// secret, and the passwords in addresses that any variable holds, from eight
// bytes on. environ is as os.Environ returns it.
func EnvSecrets(environ []string) []string {
	var all []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if secretName(name) && len(value) >= minSecret {
			all = append(all, value)
		} else if hasLogin(reflect.ValueOf(value)) {
			if u, err := url.Parse(value); err == nil && u.User != nil {
				if pass, _ := u.User.Password(); len(pass) >= minSecret {
					all = append(all, pass)
				}
			}
		}
	}
	return all
}

// SecretVariables names the variables of the environment that hold a secret, of
// ours or of others: nobody needs them once the settings were read. Addresses of
// proxies are not among them: they are looked up when they are used.
func (c *Config) SecretVariables() []string { return slices.Clone(c.meta.hold) }

// holders are the variables that hold a secret: by their names, by a password in
// an address, or since one that was read went into a setting that is secret.
func holders(environ []string, read map[string]bool, secrets []string) (all []string) {
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		within := func(secret string) bool {
			return secret == value || len(value) >= minSecret && strings.Contains(secret, value)
		}
		switch {
		case value == "" || everyday(name):
		case secretName(name), slices.Contains(headerVariables, name), len(addressSecrets(value)) > 0, read[name] && slices.ContainsFunc(secrets, within):
			all = append(all, name)
		}
	}
	return all
}

// everyday reports whether a variable is one that programs need to find their
// way, whatever a setting makes of it.
func everyday(name string) bool {
	names := []string{"HOME", "PATH", "USER", "LOGNAME", "LANG", "SHELL", "PWD", "TMPDIR", "TERM", "SSL_CERT_FILE"}
	return slices.Contains(names, name) || strings.HasPrefix(name, "XDG_") || strings.HasSuffix(strings.ToUpper(name), "_PROXY")
}

// secretName reports whether a variable of that name holds a secret.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	ends := []string{"_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PASSPHRASE", "_PASS", "_PWD", "_PAT", "_CREDENTIALS", "_APIKEY", "SECRET_KEY_BASE"}
	return slices.Contains([]string{"TOKEN", "PASSWORD", "SECRET", "APIKEY"}, name) || slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) })
}

// hasLogin reports whether a text may be an address with a password in it.
func hasLogin(v reflect.Value) bool {
	return v.Kind() == reflect.String && strings.Contains(v.String(), "@") && strings.Contains(v.String(), "://")
}
