package image

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"toritsugi/internal/llm"
)

// The forms in which a provider's client sends an image.
const (
	DataURI = "data_uri" // in image_url: OpenAI and those like it
	Base64  = "base64"   // bare, beside its type or without: Anthropic, Ollama
)

// The messages of the log records (route §7.3).
const (
	beforeRequest = "LLM image audit before request"
	afterTimeout  = "LLM image audit after timeout"
	category      = "provider.http"
)

// Options say what is audited, and how.
type Options struct {
	URLType string // DataURI or Base64
	// Allow returns why the model cannot be shown an image, "" where it can; nil
	// allows all. It must give the same answer for the same image, so that a
	// resumed conversation sends the same bytes. See Only and None.
	Allow func(llm.Image) (reason string)
	Log   *slog.Logger // nil logs nothing
	// Stat tells whether a plain file is at path, and its size in bytes; nil asks
	// the file system.
	Stat func(path string) (size int64, exists bool)
}

// Only allows images of some types, and where longest is not 0 only those whose
// base64 has at most that many characters, by which Anthropic counts.
func Only(longest int, types ...string) func(llm.Image) string {
	return func(i llm.Image) string {
		switch {
		case !slices.Contains(types, i.MediaType):
			return UnsupportedType
		case longest > 0 && base64.StdEncoding.EncodedLen(len(i.Data)) > longest:
			return FileTooLarge
		}
		return ""
	}
}

// None is the Allow of a model that takes no images.
func None(llm.Image) string { return NoImages }

// Audited returns a client that keeps a record of each image that goes to inner,
// or that was dropped before: before each request that carries its message, and,
// of those that went, again where the request timed out.
// Images that o.Allow refuses are taken out of their message, which says so
// instead. It wraps a client that speaks a vendor's format, not one that chooses
// among several.
func Audited(inner llm.Client, o Options) llm.Client {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Allow == nil {
		o.Allow = func(llm.Image) string { return "" }
	}
	if o.Stat == nil {
		o.Stat = stat
	}
	return &client{inner, o}
}

func stat(path string) (size int64, exists bool) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return 0, false
	}
	return st.Size(), true
}

type client struct {
	llm.Client
	options Options
}

// String is that of the client within, where it has one.
func (c *client) String() string { return fmt.Sprint(c.Client) }

// Open starts a conversation. It is llm.Refillable if that of inner is.
func (c *client) Open(s llm.Settings) llm.Conversation {
	v := &conversation{Conversation: c.Client.Open(s), options: &c.options}
	if inner, ok := v.Conversation.(llm.Refillable); ok {
		return &refillable{v, inner}
	}
	return v
}

// record is what is on record of one image of the conversation.
type record struct {
	source string
	url    string // a summary without the content
	length int    // of what is sent, in bytes; 0 where it is left out
	reason string // why it is left out
}

type conversation struct {
	llm.Conversation
	options *Options
	records []record
	told    map[record]bool // what was left out, and said
}

func (v *conversation) Append(m llm.Message) {
	for _, d := range m.Dropped {
		v.records = append(v.records, record{source: d.Source, reason: d.Reason})
	}
	if len(m.Images) > 0 {
		m = v.allowed(m)
	}
	v.Conversation.Append(m)
}

// allowed notes the images of a message and takes out what is not sent.
func (v *conversation) allowed(m llm.Message) llm.Message {
	var kept []llm.Image
	for n, i := range m.Images {
		prefix := "data:" + i.MediaType + ";base64,"
		r := record{source: i.Source, url: short(prefix) + "[omitted]", reason: v.options.Allow(i)}
		if len(i.Data) == 0 {
			r.reason = ReadFailed // every vendor refuses the whole request for it
		}
		if r.reason == "" {
			r.length = base64.StdEncoding.EncodedLen(len(i.Data))
			if v.options.URLType == DataURI {
				r.length += len(prefix)
			}
			kept = append(kept, i)
		} else {
			if m.Content != "" {
				m.Content += "\n"
			}
			m.Content += fmt.Sprintf("[image %d of this message was left out: %s]", n+1, r.reason)
		}
		v.records = append(v.records, r)
	}
	m.Images = kept
	return m
}

// short bounds what a record says of a type that is none.
func short(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}

func (v *conversation) Reset() {
	v.Conversation.Reset()
	v.records = nil
}

func (v *conversation) Send(ctx context.Context, onText func(string)) (*llm.Reply, error) {
	v.before(ctx)
	reply, err := v.Conversation.Send(ctx, onText)
	var e *llm.Error
	if errors.As(err, &e) && e.Kind == llm.KindTimeout || errors.Is(err, context.DeadlineExceeded) {
		v.after(ctx)
	}
	return reply, err
}

// before records every image of the request that follows.
func (v *conversation) before(ctx context.Context) {
	for _, r := range v.records {
		size, exists := v.options.Stat(r.source)
		level := slog.LevelInfo
		if r.reason != "" && !v.told[r] { // whoever looks after the run should know, once
			level = slog.LevelWarn
			if v.told == nil {
				v.told = map[record]bool{}
			}
			v.told[r] = true
		}
		r.log(ctx, v.options.Log, level, v.options.URLType, size, exists)
	}
}

func (r record) log(ctx context.Context, log *slog.Logger, level slog.Level, urlType string, size int64, exists bool) {
	log.LogAttrs(ctx, level, beforeRequest, slog.String("category", category),
		slog.String("source_path", r.source), slog.String("url_type", urlType), slog.String("image_url", r.url),
		slog.Int("image_url_length", r.length), slog.Bool("local_exists_before", exists), slog.Int64("local_size_before_bytes", size),
		slog.Bool("included", r.reason == ""), slog.String("drop_reason", r.reason))
}

// Dropped records an image that is left out before it comes to a request.
func Dropped(ctx context.Context, log *slog.Logger, path, reason string) {
	size, exists := stat(path)
	record{source: path, reason: reason}.log(ctx, log, slog.LevelWarn, DataURI, size, exists)
}

// after records whether the images of a request that timed out are still there.
func (v *conversation) after(ctx context.Context) {
	for _, r := range v.records {
		if r.reason != "" {
			continue
		}
		size, exists := v.options.Stat(r.source)
		attrs := []slog.Attr{slog.String("category", category), slog.String("source_path", r.source), slog.Bool("local_exists_after_timeout", exists)}
		if exists {
			attrs = append(attrs, slog.Int64("local_size_after_timeout_bytes", size))
		}
		v.options.Log.LogAttrs(ctx, slog.LevelWarn, afterTimeout, attrs...)
	}
}

// refillable is a conversation that may begin anew inside of Send.
type refillable struct {
	*conversation
	inner llm.Refillable
}

// OnMove names what refills the conversation. The request that is made then
// carries the images of what was appended again, and is on record as well.
func (v *refillable) OnMove(refill func() error) {
	v.inner.OnMove(func() error {
		v.records = nil
		if err := refill(); err != nil {
			return err
		}
		v.before(context.Background()) // refill has no context of its own
		return nil
	})
}
