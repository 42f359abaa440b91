package config

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// isAddress reports whether s is an http or https address.
func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.Fragment == ""
}

// serverAddress is the address of a server with the scheme and host that people
// leave out: http for this machine and its network, else https; port is the one
// of a server without a scheme that names none, "" for the scheme's own. Like
// Ollama's own client it takes an address to listen on for this machine's.
// Source: envconfig.ConnectableHost of Ollama (OLLAMA_HOST).
func serverAddress(s, port string) string {
	s = strings.TrimSpace(s)
	scheme, rest, found := strings.Cut(s, "://")
	if !found {
		scheme, rest = "", s
	}
	hostport, path, _ := strings.Cut(rest, "/")
	host, given, err := net.SplitHostPort(hostport)
	if err != nil {
		host, given = strings.Trim(hostport, "[]"), ""
	}
	ip, err := netip.ParseAddr(host)
	isIP := err == nil
	switch {
	case s == "" || strings.ContainsAny(hostport, "@?#"):
		return s
	case host == "" && !found, isIP && ip.IsUnspecified() && ip.Is4():
		host = "127.0.0.1"
	case isIP && ip.IsUnspecified():
		host = "::1"
	case found:
		return s
	}
	if !found {
		scheme = "https"
		if host == "127.0.0.1" || host == "::1" || isIP && (ip.IsLoopback() || ip.IsPrivate()) || !isIP && !strings.Contains(host, ".") {
			scheme = "http"
		}
		if given == "" && !strings.Contains(host, "ollama.com") {
			given = port
		}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if given != "" {
		host += ":" + given
	}
	if path != "" {
		path = "/" + path
	}
	return scheme + "://" + host + path
}

// addresses completes those of the servers of models; host is OLLAMA_HOST, which
// counts where the settings name no endpoint.
func (l *LLM) addresses(named bool, host string) {
	if host = strings.TrimSpace(host); !named && host != "" {
		l.Ollama.Endpoint = host
	}
	l.Ollama.Endpoint = serverAddress(l.Ollama.Endpoint, "11434")
	for _, s := range []*Server{&l.OpenAI, &l.Anthropic.Server, &l.DeepSeek, &l.LMStudio, &l.VLLM} {
		s.BaseURL = serverAddress(s.BaseURL, "")
	}
}
