package line

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/channel"
)

const (
	secret = "channel-secret"
	token  = "access-token"
)

// vendor is LINE: it takes what the published description of the Messaging API allows
// (line-openapi, messaging-api.yml), and the limits of its reference where that is silent.
// What is against it fails the test.
type vendor struct {
	t *testing.T

	mu      sync.Mutex
	shown   []string // the texts that people see, a line for each
	chats   []string // whom each was shown to
	quoted  []string // quote tokens of them
	calls   []string // method and path, in order
	presses []press
	tokens  map[string]bool   // reply tokens that were not used yet
	keys    map[string]bool   // retry keys that were accepted
	content map[string][]byte // by message id
	faults  []fault           // of the calls to come, in order
	limit   int64             // of the month; 0 is none
	used    int64

	endpoint       string // of the webhook
	off, unreached bool   // the webhook
	behind         time.Duration
}

// press is a button that a person can press.
type press struct{ label, data string }

// fault is what a call to a path is answered instead, or though it was done.
type fault struct {
	path   string
	status int
	header http.Header
	body   string
	done   bool
}

func newVendor(t *testing.T) *vendor {
	return &vendor{t: t, tokens: map[string]bool{}, keys: map[string]bool{}, content: map[string][]byte{}, endpoint: "https://tori.example/webhooks/line"}
}

// RoundTrip makes it the transport of a client within a bubble of time.
func (v *vendor) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, req)
	if w.Code == 0 || w.Code == 599 {
		return nil, io.ErrUnexpectedEOF
	}
	return w.Result(), nil
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls = append(v.calls, r.Method+" "+r.URL.Path)
	if r.Header.Get("Authorization") != "Bearer "+token {
		fail(w, 401, "Authentication failed")
		return
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	if d, err := described(); err != nil {
		v.t.Error(err)
	} else if said := d.Check(r, r.URL.Path, body); said != "" {
		v.t.Errorf("%s %s: %s: %.500s", r.Method, r.URL.Path, said, body)
	}
	if i := slices.IndexFunc(v.faults, func(f fault) bool { return strings.HasPrefix(r.URL.Path, f.path) }); i >= 0 {
		f := v.faults[i]
		v.faults = slices.Delete(v.faults, i, i+1)
		if f.done {
			v.answer(httptest.NewRecorder(), r, body)
		}
		for k := range f.header {
			w.Header().Set(k, f.header.Get(k))
		}
		fail(w, f.status, f.body)
		return
	}
	v.answer(w, r, body)
}

func fail(w http.ResponseWriter, status int, said string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": said})
}

func (v *vendor) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	var in struct {
		To             string           `json:"to"`
		ReplyToken     string           `json:"replyToken"`
		Messages       []map[string]any `json:"messages"`
		Silent         bool             `json:"notificationDisabled"`
		Units          []string         `json:"customAggregationUnits"`
		ChatID         string           `json:"chatId"`
		LoadingSeconds int              `json:"loadingSeconds"`
		Endpoint       string           `json:"endpoint"`
	}
	if r.Method == http.MethodPost {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&in); err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			v.t.Errorf("%s %s: %v: %s", r.Method, r.URL.Path, err, body)
		}
	}
	path := r.URL.Path
	switch {
	case path == "/v2/bot/message/push" && r.Method == http.MethodPost:
		key := r.Header.Get("X-Line-Retry-Key")
		if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(key) || in.To == "" {
			v.t.Errorf("push to %q with the retry key %q", in.To, key)
		}
		if v.keys[key] {
			w.Header().Set("X-Line-Accepted-Request-Id", "1")
			fail(w, 409, "The retry key is already accepted")
			return
		}
		if v.limit > 0 && v.used >= v.limit {
			fail(w, 429, "You have reached your monthly limit.")
			return
		}
		v.used++
		v.keys[key] = true
		v.say(w, in.To, in.Messages)
	case path == "/v2/bot/message/reply" && r.Method == http.MethodPost:
		if !v.tokens[in.ReplyToken] {
			fail(w, 400, "Invalid reply token")
			return
		}
		delete(v.tokens, in.ReplyToken)
		v.say(w, "reply", in.Messages)
	case path == "/v2/bot/chat/loading/start" && r.Method == http.MethodPost:
		if !strings.HasPrefix(in.ChatID, "U") || in.LoadingSeconds < 5 || in.LoadingSeconds > 60 || in.LoadingSeconds%5 != 0 {
			v.t.Errorf("loading: %s", body)
		}
		w.WriteHeader(202)
		_, _ = io.WriteString(w, "{}")
	case path == "/v2/bot/message/quota":
		if v.limit == 0 {
			_, _ = io.WriteString(w, `{"type":"none"}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"type":"limited","value":%d}`, v.limit)
	case path == "/v2/bot/message/quota/consumption":
		_, _ = fmt.Fprintf(w, `{"totalUsage":%d}`, v.used)
	case path == "/v2/bot/info" && r.Method == http.MethodGet:
		w.Header().Set("Date", time.Now().Add(-v.behind).UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, `{"userId":"U0","basicId":"@tori","displayName":"tori","chatMode":"bot","markAsReadMode":"auto"}`)
	case path == "/v2/bot/channel/webhook/endpoint" && r.Method == http.MethodGet:
		if v.endpoint == "" {
			fail(w, 404, "Webhook endpoint not found")
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"endpoint": v.endpoint, "active": !v.off})
	case path == "/v2/bot/channel/webhook/test" && r.Method == http.MethodPost:
		if in.Endpoint != v.endpoint {
			v.t.Errorf("a test of %q", in.Endpoint)
		}
		answer := map[string]any{"success": true, "timestamp": "2026-01-02T03:04:05.678Z", "statusCode": 200, "reason": "OK", "detail": "200"}
		if v.unreached {
			answer["success"], answer["statusCode"], answer["reason"], answer["detail"] = false, 0, "COULD_NOT_CONNECT", "TLS handshake failure"
		}
		_ = json.NewEncoder(w).Encode(answer)
	case strings.HasSuffix(path, "/content"):
		data, known := v.content[strings.Split(path, "/")[4]]
		if !known {
			fail(w, 404, "Not found")
			return
		}
		_, _ = w.Write(data)
	default:
		v.t.Errorf("LINE has no %s %s", r.Method, path)
		fail(w, 404, "Not found")
	}
}

// say shows messages to a chat.
func (v *vendor) say(w http.ResponseWriter, to string, all []map[string]any) {
	if len(all) < 1 || len(all) > 5 {
		v.t.Errorf("%d messages in a request", len(all))
	}
	var sent []map[string]string
	for _, m := range all {
		quote, _ := m["quoteToken"].(string)
		v.shown, v.chats, v.quoted = append(v.shown, v.message(m)), append(v.chats, to), append(v.quoted, quote)
		sent = append(sent, map[string]string{"id": fmt.Sprint(len(v.shown)), "quoteToken": "q"})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"sentMessages": sent})
}

// message checks a message and returns what it shows.
func (v *vendor) message(m map[string]any) string {
	switch m["type"] {
	case "text":
		v.only(m, "type text quoteToken quickReply")
		if q, has := m["quickReply"].(map[string]any); has {
			all, _ := q["items"].([]any)
			if len(all) < 1 || len(all) > 13 {
				v.t.Errorf("%d quick replies", len(all))
			}
			for _, in := range all {
				v.action(in.(map[string]any)["action"])
			}
		}
		return v.text(m["text"], 5000)
	case "flex":
		v.only(m, "type altText contents")
		v.text(m["altText"], 400)
		bubble, _ := m["contents"].(map[string]any)
		if raw, _ := json.Marshal(bubble); len(raw) > 30<<10 {
			v.t.Errorf("a bubble has %d bytes", len(raw))
		}
		v.only(bubble, "type size body footer")
		if bubble["type"] != "bubble" || !slices.Contains(strings.Fields("nano micro deca hecto kilo mega giga"), fmt.Sprint(bubble["size"])) {
			v.t.Errorf("%v", bubble)
		}
		return v.component(bubble["body"]) + v.component(bubble["footer"])
	}
	v.t.Errorf("a message of the type %v", m["type"])
	return ""
}

func (v *vendor) text(x any, limit int) string {
	s, _ := x.(string)
	if strings.TrimSpace(s) == "" || channel.Units(s) > limit {
		v.t.Errorf("a text of %d units, of at most %d", channel.Units(s), limit)
	}
	return s
}

func (v *vendor) only(m map[string]any, fields string) {
	for k := range m {
		if !slices.Contains(strings.Fields(fields), k) {
			v.t.Errorf("%v has no field %s", m["type"], k)
		}
	}
}

// component checks a component of a Flex message and returns what it shows.
func (v *vendor) component(x any) string {
	c, _ := x.(map[string]any)
	size := func(of string) {
		if s := fmt.Sprint(c[of]); c[of] != nil && !slices.Contains(strings.Fields("none xxs xs sm md lg xl xxl"), s) {
			v.t.Errorf("%s %s", of, s)
		}
	}
	switch c["type"] {
	case "box":
		v.only(c, "type layout contents spacing flex")
		all, _ := c["contents"].([]any)
		if size("spacing"); c["layout"] != "vertical" || len(all) == 0 {
			v.t.Errorf("a box %v of %d", c["layout"], len(all))
		}
		var b strings.Builder
		for _, in := range all {
			b.WriteString(v.component(in) + "\n")
		}
		return b.String()
	case "text":
		v.only(c, "type text size color weight wrap flex maxLines scaling")
		if color, colored := c["color"].(string); colored && !regexp.MustCompile(`^#[0-9A-F]{6}$`).MatchString(color) {
			v.t.Errorf("the color %s", color)
		}
		size("size")
		return v.text(c["text"], 2000)
	case "button":
		v.only(c, "type action style height flex scaling")
		return v.action(c["action"])
	}
	v.t.Errorf("a component %v", c["type"])
	return ""
}

// action checks what a button does and returns what it shows.
func (v *vendor) action(x any) string {
	a, _ := x.(map[string]any)
	label := v.text(a["label"], 20)
	switch a["type"] {
	case "postback":
		v.only(a, "type label data displayText")
		v.text(a["displayText"], 300)
		v.presses = append(v.presses, press{label, v.text(a["data"], 300)})
	case "uri":
		v.only(a, "type label uri")
		if u, err := url.Parse(v.text(a["uri"], 1000)); err != nil || u.Scheme != "https" {
			v.t.Errorf("%v", a["uri"])
		}
		return "[" + label + "](" + a["uri"].(string) + ")"
	default:
		v.t.Errorf("an action %v", a["type"])
	}
	return "[" + label + "]"
}

// all is everything that people see.
func (v *vendor) all() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.shown, "\n")
}

// count is how often a path was called.
func (v *vendor) count(path string) (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range v.calls {
		if strings.HasSuffix(c, path) {
			n++
		}
	}
	return n
}

// signature is what LINE signs a request's body with.
func signature(key string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// callback is the body of a request with events.
func callback(events ...map[string]any) []byte {
	if events == nil {
		events = []map[string]any{}
	}
	body, _ := json.Marshal(map[string]any{"destination": "U0", "events": events})
	return body
}

// happens is an event of a source, "user:U1", "group:C1:U1" (a member of it), with more
// fields.
func (v *vendor) happens(id, kind, source string, more map[string]any) map[string]any {
	parts := strings.Split(source+"::", ":")
	from := map[string]any{"type": parts[0], parts[0] + "Id": parts[1]}
	if parts[2] != "" {
		from["userId"] = parts[2]
	}
	e := map[string]any{"type": kind, "mode": "active", "timestamp": time.Now().UnixMilli(), "webhookEventId": id, "deliveryContext": map[string]any{"isRedelivery": false}, "source": from}
	if kind != "unsend" && kind != "unfollow" && kind != "leave" {
		e["replyToken"] = "reply-" + id
		v.mu.Lock()
		v.tokens["reply-"+id] = true
		v.mu.Unlock()
	}
	for k, x := range more {
		e[k] = x
	}
	return e
}

// text is a message with a text.
func textOf(id, text string, mentionees ...map[string]any) map[string]any {
	m := map[string]any{"id": id, "type": "text", "text": text, "quoteToken": "quote-" + id}
	if mentionees != nil {
		m["mention"] = map[string]any{"mentionees": mentionees}
	}
	return map[string]any{"message": m}
}

// box is an inbox in memory.
type box struct {
	mu     sync.Mutex
	events []channel.Event
	known  map[string]bool
	err    error
}
