package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/sandbox"
)

const (
	privateAddress = "10.99.0.1"
	mirrorName     = "nexus.test:4873" // of privateAddress, as /etc/hosts has it
	farName        = "far.test:4873"   // the machine's proxy alone knows where that is
	proxyOfMachine = privateAddress + ":3129"
	// More packages than npm has connections: what waits behind a refused one must
	// not keep it busy for ever.
	mirrorPackages = 40
)

// mirror is a registry of a company: npm's protocol by TLS, with a certificate of
// its own authority.
type mirror struct {
	ca     string // PEM
	server *http.Server
	loaded atomic.Int64
	mu     sync.Mutex // what a test notes
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	issue := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			signer = key
		}
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	ca := &x509.Certificate{Subject: pkix.Name{CommonName: "a company"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER, caKey := issue(ca, ca, nil)
	name, port, _ := net.SplitHostPort(mirrorName)
	leaf, key := issue(&x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name, strings.TrimSuffix(farName, ":"+port)}}, ca, caKey)
	m := &mirror{ca: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}))}
	m.server = &http.Server{Handler: m, TLSConfig: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf}, PrivateKey: key}}}}
	return m
}

// tarball is a package as npm packs one, with its integrity.
func tarball(name string) ([]byte, string) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range [][2]string{{"package.json", fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name)}, {"index.js", "module.exports = 42\n"}} {
		_ = w.WriteHeader(&tar.Header{Name: "package/" + f[0], Mode: 0o644, Size: int64(len(f[1]))})
		_, _ = io.WriteString(w, f[1])
	}
	_, _ = w.Close(), z.Close()
	sum := sha512.Sum512(b.Bytes())
	return b.Bytes(), "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// ServeHTTP answers GET /NAME with what there is of a package, and GET
// /NAME/-/NAME-1.0.0.tgz with it.
func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, packed := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/-/")
	data, integrity := tarball(name)
	switch {
	case !strings.HasPrefix(name, "dep"):
		http.NotFound(w, r)
	case packed:
		m.loaded.Add(1)
		_, _ = w.Write(data)
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"name": name, "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": map[string]any{
			"name": name, "version": "1.0.0", "dist": map[string]string{"tarball": "https://" + r.Host + "/" + name + "/-/" + name + "-1.0.0.tgz", "integrity": integrity}}}})
	}
}

// inOwnNetwork runs f in a network of its own, in which this machine has a private
// address; programs that f starts are in it, too.
func inOwnNetwork(t *testing.T, f func()) {
	t.Helper()
	hosts, done := filepath.Join(t.TempDir(), "hosts"), make(chan string)
	go func() {
		problem := "it was left"
		defer func() { done <- problem }()
		runtime.LockOSThread() // for ever: the thread ends with its goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
			problem = "skip: a network of its own: " + err.Error()
			return
		}
		name, _, _ := net.SplitHostPort(mirrorName)
		script := "mount --make-rprivate / && printf '127.0.0.1 localhost\\n%s %s\\n' " + privateAddress + " " + name + " > " + hosts + " && mount --bind " + hosts +
			" /etc/hosts && ip link set lo up && ip addr add " + privateAddress + "/32 dev lo"
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			problem = fmt.Sprintf("skip: %s: %v %s", script, err, out)
			return
		}
		f()
		problem = ""
	}()
	if problem := <-done; strings.HasPrefix(problem, "skip: ") {
		t.Skip(problem)
	} else if problem != "" {
		t.FailNow()
	}
}

// A registry on a private address with a company's certificate is reached where the
// settings name it, directly and by the machine's proxy; where they do not, npm is
// refused in seconds and whoever reads it is told host and setting.
func TestSetupFromAMirror(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip(err)
	}
	box, err := sandbox.Detect(t.Context())
	if err != nil || box.Kind() == sandbox.KindLandlock {
		t.Skipf("no sandbox that opens a network to hosts alone: %v", err)
	}
	m := newMirror(t)
	outside, err := net.Listen("tcp", "127.0.0.1:0") // where the machine's proxy finds it
	if err != nil {
		t.Fatal(err)
	}
	var tunnels []string
	proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up, err := net.Dial("tcp", outside.Addr().String())
		if err != nil || r.Method != http.MethodConnect {
			t.Errorf("%s %s: %v", r.Method, r.Host, err)
			return
		}
		w.WriteHeader(http.StatusOK)
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		m.mu.Lock()
		tunnels = append(tunnels, r.Host)
		m.mu.Unlock()
		go func() { _, _ = io.Copy(up, c); _ = up.Close() }()
		go func() { _, _ = io.Copy(c, up); _ = c.Close() }()
	})}
	refused, direct, through := m.house(t, mirrorName, "public.example"), m.house(t, mirrorName, mirrorName), m.house(t, farName, farName)
	through.env = []string{"HTTPS_PROXY=http://" + proxyOfMachine}
	inOwnNetwork(t, func() {
		for _, l := range []struct {
			at    string
			serve func(net.Listener) error
		}{
			{privateAddress + ":4873", func(l net.Listener) error { return m.server.ServeTLS(l, "", "") }},
			{proxyOfMachine, proxy.Serve},
		} {
			inside, err := net.Listen("tcp", l.at)
			if err != nil {
				t.Error(err)
				return
			}
			go func() { _ = l.serve(inside) }()
		}
		go func() { _ = m.server.ServeTLS(outside, "", "") }()
		defer func() { _, _ = m.server.Close(), proxy.Close() }()

		p := refused.start(refused.args...)
		if code, out := p.code(), p.out.String(); code != 1 || m.loaded.Load() != 0 || !strings.Contains(out, "`npm ci` failed (exit code 1)") ||
			!matches(out, `WARN .*`+regexp.QuoteMeta(mirrorName)+`.*workspace\.registries`) || !matches(out, `(?m)^failed: .*`+regexp.QuoteMeta(mirrorName)+`.*workspace\.registries`) {
			t.Errorf("without the setting: exit code %d, %d packages\n%s", code, m.loaded.Load(), out)
		}
		for i, h := range []*house{direct, through} {
			p := h.start(h.args...)
			if code, out := p.code(), p.out.String(); code != 0 || m.loaded.Load() != int64(i+1)*mirrorPackages || !matches(out, `(?m)^completed: checks passed: `) {
				t.Errorf("with the setting: exit code %d, %d packages\n%s", code, m.loaded.Load(), out)
			}
		}
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Sort(tunnels); !slices.Equal(slices.Compact(tunnels), []string{farName}) {
		t.Errorf("by the machine's proxy: %q", tunnels)
	}
}

// house is a project whose packages are on the mirror at an address.
func (m *mirror) house(t *testing.T, address, registry string) *house {
	h := newHouse(t, "", "")
	packages, needs := map[string]any{}, map[string]string{}
	for i := range mirrorPackages {
		name := fmt.Sprintf("dep%d", i)
		_, integrity := tarball(name)
		packages["node_modules/"+name], needs[name] = map[string]string{"version": "1.0.0", "integrity": integrity}, "1.0.0"
	}
	packages[""] = map[string]any{"name": "p", "dependencies": needs}
	for name, v := range map[string]any{"package.json": map[string]any{"name": "p", "dependencies": needs}, "package-lock.json": map[string]any{"name": "p", "lockfileVersion": 3, "requires": true, "packages": packages}} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		h.write("repo/"+name, string(text))
	}
	h.write("repo/.npmrc", "registry=https://"+address+"/\n")
	h.write("repo/.gitignore", "node_modules/\n")
	for _, args := range [][]string{{"add", "."}, {"-c", "user.name=k", "-c", "user.email=k@example.com", "commit", "-q", "-m", "packages"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = filepath.Join(h.dir, "repo")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	h.write("config.yaml", fmt.Sprintf("language: en\nsetup: auto\nplanning: {enabled: false}\nworkspace: {registries: [%q], setup_timeout_seconds: 300}\nsandbox: {ca_file: %q}\n"+
		"checks: [\"node -e \\\"process.exit(require('dep39') - 42)\\\"\"]\n", registry, h.write("ca.pem", m.ca)))
	h.args = append(h.args, "--script", h.write("script.yaml", "- calls: [{tool: write_file, args: {path: new.txt, content: x}}]\n- say: added\n- say: done\n"))
	h.env = []string{"HTTPS_PROXY=", "https_proxy="}
	return h
}
