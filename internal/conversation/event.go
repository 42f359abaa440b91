package conversation

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/contract"
	"toritsugi/internal/routing"
)

// The events of a session beside those of package routing (route §7.1).
const (
	eventSuccess = "worker.success"
	eventFail    = "worker.fail"
	eventStop    = "loop.stop"
	eventFinal   = "final.route"
	eventPlan    = "coder.plan_generated"
)

// classifierError is the line of a classifier.error.
type classifierError struct {
	Event     string    `json:"event"`
	At        time.Time `json:"at"`
	SessionID string    `json:"session_id"`
	TurnID    string    `json:"turn_id"`
	Reason    string    `json:"error_reason"`
	Raw       string    `json:"raw"`
}

// worked is the line of a worker.success or worker.fail: what does not belong to it is null.
type worked struct {
	Event         string        `json:"event"`
	At            time.Time     `json:"at"`
	SessionID     string        `json:"session_id"`
	TurnID        string        `json:"turn_id"`
	Route         routing.Route `json:"route"`
	NeedsNextLoop *bool         `json:"needs_next_loop"`
	Risk          *string       `json:"risk"`
	Confidence    *float64      `json:"confidence"`
	Fit           *bool         `json:"fit"`
	Error         *string       `json:"error"`
}

// stopped is the line of a loop.stop.
type stopped struct {
	Event      string             `json:"event"`
	At         time.Time          `json:"at"`
	SessionID  string             `json:"session_id"`
	TurnID     string             `json:"turn_id"`
	StopReason routing.StopReason `json:"stop_reason"`
	Loops      int                `json:"loops"`
	ElapsedMS  int64              `json:"elapsed"` // milliseconds
	FinalRoute routing.Route      `json:"final_route"`
}

// finalRoute is the line of a final.route.
type finalRoute struct {
	Event        string        `json:"event"`
	At           time.Time     `json:"at"`
	SessionID    string        `json:"session_id"`
	TurnID       string        `json:"turn_id"`
	InitialRoute routing.Route `json:"initial_route"`
	FinalRoute   routing.Route `json:"final_route"`
	RerouteUsed  bool          `json:"reroute_used"`
	WorkerCalls  int           `json:"worker_calls"`
	ErrorReason  *string       `json:"error_reason"`
}

// planned is the line of a coder.plan_generated.
type planned struct {
	Event     string    `json:"event"`
	At        time.Time `json:"at"`
	SessionID string    `json:"session_id"`
	JobID     string    `json:"job_id"`
	Plan      string    `json:"plan"`
}

// maxSummary is how much of a plan an event holds, in characters.
const maxSummary = 300

// Event writes a line of a session's events.jsonl, and a record of the log. v becomes a
// JSON object with the field "event". Trouble with the file is logged: what it tells of
// goes on.
func (e *Engine) Event(ctx context.Context, sessionID string, v any) {
	e.record(ctx, e.open(sessionID, kindOf(sessionID)), v)
	e.log(ctx, v)
}

// event is Engine.Event of the turn, whose line is written with the next ones of it: a
// file is opened, locked and flushed once for all of them.
func (t *turn) event(ctx context.Context, v any) {
	t.events = append(t.events, v)
	t.e.log(ctx, v)
}

// record writes the events of the turn that are not written yet: before a leg of a worker
// or a job begins, and when the turn is over. A kill before that takes them along.
func (t *turn) record(ctx context.Context) {
	t.e.record(ctx, t.x, t.events...)
	t.events = nil
}

func (e *Engine) record(ctx context.Context, x session, events ...any) {
	if len(events) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := x.Write(ctx, func(w *contextstore.SessionWriter) error { return w.Note(eventsFile, events...) }); err != nil {
		e.Log.Error("Events are not on record: " + err.Error())
	}
}

// log makes a record of an event.
func (e *Engine) log(ctx context.Context, v any) {
	if !e.Log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return
	}
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return
	}
	name, _ := fields["event"].(string)
	var args []any
	for _, k := range sortedKeys(fields) {
		if k != "event" && k != "at" && fields[k] != nil {
			args = append(args, k, fields[k])
		}
	}
	e.Log.Info(name, args...)
}

// success is the event of a worker's answer.
func (e *Engine) success(turnID, sessionID string, route routing.Route, o contract.Output) worked {
	return worked{Event: eventSuccess, At: e.Now().UTC(), SessionID: sessionID, TurnID: turnID, Route: route, NeedsNextLoop: &o.NeedsNextLoop, Risk: &o.Risk,
		Confidence: &o.Confidence, Fit: o.Fit}
}

// failure is the event of a worker that gave none.
func (e *Engine) failure(turnID, sessionID string, route routing.Route, err error) worked {
	why := shortSummary(err.Error())
	return worked{Event: eventFail, At: e.Now().UTC(), SessionID: sessionID, TurnID: turnID, Route: route, Error: &why}
}
