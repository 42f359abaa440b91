package slack

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/channel"
	"toritsugi/internal/channel/channeltest"
)

func TestWhoIsAnsweredWhere(t *testing.T) {
	t.Parallel()
	root := func(text string) map[string]any {
		return map[string]any{"type": "message", "channel": "C2", "channel_type": "channel", "user": "U1", "text": text, "ts": "1700000002.1"}
	}
	dm := func(text string) map[string]any {
		return map[string]any{"type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "text": text, "ts": "1700000002.1"}
	}
	for name, test := range map[string]struct {
		event         map[string]any
		session, text string // "" for nobody is answered
	}{
		"a mention opens a thread":            {root("<@UBOT> fix it"), "slack:T1:C2:1700000002.1", "fix it"},
		"a mention alone":                     {root("<@UBOT>"), "slack:T1:C2:1700000002.1", "/help"},
		"a mention by event":                  {with(root("<@UBOT|tori>  fix it"), "type", "app_mention"), "slack:T1:C2:1700000002.1", "fix it"},
		"no mention in a channel":             {root("fix it"), "", ""},
		"a mention of another":                {root("<@U2> fix it"), "", ""},
		"a thread that is unknown":            {with(root("fix it"), "thread_ts", "1600000000.1"), "", ""},
		"a mention in such a thread":          {with(root("fix it, <@UBOT>"), "thread_ts", "1600000000.1"), "slack:T1:C2:1600000000.1", "fix it,"},
		"a thread with a session":             {in("1700000002.1", "and the tests?"), session, "and the tests?"},
		"in it, to another":                   {in("1700000002.1", "<@U2> what do you say?"), "", ""},
		"in it, shown in the channel, too":    {with(in("1700000002.1", "see"), "subtype", "thread_broadcast"), session, "see"},
		"a direct message":                    {dm("hello"), "slack:T1:D1", "hello"},
		"a thread of direct messages":         {with(dm("hello"), "thread_ts", "1600000000.1"), "slack:T1:D1:1600000000.1", "hello"},
		"somebody who is not on the list":     {with(dm("hello"), "user", "U3"), "", ""},
		"the bot itself":                      {with(dm("hello"), "user", bot), "", ""},
		"a bot":                               {with(dm("hello"), "bot_id", "B2", "subtype", "bot_message"), "", ""},
		"a bot without a subtype":             {with(dm("hello"), "bot_id", "B2"), "", ""},
		"somebody who joins":                  {with(dm("hello"), "subtype", "channel_join"), "", ""},
		"a group of people without a mention": {with(dm("hello"), "channel", "G1", "channel_type", "mpim"), "", ""},
		"entities":                            {dm("a &lt;b&gt; &amp;amp; <@U2> <#C1|general> <!here> <!subteam^S1|@ops> <https://x.example/?a=1&amp;b=2|the page> <https://y.example> <mailto:a@b.example|a@b.example>"), "slack:T1:D1", "a <b> &amp; @U2 #general @here @ops the page (https://x.example/?a=1&b=2) https://y.example a@b.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig) {
				r.says(test.event)
				told := r.h.Told()
				if test.session == "" {
					if len(told) != 0 || len(r.f.methods("reactions.add")) != 0 {
						t.Errorf("%+v", told)
					}
					return
				}
				if len(told) != 1 || told[0].SessionID != test.session || told[0].UserText != test.text || told[0].User != "slack:U1" {
					t.Fatalf("%+v", told)
				}
				if want := []string{told[0].ID + " eyes", told[0].ID + " white_check_mark"}; !slices.Equal(r.f.reactions, want) {
					t.Errorf("%q", r.f.reactions)
				}
			})
		})
	}
}

func TestOfAStrangerNothingIsRead(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		var asked []string
		r.restart(func(o *Options) { o.Allowed = func(user string) bool { asked = append(asked, user); return false } })
		r.f.files["a"] = "x"
		r.says(with(in("1700000002.1", "<@UBOT> hi"), "user", "U3", "files", []any{map[string]any{"name": "a", "url_private_download": "http://slack.test/files/a"}}))
		r.says(with(in("1700000002.2", "hi"), "user", "U4", "thread_ts", "1600000000.1")) // not to tori
		r.call("/webhooks/slack/commands", "application/x-www-form-urlencoded", slashCommand("x", "C1"), nil)
		r.interact(map[string]any{"type": "message_action", "callback_id": workOnThis, "user": map[string]any{"id": "U5"}, "channel": map[string]any{"id": "C1"}, "message": map[string]any{"ts": "1.1", "text": "t"}})
		r.work()
		if !slices.Equal(asked, []string{"U3", "U1", "U5"}) {
			t.Errorf("%q", asked)
		}
		for _, c := range r.f.calls {
			if c.method != "auth.test" {
				t.Errorf("%s was called", c.method)
			}
		}
		if told := r.h.Told(); len(told) != 0 {
			t.Errorf("%+v", told)
		}
	})
}

func TestEditsAndDeletions(t *testing.T) {
	t.Parallel()
	edited := func(before, after string, more ...any) map[string]any {
		now := with(map[string]any{"type": "message", "user": "U1", "text": after, "ts": "1700000002.1", "thread_ts": thread}, more...)
		return map[string]any{"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1700000003.1", "message": now,
			"previous_message": map[string]any{"type": "message", "user": "U1", "text": before, "ts": "1700000002.1", "thread_ts": thread}}
	}
	deleted := func(user, bot string) map[string]any {
		return map[string]any{"type": "message", "subtype": "message_deleted", "channel": "C1", "ts": "1700000003.1", "deleted_ts": "1700000002.1",
			"previous_message": map[string]any{"type": "message", "user": user, "bot_id": bot, "text": "x", "ts": "1700000002.1", "thread_ts": thread}}
	}
	const id = "C1.1700000002.1"
	for name, test := range map[string]struct {
		event                      map[string]any
		handled, revised, withdrew bool
	}{
		"an edit":                         {edited("fix it", "fix &amp; test it"), false, true, false},
		"a link that is shown":            {edited("https://x", "https://x"), false, false, false},
		"a mention that was taken away":   {edited("<@UBOT> it", "<@U2> it"), false, false, true},
		"a mention that came":             {edited("<@U2> it", "<@UBOT> it"), true, false, false},
		"an edit of ours":                 {edited("a", "b", "user", bot, "bot_id", "BBOT"), false, false, false},
		"an edit of a stranger":           {edited("a", "b", "user", "U3"), false, false, false},
		"a deletion":                      {deleted("U1", ""), false, false, true},
		"a deletion of ours":              {deleted(bot, "BBOT"), false, false, false},
		"the first message of the thread": {edited("a", "This message was deleted.", "subtype", "tombstone", "user", "USLACKBOT"), false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig) {
				r.event(test.event)
				if q := r.inbox.wait[0].Queue; q != "" {
					t.Errorf("it waits in %q", q)
				}
				r.work()
				told := r.h.Told()
				revised, withdrawn := r.h.Revised(), r.h.Withdrawn()
				if len(told) == 1 != test.handled || len(revised) == 1 != test.revised || slices.Equal(withdrawn, []string{session + " " + id}) != test.withdrew {
					t.Errorf("%+v\n%+v\n%q", told, revised, withdrawn)
				}
				if test.revised && (revised[0].ID != id || revised[0].UserText != "fix & test it" || revised[0].SessionID != session) {
					t.Errorf("%+v", revised[0])
				}
			})
		})
	}
}

func TestFilesIn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.f.files["a.png"] = "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 100)
		r.f.files["big"] = strings.Repeat("x", maxFile+1)
		file := func(name, url string, size int) any {
			return map[string]any{"id": "F1", "name": name, "size": size, "url_private_download": url}
		}
		r.says(with(in("1700000002.1", "look"), "subtype", "file_share", "files", []any{
			file("a.png", "http://slack.test/files/a.png", 108), file("evil\u202e.txt", "https://evil.example/files/a.png", 9), file("plain", "http://files.slack.com/a", 9),
			file("big", "http://slack.test/files/big", maxFile+1), file("lies", "http://slack.test/files/big", 5), file("gone", "http://slack.test/files/gone", 5), map[string]any{"name": "none"},
		}))
		told := r.h.Told()
		if len(told) != 1 || len(told[0].Attachments) != 1 {
			t.Fatalf("%+v", told)
		}
		if a := told[0].Attachments[0]; a.Name != "a.png" || a.MediaType != "image/png" || len(a.Content) != 108 {
			t.Errorf("%s %s %d", a.Name, a.MediaType, len(a.Content))
		}
		s := r.f.shown()
		for _, want := range []string{"evil.txt is not attached: it does not lie at Slack", "plain is not attached: it does not lie at Slack", "big is not attached", "lies is not attached", "gone is not attached: Slack does not hand it out (302 Found)", "none is not attached"} {
			if !strings.Contains(s, want) {
				t.Errorf("%q is not in\n%s", want, s)
			}
		}
	})
}

func TestButtons(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		user   string
		change func(map[string]any)
		want   int
	}{
		"a person on the list": {"U2", nil, 1},
		"a stranger":           {"U3", nil, 0},
		"in a copy that was forwarded": {"U1", func(p map[string]any) {
			p["container"] = map[string]any{"channel_id": "C9", "message_ts": "1700000009.1", "thread_ts": "1700000009.1"}
		}, 0},
		"in a message of somebody": {"U1", func(p map[string]any) {
			p["message"] = map[string]any{"user": "U2", "ts": "1.1", "thread_ts": thread}
		}, 0},
		"a button of another name": {"U1", func(p map[string]any) {
			p["actions"].([]any)[0].(map[string]any)["action_id"] = "other"
		}, 0},
		"a button without a value": {"U1", func(p map[string]any) {
			p["actions"].([]any)[0].(map[string]any)["value"] = ""
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig) {
				if err := r.s.Post(t.Context(), channeltest.Proposal(session)); err != nil {
					t.Fatal(err)
				}
				r.press(test.user, "deny", test.change)
				told := r.h.Told()
				if len(told) != test.want {
					t.Fatalf("%+v", told)
				}
				if test.want == 1 && (told[0].User != "slack:U2" || told[0].SessionID != session || told[0].Decision.Grant || len(r.f.reactions) > 0) {
					t.Errorf("%+v", told[0])
				}
			})
		})
	}
	bubble(t, func(t *testing.T, r *rig) { // twice: the second is the handler's to refuse
		if err := r.s.Post(t.Context(), channeltest.Proposal(session)); err != nil {
			t.Fatal(err)
		}
		r.press("U1", "approve", nil)
		r.press("U1", "approve", nil)
		if told := r.h.Told(); len(told) != 2 || told[0].ID == told[1].ID {
			t.Errorf("%+v", told)
		}
	})
}

func slashCommand(text, channel string) string {
	return url.Values{"command": {"/tori"}, "text": {text}, "user_id": {"U1"}, "channel_id": {channel}, "trigger_id": {text + channel}}.Encode()
}

func TestSlashCommand(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.h.Reply = func(ctx context.Context, m channel.Message) error {
			return r.s.Post(ctx, channel.Post{SessionID: m.SessionID, ReplyTo: m.ID, Key: m.ID, Kind: channel.Answer, Text: "done"})
		}
		const path, form = "/webhooks/slack/commands", "application/x-www-form-urlencoded"
		for range 2 {
			r.call(path, form, slashCommand("use <!channel> hunter2", "C1"), nil)
		}
		r.work()
		told := r.h.Told()
		if len(told) != 1 || told[0].UserText != "use @channel hunter2" {
			t.Fatalf("%+v", told)
		}
		root := r.f.messages[0]
		if told[0].SessionID != "slack:T1:C1:"+root.TS || r.f.messages[1].ThreadTS != root.TS || root.Text != "<@U1>: use &lt;!channel&gt; [SECRET]" {
			t.Errorf("%+v", root)
		}
		r.call(path, form, slashCommand("", "D1"), nil)
		r.work()
		if told := r.h.Told(); len(told) != 2 || told[1].SessionID != "slack:T1:D1" || told[1].UserText != "/help" {
			t.Errorf("%+v", told)
		}
	})
}

func TestWhereToriIsNot(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if c.method == "chat.postMessage" && c.args.Get("channel") == "C9" {
				return 200, `{"ok":false,"error":"not_in_channel"}`, nil
			}
			return 0, "", nil
		}
		r.call("/webhooks/slack/commands", "application/x-www-form-urlencoded", slashCommand("fix it", "C9"), nil)
		r.interact(map[string]any{"type": "message_action", "callback_id": workOnThis, "user": map[string]any{"id": "U1"}, "channel": map[string]any{"id": "C9"}, "message": map[string]any{"ts": "1.1", "text": "t"}})
		r.work()
		if told := r.h.Told(); len(told) != 0 {
			t.Errorf("%+v", told)
		}
		if s := r.f.shown(); strings.Count(s, "I am not in <#C9>. /invite me there") != 2 || r.f.messages[0].Channel != "U1" {
			t.Errorf("%s", s)
		}
	})
}

func TestShortcut(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.interact(map[string]any{"type": "message_action", "callback_id": workOnThis, "user": map[string]any{"id": "U2"}, "channel": map[string]any{"id": "C5"},
			"message": map[string]any{"type": "message", "subtype": "bot_message", "bot_id": "B7", "ts": "1700000002.1", "text": "", "attachments": []any{map[string]any{"fallback": "disk &lt;full&gt;"}}}})
		r.interact(map[string]any{"type": "message_action", "callback_id": "another", "user": map[string]any{"id": "U2"}, "channel": map[string]any{"id": "C5"}, "message": map[string]any{"ts": "1.1"}})
		r.work()
		told := r.h.Told()
		if len(told) != 1 || told[0].SessionID != "slack:T1:C5:1700000002.1" || told[0].User != "slack:U2" || told[0].UserText != "disk <full>" || !strings.HasPrefix(told[0].ID, "C5.1700000002.1.") {
			t.Fatalf("%+v", told)
		}
		if m := r.f.messages[0]; m.ThreadTS != "1700000002.1" || m.Text != "<@U2> asks to work on this." {
			t.Errorf("%+v", m)
		}
	})
}

func TestWhatFailedIsTriedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.event(in("1700000002.1", "hi"))
		e := r.inbox.wait[0]
		fault := errors.New("disk full")
		r.h.Reply = func(context.Context, channel.Message) error { return fault }
		if err := r.s.Receive(t.Context(), e, r.h); !errors.Is(err, fault) {
			t.Errorf("%v", err)
		}
		if slices.Contains(r.f.reactions, "C1.1700000002.1 white_check_mark") {
			t.Error("it is marked as answered")
		}
		r.f.fail = func(call, func()) (int, string, map[string][]string) {
			return 200, `{"ok":false,"error":"token_revoked"}`, nil
		}
		r.restart(nil)
		if err := r.s.Receive(t.Context(), e, r.h); err == nil || !strings.Contains(err.Error(), "issue it anew") {
			t.Errorf("%v", err)
		}
	})
}
