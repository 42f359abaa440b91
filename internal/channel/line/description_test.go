package line

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// description is what LINE publishes of its Messaging API, as far as it is called
// (testdata/messaging-api.json says where it comes from).
type description struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name, In string
			Required bool
		}
		Body json.RawMessage
	}
	bodies map[string]*jsonschema.Schema // by method and path
}

var described = sync.OnceValues(func() (*description, error) {
	raw, err := os.ReadFile("testdata/messaging-api.json")
	if err != nil {
		return nil, err
	}
	d := &description{bodies: map[string]*jsonschema.Schema{}}
	if err := json.Unmarshal(raw, d); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("line.json", doc); err != nil {
		return nil, err
	}
	for path, all := range d.Paths {
		for method, o := range all {
			if o.Body == nil {
				continue
			}
			at := "line.json#/paths/" + url.PathEscape(strings.ReplaceAll(path, "/", "~1")) + "/" + method + "/body"
			if d.bodies[method+" "+path], err = c.Compile(at); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
})

// check holds a request against the description and returns what is against it, "" for nothing.
func (d *description) check(r *http.Request, body []byte) string {
	method := strings.ToLower(r.Method)
	for path, all := range d.Paths {
		o, ok := all[method]
		if !ok || !fits(path, r.URL.Path) {
			continue
		}
		for _, p := range o.Parameters {
			if p.Required && p.In == "query" && !r.URL.Query().Has(p.Name) || p.Required && p.In == "header" && r.Header.Get(p.Name) == "" {
				return p.Name + " is missing"
			}
		}
		schema := d.bodies[method+" "+path]
		switch {
		case schema == nil && len(body) > 0:
			return "it takes no body"
		case schema == nil:
			return ""
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	}
	return "LINE has no such operation"
}

// fits reports whether a path is of a template: "/v2/bot/message/{messageId}/content".
func fits(template, path string) bool {
	a, b := strings.Split(template, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && (!strings.HasPrefix(a[i], "{") || b[i] == "") {
			return false
		}
	}
	return true
}

// The description refuses what LINE refuses; else the fake would take anything.
func TestTheDescriptionRefuses(t *testing.T) {
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	const push = "/v2/bot/message/push"
	text := `{"type":"text","text":"x"}`
	button := func(action string) string {
		return `{"to":"U1","messages":[{"type":"flex","altText":"a","contents":{"type":"bubble","body":{"type":"box","layout":"vertical","contents":[{"type":"button","action":` + action + `}]}}}]}`
	}
	for _, c := range []struct {
		method, path, body string
		ok                 bool
	}{
		{"POST", push, `{"to":"U1","messages":[` + text + `]}`, true},
		{"POST", push, `{"messages":[` + text + `]}`, false},
		{"POST", push, `{"to":"U1","messages":[]}`, false},
		{"POST", push, `{"to":"U1","messages":[{"type":"text"}]}`, false},
		{"POST", push, `{"to":"U1","messages":[{"type":"telegram","text":"x"}]}`, false},
		{"POST", push, `{"to":"U1","messages":[` + strings.Repeat(text+",", 5) + text + `]}`, false},
		{"POST", push, button(`{"type":"postback","label":"a","data":"x"}`), true},
		{"POST", push, button(`{"type":"uri","label":"a","uri":"https://tori.example"}`), true},
		{"POST", push, button(`{"type":"shout","label":"a"}`), false},
		{"POST", push, strings.Replace(button(`{"type":"postback","data":"x"}`), "vertical", "diagonal", 1), false},
		{"GET", push, "", false},
		{"POST", "/v2/bot/chat/loading/start", `{"chatId":"U1","loadingSeconds":60}`, true},
		{"POST", "/v2/bot/chat/loading/start", `{"chatId":"U1","loadingSeconds":65}`, false},
		{"POST", "/v2/bot/chat/loading/start", `{"loadingSeconds":5}`, false},
		{"GET", "/v2/bot/message/1/content", "", true},
		{"GET", "/v2/bot/message/1/context", "", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "https://api.line.me"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if said := d.check(r, []byte(c.body)); (said == "") != c.ok {
			t.Errorf("%s %s %s: %q", c.method, c.path, c.body, said)
		}
	}
}
