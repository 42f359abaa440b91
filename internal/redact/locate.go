package redact

// Match is where in a text something stands that String would mask.
type Match struct {
	Start, End int    // bytes
	Token      string // the mask that String would put there
	Kind       string // what it is, e.g. "private key"
	Secret     bool   // FindSecrets tells of it too
	Known      bool   // it is one of the known values, in one of its forms
}

// Locate lists what String would mask in its first round, in order and apart
// from each other: for callers who look at a text in another form than the one
// that is to be masked.
func (z *Sanitizer) Locate(s string) []Match {
	spans := z.find(s, true)
	if len(spans) == 0 {
		return nil
	}
	var all []Match
	for _, p := range settle(spans, s) {
		secret := p.kind != kindEmail && p.kind != kindNumber && p.kind != kindNamed
		all = append(all, Match{p.start, p.end, p.token, p.kind, secret, p.kind == kindKnown})
	}
	return all
}
