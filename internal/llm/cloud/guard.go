package cloud

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm"
	"toritsugi/internal/redact"
)

// Rule is how a client may be used.
type Rule struct {
	// Cloud says that what is sent leaves the user's machines (Policy.IsCloud).
	// The rest counts only then.
	Cloud bool
	// Allow is asked at each Send, before anything leaves; its error forbids the
	// call and is what the user reads. Nil allows.
	Allow func() error
	// Redact masks a text; it must be idempotent. Nil masks what
	// redact.Sanitizer.Strict knows without configuration.
	Redact func(string) string
	// Log is told how much was masked; nil is none.
	Log *slog.Logger
}

// Guard returns a client that keeps the rule, which is client itself where that
// is no cloud. It belongs around the client of a provider, below what moves,
// rewrites or repeats: what it passes on is what is transmitted.
//
// A call that is forbidden sends nothing and fails with an *llm.Error of
// llm.KindForbidden. What is allowed is masked as it is appended, tools and
// schemas as the conversation is opened; ids and what a provider wants back as
// it was (llm.Message.Opaque) are not, and images cannot be. A tool whose name
// or names of arguments would have to be masked makes every call of its
// conversation fail, also with llm.KindForbidden.
//
// Each Send that transmits masks or images for the first time logs "Masked for
// the cloud" with the attributes provider, model, masked (how many masks, also
// those that stood in a message before), kinds (how many of each), images, and total
// (masks in all that the conversation has sent, in what was appended again also).
func Guard(inner llm.Client, r Rule) llm.Client {
	if !r.Cloud {
		return inner
	}
	if r.Redact == nil {
		r.Redact = redact.New(nil, nil).Strict().String
	}
	r.Log = cmp.Or(r.Log, slog.New(slog.DiscardHandler))
	return &client{inner, r}
}

type client struct {
	llm.Client
	rule Rule
}

// Open starts a conversation; it is llm.Refillable where the inner one is.
func (c *client) Open(s llm.Settings) llm.Conversation {
	v := &conversation{client: c}
	s = v.settings(s)
	v.Conversation = c.Client.Open(s)
	return llm.Wrap(v, v.Conversation)
}

type conversation struct {
	llm.Conversation
	client *client
	broken error // what was to be offered cannot be masked
	opened tally // of the settings, until they were sent
	news   tally // of the messages appended since the last Send
	total  int   // masks sent so far
}

// Append adds a message as it may be sent.
func (v *conversation) Append(m llm.Message) {
	v.Conversation.Append(v.message(m))
}

// Reset forgets the messages, and what of them was not sent.
func (v *conversation) Reset() {
	v.Conversation.Reset()
	v.news = tally{}
}

// Send asks for the answer where that is allowed.
func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := v.forbidden(); err != nil {
		return nil, &llm.Error{Kind: llm.KindForbidden, Provider: v.client.Provider(), Message: err.Error(), Err: err}
	}
	v.report(ctx)
	reply, err := v.Conversation.Send(ctx, onText)
	v.report(ctx) // of what was appended again within the call
	return reply, err
}

func (v *conversation) forbidden() error {
	if allow := v.client.rule.Allow; allow != nil {
		if err := allow(); err != nil {
			return err
		}
	}
	return v.broken
}

// report logs what is new in what is sent.
func (v *conversation) report(ctx context.Context) {
	sum := v.opened
	sum.add(v.news)
	v.opened, v.news = tally{}, tally{}
	if sum.masked+sum.images == 0 {
		return
	}
	v.total += sum.masked
	v.client.rule.Log.InfoContext(ctx, "Masked for the cloud",
		"provider", v.client.Provider(), "model", v.client.Model(),
		"masked", sum.masked, "kinds", sum.kinds, "images", sum.images, "total", v.total)
}

// message is m as it may be sent. Of m nothing is changed.
func (v *conversation) message(m llm.Message) llm.Message {
	m.Content = v.text(&v.news, m.Content)
	m.Reasoning = v.text(&v.news, m.Reasoning)
	m.ToolName = v.text(&v.news, m.ToolName)
	copied := false
	for i, call := range m.ToolCalls {
		masked := call
		masked.Name = v.text(&v.news, call.Name)
		masked.Arguments = v.text(&v.news, call.Arguments)
		if masked == call {
			continue
		}
		if !copied {
			m.ToolCalls, copied = slices.Clone(m.ToolCalls), true
		}
		m.ToolCalls[i] = masked
	}
	v.news.images += len(m.Images)
	return m
}

// text masks s, and counts the masks in it.
func (v *conversation) text(t *tally, s string) string {
	if s == "" {
		return s
	}
	s = v.client.rule.Redact(s)
	t.count(s)
	return s
}

// setting masks s, and counts what is masked by that: a page may well speak of
// masks, and the ledger has no part in it.
func (v *conversation) setting(s string) string {
	masked := v.client.rule.Redact(s)
	v.opened.countNew(s, masked)
	return masked
}

// settings are s as they may be sent; where they cannot be, v is broken.
func (v *conversation) settings(s llm.Settings) llm.Settings {
	name := v.client.named()
	s.Tools = slices.Clone(s.Tools)
	for i := range s.Tools {
		t := &s.Tools[i]
		if masked := v.client.rule.Redact(t.Name); masked != t.Name {
			v.broken = i18n.E("cloud.tool_name", masked, name)
		}
		t.Description = v.setting(t.Description)
		schema, ok := v.schema(t.Schema)
		if !ok {
			v.broken = i18n.E("cloud.tool_schema", v.client.rule.Redact(t.Name), name)
		}
		t.Schema = schema
	}
	return s
}

// named is what the user knows the model by.
func (c *client) named() string { return c.Provider() + "/" + c.Model() }

// tally counts masks and images.
type tally struct {
	masked, images int
	kinds          map[string]int // by mask
}

// count adds the masks that stand in s.
func (t *tally) count(s string) {
	for _, m := range redact.Masks(s) {
		t.put(m, 1)
	}
}

// countNew adds the masks that stand in after and not in before.
func (t *tally) countNew(before, after string) {
	if before == after {
		return
	}
	var old, now tally
	old.count(before)
	now.count(after)
	for m, n := range now.kinds {
		if n > old.kinds[m] {
			t.put(m, n-old.kinds[m])
		}
	}
}

func (t *tally) put(mask string, n int) {
	if t.kinds == nil {
		t.kinds = map[string]int{}
	}
	t.kinds[mask] += n
	t.masked += n
}

func (t *tally) add(o tally) {
	t.images += o.images
	for m, n := range o.kinds {
		t.put(m, n)
	}
}
