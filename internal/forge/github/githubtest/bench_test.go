package githubtest

import (
	"net/http"
	"testing"
)

// What a poll costs this server, so that benchmarks of its clients can take it off.
func BenchmarkPoll(b *testing.B) {
	for name, unchecked := range map[string]bool{"checked": false, "unchecked": true} {
		b.Run(name, func(b *testing.B) {
			s := New(b, Options{Rate: 1 << 30, Unchecked: unchecked})
			s.AddUser(User{Login: "alice"})
			r := s.AddRepo("acme", "app", RepoOptions{}, nil)
			for range 100 {
				r.OpenIssue("alice", "t", "b", "agent")
			}
			token := s.Token("alice")
			ask := func(tag string) *http.Response {
				q, _ := http.NewRequestWithContext(b.Context(), "GET", s.API()+"repos/acme/app/issues?labels=agent&per_page=100", nil)
				q.Header.Set("Authorization", "Bearer "+token)
				q.Header.Set("If-None-Match", tag)
				res, err := http.DefaultClient.Do(q)
				if err != nil {
					b.Fatal(err)
				}
				_ = res.Body.Close()
				return res
			}
			tag := ask("").Header.Get("Etag")
			for b.Loop() {
				if res := ask(tag); res.StatusCode != http.StatusNotModified {
					b.Fatal(res.Status)
				}
			}
		})
	}
}
