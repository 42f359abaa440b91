package ops

import (
	"io"
	"slices"
	"strings"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/endpoint"
	"toritsugi/internal/models"
	"toritsugi/internal/task"
)

// Health is what tori health tells.
type Health struct {
	Status string        `json:"status"` // ok, warning or critical: the worst of the alerts
	Alerts []HealthAlert `json:"alerts"`
	House  *House        `json:"house"` // null for who is no administrator, and where nothing ran yet
	Models models.Health `json:"-"`     // its fields stand beside these
}

// HealthAlert is something that is wrong now.
type HealthAlert struct {
	Name  string            `json:"name"`
	About string            `json:"about"` // "" for the house
	Level string            `json:"level"` // warning or critical
	Text  string            `json:"text"`  // what is wrong, and in a second line what to do
	Docs  string            `json:"docs"`
	Since contextstore.Time `json:"since"` // when people were told, null before
}

// House is how a base directory is.
type House struct {
	BaseDir string                `json:"base_dir"`
	Serve   bool                  `json:"serve"` // a tori serve works on it
	Tasks   map[task.Status]int64 `json:"tasks"` // runs, by status
	Used    int64                 `json:"runs_bytes"`
	Free    uint64                `json:"free_bytes"`
	Night   []Night               `json:"maintenance"`
	Backup  *Backup               `json:"backup"` // null where backup.dir is not set
}

// Night is how a step of the nightly work went the last time.
type Night struct {
	Step  string    `json:"step"`
	At    time.Time `json:"at"`
	Error string    `json:"error,omitempty"`
}

// Backup is how the last backups went; a zero time is never.
type Backup struct {
	LastSuccess  time.Time `json:"last_success,omitzero"`
	LastVerified time.Time `json:"last_verified,omitzero"`
	Error        string    `json:"error,omitempty"` // of the last attempt
}

// PrintHealth prints it, in 80 columns for people.
func PrintHealth(w io.Writer, h Health, o ModelsOptions) error {
	if o.JSON {
		return encode(w, struct {
			Health
			Ready  bool             `json:"ready"`
			Models []any            `json:"models"`
			Ollama []any            `json:"ollama"`
			Queues []endpoint.Queue `json:"queues"`
			Error  string           `json:"error,omitempty"`
		}{h, h.Models.Ready, modelsJSON(h.Models.Models, o), o.servers(h.Models.Ollama), o.queues(h.Models.Queues), o.text(h.Models.Err)})
	}
	p := &printer{w: w}
	if len(h.Alerts) == 0 {
		p.printf("%s\n", o.Lang.T("health.ok"))
	} else {
		p.printf("%s\n", o.Lang.T("health."+h.Status, len(h.Alerts)))
	}
	for _, a := range h.Alerts {
		what := a.Name
		if a.About != "" {
			what += " " + a.About
		}
		if !a.Since.IsZero() {
			what = o.Lang.T("health.since", what, stamp(a.Since))
		}
		p.printf("%s\n", pad(o.Lang.T("health.level_"+a.Level), alertIndent-1)+" "+fit(what, tableWidth-alertIndent))
		for line := range strings.SplitSeq(a.Text+"\n"+a.Docs, "\n") {
			p.printf("%s", detailAt(alertIndent, line))
		}
	}
	if h.House != nil {
		h.House.print(p, o.Lang)
	}
	o.health(p, h.Models)
	return p.err
}

// alertIndent is how many columns stand before the text of an alert.
const alertIndent = 10

func (h *House) print(p *printer, l i18n.Lang) {
	say := func(key string, args ...any) { p.printf("%s\n", fit(l.T("health."+key, args...), tableWidth)) }
	if h.Serve {
		say("serve")
	} else {
		say("no_serve")
	}
	say("tasks", thousands(h.Tasks[task.Running]), thousands(h.Tasks[task.Queued]), thousands(h.Tasks[task.AwaitingApproval]), thousands(h.Tasks[task.Paused]))
	say("disk", i18n.Bytes(h.Used), i18n.Bytes(int64(min(h.Free, 1<<62)))) //nolint:gosec // it was bounded
	if len(h.Night) == 0 {
		say("no_night")
	} else {
		last := slices.MaxFunc(h.Night, func(a, b Night) int { return a.At.Compare(b.At) })
		say("night", last.At.Local().Format("2006-01-02 15:04"))
	}
	if b := h.Backup; b != nil {
		day := func(t time.Time) string {
			if t.IsZero() {
				return l.T("alert.never")
			}
			return t.Local().Format("2006-01-02 15:04")
		}
		say("backup", day(b.LastSuccess), day(b.LastVerified))
	}
}
