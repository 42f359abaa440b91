package conversation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contract"
	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/llm"
	"toritsugi/internal/models"
	"toritsugi/internal/routing"
)

// say adds a text of this turn to what Chat sees.
func (t *turn) say(role, text string) {
	t.said = append(t.said, llm.Message{Role: role, Content: text})
}

// frame adds what the program has to say to Chat: one of the prompts, with names in
// braces replaced.
func (t *turn) frame(name string, with map[string]string) {
	text := t.e.prompts.text("turn/" + name + ".md")
	for k, v := range with {
		text = strings.ReplaceAll(text, k, v)
	}
	t.add(text)
}

// add adds to the last thing that Chat is told, so that roles take turns.
func (t *turn) add(text string) {
	if n := len(t.said); n > 0 && t.said[n-1].Role == llm.RoleUser {
		t.said[n-1].Content += "\n\n" + text
		return
	}
	t.say(llm.RoleUser, text)
}

// material gives Chat what was found, and says what ended the turn before it was done.
func (t *turn) material(ctx context.Context) {
	s, err := t.x.state()
	if err != nil {
		return // the leg that follows says so
	}
	items := append(slices.Clone(s.Unsaid), t.items...)
	if len(items) > 0 {
		t.frame("material", nil)
		t.add(material(t.e.Lang, items, t.room(ctx)))
		t.researched(items)
	}
	switch t.stop {
	case "", routing.StopDone:
		if t.job == "" && len(t.items) > 0 && t.e.Limits.ChatReroute {
			t.frame("reroute", nil)
		}
		return
	}
	t.frame("stop_"+string(t.stop), nil)
	if questions := strings.Join(t.questions(), "\n"); questions != "" {
		t.frame("questions", map[string]string{"{questions}": questions})
	}
}

// questions are those of the latest worker.
func (t *turn) questions() []string {
	if len(t.items) == 0 {
		return nil
	}
	var last struct {
		Questions []string `json:"questions_for_user"`
	}
	_ = json.Unmarshal([]byte(t.items[len(t.items)-1].Text), &last) // it was made by ofOutput
	return last.Questions
}

// room is how many characters of material fit into a request of Chat: half of its window,
// at a token a character.
func (t *turn) room(ctx context.Context) int {
	spec, err := t.e.Models.Spec(ctx, useChat)
	if err != nil || spec.Context <= 0 {
		return leastContext / 2
	}
	return spec.Context / 2
}

// refer gives Chat what it may need to answer by itself: what an earlier answer owes, an
// analysis of before, who works on what.
func (t *turn) refer(ctx context.Context, s *State) {
	var items []Item
	items = append(items, s.Unsaid...)
	a, err := t.e.analyses.Same(ctx, t.m.User, sourceHash(t.decision.Text))
	if err == nil && a == nil {
		a, err = t.e.analyses.About(ctx, t.m.User, t.decision.Text)
	}
	if err != nil {
		t.e.Log.Warn("The analyses cannot be read: " + err.Error())
	}
	if a != nil {
		items = append(items, Item{Route: routing.Analyze, Task: a.Title + " (" + a.Created.In(t.e.Zone).Format(time.DateOnly) + ")", Text: string(a.Record)})
	}
	if len(items) > 0 {
		t.frame("reference", nil)
		t.add(material(t.e.Lang, items, t.room(ctx)))
	}
	if whoWorks().MatchString(t.decision.Text) {
		t.frame("status", map[string]string{"{status}": t.e.status(ctx, t.x.ID)})
	}
	t.attached()
}

// whoWorks finds the question what everyone is doing: the only one on which aliases are
// told.
var whoWorks = lazyregexp.New(`(?i)(みんな|皆|全員|チーム|メンバー).{0,20}(何|なに|状況|様子|作業|して)|what('s| is| are)\b.{0,20}\b(every|team|others|you all)|who('s| is) (doing|working)`)

// maxAttached is how much of an attached text Chat and workers are given, in characters.
const maxAttached = 12_000

// attached gives Chat the texts and images that came with the message.
func (t *turn) attached() {
	last := &t.said[len(t.said)-1]
	for _, a := range t.m.Attachments {
		switch {
		case strings.HasPrefix(a.MediaType, "image/"):
			last.Images = append(last.Images, llm.Image{MediaType: a.MediaType, Data: a.Content, Source: a.Name})
		case textual(a):
			last.Content += "\n\n" + t.file(a)
		}
	}
}

// file is an attached text as models are given it.
func (t *turn) file(a channel.Attachment) string {
	text, cut := contract.Shortened(t.e.Strict(strings.ToValidUTF8(string(a.Content), "\uFFFD")), maxAttached)
	if cut > 0 {
		text += "\n" + t.e.Lang.T("conversation.cut", cut)
	}
	return a.Name + ":\n" + llm.Tagged("facts", text)
}

func textual(a channel.Attachment) bool {
	return strings.HasPrefix(a.MediaType, "text/") || strings.HasPrefix(a.MediaType, "application/json") || strings.HasPrefix(a.MediaType, "application/yaml")
}

// workOverlay puts the work overlay before the message, so that the system prompt stays the
// same prefix. That it "comes before the persona" is its rank, which its text says: a message
// before the current one cannot stand before the system prompt (spec/facts §8.5).
func (t *turn) workOverlay(s *State) {
	if s.OverlayLeft < 1 || s.Overlay == "" {
		return
	}
	t.overlay = true
	t.said = slices.Insert(t.said, 0, llm.Message{Role: llm.RoleUser, Content: s.Overlay})
}

// useChat is what Chat and its summariser are wanted for.
var useChat = models.Use{Role: models.Chat, Route: string(routing.Chat)}

// grace is what Chat has at the least to say how a turn ended whose time is over.
const grace = 30 * time.Second

// ask has Chat answer to all that was said in the turn so far, and shows the answer while
// it is written.
func (t *turn) ask(ctx context.Context) (string, error) {
	c, spec, s, err := t.client(ctx, useChat)
	if err != nil {
		return "", err
	}
	defer t.l.begins(activity{Alias: spec.Alias, Route: routing.Chat, Since: t.e.Now()})()
	least := time.Duration(0)
	if len(t.items) > 0 || t.stop != "" {
		least = grace
	}
	limited, cancel := t.limited(ctx, least, false)
	defer cancel()
	conv := c.Open(llm.Settings{})
	msgs, err := t.request(&s, spec.Context)
	if err != nil {
		return "", err
	}
	for _, m := range msgs {
		conv.Append(m)
	}
	ready := t.warms(limited, &spec)
	defer ready(false)
	t.shown = t.streams(&s)
	filter := routing.NewStream(t.shown.write)
	reply, err := conv.Send(limited, func(delta string) {
		ready(true)
		filter.Write(delta)
	})
	if err != nil {
		return "", cause(limited, err)
	}
	return unnoticed(reply.Message.Content), nil
}

// maxHistory is how many entries a request reads at most.
const maxHistory = 400

// request is what Chat is sent: the system prompt, the short memory, what was said since
// then as far as it fits, and this turn.
func (t *turn) request(s *State, window int) ([]llm.Message, error) {
	limit := int(float64(window) * windowShare)
	msgs := []llm.Message{{Role: llm.RoleSystem, Content: t.e.prompts.system(t.x.kind, t.route, s.LocalOnly, t.mayHand)}}
	if s.ShortMemory != "" {
		msgs = append(msgs, llm.Message{Role: llm.RoleUser, Content: llm.Tagged("summary", s.ShortMemory)})
	}
	now := slices.Clone(t.said)
	for i := range now {
		now[i].Content = fitting(t.e.Lang, now[i].Content, limit/2)
	}
	for _, m := range append(slices.Clone(msgs), now...) {
		limit -= tokens(m.Content) + 8
	}
	past, err := t.past(s)
	if err != nil {
		return nil, err
	}
	past = slices.DeleteFunc(past, func(n Entry) bool { return n.Seq >= t.entry.Seq })
	past = unrepeated(append(past, t.entry))
	past = past[:len(past)-1]
	from := len(past)
	for from > 0 {
		if limit -= tokens(past[from-1].text()) + 8; limit < 0 {
			break
		}
		from--
	}
	for from < len(past) && past[from].Role == roleAssistant && s.ShortMemory == "" { // an answer to nothing
		from++
	}
	for _, n := range past[from:] {
		msgs = append(msgs, llm.Message{Role: n.Role, Content: n.text()})
	}
	return alternating(append(msgs, now...)), nil
}

// unrepeated leaves out of what was said, oldest first, a message that had no answer and was
// sent again.
func unrepeated(all []Entry) []Entry {
	var once []Entry
	for _, n := range all {
		if last := len(once) - 1; last >= 0 && once[last].Role == roleUser && n.Role == roleUser && strings.TrimSpace(once[last].text()) == strings.TrimSpace(n.text()) {
			once = once[:last]
		}
		once = append(once, n)
	}
	return once
}

// heard are the entries behind from and up to to, as far as they were said.
type heard struct {
	from, to int64
	said     []Entry
}

// past is what was said since the short memory and the day's cut. A turn reads of it only
// what came since it asked last. The caller owns the result.
func (t *turn) past(s *State) ([]Entry, error) {
	from := max(s.CutSeq, s.MemorySeq)
	if t.heard.from != from {
		t.heard = heard{from: from, to: from}
	}
	all, err := t.x.since(t.heard.to, maxHistory)
	if err != nil {
		return nil, err
	}
	if n := len(all); n > 0 {
		t.heard.to = all[n-1].Seq
	}
	all = slices.DeleteFunc(all, func(n Entry) bool { return !n.said() })
	t.heard.said = append(t.heard.said, all...)
	return slices.Clone(t.heard.said), nil
}

// alternating joins messages of the same role that follow each other, as a job that reports
// makes them: some templates of chat models refuse these.
func alternating(msgs []llm.Message) (all []llm.Message) {
	for _, m := range msgs {
		if n := len(all); n > 0 && all[n-1].Role == m.Role {
			all[n-1].Content += "\n\n" + m.Content
			all[n-1].Images = append(slices.Clip(all[n-1].Images), m.Images...)
			continue
		}
		all = append(all, m)
	}
	return all
}

// shown is what of an answer the user saw while it was written.
type shown struct {
	show    func(delta string) // "" begins anew
	strict  func(string) string
	settled func(string) int
	lead    string // the declaration

	now    func() time.Time
	mu     sync.Mutex
	raw    strings.Builder
	looked time.Time // at raw, for what of it may be shown
	sent   string
}

// maxStreamed is how much of an answer is streamed, in bytes; the rest comes with the whole.
const maxStreamed = 64 << 10

// An answer is looked at for secrets, which costs its length, at each word as long as it is
// short, then as often as people can see it grow.
const (
	eachWord    = 80 // bytes
	streamEvery = 25 * time.Millisecond
)

// streams is where the answer of a leg of Chat is shown while it is written.
func (t *turn) streams(s *State) *shown {
	v := &shown{strict: t.e.Strict, settled: t.e.Settled, now: t.e.Now, show: func(string) {}}
	if d := t.declaration(s); d != "" {
		v.lead = d + "\n"
	}
	if c, ok := t.e.channel(t.x.kind).(channel.Streamer); ok {
		v.show = func(delta string) { c.Stream(t.x.ID, t.m.ID, delta) }
	}
	if t.shown != nil && t.shown.text() != "" {
		v.show("")
	}
	return v
}

// write takes what may be seen of an answer. What is settled is shown, masked together with
// what stands before it; an answer that a mask changes in the past begins anew.
func (v *shown) write(delta string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.raw.Len() == 0 {
		v.raw.WriteString(v.lead)
	}
	v.raw.WriteString(delta)
	now := v.now()
	if n := v.raw.Len(); n > maxStreamed || n > eachWord && now.Sub(v.looked) < streamEvery {
		return
	}
	v.looked = now
	raw := v.raw.String()
	masked := v.strict(unnoticedSoFar(raw[:v.settled(raw)]))
	rest, ok := strings.CutPrefix(masked, v.sent)
	if !ok {
		v.show("")
		rest = masked
	}
	if rest != "" {
		v.show(rest)
	}
	v.sent = masked
}

// text is what may be kept of an answer that ends here: no half of a secret.
func (v *shown) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	raw := v.raw.String()
	return v.strict(unnoticedSoFar(raw[:v.settled(raw)]))
}
