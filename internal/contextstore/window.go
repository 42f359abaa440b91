package contextstore

// ContextTokens notes how many tokens the next request has, as the window
// estimates them: state.json's current_context_tokens. Messages that are
// appended after that add theirs.
func (c *Context) ContextTokens(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.CurrentContextTokens = int64(n)
}

// CompressionFailed counts a compression that changed nothing.
func (c *Context) CompressionFailed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Failures++
}

// Spent counts a call to a model whose answer is no message, as one that writes
// a summary: the call, its tokens and its cost. It is on disk with the next
// state.json, and with the next line of summaries.jsonl. One of which nobody
// knows what it took (nil) counts nowhere.
func (c *Context) Spent(u *Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent(u)
}

func (c *Context) spent(u *Usage) {
	if u == nil {
		return
	}
	c.state.LLMCallCount++
	c.state.TotalTokensUsed += u.Sum()
	c.state.Add(u.Spending())
	c.asides.add(u)
}
