package contextstore

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"toritsugi/internal/redact"
)

const canary = "hunter2hunter2"

// fill sets every text below v to the canary.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(canary)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"a":"` + canary + `"}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[Time]() {
				fill(v.Field(i))
			}
		}
	default: // numbers and flags hold no text
	}
}

// left calls f with the path of each text below v that still holds the canary.
func left(v reflect.Value, path string, f func(path string, t reflect.Type)) {
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), canary) {
			f(path, v.Type())
		}
	case reflect.Pointer:
		left(v.Elem(), path, f)
	case reflect.Slice:
		if raw, ok := v.Interface().(json.RawMessage); ok {
			left(reflect.ValueOf(string(raw)), path, f)
			return
		}
		for i := range v.Len() {
			left(v.Index(i), path, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				left(v.Field(i), path+"."+v.Type().Field(i).Name, f)
			}
		}
	default:
	}
}

// A field that someone adds to a record is redacted, or typed redact.Opaque
// because its provider wants it back as it was.
func TestEveryTextOfARecordIsRedactedUnlessItIsOpaque(t *testing.T) {
	t.Parallel()
	c := begin(t, open(t, Options{}))
	var m Message
	var r ToolRun
	fill(reflect.ValueOf(&m).Elem())
	fill(reflect.ValueOf(&r).Elem())
	fixed := map[string]bool{"Message.Role": true, "ToolRun.Status": true} // our own words
	opaque := map[string]bool{}
	check := func(path string, typ reflect.Type) {
		switch {
		case typ == reflect.TypeFor[redact.Opaque]():
			opaque[path] = true
		case !fixed[path]:
			t.Errorf("%s is stored as it came", path)
		}
	}
	left(reflect.ValueOf(c.redact(m)), "Message", check)
	left(reflect.ValueOf(c.redactRun(r)), "ToolRun", check)
	if !opaque["Message.ToolCallID"] || !opaque["Message.ToolCalls.ID"] || !opaque["ToolRun.CallID"] {
		t.Errorf("an id was changed; as they came: %v", opaque)
	}
}
