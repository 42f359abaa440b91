package main

import "fmt"

// maxClient is the budget of our clients, × the bare loop (docs: DESIGN §9).
const maxClient = 1.2

// llm prints what was measured of the clients of models.
func (r *report) llm(clients map[string]sample) {
	if len(clients) == 0 {
		return
	}
	r.title("Model clients beside bare net/http, µs", "bare CPU", "ours CPU", "×", "bare wall", "ours wall", "×")
	for _, v := range vendors() {
		s, ok := clients[v.name]
		if !ok {
			continue
		}
		for _, part := range []struct{ label, cpu, wall string }{{"a call", callCPU, callWall}, {"a token", tokenCPU, tokenWall}} {
			cells := []float64{s[rawPrefix+part.cpu], s[oursPrefix+part.cpu], s[timesPrefix+part.cpu], s[rawPrefix+part.wall], s[oursPrefix+part.wall], s[timesPrefix+part.wall]}
			r.row(fmt.Sprintf("%s: %s", v.name, part.label), "%.2f", cells, r.verdict(maxClient, " ×", cells[2], cells[5]))
		}
	}
}
