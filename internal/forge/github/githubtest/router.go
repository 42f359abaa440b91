package githubtest

import (
	"net/http"
	"net/url"
	"strings"
)

// router finds the operation of a request. GitHub's paths are ambiguous to
// http.ServeMux: of ".../issues/comments/7" and ".../issues/{issue_number}/labels"
// neither is the more special one.
type router struct {
	routes map[string][]*path // by method and number of segments
}

type path struct {
	route
	segments []string
}

func place(method string, segments int) string { return method + strings.Repeat("/", segments) }

func (m *router) add(rt route) {
	method, at, _ := strings.Cut(rt.pattern, " ")
	segments := strings.Split(strings.TrimPrefix(at, "/"), "/")
	k := place(method, len(segments))
	m.routes[k] = append(m.routes[k], &path{rt, segments})
}

// find is the route of a request, whose path values it sets; nil where there is
// none. A word in the pattern beats a variable, the first difference counts.
func (m *router) find(r *http.Request, escaped string) *path {
	segments := strings.Split(strings.TrimPrefix(escaped, "/"), "/")
	for i, s := range segments {
		if u, err := url.PathUnescape(s); err == nil {
			segments[i] = u
		}
	}
	var best *path
	for _, p := range m.routes[place(r.Method, len(segments))] {
		if p.matches(segments) && (best == nil || p.before(best)) {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	for i, s := range best.segments {
		if name, is := variable(s); is {
			r.SetPathValue(name, segments[i])
		}
	}
	return best
}

func variable(segment string) (name string, is bool) {
	if strings.HasPrefix(segment, "{") {
		return strings.Trim(segment, "{}"), true
	}
	return "", false
}

func (p *path) matches(segments []string) bool {
	for i, s := range p.segments {
		if _, is := variable(s); !is && s != segments[i] || is && segments[i] == "" {
			return false
		}
	}
	return true
}

func (p *path) before(o *path) bool {
	for i := range p.segments {
		_, a := variable(p.segments[i])
		_, b := variable(o.segments[i])
		if a != b {
			return b
		}
	}
	return false
}
