package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// keepRecent is how many of the latest messages a truncation leaves where it can.
const keepRecent = 5

// maxFailures is how often in a row a summary may fail before messages are
// dropped instead.
const maxFailures = 3

// Summaries that follow each other this often, each with fewer than
// refillMessages new messages since the one before, do not help: what is kept
// fills the window again at once.
const (
	maxRefills     = 3
	refillMessages = 10
)

// Fit makes room where the policy wants it; it is called before a send. First
// old tool output becomes stubs, then a summary takes the place of messages,
// then messages are dropped, and the model is told. The error is ctx's, a
// *TooSmallError, or the ledger's.
func (w *Window) Fit(ctx context.Context) error {
	if err := w.mask(w.policy.Masking.MinShare, false, "a batch of old tool output and arguments"); err != nil {
		return err
	}
	var err error
	if n := w.Tokens(); n > w.cap {
		err = w.makeRoom(ctx, fmt.Sprintf("about %d tokens, the limit is %d", n, w.cap))
	} else if n := w.due(); n > 0 && w.policy.Summarizer != nil && !w.refilled() {
		err = w.makeRoom(ctx, fmt.Sprintf("messages of about %d tokens wait for a summary, the threshold is %d", n, w.threshold()))
	}
	w.ledger.ContextTokens(w.Tokens())
	return err
}

// Overflowed makes room after the provider said that the request is too long, or
// was seen to have read only so many tokens of it, and never lets it grow as long
// again; 0 where nobody knows.
func (w *Window) Overflowed(ctx context.Context, read int) error {
	w.cap = min(w.cap, w.Tokens()*3/4)
	if read > 0 {
		w.cap = min(w.cap, read)
	}
	err := w.makeRoom(ctx, "the provider found the request too long")
	var small *TooSmallError
	if errors.As(err, &small) {
		small.Refused = true
	}
	w.ledger.ContextTokens(w.Tokens())
	return err
}

// TooSmallError says that what must stay does not fit.
type TooSmallError struct {
	Tokens, Limit int
	Refused       bool // by the provider, whatever the limit is
}

func (e *TooSmallError) Error() string {
	return fmt.Sprintf("the request and the latest messages take about %d tokens, the window holds %d", e.Tokens, e.Limit)
}

// threshold is how many tokens messages without a summary may take.
func (w *Window) threshold() int { return int(float64(w.policy.Context) * w.policy.Threshold) }

// due returns the tokens of the messages without a summary, as the model sees
// them, if they are to be summarised, else 0. Source: store-v3 §4.5
// should_compress, §7.1.
func (w *Window) due() int {
	front := w.front()
	if w.policy.Context <= 0 || len(w.entry) <= front {
		return 0
	}
	waiting, n := w.taken, len(w.entry)
	if w.event.Summary > 0 {
		waiting, n = waiting.minus(w.entry[front-1].end), n-front
	}
	waiting = waiting.minus(w.lead)
	if tokens := w.tokens(waiting); tokens > w.threshold() && n >= w.policy.MinMessages {
		return tokens
	}
	return 0
}

// makeRoom brings the window below its cap, by what loses least.
func (w *Window) makeRoom(ctx context.Context, reason string) error {
	before := w.decisions
	if w.Tokens() > w.cap && w.giant() {
		if err := w.clip(reason); err != nil {
			return err
		}
	}
	// Before anything is summarised or dropped, which costs the cache as well.
	if err := w.mask(0, true, reason); err != nil {
		return err
	}
	if w.decisions > before && w.Tokens() <= w.cap && w.due() == 0 {
		return nil
	}
	if done, err := w.compressOrNot(ctx, &reason); done || err != nil {
		return err
	}
	return w.truncate(reason)
}

// compressOrNot summarises, again where that failed and cannot wait, and
// reports whether that is enough. Where it is not, reason says why.
func (w *Window) compressOrNot(ctx context.Context, reason *string) (done bool, err error) {
	if w.policy.Summarizer == nil {
		return false, nil
	}
	for {
		if w.refilled() {
			*reason += fmt.Sprintf("; %d summaries followed each other closely and did not help", maxRefills)
			return false, nil
		}
		err := w.compress(ctx, *reason)
		var failed *failedError
		switch {
		case err == nil:
			w.failures, w.refused = 0, nil
			if w.Tokens() <= w.cap {
				return true, nil
			}
			continue // much arrived meanwhile, or what stays is large: the next one takes it in
		case errors.Is(err, errNothing):
			return w.Tokens() <= w.cap, nil
		case !errors.As(err, &failed):
			return false, err
		}
		if w.failures++; failed.refused {
			w.refused = failed.why
		}
		w.ledger.CompressionFailed()
		w.log.Warn("A summary failed and changes nothing", "failures", w.failures, "reason", failed.Error())
		if w.failures >= maxFailures {
			*reason += fmt.Sprintf("; the summary failed %d times, at last because %s", w.failures, failed.Error())
			w.failures = 0
			return false, nil
		}
		if w.Tokens() <= w.cap {
			return true, nil // tried again with the next turn
		}
	}
}

// refilled reports that summaries stopped helping. It holds until the window
// has taken refillMessages in without making room.
func (w *Window) refilled() bool {
	if w.last.Seq-w.fullSeq >= refillMessages {
		w.full = 0
	}
	return w.full >= maxRefills
}

// filled notes that room was made.
func (w *Window) filled() {
	if w.fullSeq > 0 && w.last.Seq-w.fullSeq >= refillMessages {
		w.full = 0
	}
	w.full++
	w.fullSeq = w.last.Seq
}

// next is a decision that shows the same messages as the one in force.
func (w *Window) next(kind, reason string, freed size) contextstore.WindowEvent {
	e := w.event
	if e.FromSeq == 0 {
		first := w.entry[min(w.front(), len(w.entry)-1)] // of a run's first request only the request itself
		e.FromSeq, e.Offset = first.seq, first.offset
	}
	e.Type, e.Reason, e.Tokens, e.Freed, e.Rate = kind, reason, int64(w.Tokens()), int64(w.tokens(freed)), w.rate
	return e
}

// decide writes a decision to the ledger, and then assembles the window from the
// ledger, as a resumed run does.
func (w *Window) decide(e contextstore.WindowEvent) error {
	if err := w.ledger.AppendWindow(e); err != nil {
		return fmt.Errorf("record a decision about the window: %w", err)
	}
	if err := w.refill(); err != nil {
		return err
	}
	w.decisions++
	w.log.Info("The window was rewritten: "+e.Type, "reason", e.Reason, "tokens_before", e.Tokens, "tokens", w.Tokens(), "from_seq", e.FromSeq)
	return nil
}

// payBack is how much a batch of stubs must free for each token behind the first
// of them, which the provider has to read anew. With cached input at a tenth of
// the price, such a batch has paid for itself after ten turns.
const payBack = 0.9

// unchanged is what precedes the first message that would become a stub.
func (w *Window) unchanged() size {
	i := slices.IndexFunc(w.entry, func(e entry) bool { return e.saved.text > 0 || e.saved.images > 0 })
	if i < 1 {
		return size{}
	}
	return w.entry[i-1].end
}

// mask makes stubs of what is older than the turns to keep, if that frees at
// least a share of the request and, unless it must, pays for the part of the
// provider's cache that it costs.
func (w *Window) mask(share float64, must bool, reason string) error {
	p, front := w.policy.Masking, w.front()
	if !p.Enabled {
		return nil
	}
	i := w.whole(p.KeepTurns)
	if i <= front || w.entry[i-1].seq <= w.event.MaskSeq {
		return nil
	}
	freed := w.entry[i-1].saved
	n := w.tokens(freed)
	if n <= 0 || float64(n) < share*float64(w.Tokens()) {
		return nil
	}
	if !must && float64(n) < payBack*float64(w.tokens(w.taken.minus(w.unchanged()).minus(freed))) {
		return nil
	}
	e := w.next(contextstore.WindowMask, reason, freed)
	e.MaskSeq = w.entry[i-1].seq
	return w.decide(e)
}

// whole is the index of the first entry that stays as it is: of the latest turns
// so many as the policy says, but no more than fill half of what the window has
// room for beside its front, and one at the least.
func (w *Window) whole(turns int) int {
	front := w.front()
	if len(w.entry) <= front {
		return front
	}
	room := (w.cap - w.tokens(size{text: w.fixed()}.plus(w.entry[front-1].end))) / 2
	first := len(w.entry)
	for i, n := first-1, 0; i >= front && n < turns; i-- {
		if w.entry[i].role != llm.RoleAssistant {
			continue
		}
		if n++; n > 1 && w.tokens(w.taken.minus(w.entry[i-1].end)) > room {
			return first
		}
		if first = i; n == turns {
			return first
		}
	}
	return front
}

// unit is the index of the message that i belongs to: itself, or the answer
// whose call it is the result of.
func (w *Window) unit(i int) int {
	for i > w.front() && i < len(w.entry) && w.entry[i].role == llm.RoleTool {
		i--
	}
	return i
}

// left is how many tokens a request has that shows nothing between the front
// and entry i.
func (w *Window) left(i int) int {
	front, before := w.entry[w.front()-1], w.entry[i-1]
	return w.tokens(size{text: w.fixed()}.plus(w.taken).minus(before.end).plus(front.end).plus(w.lead).plus(before.said).minus(front.said))
}

// truncate drops the oldest messages behind the front until about half of the
// cap is left. A call and its results leave together. The model reads what is
// missing.
func (w *Window) truncate(reason string) error {
	front := w.front()
	if len(w.entry) <= front+1 {
		return w.clip(reason)
	}
	most := w.unit(len(w.entry) - keepRecent)
	if most <= front || w.left(most) > w.cap {
		most = w.unit(len(w.entry) - 1) // at the least the latest answer and its results stay
	}
	if most <= front || w.left(most) > w.cap {
		return w.clip(reason)
	}
	i := front + 1
	for i < most && (w.left(i) > w.cap/2 || w.entry[i].role == llm.RoleTool) {
		i++
	}
	e := w.next(contextstore.WindowTruncate, reason, w.entry[i-1].end.minus(w.entry[front-1].end).minus(w.lead))
	e.Dropped += int64(i - front)
	var err error
	if e.Note, err = w.note(front, i, e.Dropped); err != nil {
		return err
	}
	e.FromSeq, e.Offset = w.entry[i].seq, w.entry[i].offset
	w.keep(&e, front, i)
	w.filled()
	if err := w.decide(e); err != nil {
		return err
	}
	if w.Tokens() > w.cap {
		return w.clip(reason)
	}
	return nil
}

// giant reports that one message alone is about as large as the window.
func (w *Window) giant() bool {
	before := size{}
	for i, e := range w.entry {
		if i == w.front() {
			before = before.plus(w.lead)
		}
		if w.tokens(e.end.minus(before)) > w.cap*4/5 {
			return true
		}
		before = e.end
	}
	return false
}

// leastClip is the least of a message's text that is shown, in bytes.
const leastClip = 1000

// clip cuts the longest messages to what makes the window fit: the largest of
// a few lengths that does and leaves a tenth for what comes, or the least where
// only that fits at all. Where none does, a *TooSmallError.
func (w *Window) clip(reason string) error {
	small := &TooSmallError{Tokens: w.Tokens(), Limit: w.cap}
	if len(w.entry) == 0 {
		return small
	}
	for most := int(float64(w.cap) * w.rate / 2); most >= leastClip; most /= 2 {
		if done, err := w.clipTo(most, w.cap*9/10, reason, small); done || err != nil {
			return err
		}
	}
	if done, err := w.clipTo(leastClip, w.cap, reason, small); done || err != nil {
		return err
	}
	return small
}

// clipTo cuts messages to so many bytes if the window is estimated to have no
// more than room tokens then, and reports whether it fits. What it takes at the
// least goes to small.
func (w *Window) clipTo(most, room int, reason string, small *TooSmallError) (bool, error) {
	freed := w.clipping(most)
	if small.Tokens = min(small.Tokens, w.Tokens()-w.tokens(freed)); w.Tokens()-w.tokens(freed) > room {
		return false, nil
	}
	e := w.next(contextstore.WindowClip, reason, freed)
	e.ClipSeq, e.ClipBytes = w.last.Seq, most
	if err := w.decide(e); err != nil {
		return false, err
	}
	small.Tokens = w.Tokens()
	return w.Tokens() <= w.cap, nil
}

// clipping is what it would free to show so many bytes of a message at most.
func (w *Window) clipping(most int) size {
	freed := 0
	for _, e := range w.entry {
		if e.role == llm.RoleSystem {
			continue
		}
		if over := e.bulk - most; over > 0 {
			freed += int(float64(over) * e.perCut)
		}
		if e.thought > most {
			freed += int(float64(e.thought) * e.perCut)
		}
	}
	return size{text: freed}
}
