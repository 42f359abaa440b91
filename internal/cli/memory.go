package cli

import (
	"errors"
	"os"
	"strings"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/price"
	"toritsugi/internal/memory"
	"toritsugi/internal/ops"
)

type memoryCmd struct {
	Show   windowCmd `cmd:"" default:"withargs" help:"${memory_show_help}"`
	Replay replayCmd `cmd:"" help:"${memory_replay_help}"`
}

type windowCmd struct {
	UUID    string `arg:"" help:"${uuid_help}"`
	At      *int64 `placeholder:"SEQ" help:"${memory_at_help}"`
	Request bool   `help:"${memory_request_help}"`
	Cost    bool   `help:"${memory_cost_help}"`
	JSON    bool   `name:"json" help:"${json_help}"`
	place   `embed:""`
}

// Run shows what the model saw with one request of a run.
func (w windowCmd) Run(c *console) error {
	base, who, err := w.look(c)
	if err != nil {
		return err
	}
	if w.Cost && (w.Request || w.At != nil) {
		return usage(i18n.E("memorycost.alone"))
	}
	opt := ops.WindowOptions{Request: w.Request, JSON: w.JSON, Lang: c.lang}
	if w.At != nil {
		if opt.At = *w.At; opt.At < 1 {
			return usage(i18n.E("memoryshow.low", opt.At))
		}
	}
	if cfg, err := app.LoadConfig(w.Config, c.getenv); err == nil && cfg.Tokens.Estimator == "o200k" {
		opt.Count = memory.O200k()
	}
	err = w.show(c, base, who, opt)
	if errors.Is(err, os.ErrNotExist) { // its directory was moved meanwhile
		err = w.show(c, base, who, opt)
	}
	var told *i18n.Error
	if errors.As(err, &told) {
		return usage(err)
	}
	return err
}

func (w windowCmd) show(c *console, base string, who contextstore.Viewer, opt ops.WindowOptions) error {
	v, err := contextstore.Find(base, w.UUID, who)
	if err != nil {
		return err
	}
	c.record(base, contextstore.AuditEntry{Actor: who.User, Action: "read", UUID: v.Metadata.UUID, What: "window"})
	if w.Cost {
		return ops.Bill(c.out, v, opt.JSON, c.lang)
	}
	return ops.Window(c.out, v, opt)
}

type replayCmd struct {
	File      string  `arg:"" placeholder:"FILE" help:"${memory_file_help}"`
	Context   int     `default:"128000" help:"${memory_context_help}"`
	System    int     `default:"6000" help:"${memory_system_help}"`
	KeepTurns int     `default:"10" help:"${memory_keep_turns_help}"`
	MinShare  float64 `default:"0.1" help:"${memory_min_share_help}"`
	Model     string  `default:"openai/gpt-5.4" placeholder:"PROVIDER/MODEL" help:"${memory_model_help}"`
	Config    string  `placeholder:"FILE" help:"${config_file_help}"`
	JSON      bool    `name:"json" help:"${json_help}"`
}

// price is the list price of the model that is asked for: of the settings where
// they have a table and can be read, else the built-in one.
func (r replayCmd) price(c *console) (p price.Price, asOf string, err error) {
	table := price.Builtin()
	cfg, err := c.load(r.Config)
	if err != nil && r.Config != "" {
		return p, "", err
	}
	if err == nil && cfg.LLM.PricesFile != "" {
		own, err := price.Load(cfg.LLM.PricesFile)
		if err != nil {
			return p, "", err
		}
		table = price.Merge(own, table)
	}
	provider, model, _ := strings.Cut(r.Model, "/")
	p, known := table.Price(provider, model, false)
	if !known {
		return p, "", i18n.E("memoryverbs.no_price", r.Model)
	}
	return p, table.AsOf(), nil
}

// Run replays recorded runs through the policies of the window. No model is called.
func (r replayCmd) Run(c *console) error {
	if r.Context < 1000 || r.System < 0 || r.KeepTurns < 1 || r.MinShare <= 0 || r.MinShare > 1 {
		return usage(i18n.E("memoryverbs.range"))
	}
	list, asOf, err := r.price(c)
	if err != nil {
		return usage(err)
	}
	f, err := disk.OpenPlain(r.File)
	if err != nil {
		return usage(i18n.E("memoryverbs.file", r.File, err))
	}
	defer func() { _ = f.Close() }() // only read from
	all, err := memory.ReadTrajectories(f)
	if err != nil {
		return usage(i18n.E("memoryverbs.file", r.File, err))
	}
	ctx, stop := c.untilSignal()
	defer stop()
	const ratio, minMessages, keepRecent = 0.7, 10, 5 // store-v3 §9
	policy := memory.Policy{Limit: int(ratio * float64(r.Context)), Context: r.Context, Threshold: ratio, MinMessages: minMessages, KeepRecent: keepRecent,
		Masking: memory.Masking{KeepTurns: r.KeepTurns, MinShare: r.MinShare}}
	opt := ops.ReplayOptions{JSON: r.JSON, Model: r.Model, Price: list, AsOf: asOf, Lang: c.lang}
	for _, t := range all {
		done, err := memory.Replay(ctx, t, memory.ReplayOptions{Policy: policy, System: r.System, Price: list})
		if err != nil {
			return i18n.E("memoryverbs.replay", r.File, err)
		}
		if err := ops.Replays(c.out, t.Source, done, opt); err != nil {
			return err
		}
	}
	if r.JSON {
		return nil
	}
	return ops.ReplayLegend(c.out, opt)
}
