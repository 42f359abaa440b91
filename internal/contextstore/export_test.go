package contextstore

// abandon leaves a context as a killed process does: its goroutines are gone,
// the kernel closes its files and drops the lock, and nothing is written.
func (c *Context) abandon() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.shut()
}
