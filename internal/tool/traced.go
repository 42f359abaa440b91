package tool

import (
	"errors"

	"toritsugi/internal/telemetry"
)

// traced is the name of a tool in traces: one of the registry's, whatever the model wrote.
func (r *Registry) traced(name string) string {
	if e := r.find(name); e != nil {
		return e.def.Name
	}
	return "unknown"
}

// endSpan ends the span of a call.
func endSpan(span *telemetry.Span, name, args string, res Result, err error) {
	span.Text(telemetry.Operation, "execute_tool")
	span.Text(telemetry.ToolName, name)
	span.Text(telemetry.ToolType, "function")
	span.Content(telemetry.ToolArguments, args)
	span.Content(telemetry.ToolResult, res.Text)
	if errors.As(err, new(*WaitError)) {
		span.Text("tori.waits_for", "people")
		err = nil
	}
	if res.IsError {
		span.Fail("tool_error")
	}
	span.End(err)
}
