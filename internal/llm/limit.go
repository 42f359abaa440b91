package llm

import "context"

type limitKey struct{}

// LimitAnswer returns a context in which no answer may have more than n
// tokens, beside the limit that a client was made with; n < 1 changes nothing.
func LimitAnswer(ctx context.Context, n int) context.Context {
	if n < 1 {
		return ctx
	}
	return context.WithValue(ctx, limitKey{}, AnswerLimit(ctx, n))
}

// AnswerLimit is the most tokens that an answer may have in ctx where the
// client allows limit, 0 for no limit of either.
func AnswerLimit(ctx context.Context, limit int) int {
	n, ok := ctx.Value(limitKey{}).(int)
	if !ok || limit > 0 && limit < n {
		return limit
	}
	return n
}

type awaitedKey struct{}

// Awaited returns a context for calls whose answer a person waits for: where there is no
// connection they are made once more, and no further.
func Awaited(ctx context.Context) context.Context { return context.WithValue(ctx, awaitedKey{}, true) }

// IsAwaited reports whether a person waits for the answer to a call.
func IsAwaited(ctx context.Context) bool { return ctx.Value(awaitedKey{}) != nil }

type asideKey struct{}

// Aside returns a context for a call beside the work, as that for a summary: that
// it fails is no reason to leave the endpoint alone. What the work asks for
// itself tells whether it answers.
func Aside(ctx context.Context) context.Context { return context.WithValue(ctx, asideKey{}, true) }

// IsAside reports whether a call is made beside the work.
func IsAside(ctx context.Context) bool { return ctx.Value(asideKey{}) != nil }
