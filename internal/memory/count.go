package memory

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// O200k counts tokens as OpenAI's newer models do. Its vocabulary is part of
// the program and is made ready with the first text, in some 20 ms and 25 MiB;
// until then it costs nothing.
func O200k() func([]byte) int {
	vocabulary := sync.OnceValue(codec.NewO200kBase)
	return func(text []byte) int {
		n := 0
		for len(text) > 0 {
			piece := text[:min(len(text), countPiece)]
			text = text[len(piece):]
			n += countTokens(vocabulary(), string(piece))
		}
		return n
	}
}

// countPiece is how much of a text is counted at once: a run without a space
// takes time that grows with its square.
const countPiece = 4 << 10

func countTokens(c *codec.Codec, piece string) int {
	n, err := c.Count(piece)
	if err != nil {
		return len(piece) / 4 // it counts every text; this is what it stands in for
	}
	return n
}
