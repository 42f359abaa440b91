package channel

import (
	"context"
	"net/http"
	"time"

	"toritsugi/internal/i18n"
)

// Checker is a Channel that can say whether it is set up well.
type Checker interface {
	Channel
	// Check asks the vendor. public is where others reach the program, "" for nowhere.
	Check(ctx context.Context, public string) []Finding
	// Send posts a text, and says why it does not stand there.
	Send(ctx context.Context, session, text string) error
}

// Finding is how one part of a channel is, in the reader's language: where it is not well,
// Text says what to do.
type Finding struct {
	Part string `json:"part"` // "token", "scopes", "webhook" …
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Found is the finding of a part that is well, as the text of a key says, or has an error.
func Found(l i18n.Lang, part string, err error, key string, args ...any) Finding {
	if err != nil {
		return Finding{Part: part, Text: l.Error(err)}
	}
	return Finding{Part: part, OK: true, Text: l.T(key, args...)}
}

// maxSkew is by how much the clocks of a vendor and of this machine may differ: signatures and
// tokens are good for minutes.
const maxSkew = time.Minute

// Clock compares the clock of this machine with that of a vendor, by the header of an answer.
func Clock(l i18n.Lang, now time.Time, h http.Header) Finding {
	theirs, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		err = i18n.E("channel.no_date")
	} else if off := now.Sub(theirs).Round(time.Second); off.Abs() > maxSkew {
		err = i18n.E("channel.skew", off)
	}
	return Found(l, "clock", err, "channel.clock")
}
