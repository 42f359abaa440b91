package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
	"toritsugi/internal/channel/terminal"
	"toritsugi/internal/i18n"
)

func main() {
	n := 0
	var t *terminal.Terminal
	ses := "terminal:me:0123"
	md, _ := os.ReadFile("/tmp/answer.md")
	h := &channeltest.Handler{Words: []channel.Command{{Name: "/approve", Args: "JOB [HASH]", Help: "approve a proposal"}, {Name: "/jobs", Help: "what jobs are doing", AtOnce: true}, {Name: "/local", Help: "ローカルだけで動く", AtOnce: true}},
		All: []channel.Session{{ID: ses, Title: "hello there", Last: time.Now(), Messages: 3}, {ID: ses + ":work", Title: "日本語の題", Last: time.Now(), Messages: 3}}}
	h.Reply = func(ctx context.Context, m channel.Message) error {
		post := func(k channel.PostKind, key, text string) {
			_ = t.Post(context.Background(), channel.Post{SessionID: m.SessionID, Key: key + m.ID, Kind: k, ReplyTo: m.ID, Text: text})
		}
		if m.Decision != nil {
			post(channel.Notice, "d", fmt.Sprintf("decision %+v", *m.Decision))
			return nil
		}
		switch {
		case strings.HasPrefix(m.UserText, "propose"):
			p := channeltest.Proposal(m.SessionID)
			p.Key += m.ID
			go func() {
				for i := range 6 {
					_ = t.Post(context.Background(), channel.Post{SessionID: m.SessionID, Key: fmt.Sprint("pr", i, m.ID), Kind: channel.Progress, Job: p.Job, Text: fmt.Sprintf("**reading** files %d/6", i)})
					time.Sleep(time.Second)
				}
				_ = t.Post(context.Background(), p)
			}()
			post(channel.Answer, "a", "I'll propose a patch.")
			return nil
		case strings.HasPrefix(m.UserText, "len"):
			post(channel.Answer, "a", fmt.Sprintf("%d bytes, %d attachments", len(m.UserText), len(m.Attachments)))
			return nil
		}
		t.Stream(m.SessionID, m.ID, "")
		said := ""
		for i := 0; i < len(md); i += 9 {
			d := string(md[i:min(i+9, len(md))])
			said += d
			t.Stream(m.SessionID, m.ID, d)
			select {
			case <-ctx.Done():
				post(channel.Answer, "a", said)
				return nil
			case <-time.After(15 * time.Millisecond):
			}
		}
		post(channel.Answer, "a", string(md))
		return nil
	}
	wd, _ := os.Getwd()
	o := terminal.Options{Session: ses, User: "terminal:me", Name: "acme/widgets", Repo: wd, Lang: i18n.Detect(os.Getenv), Now: time.Now, NewID: func() string { n++; return fmt.Sprint("m", n) },
		Files:   func(context.Context) ([]string, error) { return []string{"go.mod", "Makefile", "internal/cli/chat.go", "docs/日本語.md", "a b.txt"}, nil },
		History: "/tmp/trychat-history", Mask: func(s string) string { return s }, Environ: os.Environ(), In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	t = terminal.New(o)
	if len(os.Args) > 1 {
		r, err := t.Once(context.Background(), h, os.Args[1])
		fmt.Println(r, err)
		return
	}
	r, err := t.Chat(context.Background(), h, terminal.Start{})
	fmt.Println(r, err)
}
