package slack

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// scopes are those that a method or an event needs, by Slack's description of them. A method of
// the app token needs connections:write, which no manifest has.
var scopes = map[string][]string{
	"auth.test": nil, "views.publish": nil, "views.open": nil, homeOpened: nil, "apps.connections.open": nil, "oauth.v2.access": nil,
	"chat.postMessage": {"chat:write"}, "chat.update": {"chat:write"}, "chat.delete": {"chat:write"},
	"reactions.add":                {"reactions:write"},
	"conversations.replies":        {"channels:history", "groups:history", "im:history", "mpim:history"},
	"conversations.history":        {"channels:history", "groups:history", "im:history", "mpim:history"},
	"files.getUploadURLExternal":   {"files:write"},
	"files.completeUploadExternal": {"files:write"},
	"app_mention":                  {"app_mentions:read"},
	"message.channels":             {"channels:history"}, "message.groups": {"groups:history"}, "message.im": {"im:history"}, "message.mpim": {"mpim:history"},
	"a file that is read": {"files:read"}, "commands": {"commands"},
}

func TestManifestAsksForTheLeast(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../contrib/slack-manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Features struct {
			Commands []struct {
				Command string
				URL     string
			} `yaml:"slash_commands"`
			Shortcuts []struct {
				Type     string
				Callback string `yaml:"callback_id"`
			}
		}
		OAuth struct{ Scopes struct{ Bot []string } } `yaml:"oauth_config"`
		Set   struct {
			Events struct {
				Bot []string `yaml:"bot_events"`
			} `yaml:"event_subscriptions"`
			Interactivity struct {
				On bool `yaml:"is_enabled"`
			}
			Socket bool `yaml:"socket_mode_enabled"`
		} `yaml:"settings"`
	}
	if err := yaml.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	needed := map[string]bool{}
	for _, name := range append(append(called(t), m.Set.Events.Bot...), "a file that is read", "commands") {
		all, known := scopes[name]
		if !known {
			t.Errorf("%s: it is not known which scopes it needs", name)
		}
		for _, s := range all {
			needed[s] = true
		}
	}
	slices.Sort(m.OAuth.Scopes.Bot)
	if want := slices.Sorted(maps.Keys(needed)); !slices.Equal(m.OAuth.Scopes.Bot, want) {
		t.Errorf("the manifest asks for %q, needed are %q", m.OAuth.Scopes.Bot, want)
	}
	if !slices.Equal(m.OAuth.Scopes.Bot, botScopes()) {
		t.Errorf("tori channels check looks for %q", botScopes())
	}
	if f := m.Features; len(f.Commands) != 1 || f.Commands[0].Command != "/tori" || len(f.Shortcuts) != 1 || f.Shortcuts[0].Type != "message" || f.Shortcuts[0].Callback != workOnThis {
		t.Errorf("%+v", f)
	}
	if !m.Set.Socket || !m.Set.Interactivity.On || len(m.Set.Events.Bot) != 6 {
		t.Errorf("%+v", m.Set)
	}
}

// called are the methods that the package calls, by its own source.
func called(t *testing.T) (all []string) {
	t.Helper()
	method := regexp.MustCompile(`^[a-z]+\.[a-z][A-Za-z0-9]+(\.open|\.access)?$`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil && method.MatchString(s) && !strings.HasPrefix(s, "slack.") && !strings.HasPrefix(s, "terminal.") && !strings.HasPrefix(s, "channel.") && !strings.HasSuffix(s, ".com") {
					all = append(all, s)
				}
			}
			return true
		})
	}
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	for path := range d.Paths {
		if !slices.Contains(all, strings.TrimPrefix(path, "/")) {
			t.Errorf("%s is described and not called: %q", path, all)
		}
	}
	return all
}
