package cloud

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"toritsugi/internal/i18n"
)

// policy is New without a failure.
func policy(tb testing.TB, hosts ...string) *Policy {
	tb.Helper()
	p, err := New(hosts)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestIsCloudByForm(t *testing.T) {
	t.Parallel()
	p := policy(t)
	local := []string{
		"http://localhost", "http://localhost:11434", "https://LOCALHOST:11434/v1", " HTTP://localhost ", "http://localhost.", "http://a.localhost",
		"http://127.0.0.1", "http://127.255.0.9:1/x?y=z#f", "http://10.1.2.3", "http://172.16.0.1", "http://172.31.255.255", "http://192.168.0.1:8080",
		"http://169.254.0.1", "http://100.64.0.1", "http://100.127.255.255:11434", "http://0.0.0.0:11434",
		"http://[::1]:11434", "http://[::]", "http://[fe80::1]", "http://[fe80::1%25eth0]:11434", "http://[fd7a:115c:a1e0::1]", "http://[fc00::1]",
		"http://[::ffff:127.0.0.1]", "http://[::ffff:10.0.0.1]:1", "http://[::FFFF:7f00:1]", "http://[fd00::1%25wlan0]",
		"http://ollama:11434", "http://gpu_box", "http://GPU-1.", "http://ai", "http://host.docker.internal:11434", "http://nas.local", "http://nas.LAN.",
		"http://llm.home.arpa", "http://gpu.tail1234.ts.net", "http://user:pass@localhost:1", "http://api.openai.com@localhost", "http://xn--wgv71a",
		"http://x.internal/api.openai.com", "http://0xg", "http://1password", "http://localhost\n",
	}
	for _, a := range local {
		if p.IsCloud(a, "m") {
			t.Errorf("%q is called a cloud", a)
		}
	}
	cloud := []string{
		"https://api.openai.com/v1", "https://api.openai.com.", "http://8.8.8.8", "http://8.8.8.8:11434", "http://1.2.3.4/localhost", "http://example.com#localhost",
		"http://172.15.0.1", "http://172.32.0.1", "http://192.169.0.1", "http://100.63.255.255", "http://100.128.0.0", "http://169.253.0.1", "http://11.0.0.1",
		"http://0.0.0.1", "http://128.0.0.1", "http://224.0.0.1", "http://255.255.255.255",
		"http://[2001:4860:4860::8888]", "http://[::ffff:8.8.8.8]", "http://[::ffff:808:808]", "http://[2001:db8::1%25eth0]", "http://[::7f00:1]",
		"http://[64:ff9b::7f00:1]", "http://[2002:7f00:1::1]", "http://[fec0::1]", "http://[ff02::1]", "http://[fb00::1]", "http://[fe00::1]",
		// names that only begin or end like local ones
		"http://localhost.example.com", "http://127.0.0.1.example.com", "http://local.example", "http://mylocal.com", "http://xlocal.net", "http://home.arpa",
		"http://ts.net", "http://a.xts.net", "http://evil-internal.com", "http://10.0.0.1.nip.io",
		// userinfo
		"http://localhost@api.openai.com", "http://localhost:11434@8.8.8.8", "http://127.0.0.1%40api.openai.com", "http://localhost\\@api.openai.com", "http://api.openai.com\\@localhost",
		// IPv4 in other spellings
		"http://2130706433", "http://134744072", "http://0x7f000001", "http://0X08080808", "http://0177.0.0.1", "http://010.0.0.1", "http://127.1", "http://127.0.1",
		"http://0x7f.0.0.1", "http://127.0.0.0x1", "http://127.0.0.1.", "http://127.0.0.256", "http://127.0.0", "http://0", "http://0x", "http://1.2.3.4.5", "http://a.7",
		// other scripts: what is one label here is ollama.com, or localhost, to the HTTP client
		"http://ｏｌｌａｍａ．ｃｏｍ", "http://ollama。com", "http://ｌｏｃａｌｈｏｓｔ", "http://日本.local", "http://\u212Aube", "http://loc%C3%A4l", "http://①②⑦.0.0.1",
		// no address
		"", " ", "localhost", "localhost:11434", "127.0.0.1:11434", "//localhost", "http://", "http:///x", "http://:80", "http:localhost", "ftp://localhost", "unix:///run/x.sock",
		"ws://localhost", "http://local host", "http://localhost:port", "http://[::1", "http://[fe80::1%eth0]x", "http://%6cocalhost", "http://localhost%00.com", "http://\x00", "http://localhost..",
		"http://.localhost", "http://a..local", "http://-x", "http://x-.local", "http://" + strings.Repeat("a", 64), "http://" + strings.Repeat("a.", 130) + "local", "http://*.local", "http://a,b",
		"http://127.0.0.1%25eth0", "http://[127.0.0.1%25eth0]", "http://[localhost]", "http://local\tx.local", "http://[::1]evil.com", "http://\xff.local",
	}
	for _, a := range cloud {
		if !p.IsCloud(a, "m") {
			t.Errorf("%q is called local", a)
		}
	}
}

func TestIsCloudByList(t *testing.T) {
	t.Parallel()
	p := policy(t, "gpu.example.com", " LLM.Example.ORG. ", "*.corp.example.com", "203.0.113.0/24", "198.51.100.7", "2001:db8::/32", "::ffff:192.0.2.0/120", "*.vpn", "xn--bcher-kva.example")
	for address, want := range map[string]bool{
		"https://gpu.example.com/v1": false, "http://GPU.EXAMPLE.COM.:8000": false, "http://llm.example.org": false,
		"http://a.corp.example.com": false, "http://a.b.corp.example.com": false, "http://corp.example.com": true, "http://xcorp.example.com": true,
		"http://203.0.113.255": false, "http://203.0.114.0": true, "http://198.51.100.7": false, "http://198.51.100.8": true, "http://[::ffff:203.0.113.9]": false,
		"http://[2001:db8::1]": false, "http://[2001:db9::1]": true, "http://[2001:db8::1%25eth0]": false, "http://192.0.2.9": false,
		"http://a.vpn": false, "http://a.gpu.example.com": true, "http://gpu.example.com.evil.net": true, "http://gpu.example.com@evil.net": true,
		"http://xn--bcher-kva.example": false, "http://bücher.example": true, "http://203.0.113.9.": true, "http://203.0.113.09": true, "http://localhost": false,
	} {
		if p.IsCloud(address, "") != want {
			t.Errorf("%s: %t", address, !want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{
		"", " ", "*", "*.", "**.x", "a.*.com", "*x.com", ".example.com", "http://gpu.example.com", "gpu.example.com:8000", "127.0.0.1:11434", "[::1]", "gpu example", "a,b",
		"0.0.0.0/0", "::/0", "::ffff:0.0.0.0/96", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8", "::ffff:10.0.0.0/8", "fe80::1%eth0/64", "127.1", "0x7f000001", "1.2.3", "日本.example", "*.1.2", "a/b",
	} {
		_, err := New([]string{"ok.example", entry})
		var e *i18n.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "security.local_hosts") || !strings.Contains(i18n.Japanese.Error(err), "ホスト名") {
			t.Errorf("%q: %v", entry, err)
		}
	}
	if p, err := New(nil); err != nil || p.IsCloud("http://localhost", "m") {
		t.Error(err)
	}
}

func TestPassedOn(t *testing.T) {
	t.Parallel()
	p := policy(t, "gpu.example.com")
	for model, want := range map[string]bool{
		"gpt-oss:120b-cloud": true, "ollama/gpt-oss:120b-cloud": true, "qwen3-coder:cloud": true, "GLM-4.6:CLOUD": true, " kimi-k2:1t-Cloud ": true, "gpt-oss:20b:cloud": true,
		"gpt-oss:120b-cloud:local": true, "a:cloud@sha256:00": true, "registry:5000/a/b:x-cloud": true, "registry-cloud:5000/a:x": false,
		"gpt-oss:120b": false, "cloud": false, "my-cloud": false, "cloud:7b": false, "cloud/m:7b": false, "m:cloudy": false, "m:cloud-7b": false, "m:xcloud": false, "": false, ":": false, "m@cloud": false,
		"host:5000/x-cloud": false,
	} {
		for _, a := range []string{"http://localhost:11434", "http://gpu.example.com"} {
			if p.IsCloud(a, model) != want {
				t.Errorf("%q at %s: %t", model, a, !want)
			}
		}
	}
}

// FuzzIsCloud: what counts as local by its form is, read independently, an
// address that is not routed or a name that the public DNS does not hold; and a
// list only adds.
func FuzzIsCloud(f *testing.F) {
	for _, s := range []string{"http://localhost:1", "http://[::ffff:8.8.8.8]", "http://127.1", "http://a.b.ts.net.", "http://x@y", "http://①.local", "http://[fe80::1%25a]"} {
		f.Add(s, "m:cloud")
	}
	none, some := policy(f), policy(f, "*.example.com", "8.8.8.0/24")
	f.Fuzz(func(t *testing.T, address, model string) {
		cloud := none.IsCloud(address, model)
		if !cloud && some.IsCloud(address, model) {
			t.Fatal("a list takes away")
		}
		if cloud {
			return
		}
		if strings.HasSuffix(model, ":cloud") {
			t.Fatal("passed on")
		}
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil {
			t.Fatal(err)
		}
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		if a, err := netip.ParseAddr(host); err == nil {
			for _, n := range []string{"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10", "0.0.0.0/32", "::1/128", "::/128", "fe80::/10", "fc00::/7"} {
				if netip.MustParsePrefix(n).Contains(a.WithZone("").Unmap()) {
					return
				}
			}
			t.Fatalf("%s is routed", a)
		}
		first, rest, dots := strings.Cut(host, ".")
		for _, s := range []string{"local", "internal", "lan", "home.arpa", "localhost", "ts.net"} {
			if rest == s || strings.HasSuffix(rest, "."+s) {
				return
			}
		}
		if dots || first == "" || strings.Trim(first, "0123456789") == "" {
			t.Fatalf("%q may be anybody's", host)
		}
	})
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	code := []string{"CODE", "CODE1", "code2 ", "Code3"}
	for _, c := range []struct {
		route     string
		localOnly bool
		routes    []string
		want      string // the key of the error
	}{
		{"CODE", false, code, ""}, {"code1", false, code, ""}, {" Code2", false, code, ""}, {"CODE3", false, code, ""},
		{"CODE4", false, code, "cloud.route"}, {"CHAT", false, code, "cloud.route"}, {"CODE1", false, []string{"CODE"}, "cloud.route"}, {"CODE", false, nil, "cloud.route"},
		{"chat", false, []string{"CHAT"}, ""}, {"classifier", false, []string{"Classifier"}, ""}, {"", false, []string{"", " "}, "cloud.route"}, {"", false, nil, "cloud.route"},
		{"CODE", true, code, "cloud.local_only"}, {"CHAT", true, []string{"CHAT"}, "cloud.local_only"}, {"", true, nil, "cloud.local_only"},
	} {
		err := Allowed(c.route, c.localOnly, c.routes)
		var e *i18n.Error
		switch {
		case err == nil && c.want == "":
		case !errors.As(err, &e) || e.Key != c.want:
			t.Errorf("%+v: %v", c, err)
		default:
			for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
				want := map[string]string{"cloud.route": "security.cloud_allowed_routes", "cloud.local_only": "security.local_only"}[c.want]
				if s := l.Error(err); !strings.Contains(s, strings.ToUpper(strings.TrimSpace(c.route))) || !strings.Contains(s, want) {
					t.Errorf("%+v: %s", c, s)
				}
			}
		}
	}
}
