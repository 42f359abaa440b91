package ollama

import (
	"encoding/base64"

	"toritsugi/internal/llm"
)

// gauge estimates how many tokens a conversation is, from its bytes and from
// what the server reported of earlier requests of it. Ollama answers a request
// that is too long with an answer to a part of it (servers before 0.12.6, which
// do not know truncate), so the client has to know beforehand.
type gauge struct {
	text     int     // bytes of the messages, as encoded, without images
	thought  int     // of them, reasoning since the last user message
	thinks   bool    // reasoning was ever sent
	images   int     // number of them
	perByte  float64 // tokens, as last learnt; 0 before
	reported int     // tokens that the server counted of learntAt bytes; 0 where unknown
	learntAt int
}

// imageTokens is what Ollama itself reckons for an image. Source: chatPrompt.
const imageTokens = 768

// What tokenizers make of text: uncalibrated, and the range that is believed.
// A count below it is one of a server before 0.4 that counts only what its cache
// did not have.
const (
	usualPerByte = 1.0 / 4
	leastPerByte = 1.0 / 8
	mostPerByte  = 1.5
	enoughBytes  = 2000 // of a request that may be learnt from: chat templates add their own text
)

// add takes in a message of size encoded bytes.
func (g *gauge) add(m *llm.Message, size int) {
	for i := range m.Images {
		if img := &m.Images[i]; leftOut(img) == "" {
			g.images++
			size -= base64.StdEncoding.EncodedLen(len(img.Data))
		}
	}
	g.text += size
	switch {
	case m.Role == llm.RoleAssistant && len(m.ToolCalls) > 0 && m.Reasoning != "":
		g.thought += len(m.Reasoning)
		g.thinks = true
	case m.Role == llm.RoleUser && g.thought > 0:
		// Templates drop what was thought before the last question.
		g.text -= g.thought
		g.thought, g.reported = 0, 0
	}
}

func (g *gauge) reset() { *g = gauge{perByte: g.perByte} }

// tokens estimates the request with a head of so many bytes.
func (g *gauge) tokens(head int) int {
	rate := g.perByte
	if rate == 0 {
		rate = usualPerByte
	}
	if g.reported > 0 {
		return g.reported + int(float64(head+g.text-g.learntAt)*rate)
	}
	return int(float64(head+g.text)*rate) + g.images*imageTokens
}

// learn takes in what the server counted of the whole request.
func (g *gauge) learn(reported, head int) {
	bytes := head + g.text
	rate := float64(reported-g.images*imageTokens) / float64(bytes)
	if bytes < enoughBytes || rate < leastPerByte || rate > mostPerByte {
		return
	}
	g.perByte, g.reported, g.learntAt = rate, reported, bytes
}

// cut reports whether the server must have read less than it was sent: all of
// its window is full, or a request that grew became shorter near the window's end.
func (g *gauge) cut(reported, head, numCtx int) bool {
	if reported >= numCtx {
		return true
	}
	return !g.thinks && reported < g.reported && g.tokens(head) > numCtx*3/4
}
