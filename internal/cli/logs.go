package cli

import (
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/ops"
)

// logsEvery is how often files are looked at that may have grown.
const logsEvery = 200 * time.Millisecond

type logsCmd struct {
	UUID   string `arg:"" help:"${uuid_help}"`
	Follow bool   `short:"f" help:"${follow_help}"`
	JSON   bool   `name:"json" help:"${json_help}"`
	place  `embed:""`
}

// Run prints the log of one run.
func (l logsCmd) Run(c *console) error {
	base, who, err := l.look(c)
	if err != nil {
		return err
	}
	v, err := contextstore.Find(base, l.UUID, who)
	if err != nil {
		return usage(err)
	}
	c.record(base, contextstore.AuditEntry{Actor: who.User, Action: "read", UUID: v.Metadata.UUID, What: "logs"})
	ctx, stop := c.untilSignal()
	defer stop()
	return ops.Logs(ctx, c.out, base, v, ops.LogsOptions{Follow: l.Follow, JSON: l.JSON, Redact: c.sanitizer().String, Every: logsEvery, Viewer: who})
}

type tailCmd struct {
	JSON  bool `name:"json" help:"${json_help}"`
	place `embed:""`
}

// Run prints what happens to all runs, until Ctrl-C.
func (t tailCmd) Run(c *console) error {
	base, who, err := t.look(c)
	if err != nil {
		return err
	}
	ctx, stop := c.untilSignal()
	defer stop()
	c.record(base, contextstore.AuditEntry{Actor: who.User, Action: "read", What: "tail"})
	return usage(ops.TailRuns(ctx, c.out, base, ops.LogsOptions{JSON: t.JSON, Redact: c.sanitizer().String, Every: logsEvery, Viewer: who}))
}
