package cli

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
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
	"os"
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

// mirror is a registry of a company: the protocols of npm, PyPI and crates.io by TLS,
// with a certificate of its own authority.
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

// tarball is files as npm and cargo pack them.
func tarball(files ...[2]string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range files {
		_ = w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))})
		_, _ = io.WriteString(w, f[1])
	}
	_, _ = w.Close(), z.Close()
	return b.Bytes()
}

// module is a package of npm, with its integrity.
func module(name string) ([]byte, string) {
	data := tarball([2]string{"package/package.json", fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name)}, [2]string{"package/index.js", "module.exports = 42\n"})
	sum := sha512.Sum512(data)
	return data, "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// crate is a package of cargo, with its checksum.
func crate() ([]byte, string) {
	data := tarball([2]string{"tinydep-1.0.0/Cargo.toml", "[package]\nname = \"tinydep\"\nversion = \"1.0.0\"\nedition = \"2021\"\n"}, [2]string{"tinydep-1.0.0/src/lib.rs", "pub const ANSWER: i32 = 42;\n"})
	return data, fmt.Sprintf("%x", sha256.Sum256(data))
}

// wheel is a package of Python.
func wheel() []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range [][2]string{{"tinydep.py", "ANSWER = 42\n"}, {"tinydep-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tinydep\nVersion: 1.0\n"},
		{"tinydep-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"tinydep-1.0.dist-info/RECORD", "tinydep.py,,\ntinydep-1.0.dist-info/METADATA,,\ntinydep-1.0.dist-info/WHEEL,,\ntinydep-1.0.dist-info/RECORD,,\n"}} {
		if e, err := w.Create(f[0]); err == nil {
			_, _ = io.WriteString(e, f[1])
		}
	}
	_ = w.Close()
	return b.Bytes()
}

// ServeHTTP answers as npm's registry (GET /NAME with what there is of a package, GET
// /NAME/-/NAME-1.0.0.tgz with it), a simple index (PEP 503) and a sparse one of cargo.
func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, packed := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/-/")
	data, integrity := module(name)
	packedCrate, sum := crate()
	switch r.URL.Path {
	case "/simple/tinydep/":
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!DOCTYPE html><html><body><a href="/tinydep-1.0-py3-none-any.whl#sha256=%x">tinydep-1.0-py3-none-any.whl</a></body></html>`, sha256.Sum256(wheel()))
		return
	case "/tinydep-1.0-py3-none-any.whl":
		m.loaded.Add(1)
		_, _ = w.Write(wheel())
		return
	case "/index/config.json":
		_, _ = fmt.Fprintf(w, `{"dl":"https://%s/crates"}`, r.Host)
		return
	case "/index/ti/ny/tinydep":
		_, _ = fmt.Fprintf(w, `{"name":"tinydep","vers":"1.0.0","deps":[],"cksum":%q,"features":{},"yanked":false}`+"\n", sum)
		return
	case "/crates/tinydep/1.0.0/download":
		m.loaded.Add(1)
		_, _ = w.Write(packedCrate)
		return
	}
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
	skipShort(t, "whole runs, one after the other or killed")
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

// house is a project whose packages of npm are on the mirror at an address.
func (m *mirror) house(t *testing.T, address, registry string) *house {
	files := map[string]string{".npmrc": "registry=https://" + address + "/\n", ".gitignore": "node_modules/\n"}
	packages, needs := map[string]any{}, map[string]string{}
	for i := range mirrorPackages {
		name := fmt.Sprintf("dep%d", i)
		_, integrity := module(name)
		packages["node_modules/"+name], needs[name] = map[string]string{"version": "1.0.0", "integrity": integrity}, "1.0.0"
	}
	packages[""] = map[string]any{"name": "p", "dependencies": needs}
	for name, v := range map[string]any{"package.json": map[string]any{"name": "p", "dependencies": needs}, "package-lock.json": map[string]any{"name": "p", "lockfileVersion": 3, "requires": true, "packages": packages}} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return m.project(t, files, registry, `node -e "process.exit(require('dep39') - 42)"`)
}

// project is one of these files, whose setup may reach a registry.
func (m *mirror) project(t *testing.T, files map[string]string, registry, check string) *house {
	h := newHouse(t, "", "")
	for name, text := range files {
		h.write("repo/"+name, text)
	}
	for _, args := range [][]string{{"add", "."}, {"-c", "user.name=k", "-c", "user.email=k@example.com", "commit", "-q", "-m", "packages"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = filepath.Join(h.dir, "repo")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	h.write("config.yaml", fmt.Sprintf("language: en\nsetup: auto\nplanning: {enabled: false}\nworkspace: {registries: [%q], setup_timeout_seconds: 300}\nsandbox: {ca_file: %q}\n"+
		"checks: [%q]\n", registry, h.write("ca.pem", m.ca), check))
	h.args = append(h.args, "--script", h.write("script.yaml", "- calls: [{tool: write_file, args: {path: new.txt, content: x}}]\n- say: added\n- say: done\n"))
	h.env = []string{"HTTPS_PROXY=", "https_proxy="}
	return h
}

// What pip and cargo load comes from a registry on a private address, too.
func TestSetupFromMirrorsOfOtherLanguages(t *testing.T) {
	skipShort(t, "pip and cargo")
	box, err := sandbox.Detect(t.Context())
	if err != nil || box.Kind() == sandbox.KindLandlock {
		t.Skipf("no sandbox that opens a network to hosts alone: %v", err)
	}
	_, sum := crate()
	for program, c := range map[string]struct {
		files map[string]string
		check string
	}{
		"python3": {map[string]string{"requirements.txt": "--index-url https://" + mirrorName + "/simple/\ntinydep==1.0\n", ".gitignore": ".venv/\n"},
			".venv/bin/python3 -c 'import tinydep; assert tinydep.ANSWER == 42'"},
		"cargo": {map[string]string{
			"Cargo.toml": "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\ntinydep = \"1\"\n",
			"Cargo.lock": "version = 3\n\n[[package]]\nname = \"p\"\nversion = \"0.1.0\"\ndependencies = [\n \"tinydep\",\n]\n\n[[package]]\nname = \"tinydep\"\nversion = \"1.0.0\"\n" +
				"source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"" + sum + "\"\n",
			".cargo/config.toml": "[source.crates-io]\nreplace-with = \"corp\"\n[source.corp]\nregistry = \"sparse+https://" + mirrorName + "/index/\"\n",
			"src/lib.rs":         "#[test]\nfn answers() {\n    assert_eq!(tinydep::ANSWER, 42);\n}\n",
			".gitignore":         "target/\n"}, "cargo test --quiet"},
	} {
		t.Run(program, func(t *testing.T) {
			t.Setenv("PATH", os.Getenv("PATH")+string(filepath.ListSeparator)+os.Getenv(ownPath)) // languages are often installed in the home
			if out, err := exec.Command(program, "--version").CombinedOutput(); err != nil {
				t.Skipf("%v %s", err, out)
			}
			m := newMirror(t)
			h := m.project(t, c.files, mirrorName, c.check)
			inOwnNetwork(t, func() {
				inside, err := net.Listen("tcp", privateAddress+":4873")
				if err != nil {
					t.Error(err)
					return
				}
				go func() { _ = m.server.ServeTLS(inside, "", "") }()
				defer func() { _ = m.server.Close() }()
				p := h.start(h.args...)
				if code, out := p.code(), p.out.String(); code != 0 || m.loaded.Load() != 1 || !matches(out, `(?m)^completed: checks passed: `) {
					t.Errorf("exit code %d, %d packages\n%s", code, m.loaded.Load(), out)
				}
			})
		})
	}
}
