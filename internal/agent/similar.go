package agent

import (
	"context"
	"fmt"

	"toritsugi/internal/broker"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/memory"
)

// similarFile says which runs this one was told of as similar; what it is told stands in its request.
const similarFile = "similar.json"

// similarTold is how many similar runs a run is told of.
const similarTold = 3

// similar looks for runs on other tasks of the repository that are like this one, and settles what it
// is told of them: decided once, before its first message is written. "" is nothing. As with what is
// inherited, what they were exposed to counts for this run, too.
func (r *run) similar(ctx context.Context, title, body string) (string, error) {
	if r.Similar == nil || r.out.Order.Chat != nil {
		return "", nil
	}
	key := r.ledger.Metadata().TaskKey
	found, err := r.Similar(ctx, key, title, body, similarTold)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		r.log.Warn("Similar runs cannot be looked for: " + r.Store.Redact(err.Error()))
	}
	if len(found) == 0 {
		return "", nil
	}
	var noted []memory.SimilarRun
	for _, v := range found {
		noted = append(noted, memory.SimilarRun{UUID: v.Metadata.UUID, Key: v.Metadata.TaskKey})
		for _, f := range memory.SimilarFacts(v) {
			detail := "run " + contextstore.Short(v.Metadata.UUID) + ": " + earlierRun().ReplaceAllString(f.Detail, "")
			if err := r.out.Broker.Report(broker.Fact{Leg: broker.Leg(f.Leg), What: f.What, Detail: detail}); err != nil {
				return "", err
			}
		}
	}
	if err := r.noteWhole(similarFile, noted); err != nil {
		return "", fmt.Errorf("note which runs are similar: %w", err)
	}
	return memory.SimilarTold(found, r.strictly), nil
}

// similarRuns is what can be recalled of the runs that this one was told of.
func (r *run) similarRuns() []memory.Source {
	var noted []memory.SimilarRun
	if err := readNoted(r.ledger.Dir(), similarFile, &noted); err != nil {
		r.log.Warn("What similar runs left cannot be recalled", "error", err)
	}
	if len(noted) == 0 {
		return nil
	}
	return []memory.Source{memory.SimilarSource(noted, r.ledger.Metadata().TaskKey, r.Store.View, r.strictly)}
}
