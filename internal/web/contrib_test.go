package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// scraped are the names and labels of the metrics that a daemon shows, histograms by their base.
func scraped(t *testing.T) map[string]map[string]bool {
	t.Helper()
	w := httptest.NewRecorder()
	New(stub{}, nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/metrics", nil))
	all := map[string]map[string]bool{}
	line := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? `)
	label := regexp.MustCompile(`([a-z_]+)="`)
	for l := range strings.Lines(w.Body.String()) {
		m := line.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		if all[m[1]] == nil {
			all[m[1]] = map[string]bool{"job": true, "instance": true} // of every scrape
		}
		for _, n := range label.FindAllStringSubmatch(m[2], -1) {
			all[m[1]][n[1]] = true
		}
	}
	return all
}

// asksFor are the metrics of an expression of PromQL, each with the labels that are asked of it.
func asksFor(expr string) map[string][]string {
	all := map[string][]string{}
	for _, m := range regexp.MustCompile(`\b((?:tori|go|process)_[a-z_]+|up)\b(?:\{([^}]*)\})?`).FindAllStringSubmatch(expr, -1) {
		all[m[1]] = append(all[m[1]], "")
		for _, n := range regexp.MustCompile(`([a-z_]+)\s*(?:=|!)`).FindAllStringSubmatch(m[2], -1) {
			all[m[1]] = append(all[m[1]], n[1])
		}
	}
	return all
}

// checkExpr reports what an expression asks for that is not there; legend may name labels as {{label}}.
func checkExpr(t *testing.T, metrics map[string]map[string]bool, where, expr, legend string) {
	t.Helper()
	names := asksFor(expr)
	if len(names) == 0 {
		t.Errorf("%s: no metric in %q", where, expr)
	}
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") || strings.Count(expr, "[") != strings.Count(expr, "]") {
		t.Errorf("%s: %q is not balanced", where, expr)
	}
	labels := map[string]bool{}
	for name, asked := range names {
		has := metrics[name]
		if name == "up" { // Prometheus's own
			has = map[string]bool{"job": true, "instance": true}
		}
		if has == nil {
			t.Errorf("%s: there is no metric %s", where, name)
			continue
		}
		for _, l := range asked {
			if l != "" && !has[l] {
				t.Errorf("%s: %s has no label %s", where, name, l)
			}
		}
		for l := range has {
			labels[l] = true
		}
	}
	for _, m := range regexp.MustCompile(`\{\{ *(?:\$labels\.)?([a-z_]+) *\}\}`).FindAllStringSubmatch(legend, -1) {
		if !labels[m[1]] {
			t.Errorf("%s: nothing in %q has the label %s", where, expr, m[1])
		}
	}
}

// The rules and the dashboard ask for metrics and labels that are there.
func TestContribAsksForWhatIsThere(t *testing.T) {
	t.Parallel()
	metrics := scraped(t)
	var asked []string
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	raw, err := os.ReadFile("../../contrib/prometheus-alerts.yaml")
	if err == nil {
		err = yaml.UnmarshalWithOptions(raw, &rules, yaml.Strict())
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || seen[r.Alert] || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%+v", r)
			}
			seen[r.Alert] = true
			checkExpr(t, metrics, r.Alert, r.Expr, r.Annotations["summary"]+r.Annotations["description"])
		}
	}
	if len(seen) < 5 {
		t.Errorf("%d rules", len(seen))
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct{ List []struct{ Name string } }
	}
	raw, err = os.ReadFile("../../contrib/grafana-dashboard.json")
	if err == nil {
		err = json.Unmarshal(raw, &board)
	}
	if err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
		for _, q := range p.Targets {
			checkExpr(t, metrics, p.Title, q.Expr, q.LegendFormat)
			for name := range asksFor(q.Expr) {
				asked = append(asked, name)
			}
		}
	}
	for name := range metrics { // each of ours is on the dashboard
		if strings.HasPrefix(name, "tori_") && !slices.Contains(asked, name) {
			t.Errorf("%s is nowhere on the dashboard", name)
		}
	}
}
