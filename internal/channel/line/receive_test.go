package line

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// mention is the place of a mention in a text, counted as LINE does.
func mention(text, name string, more map[string]any) map[string]any {
	before, _, found := strings.Cut(text, name)
	if !found {
		panic(name)
	}
	m := map[string]any{"index": len(utf16.Encode([]rune(before))), "length": len(utf16.Encode([]rune(name)))}
	for k, x := range more {
		m[k] = x
	}
	return m
}

func TestMentions(t *testing.T) {
	self := map[string]any{"type": "user", "userId": "U0", "isSelf": true}
	other := map[string]any{"type": "user", "userId": "U2", "isSelf": false}
	all := map[string]any{"type": "all"}
	for name, c := range map[string]struct {
		text string
		at   []map[string]any
		want string // "" where nobody is meant
	}{
		"none":                           {"hello", nil, ""},
		"another one":                    {"@hanako hello", []map[string]any{mention("@hanako hello", "@hanako", other)}, ""},
		"the name typed by hand":         {"@tori hello", nil, ""},
		"itself":                         {"@tori /approve J H", []map[string]any{mention("@tori /approve J H", "@tori", self)}, "/approve J H"},
		"emoji before it, of two units":  {"🎉🎉 @tori 直して", []map[string]any{mention("🎉🎉 @tori 直して", "@tori", self)}, "🎉🎉  直して"},
		"a family, of eleven units":      {"👨‍👩‍👧‍👦@tori fix it", []map[string]any{mention("👨‍👩‍👧‍👦@tori fix it", "@tori", self)}, "👨‍👩‍👧‍👦 fix it"},
		"a name with emoji":              {"@鳥🐦 x", []map[string]any{mention("@鳥🐦 x", "@鳥🐦", self)}, "x"},
		"everybody":                      {"@All x", []map[string]any{mention("@All x", "@All", all)}, "x"},
		"both, and another one":          {"@hanako @tori @All x", []map[string]any{mention("@hanako @tori @All x", "@All", all), mention("@hanako @tori @All x", "@tori", self), mention("@hanako @tori @All x", "@hanako", other)}, "@hanako   x"},
		"no more than that":              {"@tori", []map[string]any{mention("@tori", "@tori", self)}, "@tori"},
		"beyond the text":                {"@tori x", []map[string]any{{"index": 3, "length": 900, "type": "user", "isSelf": true}}, "@tori x"},
		"before the text":                {"@tori x", []map[string]any{{"index": -3, "length": 2, "type": "user", "isSelf": true}}, "@tori x"},
		"zero-width and bidi characters": {"\u200b\u202e@tori x\u2060", []map[string]any{mention("\u200b\u202e@tori x\u2060", "@tori", self)}, "\u200b\u202e x\u2060"},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp(t, nil)
			r.writes("group:C1:U1", c.text, c.at...)
			told := r.h.Told()
			switch {
			case c.want == "" && len(told) > 0:
				t.Errorf("%+v", told)
			case c.want != "" && (len(told) != 1 || told[0].UserText != c.want || told[0].SessionID != "line:group:C1" || told[0].User != "line:U1"):
				t.Errorf("%+v, want %q", told, c.want)
			}
			if n := r.v.count("loading/start"); n > 0 {
				t.Errorf("a group was shown that an answer is written")
			}
		})
	}
}

func TestNobodyIsAnsweredWhoIsNotOnTheList(t *testing.T) {
	r := setUp(t, func(o *Options) { o.Allowed = func(string) bool { return false } })
	r.v.content["50"] = []byte("x")
	for range 3 {
		r.writes("user:U7", "let me in")
	}
	r.happen(
		r.v.happens("I", "message", "user:U7", map[string]any{"message": map[string]any{"id": "50", "type": "image", "contentProvider": map[string]any{"type": "line"}}}),
		r.v.happens("F", "follow", "user:U7", map[string]any{"follow": map[string]any{"isUnblocked": false}}),
		r.v.happens("N", "unsend", "user:U7", map[string]any{"unsend": map[string]any{"messageId": "1"}}),
		r.v.happens("P", "postback", "user:U7", map[string]any{"postback": map[string]any{"data": postback(actGrant, &channel.Approval{Job: "J", Hash: "H"})}}))
	if len(r.h.Told()) > 0 || len(r.h.Withdrawn()) > 0 || len(r.v.calls) > 0 {
		t.Errorf("%v, %v, %v", r.h.Told(), r.h.Withdrawn(), r.v.calls)
	}
}

func TestWhoWritesInAGroupIsLookedAt(t *testing.T) {
	r := setUp(t, nil)
	join := r.v.happens("J", "join", "group:C1", nil)
	r.happen(join)
	r.happen(join) // sent again
	all := map[string]any{"type": "all", "index": 0, "length": 4}
	r.writes("group:C1:U1", "@All x", all)
	r.writes("group:C1:U9", "@All y", all)
	r.writes("group:C1:", "@All who am I", all)                                                                        // LINE does not say who it was
	if told := r.h.Told(); len(told) != 1 || told[0].User != "line:U1" || r.v.all() != i18n.English.T("line.joined") { // by the reply token, once
		t.Errorf("%+v, %q", told, r.v.shown)
	}
}

func TestFollowAndLeave(t *testing.T) {
	r := setUp(t, func(o *Options) { o.Lang = i18n.Japanese })
	r.happen(r.v.happens("F", "follow", "user:U1", nil))
	if s := r.v.all(); s != i18n.Japanese.T("line.hello") {
		t.Error(s)
	}
	r.happen(r.v.happens("L", "unfollow", "user:U1", nil))
	r.post(channel.Post{SessionID: "line:user:U1", Key: "k1", Kind: channel.Answer, Text: "into the void"})
	r.happen(r.v.happens("F2", "follow", "user:U1", nil))
	r.post(channel.Post{SessionID: "line:user:U1", Key: "k2", Kind: channel.Answer, Text: "welcome back"})
	if s := r.v.all(); strings.Contains(s, "void") || !strings.Contains(s, "welcome back") {
		t.Error(s)
	}
}

func TestWhatIsUnsentIsWithdrawn(t *testing.T) {
	r := setUp(t, nil)
	r.happen(r.v.happens("N", "unsend", "group:C1:U1", map[string]any{"unsend": map[string]any{"messageId": "101"}}))
	if w := r.h.Withdrawn(); len(w) != 1 || w[0] != "line:group:C1 101" {
		t.Error(w)
	}
}

func TestWhatIsNoText(t *testing.T) {
	r := setUp(t, func(o *Options) { o.Lang = i18n.Japanese })
	for id, m := range map[string]map[string]any{
		"1": {"type": "audio", "duration": 1},
		"2": {"type": "video", "duration": 1},
		"3": {"type": "sticker", "packageId": "1", "stickerId": "2"},
		"4": {"type": "file", "fileName": "報告.pdf", "fileSize": 9},
		"5": {"type": "location", "title": "駅", "address": "京都", "latitude": 1.5, "longitude": 2.5},
		"6": {"type": "of a later year"},
	} {
		m["id"] = id
		r.happen(r.v.happens("E"+id, "message", "user:U1", map[string]any{"message": m}))
	}
	got := map[string]string{}
	for _, m := range r.h.Told() {
		got[m.ID] = m.UserText
	}
	for id, want := range map[string]string{"1": "［音声］", "2": "［動画］", "3": "［スタンプ］", "4": "［ファイル: 報告.pdf］", "5": "［位置情報: 駅 京都］"} {
		if got[id] != want {
			t.Errorf("%s: %q", id, got[id])
		}
	}
	if len(got) != 5 {
		t.Error(got)
	}
	if n := r.v.count("loading/start"); n != 6 {
		t.Errorf("shown %d times that an answer is written", n)
	}
}

func TestAButtonOfAnother(t *testing.T) {
	r := setUp(t, nil)
	for id, data := range map[string]string{"1": "", "2": "act=approve", "3": "act=run&job=J&hash=H", "4": "%zz", "5": `{"job":"J"}`} {
		r.happen(r.v.happens("P"+id, "postback", "user:U1", map[string]any{"postback": map[string]any{"data": data}}))
	}
	if told := r.h.Told(); len(told) > 0 {
		t.Errorf("%+v", told)
	}
	r.happen(r.v.happens("P9", "postback", "group:C1:U2", map[string]any{"postback": map[string]any{"data": postback(actDeny, &channel.Approval{Job: "J", Hash: "H"})}}))
	told := r.h.Told()
	if len(told) != 1 || told[0].ID != "P9" || told[0].User != "line:U2" || *told[0].Decision != (channel.Decision{Job: "J", Hash: "H"}) {
		t.Errorf("%+v", told)
	}
}

func TestAHandlersErrorLeavesTheEvent(t *testing.T) {
	r := setUp(t, nil)
	full := errors.New("no space left")
	r.h.Reply = func(context.Context, channel.Message) error { return full }
	body := callback(r.v.happens("E1", "message", "user:U1", textOf("1", "hello")))
	r.hook(http.MethodPost, body, signature(secret, body))
	if err := r.Receive(t.Context(), r.box.events[0], r.h); !errors.Is(err, full) {
		t.Error(err)
	}
}

func imageOf(id, provider string) map[string]any {
	return map[string]any{"message": map[string]any{"id": id, "type": "image", "quoteToken": "q", "contentProvider": map[string]any{"type": provider}}}
}

func TestImages(t *testing.T) {
	var small bytes.Buffer
	if err := png.Encode(&small, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	huge := append(bytes.Clone(small.Bytes()), make([]byte, 6<<20)...)
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, nil)
		r.v.content = map[string][]byte{"1": small.Bytes(), "2": huge, "3": []byte("<svg/>")}
		r.v.faults = []fault{{path: "/v2/bot/message/1/content", status: 503}} // it comes at the second time
		for _, id := range []string{"1", "2", "3", "4"} {
			r.happen(r.v.happens("E"+id, "message", "user:U1", imageOf(id, "line")))
		}
		r.happen(r.v.happens("E5", "message", "user:U1", imageOf("1", "external")))
		told := r.h.Told()
		if len(told) != 5 {
			t.Fatalf("%+v", told)
		}
		a := told[0].Attachments
		if len(a) != 1 || a[0].MediaType != "image/png" || !bytes.Equal(a[0].Content, small.Bytes()) || !strings.HasPrefix(told[0].UserText, "[image]") {
			t.Fatalf("%+v", told[0])
		}
		for i, why := range map[int]string{1: "larger than 5 MiB", 2: "not png", 3: "cannot be read", 4: "cannot be read"} {
			if m := told[i]; len(m.Attachments) > 0 || !strings.Contains(m.UserText, why) {
				t.Errorf("%d: %q", i, m.UserText)
			}
		}
		for _, want := range []string{"drop_reason=file_too_large", "drop_reason=unsupported_type", "drop_reason=read_failed", "category=provider.http", "included=false"} {
			if !strings.Contains(r.log.String(), want) {
				t.Errorf("%s is not in\n%s", want, r.log)
			}
		}
		st, err := os.Stat(a[0].Name)
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st, err)
		}
		time.Sleep(imagesKept + time.Second)
		synctest.Wait()
		if left, _ := os.ReadDir(r.opt.MediaDir); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

func TestImagesOfAnEarlierProcessAreDeleted(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	setUp(t, func(o *Options) { o.MediaDir = dir })
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}
