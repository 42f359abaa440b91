package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"toritsugi/internal/channel/channeltest"
)

const (
	botToken = "xoxb-test"
	appToken = "xapp-test"
	bot      = "UBOT"
)

var described = sync.OnceValues(func() (*channeltest.Description, error) {
	return channeltest.ReadDescription("testdata/web-api.json")
})

// posted is a message as the fake keeps it.
type posted struct {
	message
	blocks  string
	deleted bool
	edits   int
	content string // of its file
}

type call struct {
	method string
	args   url.Values
	at     time.Time
}

// fake is a workspace of Slack on a network of its own.
type fake struct {
	t    *testing.T
	http *http.Client

	mu        sync.Mutex
	messages  []*posted
	calls     []call
	reactions []string
	files     map[string]string // by id or path
	uploaded  map[string]string
	clock     int64
	fail      func(c call, done func()) (status int, body string, header map[string][]string) // status 0 answers as usual
	sockets   []*websocket.Conn
	opened    chan *websocket.Conn
	strangers int // connections of others by the same app token
	acked     chan string
	page      int
	homes     []string // views that were published
	renewed   int      // how often tokens were renewed; while rotates, the bot token is that of freshToken
	rotates   bool
	forms     []string // views that were opened
}

// freshToken and freshRefresh are the tokens behind the n-th renewal.
func freshToken(n int) string   { return fmt.Sprint("xoxe.xoxb-1-", n) }
func freshRefresh(n int) string { return fmt.Sprint("xoxe-1-", n) }

// listener hands out the ends of pipes.
type listener struct {
	come   chan net.Conn
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.come:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *listener) Close() error   { close(l.closed); return nil }
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "slack"} }

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{t: t, files: map[string]string{}, uploaded: map[string]string{}, opened: make(chan *websocket.Conn, 8), acked: make(chan string, 256), page: 200}
	l := &listener{make(chan net.Conn), make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/{method}", f.method)
	mux.HandleFunc("POST /upload/{id}", f.upload)
	mux.HandleFunc("GET /files/{name}", f.file)
	mux.HandleFunc("GET /socket", f.socket)
	mux.HandleFunc("POST /well/webhooks/slack/events", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	srv := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() { _ = srv.Serve(l); close(done) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case l.come <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	f.http = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		f.mu.Lock()
		for _, c := range f.sockets {
			_ = c.Close()
		}
		f.mu.Unlock()
		_ = srv.Close()
		<-done
	})
	return f
}

// stamp is the ts of the next message. The caller holds mu.
func (f *fake) stamp() string {
	f.clock++
	return fmt.Sprintf("%d.%06d", time.Now().Unix(), f.clock)
}

func (f *fake) method(w http.ResponseWriter, r *http.Request) {
	c := call{r.PathValue("method"), nil, time.Now()}
	got, token := r.Header.Get("Authorization"), "Bearer "+botToken
	f.mu.Lock()
	expired := f.rotates && got != "Bearer "+freshToken(f.renewed)
	switch {
	case c.method == "apps.connections.open":
		token, expired = "Bearer "+appToken, false
	case c.method == "oauth.v2.access":
		token, expired = "", false
	case f.rotates:
		token = got
	}
	f.mu.Unlock()
	if got != token {
		f.t.Errorf("%s with %q", c.method, got)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	if d, err := described(); err != nil {
		f.t.Error(err)
	} else if said := d.Check(r, "/"+c.method, body); said != "" {
		f.t.Errorf("%s: %s: %s", c.method, said, body)
	}
	if c.args, err = url.ParseQuery(string(body)); err != nil {
		f.t.Error(err)
	}
	f.check(c)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, c)
	answer := ""
	done := func() { answer = f.do(c) }
	if expired {
		_, _ = io.WriteString(w, `{"ok":false,"error":"token_expired"}`)
		return
	}
	if f.fail != nil {
		if status, body, header := f.fail(c, done); status != 0 {
			for k, v := range header {
				w.Header()[k] = v
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return
		}
	}
	done()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Oauth-Scopes", strings.Join(botScopes(), ","))
	_, _ = io.WriteString(w, answer)
}

// check holds a call against the limits that the description is silent of.
func (f *fake) check(c call) {
	if n := len(c.args.Get("text")); c.method == "chat.update" && len([]rune(c.args.Get("text"))) > 4000 {
		f.t.Errorf("an edited message of %d bytes", n)
	}
	if b := c.args.Get("blocks"); b != "" {
		f.checkBlocks(b)
	}
}

func (f *fake) checkBlocks(raw string) {
	var all []struct {
		Type    string
		BlockID string `json:"block_id"`
		Text    struct{ Type, Text string }

		Elements []struct {
			Type     string
			ActionID string `json:"action_id"`
			Value    string
			Style    string
			Text     struct{ Type, Text string }
		}
	}
	if err := json.Unmarshal([]byte(raw), &all); err != nil {
		f.t.Error(err)
	}
	if len(all) > 50 {
		f.t.Errorf("%d blocks", len(all))
	}
	for _, b := range all {
		if n := len([]rune(b.Text.Text)); n > 3000 || b.Type == "section" && n == 0 || len(b.BlockID) > 255 {
			f.t.Errorf("a block of %d characters: %+v", n, b)
		}
		if b.Type != "section" && b.Type != "actions" || b.Type == "section" && b.Text.Type != "mrkdwn" || b.Type == "actions" && (len(b.Elements) < 1 || len(b.Elements) > 25) {
			f.t.Errorf("a block that Slack does not take: %+v", b)
		}
		for _, e := range b.Elements { // docs.slack.dev/reference/block-kit/block-elements/button-element
			if e.Type != "button" || e.Text.Type != "plain_text" || e.Text.Text == "" || len([]rune(e.Text.Text)) > 75 || len(e.ActionID) > 255 || len(e.Value) > 2000 || e.Style != "primary" && e.Style != "danger" && e.Style != "" {
				f.t.Errorf("a button that Slack does not take: %+v", e)
			}
		}
		if strings.Count(b.Text.Text, "```")%2 != 0 {
			f.t.Errorf("a fence is open: %s", b.Text.Text)
		}
	}
}

// do carries a call out. The caller holds mu.
func (f *fake) do(c call) string {
	refuse := func(code string) string { return `{"ok":false,"error":"` + code + `"}` }
	answer := func(v map[string]any) string {
		v["ok"] = true
		b, err := json.Marshal(v)
		if err != nil {
			f.t.Error(err)
		}
		return string(b)
	}
	find := func(ts string) *posted {
		for _, m := range f.messages {
			if m.Channel == c.args.Get("channel") && m.TS == ts && !m.deleted {
				return m
			}
		}
		return nil
	}
	switch c.method {
	case "oauth.v2.access":
		switch {
		case c.args.Get("grant_type") != "refresh_token":
			return refuse("invalid_grant_type")
		case c.args.Get("client_id") != "1.2" || c.args.Get("client_secret") != "hunter2":
			return refuse("bad_client_secret")
		case c.args.Get("refresh_token") != freshRefresh(f.renewed):
			return refuse("invalid_refresh_token")
		}
		f.renewed++
		return answer(map[string]any{"access_token": freshToken(f.renewed), "expires_in": 43200, "refresh_token": freshRefresh(f.renewed), "token_type": "bot", "scope": strings.Join(botScopes(), ","),
			"bot_user_id": bot, "app_id": "A1", "team": map[string]any{"id": "T1", "name": "Acme"}, "enterprise": nil, "is_enterprise_install": false})
	case "views.publish":
		var view struct {
			Type   string
			Blocks json.RawMessage
		}
		if err := json.Unmarshal([]byte(c.args.Get("view")), &view); err != nil || view.Type != "home" {
			f.t.Errorf("%v: %s", err, c.args.Get("view"))
		}
		f.checkBlocks(string(view.Blocks))
		f.homes = append(f.homes, c.args.Get("user_id")+" "+string(view.Blocks))
	case "views.open": // docs.slack.dev/reference/views/modal-views
		var view struct {
			Type                 string
			CallbackID           string `json:"callback_id"`
			Metadata             string `json:"private_metadata"`
			Title, Submit, Close struct{ Type, Text string }
			Blocks               []struct {
				Type, BlockID string
				Label         struct{ Type, Text string }
				Element       struct {
					Type      string
					MaxLength int `json:"max_length"`
				}
			}
		}
		if err := json.Unmarshal([]byte(c.args.Get("view")), &view); err != nil || view.Type != "modal" || len(view.Metadata) > 3000 || len(view.CallbackID) > 255 || len(view.Blocks) != 1 ||
			view.Blocks[0].Type != "input" || view.Blocks[0].Label.Text == "" || view.Blocks[0].Element.Type != "plain_text_input" || view.Blocks[0].Element.MaxLength > 3000 {
			f.t.Errorf("%v: %s", err, c.args.Get("view"))
		}
		for _, t := range []struct{ Type, Text string }{view.Title, view.Submit, view.Close} {
			if t.Type != "plain_text" || t.Text == "" || len([]rune(t.Text)) > 24 {
				f.t.Errorf("%+v", t)
			}
		}
		f.forms = append(f.forms, c.args.Get("trigger_id")+" "+view.CallbackID+" "+view.Metadata)
	case "auth.test":
		return answer(map[string]any{"team_id": "T1", "user_id": bot, "bot_id": "BBOT", "team": "Acme", "user": "tori", "url": "https://acme.slack.com/"})
	case "apps.connections.open":
		return answer(map[string]any{"url": "ws://slack.test/socket?ticket=secret-ticket"})
	case "chat.postMessage":
		m := &posted{message: message{Channel: c.args.Get("channel"), ThreadTS: c.args.Get("thread_ts"), Text: c.args.Get("text"), TS: f.stamp(), User: bot, BotID: "BBOT"}, blocks: c.args.Get("blocks")}
		if d := c.args.Get("metadata"); d != "" {
			if err := json.Unmarshal([]byte(d), &m.Metadata); err != nil {
				f.t.Error(err)
			}
		}
		f.messages = append(f.messages, m)
		return answer(map[string]any{"ts": m.TS, "channel": m.Channel})
	case "chat.update":
		m := find(c.args.Get("ts"))
		if m == nil {
			return refuse("message_not_found")
		}
		m.Text, m.blocks = c.args.Get("text"), c.args.Get("blocks")
		m.edits++
		return answer(map[string]any{"ts": m.TS})
	case "chat.delete":
		m := find(c.args.Get("ts"))
		if m == nil {
			return refuse("message_not_found")
		}
		m.deleted = true
	case "reactions.add":
		mark := c.args.Get("channel") + "." + c.args.Get("timestamp") + " " + c.args.Get("name")
		if slices.Contains(f.reactions, mark) {
			return refuse("already_reacted")
		}
		f.reactions = append(f.reactions, mark)
	case "conversations.replies", "conversations.history":
		return answer(f.history(c))
	case "files.getUploadURLExternal":
		id := "F" + strconv.Itoa(len(f.uploaded)+1)
		f.uploaded[id] = ""
		return answer(map[string]any{"upload_url": "http://slack.test/upload/" + id, "file_id": id})
	case "files.completeUploadExternal":
		var all []struct{ ID, Title string }
		if err := json.Unmarshal([]byte(c.args.Get("files")), &all); err != nil {
			f.t.Error(err)
		}
		for _, x := range all {
			f.messages = append(f.messages, &posted{message: message{Channel: c.args.Get("channel_id"), ThreadTS: c.args.Get("thread_ts"), TS: f.stamp(), User: bot, Files: []file{{ID: x.ID, Title: x.Title}}}, content: f.uploaded[x.ID]})
		}
	}
	return answer(map[string]any{})
}

// history is a page of a channel or thread, the threads' oldest first, as Slack has it.
func (f *fake) history(c call) map[string]any {
	var all []message
	oldest, _ := strconv.ParseInt(c.args.Get("oldest"), 10, 64)
	for _, m := range f.messages {
		seconds, _ := strconv.ParseInt(strings.Split(m.TS, ".")[0], 10, 64)
		if m.Channel == c.args.Get("channel") && !m.deleted && seconds >= oldest && (m.ThreadTS == c.args.Get("ts") || m.TS == c.args.Get("ts")) {
			all = append(all, m.message)
		}
	}
	if c.method == "conversations.history" {
		slices.Reverse(all)
	}
	from, _ := strconv.Atoi(c.args.Get("cursor"))
	end, next := min(len(all), from+f.page), ""
	if end < len(all) {
		next = strconv.Itoa(end)
	}
	return map[string]any{"messages": all[from:end], "response_metadata": map[string]any{"next_cursor": next}}
}

func (f *fake) upload(_ http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "" {
		f.t.Errorf("%v, or an upload with a token", err)
	}
	f.mu.Lock()
	f.uploaded[r.PathValue("id")] = string(b)
	f.mu.Unlock()
}

func (f *fake) file(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	content, ok := f.files[r.PathValue("name")]
	f.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+botToken || !ok {
		http.Redirect(w, r, "http://slack.test/?redir=x", http.StatusFound)
		return
	}
	_, _ = io.WriteString(w, content)
}

func (f *fake) socket(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	c, err := up.Upgrade(w, r, nil)
	if err != nil {
		f.t.Error(err)
		return
	}
	f.mu.Lock()
	f.sockets = append(f.sockets, c)
	n := 1 + f.strangers
	f.mu.Unlock()
	if err := c.WriteJSON(map[string]any{"type": "hello", "num_connections": n}); err != nil {
		return
	}
	f.opened <- c
	for {
		var ack struct {
			ID string `json:"envelope_id"`
		}
		if c.ReadJSON(&ack) != nil {
			return
		}
		f.acked <- ack.ID
	}
}

// shown is what people see, oldest first.
func (f *fake) shown() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for _, m := range f.messages {
		if m.deleted {
			continue
		}
		text := m.Text
		if m.blocks != "" {
			text = ""
			var all []struct {
				Text     struct{ Text string }
				Elements []struct{ Text struct{ Text string } }
			}
			if err := json.Unmarshal([]byte(m.blocks), &all); err != nil {
				f.t.Error(err)
			}
			for _, x := range all {
				text += x.Text.Text + "\n"
				for _, e := range x.Elements {
					text += "[" + e.Text.Text + "]"
				}
			}
		}
		b.WriteString(characters.Replace(text) + m.content + "\n")
	}
	return b.String()
}

// methods are the calls of a method so far.
func (f *fake) methods(name string) (all []call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.method == name {
			all = append(all, c)
		}
	}
	return all
}
