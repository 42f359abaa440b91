package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"toritsugi/internal/config"
	"toritsugi/internal/i18n"
	"toritsugi/internal/web"
)

const contrib = "../../contrib/"

// documents are those of a file of YAML, as JSON has them.
func documents(t *testing.T, file string) (all []any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for part := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		var v any
		if err := yaml.Unmarshal(part, &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, plain(t, v))
	}
	return all
}

// plain is a value as the validator takes it.
func plain(t *testing.T, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err == nil {
		v, err = jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// as reads a document into what of it is looked at.
func as[T any](t *testing.T, document any) (v T) {
	t.Helper()
	raw, err := json.Marshal(document)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// schemaOf is a schema of testdata/deploy; part is where in it.
func schemaOf(t *testing.T, file, part string) *jsonschema.Schema {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	doc.(map[string]any)["$schema"] = "http://json-schema.org/draft-07/schema#" // which compose-spec.json names by https
	delete(doc.(map[string]any), "$id")
	if err := c.AddResource("file:///"+file, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("file:///" + file + part)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// deployed is a process of ours that a manifest starts.
type deployed struct {
	args  []string
	files map[string]string // by path: the content, as far as it is known
	own   []string          // directories of its own that can be written
	asked []string          // PORT/PATH that its health is asked at
	grace time.Duration     // from SIGTERM to SIGKILL
}

// check reports what of it this program does not know or do.
func (p deployed) check(t *testing.T, name string) {
	t.Helper()
	v, err := (&console{out: os.Stdout, err: os.Stderr, lang: i18n.English}).parse(p.args)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var flags workFlags
	var listen string
	switch v := v.(type) {
	case serveCmd:
		flags = v.workFlags
	case workerCmd:
		flags, listen = v.workFlags, v.Listen
	default:
		t.Errorf("%s: %q is %T", name, p.args, v)
		return
	}
	settings, is := p.files[flags.Config]
	if !is {
		t.Errorf("%s: nothing is mounted at %s, only at %q", name, flags.Config, slices.Sorted(maps.Keys(p.files)))
		return
	}
	cfg := parsed(t, name, settings)
	if _, is := v.(serveCmd); is {
		listen = cfg.Serve.Listen
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil || host != "0.0.0.0" {
		t.Errorf("%s listens on %q, where nobody outside of it reaches it", name, listen)
	}
	for _, at := range p.asked {
		if asked, page, _ := strings.Cut(at, "/"); asked != port || answer(t, "/"+page) != http.StatusOK {
			t.Errorf("%s is asked at %s and listens on %s", name, at, listen)
		}
	}
	if len(p.asked) == 0 || p.grace < 30*time.Second {
		t.Errorf("%s is asked at %q and has %s to end", name, p.asked, p.grace)
	}
	if _, is := p.files[cfg.ContextStorage.Postgres.PasswordFile]; !is {
		t.Errorf("%s: no secret at %q", name, cfg.ContextStorage.Postgres.PasswordFile)
	}
	if !slices.ContainsFunc(p.own, func(dir string) bool { return strings.HasPrefix(cfg.ContextStorage.BaseDir, dir+"/") }) {
		t.Errorf("%s: %s is in none of %q", name, cfg.ContextStorage.BaseDir, p.own)
	}
	if cfg.Queue.Driver != "postgres" || len(cfg.GitHub.Repositories) == 0 {
		t.Errorf("%s: %+v, %+v", name, cfg.Queue, cfg.GitHub.Repositories)
	}
}

// parsed are settings that have neither mistakes nor warnings.
func parsed(t *testing.T, name, settings string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(name, []byte(settings), func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(i18n.English.Error(err))
	}
	for _, w := range cfg.Warnings() {
		t.Errorf("%s: %s", name, i18n.English.Error(w))
	}
	return cfg
}

// well is a daemon that has nothing to complain of.
type well struct{ web.Daemon }

func (well) Ready() []string { return nil }

// answer is how a page answers to who calls it by an address.
func answer(t *testing.T, page string) int {
	t.Helper()
	w := httptest.NewRecorder()
	web.New(well{}, nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.1.2.3:8420"+page, nil))
	return w.Code
}

// composed is what of compose.yaml is looked at.
type composed struct {
	Services map[string]struct {
		Image       string
		Build       struct{ Context, Dockerfile string }
		Command     []string
		Configs     []struct{ Source, Target string }
		Secrets     []string
		Volumes     []string
		HealthCheck struct{ Test []string }
		DependsOn   map[string]any `json:"depends_on"`
		Grace       string         `json:"stop_grace_period"`
		Deploy      struct{ Replicas int }
		Networks    []string
		NetworkMode string `json:"network_mode"`
	}
	Configs, Secrets  map[string]struct{ File string }
	Networks, Volumes map[string]any
}

// compose.yaml is what the specification says, and starts what there is.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	doc := documents(t, contrib+"compose.yaml")[0]
	schema := schemaOf(t, "compose-spec.json", "")
	if err := schema.Validate(doc); err != nil {
		t.Error(err)
	}
	c := as[composed](t, doc)
	ours := 0
	for name, s := range c.Services {
		for _, other := range slices.Collect(maps.Keys(s.DependsOn)) {
			if c.Services[other].Image == "" {
				t.Errorf("%s waits for %s", name, other)
			}
		}
		if !strings.Contains(s.Image, ":") || strings.HasSuffix(s.Image, ":latest") {
			t.Errorf("%s: the image %s has no version", name, s.Image)
		}
		for _, n := range s.Networks {
			if _, is := c.Networks[n]; !is {
				t.Errorf("%s: there is no network %s", name, n)
			}
		}
		p := deployed{args: s.Command, files: map[string]string{}}
		for _, secret := range s.Secrets {
			if c.Secrets[secret].File == "" {
				t.Errorf("%s: there is no secret %s", name, secret)
			}
			p.files["/run/secrets/"+secret] = ""
		}
		for _, v := range s.Volumes {
			if volume, _, named := strings.Cut(v, ":"); named {
				if _, is := c.Volumes[volume]; !is {
					t.Errorf("%s: there is no volume %s", name, volume)
				}
				continue
			}
			p.own = append(p.own, v)
		}
		if s.Build.Context == "" {
			continue
		}
		ours++
		if at := filepath.Join(contrib, s.Build.Context, s.Build.Dockerfile); at != filepath.Join(contrib, "Dockerfile") {
			t.Errorf("%s is built from %s", name, at)
		}
		for _, f := range s.Configs {
			raw, err := os.ReadFile(filepath.Join(contrib, c.Configs[f.Source].File))
			if err != nil {
				t.Fatal(err)
			}
			p.files[f.Target] = string(raw)
			cfg := parsed(t, name, string(raw))
			db, err := url.Parse(cfg.ContextStorage.Postgres.URL)
			if err != nil || c.Services[db.Host].Image == "" {
				t.Errorf("there is no server %v, %v", db, err)
			}
		}
		for _, a := range s.HealthCheck.Test {
			if u, err := url.Parse(a); err == nil && u.Scheme == "http" {
				p.asked = append(p.asked, u.Port()+u.Path)
			}
		}
		p.grace, _ = time.ParseDuration(s.Grace)
		p.check(t, name)
	}
	if ours != 2 || c.Services["tori-worker"].Deploy.Replicas != 2 {
		t.Errorf("%d services are ours, %+v", ours, c.Services["tori-worker"].Deploy)
	}
	doc.(map[string]any)["services"].(map[string]any)["tori-worker"].(map[string]any)["stop_grace"] = "35s"
	if schema.Validate(doc) == nil {
		t.Error("a misspelt key is valid")
	}
}

// The image has what is built as make build does, and what the manifests count on.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(contrib + "Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	mk, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	flags := strings.ReplaceAll(regexp.MustCompile(`LDFLAGS += (.*)`).FindStringSubmatch(string(mk))[1], "$(VERSION)", "${VERSION}")
	for _, part := range []string{`CGO_ENABLED=0 go build -trimpath -ldflags "` + flags + `" -o /tori ./cmd/tori`, "\nSTOPSIGNAL SIGTERM\n", "\nUSER 10001:10001\n", " bubblewrap ", " ca-certificates ", " curl ", " git "} {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q", part)
		}
	}
	goVersion, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`FROM golang:(\S+)-`).FindStringSubmatch(text); m == nil || !strings.Contains(string(goVersion), "\ngo "+m[1]+".") {
		t.Errorf("%q builds another version of Go than go.mod's", m)
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(text, -1) {
		for name := range strings.FieldsSeq(m[1]) {
			if _, err := os.Stat("../../" + name); err != nil {
				t.Error(err)
			}
		}
	}
	_, commands, _ := strings.Cut(text, "\nCMD ")
	var args []string
	if err := json.Unmarshal([]byte(commands), &args); err != nil {
		t.Fatal(err)
	}
	if _, err := (&console{out: os.Stdout, err: os.Stderr, lang: i18n.English}).parse(args); err != nil {
		t.Error(err)
	}
}
