package backup

import "context"

// Verified is what Verify found of one generation.
type Verified struct {
	Generation
	Units  int64
	Bytes  int64 // of the objects it needs
	Broken int64 // units that cannot be brought back whole
	Why    error // of the first of them, or of the manifest or a list; nil where all is whole
}

// Verify reads all that the place holds, each object once, compares it with its hashes and decrypts
// it, and tells of each generation whether all of it can be brought back. Its error is that of
// reaching the place, or a *LockedError.
func (r *Repository) Verify(ctx context.Context, progress func(units, bytes int64)) ([]Verified, error) {
	generations, err := r.Generations(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Verified, len(generations))
	units, bytes := int64(0), int64(0)
	for i, g := range generations {
		all[i] = Verified{Generation: g, Why: g.Err}
	}
	for shard := range shards {
		seen := map[string]error{} // of what a shard needs; nothing else refers to it but by chance
		look := func(c chunk) error {
			err, ok := seen[c.Object]
			if !ok {
				_, err = r.get(ctx, c)
				if err != nil && !IsDamage(err) {
					return err
				}
				seen[c.Object] = err
				bytes += c.Size
			}
			return err
		}
		for i := range all {
			if all[i].Err != nil {
				continue
			}
			if err := r.verifyList(ctx, &all[i], shard, look, func() {
				if units++; progress != nil {
					progress(units, bytes)
				}
			}); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func (r *Repository) verifyList(ctx context.Context, v *Verified, shard int, look func(chunk) error, done func()) error {
	note := func(err error) error {
		if err != nil && IsDamage(err) {
			if v.Broken++; v.Why == nil {
				v.Why = err
			}
			return nil
		}
		return err
	}
	for _, c := range v.Lists[shard] {
		v.Bytes += c.Size
	}
	return note(r.units(ctx, v.Lists[shard], func(u unit) error {
		v.Units++
		var broken error
		for _, c := range u.Chunks {
			v.Bytes += c.Size
			if err := look(c); err != nil {
				if !IsDamage(err) {
					return err
				}
				broken = err
			}
		}
		done()
		return note(broken)
	}))
}
