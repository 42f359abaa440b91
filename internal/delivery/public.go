package delivery

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"toritsugi/internal/lazyregexp"
)

// Public is a reason as it may stand on a forge: without the paths and the
// addresses of this machine and its network, which stay in the log.
func (s *Service) Public(reason string) string {
	if s.Store != nil && len(s.Store.BaseDir) > 1 {
		reason = strings.ReplaceAll(reason, s.Store.BaseDir, "/-/-") // it may hold spaces
	}
	reason = anyURL().ReplaceAllStringFunc(reason, func(s string) string {
		if u, err := url.Parse(strings.TrimRight(s, ".:")); err == nil && !local(u) {
			return s
		}
		return "[address]"
	})
	reason = localAddress().ReplaceAllString(reason, "[address]")
	return localPath().ReplaceAllString(reason, "${1}[path]")
}

// local reports whether an address is of this machine or of its network, or holds
// a login.
func local(u *url.URL) bool {
	host := u.Hostname()
	name := host[strings.LastIndexByte(host, '.')+1:]
	inside := slices.Contains([]string{"internal", "local", "localdomain", "localhost", "lan", "corp", "home", "intranet", "arpa"}, strings.ToLower(name))
	return inside || u.User != nil || u.Port() != "" || !strings.Contains(host, ".")
}

// anyURL finds addresses of the web and the like.
var anyURL = lazyregexp.New(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'` + "`" + `,;)\]>]+`)

// localAddress finds what is no URL: addresses with a port, of loopback, and in
// numbers. Names before a port count only where they cannot be a file and its line.
var localAddress = lazyregexp.New(`(?i)\b(?:tcp|udp)[46]? [\w.\[\]:-]+:\d+(?:->[\w.\[\]:-]+:\d+)?` +
	`|\b(?:lookup) [\w.-]+` +
	`|\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b` +
	`|\[[0-9a-f]*:[0-9a-f:.]+(?:%\w+)?\](?::\d+)?` +
	`|\blocalhost(?::\d+)?\b`)

// localPath finds absolute paths of more than one part, in languages without
// blanks, too; a command such as /stop is none, nor is the rest of a relative path.
var localPath = sync.OnceValue(func() *regexp.Regexp {
	const part = "[^\\s/\"'`:;,)\\]>「」『』（）、。]"
	return regexp.MustCompile(`(^|[^\w./~*)\]}$-])/` + part + `+(?:/` + part + `*)+`)
})
