package dialogue

import (
	"context"

	"toritsugi/internal/broker"
	"toritsugi/internal/delivery"
	"toritsugi/internal/forge"
)

// trust tells whose words count. It asks the forge once for each person.
type trust struct {
	host *delivery.Host
	repo forge.Repo
	seen map[int64]forge.Permission
}

// may reports whether a person may ask for work in the repository. Where the
// forge cannot be asked, the error says so and nobody may.
func (t *trust) may(ctx context.Context, p forge.Person) (bool, error) {
	if p.Bot {
		return false, nil
	}
	have, ok := t.seen[p.ID]
	if !ok {
		var err error
		if have, err = t.host.Permission(ctx, t.repo, p); err != nil {
			return false, err
		}
		t.seen[p.ID] = have
	}
	return have >= t.host.Least, nil
}

// Outsider reports whether a person may not ask for work in the repository.
func (d *Dialogue) Outsider(ctx context.Context, p forge.Person) (bool, error) {
	if d.trusted == nil {
		d.trusted = &trust{d.run.Host, forge.RepoOf(d.run.Ledger.Metadata().TaskKey), map[int64]forge.Permission{}}
	}
	may, err := d.trusted.may(ctx, p)
	return !may, err
}

// Stranger tells the broker that the run reads what a stranger wrote.
func (d *Dialogue) Stranger(who string) error {
	return d.run.Broker.Report(broker.Fact{Leg: broker.Untrusted, What: broker.StrangerText, Detail: who})
}
