package llm

import (
	"bytes"
	"context"
	"encoding/json"
)

type formKey struct{}

// WithForm returns a context in which the text of an answer is to be an object
// of a JSON Schema, for single calls of a conversation whose Settings have none;
// where they have one it stays in force. Nothing that was appended changes, only
// what is sent beside it, and a provider's cache may be read less for that.
//
// What is asked for must be said in the messages, too: some endpoints know that
// an object is wanted and not which, and others, or models that think, ignore
// the form. One that knows no such thing may refuse the call as KindBadRequest.
// No tool may be called in such an answer at most endpoints. A blank schema asks
// for no form.
func WithForm(ctx context.Context, schema json.RawMessage) context.Context {
	if len(bytes.TrimSpace(schema)) == 0 {
		schema = nil
	}
	return context.WithValue(ctx, formKey{}, schema)
}

// Form is the schema that an answer in ctx must match, nil for none.
func Form(ctx context.Context) json.RawMessage {
	schema, _ := ctx.Value(formKey{}).(json.RawMessage)
	return schema
}
