package config

import (
	"net"
	"net/mail"
	"net/netip"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/i18n"
)

// modelProviders are the providers whose models can be named PROVIDER/MODEL.
var modelProviders = []string{"openai", "anthropic", "deepseek", "ollama", "lmstudio", "vllm"}

// embeddingProviders are those of them that make embeddings.
var embeddingProviders = []string{"openai", "ollama", "lmstudio", "vllm"}

// rules are the limits of a setting, from its tags.
type rules struct {
	min, max  *float64 // inclusive
	above     *float64 // exclusive
	enum      []string
	optional  bool   // the empty text is allowed, though it is none of enum or no address
	named     string // one of the checks of text
	low, high float64
	recommend bool // low..high is recommended
}

func parseRules(check, warn string) rules {
	var r rules
	for part := range strings.SplitSeq(check, ",") {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.ParseFloat(value, 64)
		limit := &n
		if err != nil {
			limit = nil
		}
		switch name {
		case "":
		case "optional":
			r.optional = true
		case "min":
			r.min = limit
		case "max", "le":
			r.max = limit
		case "gt":
			r.above = limit
		case "enum":
			r.enum = strings.Split(value, "|")
			r.optional = r.enum[0] == ""
			r.enum = slices.DeleteFunc(r.enum, func(s string) bool { return s == "" })
		default:
			r.named = name
		}
	}
	if low, high, ok := strings.Cut(warn, ".."); ok {
		var errLow, errHigh error
		r.low, errLow = strconv.ParseFloat(low, 64)
		r.high, errHigh = strconv.ParseFloat(high, 64)
		r.recommend = errLow == nil && errHigh == nil
	}
	return r
}

// number returns what was expected where n is outside the limits, else nil.
func (r rules) number(n float64) error {
	switch {
	case r.above != nil && (n <= *r.above || r.max != nil && n > *r.max):
		return i18n.E("config.want.share", show(*r.above), show(*r.max))
	case r.min != nil && n < *r.min:
		return i18n.E("config.want.min", show(*r.min))
	case r.max != nil && n > *r.max:
		return i18n.E("config.want.max", show(*r.max))
	}
	return nil
}

func show(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// isURL reports whether a text is an address, which may hold a password.
func (r rules) isURL() bool { return r.named == "url" || r.named == "server" }

// text returns what was expected where s breaks the rules, else nil.
func (r rules) text(s string) error {
	if r.optional && s == "" {
		return nil
	}
	if len(r.enum) > 0 && !slices.Contains(r.enum, s) {
		return i18n.E("config.want.enum", strings.Join(r.enum, ", "))
	}
	ok := true
	switch r.named {
	case "nonempty":
		ok = strings.TrimSpace(s) != ""
	case "url":
		ok = isAddress(s)
	case "server":
		if ok = isAddress(serverAddress(s, "")); !ok {
			r.named = "url"
		}
	case "model":
		provider, model, found := strings.Cut(s, "/")
		ok = found && strings.TrimSpace(model) != "" && slices.Contains(modelProviders, provider)
	case "embeddings":
		provider, model, _ := strings.Cut(s, "/")
		ok = strings.TrimSpace(model) != "" && slices.Contains(embeddingProviders, provider)
	case "keepalive":
		_, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			_, err = time.ParseDuration(s)
		}
		ok = err == nil
	case "tool":
		return toolPattern(s)
	case "project":
		ok = projectPattern(s)
	case "treepattern":
		ok = treePattern(s)
	case "abs":
		ok = filepath.IsAbs(s)
	case "blobs":
		_, _, ok = blobsAt(s, Backup{})
	case "place":
		ok = placeName(s)
	case "absfile":
		ok = s == "" || filepath.IsAbs(s)
	case "host":
		ok = hostName(s)
	case "reach":
		ok = reachable(s)
	case "hostpattern":
		ok = hostPattern(s)
	case "envname":
		ok = envName(s)
	case "header":
		ok = s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
	case "author":
		ok = strings.TrimSpace(s) != "" && !strings.ContainsAny(s, "<>\r\n\x00")
	case "branch":
		ok = branchPattern(s)
	case "repository":
		ok = repositoryPattern(s)
	case "forgeurl":
		source, name, _ := strings.Cut(s, ":")
		ok = s == "" || IsForge(source) && repositoryPattern(name) && !strings.HasSuffix(name, "*")
	case "person":
		kind, id, _ := strings.Cut(s, ":")
		ok = PlainName(kind) && strings.TrimSpace(id) != ""
	case "label":
		ok = labelName(s)
	case "session":
		ok = sessionID(s)
	case "report":
		ok = s == "" || s == ReportMail || s == ReportWebhook || sessionID(s)
	case "mail":
		a, err := mail.ParseAddress(s)
		ok = err == nil && a.Name == "" && a.Address == s
	case "clock":
		_, ok = clock(s)
	case "hours":
		_, ok = ParseHours(s)
	case "listen":
		_, port, err := net.SplitHostPort(s)
		_, perr := strconv.ParseUint(port, 10, 16)
		ok = s == "" || err == nil && perr == nil
	case "regexp":
		re, err := regexp.Compile(s)
		if err != nil {
			return i18n.E("config.want.regexp", err)
		}
		if re.MatchString("") {
			return i18n.E("config.want.regexp_nonempty")
		}
	}
	if !ok {
		return i18n.E("config.want." + r.named)
	}
	return nil
}

// sessionID reports whether s can be the id of a conversation.
func sessionID(s string) bool {
	kind, id, _ := strings.Cut(s, ":")
	return PlainName(kind) && id != "" && strings.TrimSpace(s) == s
}

// treePattern reports whether s is a pattern of paths in a tree: * and ? within
// a name, ** for any number of directories.
func treePattern(s string) bool {
	if s == "" || strings.ContainsAny(s, "\x00\\") || path.Clean(s) != s || path.IsAbs(s) {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if _, err := path.Match(part, ""); err != nil || part == ".." || part == "." || part == ".git" {
			return false
		}
	}
	return true
}

func envName(s string) bool {
	for i, c := range []byte(s) {
		if letter := c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'; !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// hostName reports whether s is the name of a host, with nothing around it.
func hostName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "-") != label {
			return false
		}
		for _, c := range []byte(label) {
			if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
				return false
			}
		}
	}
	return true
}

// reachable reports whether s names hosts that a sandbox can open the network to: a
// host or the names below one (*.example.org), with a port or without, or an address.
func reachable(s string) bool {
	if a, err := netip.ParseAddrPort(s); err == nil {
		return a.Port() != 0
	}
	host, port, found := strings.Cut(strings.TrimPrefix(s, "*."), ":")
	if n, err := strconv.ParseUint(port, 10, 16); found && (err != nil || n == 0) {
		return false
	}
	return hostName(host)
}

// branchPattern reports whether s gives every task a branch of its own, with a
// name that git accepts (git-check-ref-format(1)).
func branchPattern(s string) bool {
	if !strings.Contains(s, "{id}") {
		return false
	}
	name := strings.NewReplacer("{id}", "1", "{slug}", "a").Replace(s)
	if strings.ContainsAny(name, " ~^:?*[\\{}\x7f") || strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".") ||
		strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return false
	}
	if strings.IndexFunc(name, func(c rune) bool { return c < ' ' }) >= 0 {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}
