package ollama

import (
	"encoding/base64"
	"unicode/utf8"

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

	firm, firmAt int // bytes of the texts that repeat nothing, and how many when reported was learnt
	wide         int // bytes of the texts beyond ASCII
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
	g.weigh(m.Content)
	for i := range m.ToolCalls {
		g.weigh(m.ToolCalls[i].Arguments)
	}
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

// weigh takes in a text that every template shows. What repeats the byte before
// hardly counts: a tokenizer has one token for a long line of dashes.
func (g *gauge) weigh(text string) {
	var before byte
	for i := range len(text) {
		c := text[i]
		if c != before {
			g.firm++
		}
		if c >= utf8.RuneSelf {
			g.wide++
		}
		before = c
	}
}

func (g *gauge) reset() { *g = gauge{perByte: g.perByte} }

// tokens estimates the request with a head of so many bytes.
func (g *gauge) tokens(head int) int {
	rate := g.rate()
	if g.reported > 0 {
		return g.reported + int(float64(head+g.text-g.learntAt)*rate)
	}
	return int(float64(head+g.text)*rate) + g.images*imageTokens
}

func (g *gauge) rate() float64 {
	if g.perByte == 0 {
		return usualPerByte
	}
	return g.perByte
}

// learn takes in what the server counted of the whole request.
func (g *gauge) learn(reported, head int) {
	bytes := head + g.text
	rate := float64(reported-g.images*imageTokens) / float64(bytes)
	if bytes < enoughBytes || rate < leastPerByte || rate > mostPerByte {
		return
	}
	g.perByte, g.reported, g.learntAt, g.firmAt = rate, reported, bytes, g.firm
}

// least is how many tokens the request has at the least, whatever the tokenizer:
// a prompt never becomes shorter by what is added to it, but for thoughts that a
// template drops.
func (g *gauge) least() int {
	rate := max(leastPerByte, g.perByte/2)
	if g.reported > 0 {
		return g.reported - int(float64(g.thought)*g.rate()) + int(float64(g.firm-g.firmAt)*rate)
	}
	return int(float64(g.firm)*rate) + g.images*leastImage
}

// leastImage is the least that a model takes for an image.
const leastImage = 64

// What remains of a prompt that was cut. Ollama loads no model with less than 2048
// tokens by itself, and leaves at least half of a window, and a few tokens that
// it keeps of the beginning; so what is less is the count of a part, by a server
// that does not count what its cache had. Source: contextShiftPromptLimit, chatPrompt.
const (
	leastCut = 2048 / 2
	keptCut  = 8
)

// verdict says what is to be thought of a count.
type verdict int

// The verdicts.
const (
	credible  verdict = iota
	full              // the request filled num_ctx, or more than that
	shortened         // the server read less than it was sent, though its window should hold it
)

// judge compares what the server counted with what it was sent.
func (g *gauge) judge(reported, head, numCtx int) verdict {
	count := g.tokens(head)
	half := reported >= numCtx/2 && reported <= numCtx/2+keptCut
	switch {
	case reported >= numCtx:
		return full
	case half && g.reported == 0 && g.most(head) > numCtx && (g.perByte == 0 || reported < count*4/5):
		return full // there is no count to compare with, and this is what a cut leaves
	case reported < leastCut && reported < numCtx/2, reported >= g.least()*9/10:
		return credible
	case half || count > numCtx*3/4:
		return full
	}
	return shortened
}

// most is how many tokens the request may well have.
func (g *gauge) most(head int) int {
	return (head+g.text-g.wide)/3 + g.wide/2 + g.images*imageTokens
}
