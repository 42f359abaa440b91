package dialogue

import (
	"context"

	"toritsugi/internal/broker"
	"toritsugi/internal/forge"
)

// Outsider reports whether a person may not ask for work in the repository. Where the
// forge cannot be asked, the error says so. It is asked once for each person.
func (d *Dialogue) Outsider(ctx context.Context, p forge.Person) (bool, error) {
	if outsider, known := d.outsiders[p]; known {
		return outsider, nil
	}
	may, err := d.run.Host.May(ctx, forge.RepoOf(d.run.Ledger.Metadata().TaskKey), p)
	if err != nil {
		return true, err
	}
	d.outsiders[p] = !may
	return !may, nil
}

// Stranger tells the broker that the run reads what a stranger wrote.
func (d *Dialogue) Stranger(who string) error {
	return d.run.Broker.Report(broker.Fact{Leg: broker.Untrusted, What: broker.StrangerText, Detail: who})
}
