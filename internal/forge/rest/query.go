package rest

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"toritsugi/internal/forge"
	"toritsugi/internal/i18n"
)

// Address is the address of a server as people type it into a browser: its host is in lower
// case, its path ends in no slash. setting is the section of the settings that it stands in.
func Address(s, setting string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	local := err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return nil, i18n.E("rest.url", setting)
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: strings.TrimRight(u.Path, "/")}, nil
}

// Git is where git finds a repository below the address of the web pages.
func Git(web *url.URL, r forge.Repo) string {
	parts := strings.Split(r.String()+".git", "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return web.JoinPath(parts...).String()
}

// Path joins the parts of a path, each escaped as one segment: the paths of projects and
// the names of labels and branches have spaces and slashes.
func Path(parts ...any) string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = url.PathEscape(fmt.Sprint(p))
	}
	return strings.Join(all, "/")
}

// Below is a path below a repository, where that is owner and name.
func Below(r forge.Repo, parts ...any) string {
	return Path(append([]any{"repos", r.Owner, r.Name}, parts...)...)
}

// Query makes a query of names and values.
func Query(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q
}

// From is a query for what was changed at or after a time, for all where that is zero.
func From(since time.Time) url.Values {
	if since.IsZero() {
		return url.Values{}
	}
	return Query("since", Stamp(since))
}

// Stamp is a time as queries have it: in whole seconds.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

const (
	// PerPage is how many elements of a list GitHub and GitLab give at once at most.
	PerPage = 100
	// MostPages bounds a list that a broken server never ends.
	MostPages = 10_000
)

// Page is a query for the nth page, from 1, of a list.
func Page(q url.Values, n int) url.Values {
	p := Query("per_page", strconv.Itoa(PerPage))
	for k, v := range q {
		p[k] = v
	}
	if n > 1 {
		p.Set("page", strconv.Itoa(n))
	}
	return p
}

// Present leaves out what a broken answer has for nothing.
func Present[T any](all []*T) []*T {
	return slices.DeleteFunc(all, func(e *T) bool { return e == nil })
}
