package app

import "testing"

// git goes through the proxy that the environment names, but for what it excepts.
func TestProxyFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		address, want string
		env           map[string]string
	}{
		{"https://github.com", "", nil},
		{"https://github.com", "http://proxy:3128", map[string]string{"HTTPS_PROXY": "http://proxy:3128"}},
		{"https://git.corp.example/", "http://proxy:3128", map[string]string{"https_proxy": "http://proxy:3128"}},
		{"https://git.corp.example", "", map[string]string{"https_proxy": "http://proxy:3128", "no_proxy": ".corp.example"}},
		{"http://localhost:1", "", map[string]string{"HTTPS_PROXY": "http://proxy:3128"}},
	} {
		if got := proxyFor(c.address, func(n string) string { return c.env[n] }); got != c.want {
			t.Errorf("%s, %v: %q", c.address, c.env, got)
		}
	}
}
