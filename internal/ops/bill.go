package ops

import (
	"fmt"
	"io"
	"strings"

	"toritsugi/internal/agent"
	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/memory"
)

// billed is what tori memory UUID --cost --json prints.
type billed struct {
	UUID   string `json:"uuid"`
	Status string `json:"status"`
	memory.TokenUsage
	Damaged []windowDamage `json:"damaged"`
}

// Bill prints what all requests of a run took, by part. What cannot be read is
// told and passed over.
func Bill(w io.Writer, v contextstore.View, asJSON bool, lang i18n.Lang) error {
	tools, broken := agent.Offered(v.Dir)
	b, damaged, err := memory.ReadBill(v, llm.ToolsBytes(tools))
	if err != nil {
		return err
	}
	if broken != nil {
		damaged = append(damaged, contextstore.Damage{File: "offered.json", Offset: -1, Why: broken})
	}
	p := &printer{w: w}
	if asJSON {
		out := billed{UUID: v.Metadata.UUID, Status: string(v.Status()), TokenUsage: b, Damaged: shownDamage(damaged, lang)}
		p.json(out)
		return p.err
	}
	say := func(key string, args ...any) {
		for line := range strings.SplitSeq(lang.T(key, args...), "\n") {
			p.printf("%s", detailAt(0, line))
		}
	}
	say("memorycost.head", v.Metadata.UUID, thousands(b.Requests), thousands(b.Sent), share(b.Cached, b.Sent), thousands(b.Answered))
	p.printf("\n%s\n", billRow(lang.T("memorycost.part"), lang.T("memorycost.tokens"), lang.T("memorycost.share"), lang.T("memorycost.first")))
	for _, part := range memory.BillParts() {
		p.printf("%s\n", billRow(lang.T("memorycost.part_"+part), thousands(b.Parts[part]), share(b.Parts[part], b.Sent), thousands(b.First[part])))
	}
	for _, row := range []struct {
		name string
		memory.Calls
	}{{"summaries", b.Summaries}, {"final", b.Final}} {
		if row.Requests > 0 {
			p.printf("%s\n", billRow(lang.T("memorycost."+row.name, row.Requests), thousands(row.Sent), share(row.Sent, b.Sent), "-"))
		}
	}
	p.printf("\n")
	if c := b.Verification; c.Requests > 0 {
		say("memorycost.verification", c.Requests, thousands(c.Sent), share(c.Sent, b.Sent))
	}
	say("memorycost.legend")
	printDamage(p, damaged, lang)
	return p.err
}

func billRow(part, tokens, share, first string) string {
	return pad(part, 36) + " " + right(tokens, 12) + " " + right(share, 8) + " " + right(first, 14)
}

// share is how much of a whole something is.
func share(part, whole int64) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(whole, 1)))
}
