// Package gauge estimates how many tokens a conversation is, and notices servers that cut
// what is longer than their window without a word, as Ollama does behind its /v1. It
// does no I/O.
package gauge

import (
	"unicode/utf8"

	"toritsugi/internal/llm"
)

// Gauge estimates how many tokens a conversation is, from its bytes and from
// what the server reported of earlier requests of it.
type Gauge struct {
	text     int     // bytes of the messages, as encoded, without images
	thought  int     // of them, reasoning since the last user message
	images   int     // number of them
	perByte  float64 // tokens, as last learnt; 0 before
	reported int     // Tokens that the server counted of learntAt bytes; 0 where unknown
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

// Add takes in a message of size encoded bytes without its images, of which so
// many are shown.
func (g *Gauge) Add(m *llm.Message, size, images int) {
	g.images += images
	g.text += size
	g.weigh(m.Content)
	for i := range m.ToolCalls {
		g.weigh(m.ToolCalls[i].Arguments)
	}
	switch {
	case m.Role == llm.RoleAssistant && len(m.ToolCalls) > 0 && m.Reasoning != "":
		g.thought += len(m.Reasoning)
	case m.Role == llm.RoleUser && g.thought > 0:
		// Templates drop what was thought before the last question.
		g.text -= g.thought
		g.thought, g.reported = 0, 0
	}
}

// weigh takes in a text that every template shows. What repeats the byte before
// hardly counts: a tokenizer has one token for a long line of dashes.
func (g *Gauge) weigh(text string) {
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

// Reset forgets the messages, but not how large a token is.
func (g *Gauge) Reset() { *g = Gauge{perByte: g.perByte} }

// Tokens estimates the request with a head of so many bytes.
func (g *Gauge) Tokens(head int) int {
	rate := g.rate()
	if g.reported > 0 {
		return g.reported + int(float64(head+g.text-g.learntAt)*rate)
	}
	return int(float64(head+g.text)*rate) + g.images*imageTokens
}

func (g *Gauge) rate() float64 {
	if g.perByte == 0 {
		return usualPerByte
	}
	return g.perByte
}

// Learn takes in what the server counted of the whole request.
func (g *Gauge) Learn(reported, head int) {
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
func (g *Gauge) least() int {
	rate := max(leastPerByte, g.perByte/2)
	if g.reported > 0 {
		return g.reported - int(float64(g.thought)*g.rate()) + int(float64(g.firm-g.firmAt)*rate)
	}
	return int(float64(g.firm)*rate) + g.images*leastImage
}

// leastImage is the least that a model takes for an image.
const leastImage = 64

// What remains of a prompt that was cut. Ollama loads no model with less than 2048
// Tokens by itself, and leaves at least half of a window, and a few tokens that
// it keeps of the beginning; so what is less is the count of a part, by a server
// that does not count what its cache had. Source: contextShiftPromptLimit, chatPrompt.
const (
	leastCut = 2048 / 2
	keptCut  = 8
)

// Verdict says what is to be thought of a count.
type Verdict int

// The verdicts.
const (
	Credible  Verdict = iota
	Full              // the request filled num_ctx, or more than that
	Shortened         // the server read less than it was sent, though its window should hold it
)

// Judge compares what the server counted with what it was sent.
func (g *Gauge) Judge(reported, head, numCtx int) Verdict {
	count := g.Tokens(head)
	half := reported >= numCtx/2 && reported <= numCtx/2+keptCut
	switch {
	case reported >= numCtx:
		return Full
	case half && g.reported == 0 && g.most(head) > numCtx && (g.perByte == 0 || reported < count*4/5):
		return Full // there is no count to compare with, and this is what a cut leaves
	case reported < leastCut && reported < numCtx/2, reported >= g.least()*9/10:
		return Credible
	case half || count > numCtx*3/4:
		return Full
	}
	return Shortened
}

// most is how many tokens the request may well have.
func (g *Gauge) most(head int) int {
	return (head+g.text-g.wide)/3 + g.wide/2 + g.images*imageTokens
}
