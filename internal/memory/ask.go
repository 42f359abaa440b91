package memory

import (
	"cmp"
	"context"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// maxThought is how many tokens a summariser may think for, where its window has
// room for them: most servers count them among those of the answer, and a model
// that thinks would be cut off before it has written a word.
const maxThought = 8000

// withThought is the limit of an answer whose text may have limit tokens, for a
// model whose window has room for so many tokens of answer.
func withThought(limit, room int) int { return limit + min(max(room-limit, 0), maxThought) }

// ByModel is a Summarizer that asks a model one thing at a time: no tools, and
// nothing before it. window is how many tokens it takes, 0 where unknown.
func ByModel(client llm.Client, window int) Summarizer {
	return Summarizer{Name: client.Provider() + "/" + client.Model(), Window: window, Ask: func(ctx context.Context, prompt string, limit int) (Answer, error) {
		conversation := client.Open(llm.Settings{})
		conversation.Append(llm.Message{Role: llm.RoleUser, Content: prompt})
		room := cmp.Or(max(window, 0), unknownWindow) - len(prompt)/bytesPerToken
		reply, err := conversation.Send(llm.Aside(llm.LimitAnswer(ctx, withThought(limit, room))), nil)
		if err != nil {
			return Answer{}, err
		}
		a := Answer{Text: reply.Message.Content, Cut: reply.FinishReason == llm.FinishLength, Usage: usage(reply.Usage)}
		if a.Usage == nil {
			// The budget counts the answers of a server that reports no usage, too.
			a.Usage = &contextstore.Usage{Prompt: contextstore.CountTokens(prompt), Completion: contextstore.CountTokens(a.Text), Estimated: true}
		}
		return a, nil
	}}
}
