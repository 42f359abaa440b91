package gitlabtest

import (
	"fmt"
	"net/http"
	"strconv"
)

func gitPath(string) bool { return false }

func (s *Server) git(http.ResponseWriter, *http.Request) {}

func (p *project) initialise() { p.branches["main"] = fmt.Sprintf("%040x", p.s.id()) }

func (p *project) sync() {}

// Commit makes a commit on a branch, from main where it is new, and returns it.
func (p *Project) Commit(branch, file, text string) (sha string) {
	p.do(func() {
		sha = fmt.Sprintf("%040x", p.s.id())
		p.p.branches[branch] = sha
	})
	return sha
}

func itoa(n int) string { return strconv.Itoa(n) }
func atoi(s string) int { n, _ := strconv.Atoi(s); return n }
