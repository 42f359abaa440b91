package channeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"toritsugi/internal/disk"
)

// Description is what a vendor publishes of its API, as far as it is called. Its file says
// where it comes from; the body of a form is described as an object of texts.
type Description struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name, In string
			Required bool
		}
		Body json.RawMessage
	}
	bodies map[string]*jsonschema.Schema // by method and path
}

// ReadDescription reads one.
func ReadDescription(file string) (*Description, error) {
	raw, err := disk.Read(file, 1<<20)
	if err != nil {
		return nil, err
	}
	d := &Description{bodies: map[string]*jsonschema.Schema{}}
	if err := json.Unmarshal(raw, d); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("api.json", doc); err != nil {
		return nil, err
	}
	for path, all := range d.Paths {
		for method, o := range all {
			if o.Body == nil {
				continue
			}
			at := "api.json#/paths/" + url.PathEscape(strings.ReplaceAll(path, "/", "~1")) + "/" + method + "/body"
			if d.bodies[method+" "+path], err = c.Compile(at); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// Check holds a request to a path of the API against the description and returns what is against
// it, "" for nothing.
func (d *Description) Check(r *http.Request, at string, body []byte) string {
	method := strings.ToLower(r.Method)
	for path, all := range d.Paths {
		o, ok := all[method]
		if !ok || !fits(path, at) {
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
		v, err := content(r.Header.Get("Content-Type"), body)
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	}
	return "there is no such operation"
}

// content is a body as a schema describes it.
func content(mediaType string, body []byte) (any, error) {
	if mediaType != "application/x-www-form-urlencoded" {
		return jsonschema.UnmarshalJSON(bytes.NewReader(body))
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	v := map[string]any{}
	for name, all := range form {
		if len(all) != 1 {
			return nil, fmt.Errorf("%s is there %d times", name, len(all))
		}
		v[name] = all[0]
	}
	return v, nil
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
