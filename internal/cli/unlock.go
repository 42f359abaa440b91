package cli

import (
	"context"
	"encoding/json"

	"toritsugi/internal/app"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

type unlockCmd struct {
	UUID  string `arg:"" help:"${uuid_help}"`
	JSON  bool   `name:"json" help:"${json_help}"`
	place `embed:""`
}

// Run frees what a dead owner left of a run; of a live one it says who it is.
func (u unlockCmd) Run(c *console) error {
	return c.untilInterrupted(func(ctx context.Context, env app.Env) error {
		uuid, f, err := app.Unlock(ctx, env, u.UUID, u.BaseDir, u.Config)
		if err != nil {
			return err
		}
		if u.JSON {
			return json.NewEncoder(c.out).Encode(struct {
				UUID   string              `json:"uuid"`
				Status task.Status         `json:"status"`
				Freed  bool                `json:"freed"` // something was left
				Owner  *contextstore.Owner `json:"owner"` // that is gone
				PIDs   []int               `json:"ended"`
				Mended []string            `json:"mended"`
			}{uuid, f.Status, f.Left, f.Gone(), append([]int{}, f.PIDs...), append([]string{}, f.Mended...)})
		}
		if len(f.PIDs) > 0 {
			c.say("cli.orphans", f.PIDs)
		}
		switch owner := f.Gone(); {
		case !f.Left:
			c.say("cli.unlock_nothing", contextstore.Short(uuid), f.Status)
		case owner == nil:
			c.say("cli.unlocked", contextstore.Short(uuid), f.Status)
		default:
			c.say("cli.unlocked_of", contextstore.Short(uuid), owner.ProcessID, owner.Hostname, f.Status)
		}
		if f.Status == task.Running {
			c.say("cli.resume_with", contextstore.Short(uuid)+app.RunOptions{BaseDir: u.BaseDir, Config: u.Config}.Where())
		}
		return nil
	})
}
