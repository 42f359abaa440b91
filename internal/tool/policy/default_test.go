package policy

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"reflect"
	"testing"
)

var update = flag.Bool("update", false, "write default_rules.go anew")

// fileRules are the rules of default.yaml.
func fileRules(t *testing.T) []Rule {
	t.Helper()
	data, err := os.ReadFile("default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Parse("default.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// The rules of the program are those of default.yaml; -update makes them so.
func TestDefaultIsTheFile(t *testing.T) {
	t.Parallel()
	want := fileRules(t)
	if *update {
		if err := os.WriteFile("default_rules.go", source(t, want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got := Default()
	for i := range got {
		if !got[i].sound {
			t.Errorf("%s would be checked again", got[i].Name)
		}
		got[i].sound = false
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("default_rules.go is not what default.yaml says: go test ./internal/tool/policy -run TestDefaultIsTheFile -update")
	}
}

// source is the Go code of rules.
func source(t *testing.T, rules []Rule) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("// Code generated from default.yaml by TestDefaultIsTheFile -update. DO NOT EDIT.\n\npackage policy\n\n" +
		"// defaultRules are the rules of default.yaml.\nfunc defaultRules() []Rule {\n\treturn []Rule{\n")
	for _, r := range rules {
		v := reflect.ValueOf(r)
		b.WriteString("\t\t{\n")
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			switch {
			case f.IsZero():
			case name == "MaxArgs":
				fmt.Fprintf(&b, "\t\t\t%s: new(%d),\n", name, *r.MaxArgs)
			case name == "Reason":
				fmt.Fprintf(&b, "\t\t\t%s: Reason{%q, %q},\n", name, r.Reason.English, r.Reason.Japanese)
			case name == "Words":
				fmt.Fprintf(&b, "\t\t\t%s: [][]string{", name)
				for _, w := range r.Words {
					fmt.Fprintf(&b, "{%s},", list(reflect.ValueOf(w)))
				}
				b.WriteString("},\n")
			case f.Kind() == reflect.Slice:
				fmt.Fprintf(&b, "\t\t\t%s: %s{%s},\n", name, map[bool]string{true: "[]Class", false: "[]string"}[f.Type().Elem() == reflect.TypeFor[Class]()], list(f))
			case f.Kind() == reflect.String:
				fmt.Fprintf(&b, "\t\t\t%s: %q,\n", name, f.String())
			default:
				fmt.Fprintf(&b, "\t\t\t%s: %d,\n", name, f.Int())
			}
		}
		b.WriteString("\t\t},\n")
	}
	b.WriteString("\t}\n}\n")
	text, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatalf("%v\n%s", err, b.Bytes())
	}
	return text
}

func list(v reflect.Value) string {
	var b bytes.Buffer
	for i := range v.Len() {
		fmt.Fprintf(&b, "%q,", v.Index(i).String())
	}
	return b.String()
}
