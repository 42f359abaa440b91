package githubtest

import (
	"maps"
	"slices"
)

// maxLogged bounds the entries that are kept; counts go on.
const maxLogged = 20000

type requestLog struct {
	entries []*Request
	counts  map[string]int
	n       int
}

// record enters a request, whose answer is to come.
func (s *Server) record(q *Request) *Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.n++
	s.log.counts[q.Pattern]++
	q.N, q.Nth = s.log.n, s.log.counts[q.Pattern]
	e := *q
	if len(s.log.entries) >= maxLogged {
		s.log.entries = slices.Delete(s.log.entries, 0, maxLogged/2)
	}
	s.log.entries = append(s.log.entries, &e)
	return &e
}

func (s *Server) outcome(e *Request, user string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.User, e.Status = user, status
}

// Log is what was asked since the last ResetLog, oldest first; of very many the newest.
func (s *Server) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, 0, len(s.log.entries))
	for _, e := range s.log.entries {
		out = append(out, *e)
	}
	return out
}

// Counts tells how often each pattern was asked since the last ResetLog.
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.log.counts)
}

// Count is how often a pattern was asked since the last ResetLog; "" counts all.
func (s *Server) Count(pattern string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pattern != "" {
		return s.log.counts[pattern]
	}
	return s.log.n
}

// ResetLog forgets what was asked; numbering begins anew.
func (s *Server) ResetLog() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = requestLog{counts: map[string]int{}}
}
