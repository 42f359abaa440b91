package terminal

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"toritsugi/internal/channel"
)

const (
	maxText  = 64 << 10 // bytes of a message
	maxPaste = 1 << 20  // bytes of what is pasted
	// Up to this many characters and lines a paste stands in the editor as it is.
	shownPaste      = 1000
	shownPasteLines = 10
)

// own are the commands of the terminal itself.
func (c *chat) own() []channel.Command {
	l := c.t.opt.Lang
	return []channel.Command{
		{Name: "/sessions", Args: l.T("terminal.help.sessions_args"), Help: l.T("terminal.help.sessions")},
		{Name: "/quit", Help: l.T("terminal.help.quit")},
	}
}

// key does what a key is for.
func (c *chat) key(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	c.note = ""
	switch {
	case c.start.Once:
		if key == "ctrl+c" || key == "esc" {
			c.result.Stopped = true
			c.leave()
		}
		return nil
	case key == "ctrl+c":
		return c.interrupt()
	case key == "ctrl+z":
		return tea.Suspend
	case key == "ctrl+l":
		return tea.ClearScreen
	case c.focus == picking:
		return c.pick(k)
	case c.focus == deciding:
		c.decideBy(key)
		return nil
	case key == "ctrl+d" && c.ed.text == "":
		c.leave()
		return nil
	case key == "ctrl+d":
		key = "delete"
	case key == "esc":
		c.escape()
		return nil
	}
	if len(c.menu.choices) > 0 {
		switch key {
		case "up", "ctrl+p":
			c.menu.move(-1)
			return nil
		case "down", "ctrl+n":
			c.menu.move(1)
			return nil
		case "tab":
			c.menu.take(&c.ed)
			c.look()
			return nil
		case "enter":
			whole := c.menu.choices[c.menu.at].whole
			if c.menu.take(&c.ed) && !whole {
				c.look()
				return nil
			}
		}
	}
	switch key {
	case "tab":
		if c.focus == composing && len(c.pending) > 0 {
			c.chosen, c.focus = c.latest(), deciding
		}
		return nil
	case "enter":
		return c.enter()
	case "up", "ctrl+p":
		if !c.ed.vertical(-1, c.room()) && c.focus == composing {
			c.history.move(-1, &c.ed)
		}
	case "down", "ctrl+n":
		if !c.ed.vertical(1, c.room()) && c.focus == composing {
			c.history.move(1, &c.ed)
		}
	default:
		if text := channel.Clean(k.Text); !c.ed.edit(key) && text != "" {
			c.insert(text)
		}
	}
	c.look()
	return nil
}

// look opens the menu where something can be completed.
func (c *chat) look() {
	if c.focus != composing {
		c.menu = menu{}
		return
	}
	c.menu.look(&c.ed, slices.Concat(c.t.handler.Commands(), c.own()), c.files)
}

func (c *chat) insert(text string) {
	if len(c.ed.text)+len(text) > maxText {
		c.note = c.t.opt.Lang.T("terminal.long_text", maxText>>10)
		return
	}
	c.ed.insert(text)
}

// paste takes what was pasted: a few lines as they are, more behind a mark.
func (c *chat) paste(text string) {
	if c.focus == picking || c.focus == deciding || c.start.Once {
		return
	}
	if len(text) > maxPaste {
		c.note = c.t.opt.Lang.T("terminal.long_paste", len(text)>>20, maxPaste>>20)
		return
	}
	text = channel.Clean(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
	lines := strings.Count(text, "\n") + 1
	if lines <= shownPasteLines && utf8.RuneCountInString(text) <= shownPaste {
		c.insert(text)
	} else {
		mark := c.t.opt.Lang.T("terminal.pasted", len(c.pastes)+1, lines)
		c.pastes[mark] = text
		c.insert(mark)
	}
	c.look()
}

// enter sends what was written, or answers what was asked.
func (c *chat) enter() tea.Cmd {
	if c.ed.at == len(c.ed.text) && strings.HasSuffix(c.ed.text, `\`) {
		c.ed.replace(c.ed.at-1, "\n")
		return nil
	}
	text := c.ed.text
	switch c.focus {
	case reasoning:
		c.decide(false, strings.TrimSpace(text))
		return nil
	case changing:
		if strings.TrimSpace(text) == "" {
			return nil
		}
		o := outgoing{c.chosen.session, c.t.opt.Lang.T("terminal.change", c.chosen.Job, text), c.pastes}
		c.pastes = map[string]string{}
		c.back()
		c.submit(o)
		return nil
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	o := outgoing{c.session, text, c.pastes}
	if full, _ := expanded(o); c.history.add(full) != nil {
		c.note = c.t.opt.Lang.T("terminal.no_history", c.history.path)
	}
	c.ed.set("")
	c.pastes, c.menu = map[string]string{}, menu{}
	switch word, rest, _ := strings.Cut(strings.TrimSpace(text), " "); {
	case word == "/quit" && rest == "":
		c.leave()
	case word == "/sessions" && c.turn != nil:
		c.note = c.t.opt.Lang.T("terminal.busy")
	case word == "/sessions" && rest == "":
		return c.list
	case word == "/sessions":
		if !GoodName(rest) {
			c.note = c.t.opt.Lang.T("terminal.bad_name", rest)
			return nil
		}
		return c.retell(named(c.session, rest))
	default:
		c.submit(o)
	}
	return nil
}

// GoodName reports whether a session may have that name: 1 to 40 letters, digits,
// dots, "_" and "-".
func GoodName(name string) bool {
	if name == "" || len(name) > 40 {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// ask takes the editor for something else than a message.
func (c *chat) ask(f focus) {
	c.focus, c.draft = f, c.ed.text
	c.ed.set("")
	c.menu = menu{}
}

// back returns to the message that was being written.
func (c *chat) back() {
	if c.focus == reasoning || c.focus == changing {
		c.ed.set(c.draft)
	}
	c.focus, c.picker = composing, nil
}

// escape leaves what is open, or stops the turn.
func (c *chat) escape() {
	switch {
	case len(c.menu.choices) > 0:
		c.menu = menu{shut: c.ed.text}
	case c.focus != composing:
		c.back()
	default:
		c.stop()
	}
}

// stop ends the turn. What waited behind it returns to the editor.
func (c *chat) stop() bool {
	if c.turn == nil || c.turn.stopped {
		return false
	}
	c.turn.stopped = true
	c.turn.stop(channel.ErrStopped)
	for _, o := range c.queue {
		c.ed.set(strings.TrimLeft(c.ed.text+"\n"+o.text, "\n"))
		maps.Copy(c.pastes, o.pastes)
	}
	c.queue = nil
	return true
}

// interrupt is Ctrl-C: it stops the turn, empties the editor, and leaves where it is
// pressed twice.
func (c *chat) interrupt() tea.Cmd {
	now := c.t.opt.Now()
	if now.Sub(c.armed) < leaveWithin {
		c.leave()
		return nil
	}
	c.armed = now
	if c.focus != composing {
		c.back()
	} else if !c.stop() {
		c.ed.set("")
		c.menu = menu{}
	}
	c.note = c.t.opt.Lang.T("terminal.again")
	return nil
}

func (c *chat) leave() {
	if c.turn != nil {
		c.turn.stop(channel.ErrStopped)
	}
	c.quitting = true
}

// decideBy is a key while one decides about a proposal.
func (c *chat) decideBy(key string) {
	switch key {
	case "a", "y":
		c.decide(true, "")
	case "d", "n":
		c.ask(reasoning)
	case "c":
		c.ask(changing)
	case "v":
		c.print(nil)
		for _, d := range diffLines(c.chosen.Diff) {
			c.print(hard(d, nil, plain("  "), c.columns())...)
		}
	case "left", "up":
		c.choose(-1)
	case "right", "down", "tab":
		c.choose(1)
	case "esc", "q":
		c.focus = composing
	}
}

// picker is the list of sessions.
type picker struct {
	all  []channel.Session
	word string // that narrows it
	at   int
}

func (p *picker) found(name func(string) string) (some []channel.Session) {
	for _, s := range p.all {
		if strings.Contains(strings.ToLower(name(s.ID)+" "+s.Title), strings.ToLower(p.word)) {
			some = append(some, s)
		}
	}
	return some
}

// pick is a key while one picks a session.
func (c *chat) pick(k tea.KeyPressMsg) tea.Cmd {
	p, some := c.picker, c.picker.found(c.name)
	switch k.String() {
	case "esc":
		c.back()
	case "up", "ctrl+p":
		p.at = max(p.at-1, 0)
	case "down", "ctrl+n":
		p.at = min(p.at+1, max(len(some)-1, 0))
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(p.word)
		p.word, p.at = p.word[:len(p.word)-n], 0
	case "enter":
		if len(some) == 0 {
			return nil
		}
		to := some[p.at].ID
		c.back()
		return c.retell(to)
	default:
		if k.Text != "" {
			p.word, p.at = p.word+channel.Clean(k.Text), 0
		}
	}
	return nil
}
