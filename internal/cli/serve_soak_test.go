package cli

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/llm/llmtest"
)

const (
	lineSecret  = "line-channel-secret-of-a-test"
	slackSecret = "slack-signing-secret-of-a-test"
	slackBot    = "UBOT"
	httpSecret  = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
)

// vendors are LINE, Slack and a bridge for a test: what was said at which place, in order. Now and then
// they refuse, break, or break after they did what they were asked.
type vendors struct {
	t    *testing.T
	ctx  context.Context
	http *httptest.Server

	mu     sync.Mutex
	random *rand.Rand
	faults bool
	clock  int
	said   map[string][]utterance // what we said, by place
	came   map[string]chan struct{}
	tokens map[string]time.Time // reply tokens that are not used, and from when
	keys   map[string]bool      // retry keys, and ids of posts, that were used
	slack  map[string][]slackMessage
}

// utterance is something that was said at a place, or put in the place of what was.
type utterance struct {
	text      string
	job, hash string // of a proposal's buttons
	ts        string // of a message of Slack
	instead   bool   // it was there before
}

type slackMessage struct {
	TS       string          `json:"ts"`
	ThreadTS string          `json:"thread_ts,omitempty"`
	User     string          `json:"user"`
	BotID    string          `json:"bot_id"`
	Text     string          `json:"text"`
	Metadata json.RawMessage `json:"metadata,omitempty"`

	place string // where it is
}

func newVendors(ctx context.Context, t *testing.T, seed uint64) *vendors {
	t.Helper()
	v := &vendors{t: t, ctx: ctx, random: rand.New(rand.NewPCG(seed, 1)), faults: true, said: map[string][]utterance{}, came: map[string]chan struct{}{},
		tokens: map[string]time.Time{}, keys: map[string]bool{}, slack: map[string][]slackMessage{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/bot/message/{how}", v.line)
	mux.HandleFunc("POST /v2/bot/chat/loading/start", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("{}"))
	})
	mux.HandleFunc("GET /v2/bot/message/quota", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"type":"none"}`))
	})
	mux.HandleFunc("POST /api/{method}", v.api)
	mux.HandleFunc("POST /bridge", v.bridge)
	v.http = httptest.NewServer(mux)
	t.Cleanup(v.http.Close)
	return v
}

// show is called with mu held.
func (v *vendors) show(place string, m utterance) {
	v.said[place] = append(v.said[place], m)
	select {
	case v.came[place] <- struct{}{}:
	default:
	}
}

// faulty has do done, or not, and reports whether the answer is taken from it. One call in ten
// meets a fault.
func (v *vendors) faulty(w http.ResponseWriter, do func()) bool {
	at := v.random.IntN(40)
	if !v.faults || at > 3 {
		return false
	}
	w.Header().Set("Retry-After", "1")
	switch at {
	case 0:
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"ok":false,"error":"ratelimited"}`))
		return true
	case 1:
		w.WriteHeader(http.StatusInternalServerError)
		return true
	case 2:
		do()
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	do()
	panic(http.ErrAbortHandler)
}

// lineButton is the data of a button that grants.
var lineButton = regexp.MustCompile(`"act=approve&hash=([0-9a-f]+)&job=([^"]+)"`)

// line says messages by a reply token, once, or by a push, once for each retry key.
func (v *vendors) line(w http.ResponseWriter, r *http.Request) {
	var in struct {
		To, ReplyToken string
		Messages       []struct {
			Text, AltText string
			Contents      json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		v.t.Error(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	status, answer, place := http.StatusOK, `{"sentMessages":[]}`, "line/"+in.To
	do := func() {}
	key := r.Header.Get("X-Line-Retry-Key")
	switch {
	case r.PathValue("how") == "reply":
		token, _, _ := strings.Cut(in.ReplyToken, ".")
		place = "line/" + token
		if at, ok := v.tokens[in.ReplyToken]; !ok || time.Since(at) > time.Minute {
			status, answer = http.StatusBadRequest, `{"message":"Invalid reply token"}`
			break
		}
		do = func() { delete(v.tokens, in.ReplyToken) }
	case v.keys[key]:
		status, answer = http.StatusConflict, `{"message":"The retry key is already accepted"}`
	default:
		do = func() { v.keys[key] = true }
	}
	all := func() {
		do()
		for _, m := range in.Messages {
			if status == http.StatusOK {
				one := utterance{text: m.Text + m.AltText}
				if b := lineButton.FindStringSubmatch(strings.ReplaceAll(string(m.Contents), `\u0026`, "&")); b != nil {
					one.hash, one.job = b[1], b[2]
				}
				v.show(place, one)
			}
		}
	}
	if v.faulty(w, all) {
		return
	}
	all()
	w.WriteHeader(status)
	_, _ = w.Write([]byte(answer))
}

// bridge shows each post once.
func (v *vendors) bridge(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was killed
	}
	id := r.Header.Get("webhook-id")
	var in struct {
		Conversation, Thread, Kind, Text string
		Approval                         struct{ Job, Hash, Status string }
	}
	if err := json.Unmarshal(body, &in); err != nil || r.Header.Get("webhook-signature") != bridged(id, r.Header.Get("webhook-timestamp"), body) {
		v.t.Errorf("%v: %v %s", err, r.Header, body)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	do := func() {
		if !v.keys[id] {
			v.keys[id] = true
			m := utterance{text: in.Text}
			if in.Approval.Status == "pending" {
				m.job, m.hash = in.Approval.Job, in.Approval.Hash
			}
			if in.Kind != "progress" {
				v.show("http/"+in.Conversation+"/"+in.Thread, m)
			}
		}
	}
	if !v.faulty(w, do) {
		do()
	}
}

// slackButton is the value of a button that grants.
var slackButton = regexp.MustCompile(`"action_id":"approve"[^]]*?"value":"(\S+) ([0-9a-f]+)"`)

// api is Slack's Web API.
func (v *vendors) api(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		v.t.Error(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.Context().Err() != nil { // who sent it was killed: Slack has no key by which it would know it again
		panic(http.ErrAbortHandler)
	}
	answer := map[string]any{"ok": true}
	in, thread := r.PostForm.Get("channel"), r.PostForm.Get("thread_ts")
	do := func() {}
	switch r.PathValue("method") {
	case "auth.test":
		answer["team_id"], answer["user_id"], answer["bot_id"] = "T1", slackBot, "BBOT"
	case "chat.postMessage":
		v.clock++
		m := slackMessage{TS: fmt.Sprintf("%d.%06d", time.Now().Unix(), v.clock), ThreadTS: thread, User: slackBot, BotID: "BBOT", Text: r.PostForm.Get("text"), Metadata: json.RawMessage(r.PostForm.Get("metadata"))}
		answer["ts"] = m.TS
		m.place = "slack/" + in + "/" + thread
		do = func() {
			v.slack[in] = append(v.slack[in], m)
			if !strings.Contains(string(m.Metadata), "/progress/") {
				one := utterance{text: m.Text, ts: m.TS}
				if b := slackButton.FindStringSubmatch(r.PostForm.Get("blocks")); b != nil {
					one.job, one.hash = b[1], b[2]
				}
				v.show(m.place, one)
			}
		}
	case "chat.update", "chat.delete":
		at := slices.IndexFunc(v.slack[in], func(m slackMessage) bool { return m.TS == r.PostForm.Get("ts") })
		if at < 0 {
			answer = map[string]any{"ok": false, "error": "message_not_found"}
			break
		}
		m := &v.slack[in][at]
		do = func() {
			if r.PathValue("method") == "chat.delete" {
				v.slack[in] = slices.Delete(v.slack[in], at, at+1)
			} else if m.Text = r.PostForm.Get("text"); !strings.Contains(string(m.Metadata), "/progress/") {
				v.show(m.place, utterance{text: m.Text, ts: m.TS, instead: true})
			}
		}
	case "conversations.replies", "conversations.history":
		thread = r.PostForm.Get("ts")
		all := []slackMessage{}
		for _, m := range v.slack[in] {
			if m.ThreadTS == thread {
				all = append(all, m)
			}
		}
		if r.PathValue("method") == "conversations.history" {
			slices.Reverse(all)
		}
		from, _ := strconv.Atoi(r.PostForm.Get("cursor"))
		end := min(len(all), from+200)
		answer["messages"] = all[from:end]
		if end < len(all) {
			answer["response_metadata"] = map[string]string{"next_cursor": strconv.Itoa(end)}
		}
	case "reactions.add":
	default:
		v.t.Errorf("Slack has no use for %s here", r.PathValue("method"))
	}
	if v.faulty(w, do) {
		return
	}
	do()
	_ = json.NewEncoder(w).Encode(answer)
}

// patience is how long nobody may be told anything, though somebody waits.
const patience = time.Minute

// watch gives up where nothing is said any more.
func (v *vendors) watch(giveUp func()) {
	for before := -1; ; {
		v.mu.Lock()
		now := 0
		for _, all := range v.said {
			now += len(all)
		}
		v.mu.Unlock()
		if now == before {
			giveUp()
			return
		}
		before = now
		select {
		case <-time.After(patience):
		case <-v.ctx.Done():
			return
		}
	}
}

// talker is somebody at one place who talks with tori.
type talker struct {
	v      *vendors
	random *rand.Rand
	tori   string // the address that it serves at
	n      int
	kind   string // "line", "slack" or "http"
	shared bool   // a group, a channel, or a thread
	room   string // the conversation's id
	thread string
	asked  []string
	latest int             // how much of what was said at the place has been read
	again  []func()        // have the latest events sent once more
	came   <-chan struct{} // something was said at the place
	forged *atomic.Int64
}

// place is where k talks, as vendors names it.
func (k *talker) place() string {
	if k.kind == "line" {
		return "line/" + k.room
	}
	return k.kind + "/" + k.room + "/" + k.thread
}

// signer puts the headers that sign a body.
type signer func(h http.Header, stamp string, body []byte)

// send has one event delivered as vendors do: again and again until it is taken, and now and then
// once more, when others came behind it. What is forged, cut short or of another time is refused.
func (k *talker) send(path string, sign signer, body []byte) {
	k.deliver(path, sign, body)
	k.again = append(k.again[max(0, len(k.again)-7):], func() { k.deliver(path, sign, body) })
	if k.random.IntN(8) == 0 {
		k.again[k.random.IntN(len(k.again))]()
	}
}

func (k *talker) deliver(path string, sign signer, body []byte) {
	for k.v.ctx.Err() == nil {
		stamp, signed, sent, forged := time.Now(), body, body, k.random.IntN(30) == 0
		switch how := k.random.IntN(3); {
		case !forged:
		case how == 0:
			sent = body[:len(body)/2]
		case how == 1 && k.kind != "line": // whose signatures are of no time
			stamp = stamp.Add(-10 * time.Minute)
		default:
			signed = append([]byte("forged"), body...)
		}
		r, err := http.NewRequestWithContext(k.v.ctx, http.MethodPost, "http://"+k.tori+path, bytes.NewReader(sent))
		if err != nil {
			k.v.t.Error(err)
			return
		}
		sign(r.Header, strconv.FormatInt(stamp.Unix(), 10), signed)
		r.Host = "tori.example"
		a, err := http.DefaultClient.Do(r)
		switch {
		case err != nil: // it was killed, or is not there yet
		case forged && (a.StatusCode == http.StatusForbidden || a.StatusCode == http.StatusUnauthorized):
			k.forged.Add(1)
		case forged:
			k.v.t.Errorf("a forged event was answered with %s", a.Status)
		case a.StatusCode == http.StatusOK:
			_ = a.Body.Close()
			if k.random.IntN(6) > 0 {
				return
			}
			continue // it comes again, though it was taken
		}
		if err == nil {
			_ = a.Body.Close()
		}
		<-time.After(time.Duration(20+k.random.IntN(100)) * time.Millisecond)
	}
}

// tick is the time of the vendors.
func (k *talker) tick() int {
	k.v.mu.Lock()
	defer k.v.mu.Unlock()
	k.v.clock++
	return k.v.clock
}

// word is the nth word.
func (k *talker) word(n int) string { return fmt.Sprintf("word %d of %s/%s", n, k.kind, k.room) }

// say says a text.
func (k *talker) say(text string) {
	clock, user := k.tick(), fmt.Sprintf("U%d", k.n)
	switch k.kind {
	case "line":
		k.sayLINE(clock, user, text)
	case "slack":
		k.saySlack(clock, user, text)
	default:
		k.sendHTTP(clock, map[string]any{"kind": "message", "id": fmt.Sprintf("M%d", clock), "conversation": k.room, "thread": k.thread, "user": map[string]any{"id": user}, "text": text})
	}
}

func (k *talker) sendHTTP(clock int, event map[string]any) {
	id := fmt.Sprintf("E%d", clock)
	k.send("/webhooks/http", func(h http.Header, stamp string, b []byte) {
		h.Set("webhook-id", id)
		h.Set("webhook-timestamp", stamp)
		h.Set("webhook-signature", bridged(id, stamp, b))
	}, k.json(event))
}

func (k *talker) sayLINE(clock int, user, text string) {
	token := fmt.Sprintf("%s.%d", k.room, clock)
	k.v.mu.Lock()
	k.v.tokens[token] = time.Now()
	k.v.mu.Unlock()
	m := map[string]any{"id": fmt.Sprintf("M%d", clock), "type": "text", "text": text, "quoteToken": "q"}
	if k.shared {
		m["text"] = "@tori " + text
		m["mention"] = map[string]any{"mentionees": []map[string]any{{"index": 0, "length": 5, "type": "user", "isSelf": true}}}
	}
	k.sendLINE(clock, user, map[string]any{"type": "message", "replyToken": token, "message": m})
}

func (k *talker) sendLINE(clock int, user string, e map[string]any) {
	maps.Copy(e, map[string]any{"mode": "active", "webhookEventId": fmt.Sprintf("E%d", clock), "timestamp": time.Now().UnixMilli()})
	e["source"] = map[string]any{"type": "user", "userId": user}
	if k.shared {
		e["source"] = map[string]any{"type": "group", "userId": user, "groupId": k.room}
	}
	k.send("/webhooks/line", func(h http.Header, _ string, b []byte) {
		h.Set("X-Line-Signature", base64.StdEncoding.EncodeToString(signature(lineSecret, b)))
	}, k.json(map[string]any{"destination": "x", "events": []any{e}}))
}

func (k *talker) saySlack(clock int, user, text string) {
	ts := fmt.Sprintf("%d.%06d", time.Now().Unix(), clock)
	m := map[string]any{"type": "message", "channel": k.room, "user": user, "text": text, "ts": ts}
	events := []map[string]any{m}
	if k.shared {
		m["text"] = "<@" + slackBot + "> " + text
		if k.thread == "" {
			before := k.place()
			k.thread = ts
			k.v.mu.Lock()
			k.v.came[k.place()] = k.v.came[before]
			k.v.mu.Unlock()
		} else {
			m["thread_ts"] = k.thread
		}
		mention := maps.Clone(m)
		mention["type"] = "app_mention"
		events = append(events, mention)
		if k.random.IntN(2) == 0 {
			slices.Reverse(events)
		}
	}
	for i, e := range events {
		k.sendSlack("events", k.json(map[string]any{"type": "event_callback", "event_id": fmt.Sprintf("Ev%d.%d", clock, i), "event": e}))
	}
}

func (k *talker) sendSlack(to string, body []byte) {
	k.send("/webhooks/slack/"+to, func(h http.Header, stamp string, b []byte) {
		h.Set("X-Slack-Request-Timestamp", stamp)
		h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(signature(slackSecret, append([]byte("v0:"+stamp+":"), b...))))
	}, body)
}

// press presses a button of a proposal.
func (k *talker) press(m utterance, grant bool) {
	clock, user := k.tick(), fmt.Sprintf("U%d", k.n)
	act := map[bool]string{true: "approve", false: "deny"}[grant]
	switch k.kind {
	case "line":
		token := fmt.Sprintf("%s.%d", k.room, clock)
		k.v.mu.Lock()
		k.v.tokens[token] = time.Now()
		k.v.mu.Unlock()
		k.sendLINE(clock, user, map[string]any{"type": "postback", "replyToken": token, "postback": map[string]any{"data": "act=" + act + "&hash=" + m.hash + "&job=" + m.job}})
	case "slack":
		session := "slack:T1:" + k.room
		message := map[string]any{"type": "message", "ts": m.ts, "user": slackBot, "bot_id": "BBOT"}
		container := map[string]any{"type": "message", "message_ts": m.ts, "channel_id": k.room}
		if k.thread != "" {
			session += ":" + k.thread
			message["thread_ts"], container["thread_ts"] = k.thread, k.thread
		}
		payload := k.json(map[string]any{"type": "block_actions", "trigger_id": fmt.Sprint("G", clock), "user": map[string]any{"id": user, "team_id": "T1"}, "team": map[string]any{"id": "T1"}, "channel": map[string]any{"id": k.room},
			"message": message, "container": container, "actions": []any{map[string]any{"type": "button", "action_id": act, "block_id": "approval:" + session, "value": m.job + " " + m.hash, "action_ts": fmt.Sprintf("%d.%06d", time.Now().Unix(), clock)}}})
		k.sendSlack("interactive", []byte(url.Values{"payload": {string(payload)}}.Encode()))
	default:
		k.sendHTTP(clock, map[string]any{"kind": "decision", "conversation": k.room, "thread": k.thread, "user": map[string]any{"id": user}, "decision": map[string]any{"job": m.job, "hash": m.hash, "grant": grant}})
	}
}

func (k *talker) json(x any) []byte {
	b, err := json.Marshal(x)
	if err != nil {
		k.v.t.Error(err)
	}
	return b
}

func signature(secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}

// bridged is the signature of the Standard Webhooks.
func bridged(id, stamp string, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(httpSecret, "whsec_"))
	if err != nil {
		panic(err)
	}
	return "v1," + base64.StdEncoding.EncodeToString(signature(string(key), append([]byte(id+"."+stamp+"."), body...)))
}

// answers are what was said to k so far: of an answer, what is behind the line that declares a
// route; what is told of a delegation is none.
func (k *talker) answers() (all []string) {
	k.v.mu.Lock()
	defer k.v.mu.Unlock()
	for _, m := range k.v.said[k.place()] {
		if strings.Contains(m.text, "Shiro") {
			continue
		}
		if _, behind, ok := strings.Cut(m.text, "\nYou said "); ok {
			m.text = "You said " + behind
		}
		all = append(all, m.text)
	}
	return all
}

// talk says words until the time is over, and waits for the answers.
func (k *talker) talk(over <-chan struct{}) {
	for n := 1; ; n++ {
		select {
		case <-over:
		default:
			k.asked = append(k.asked, k.word(n))
			k.say(k.word(n))
			if k.random.IntN(3) > 0 { // else the next word comes before the answer
				k.await()
			}
			continue
		}
		k.await()
		return
	}
}

func (k *talker) await() {
	for len(k.answers()) < len(k.asked) {
		select {
		case <-k.came:
		case <-k.v.ctx.Done():
			return
		}
	}
}

var said = regexp.MustCompile(`word (\d+) of [a-z]+/[A-Z]\d+`)

// plays is the model of the talks: as Chat it hands every fourth word to a worker, and tells of
// what came back; as the worker it makes a plan.
func plays(r *llmtest.Request) llmtest.Answer {
	last := *r.Messages[len(r.Messages)-1].Content
	_, task, worker := strings.Cut(last, `"user_text":`)
	if worker {
		last, _, _ = strings.Cut(task, `"context":`)
	}
	all := said.FindAllStringSubmatch(last, -1)
	if len(all) == 0 {
		return llmtest.Answer{Text: "nothing was said"}
	}
	word := all[len(all)-1]
	n, _ := strconv.Atoi(word[1])
	switch {
	case worker:
		return llmtest.Answer{Text: `{"result":{"goal":"` + word[0] + `","plan":[{"step":1,"title":"T"}]},"needs_next_loop":false,"why":"w","next_actions":[],"questions_for_user":[],"confidence":1,"risk":"low"}`}
	case n%4 == 0 && !strings.Contains(last, "colleagues"):
		return llmtest.Answer{Text: "DELEGATE: PLAN\nTASK: " + word[0]}
	}
	return llmtest.Answer{Text: "You said " + word[0] + "."}
}

// soak is a tori serve that is killed at random moments while people talk with it by LINE, Slack
// and a bridge, alone and in groups, and the vendors send again, twice, late, forged, in any order,
// refuse and break. TORI_SOAK says for how long ("5m"), TORI_SOAK_SEED with which chances.
type soak struct {
	t        *testing.T
	h        *house
	v        *vendors
	seed     uint64
	length   time.Duration
	long     bool // TORI_SOAK says how long
	talkers  []*talker
	kills    int
	forged   atomic.Int64
	giveUp   func()
	interval time.Duration // from one kill to the next, at most
}

// newSoak makes one with so many places, and as many as long says with TORI_SOAK; more is more of the configuration.
func newSoak(t *testing.T, places, long int, model llmtest.Handler, more func(s *soak) string) *soak {
	t.Helper()
	ctx, giveUp := context.WithCancel(t.Context())
	t.Cleanup(giveUp)
	s := &soak{t: t, seed: rand.Uint64(), length: 8 * time.Second, giveUp: giveUp, interval: 2800 * time.Millisecond}
	if env := os.Getenv("TORI_SOAK"); env != "" {
		var err error
		if s.length, err = time.ParseDuration(env); err != nil {
			t.Fatal(err)
		}
		s.long = true
	}
	if env := os.Getenv("TORI_SOAK_SEED"); env != "" {
		var err error
		if s.seed, err = strconv.ParseUint(env, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if s.long {
		places = long
	}
	s.v = newVendors(ctx, t, s.seed)
	server := llmtest.NewServer(t, model)
	listen, err := net.Listen("tcp", "127.0.0.77:0") // no way out takes a port of this address
	if err != nil {
		t.Fatal(err)
	}
	tori := listen.Addr().String()
	if err := listen.Close(); err != nil {
		t.Fatal(err)
	}
	s.h = newHouse(t, server.URL, "")
	var users []string
	for n := range places {
		k := s.talker(n)
		k.tori = tori
		s.talkers, users = append(s.talkers, k), append(users, fmt.Sprintf("U%d", n))
	}
	s.h.config = s.h.write("config.yaml", fmt.Sprintf("language: en\nllm:\n  provider: openai\n  openai: {base_url: %q, model: m, api_key: key-for-a-test}\n"+
		"routing: {classifier: {enabled: false}, llm: {chat_provider: openai, chat_model: m, worker_provider: openai, worker_model: m, coder2_provider: openai, coder2_model: m}}\nserve: {listen: %q, public_url: 'https://tori.example'}\n"+
		"channels:\n  line: {channel_secret: %s, access_token: line-token-of-a-test, allow_from: [%[5]s], base_url: %[6]q}\n"+
		"  slack: {bot_token: xoxb-test, signing_secret: %[4]s, allow_from: [%[5]s], base_url: %[7]q, entry: chat}\n"+
		"  http: {secret: %[8]s, url: %[9]q, allow_from: [%[5]s], entry: chat}\n%[10]s",
		server.URL, tori, lineSecret, slackSecret, strings.Join(users, ","), s.v.http.URL, s.v.http.URL+"/api", httpSecret, s.v.http.URL+"/bridge", more(s)))
	return s
}

// talker is the nth one: by each kind in turn, three alone, three in a group or thread.
func (s *soak) talker(n int) *talker {
	k := &talker{v: s.v, random: rand.New(rand.NewPCG(s.seed, uint64(100+n))), n: n, kind: []string{"line", "slack", "http"}[n%3], shared: n%6 > 2, room: fmt.Sprint("U", n), forged: &s.forged}
	switch {
	case k.kind == "slack" && k.shared:
		k.room = fmt.Sprint("C", n)
	case k.kind == "slack":
		k.room = fmt.Sprint("D", n)
	case k.shared:
		k.room = fmt.Sprint("G", n)
	}
	if k.kind == "http" && k.shared {
		k.thread = "T1"
	}
	came := make(chan struct{}, 1)
	s.v.came[k.place()], k.came = came, came
	return k
}

// run has everybody talk until the time is over and all was answered, while the program is killed.
func (s *soak) run(talk func(k *talker, over <-chan struct{})) {
	over, end := make(chan struct{}), make(chan struct{})
	var all, killer sync.WaitGroup
	random := rand.New(rand.NewPCG(s.seed, 2))
	killer.Go(func() { s.kill(over, end, random) })
	for _, k := range s.talkers {
		all.Go(func() { talk(k, over) })
	}
	<-time.After(s.length)
	close(over)
	go s.v.watch(s.giveUp)
	all.Wait()
	close(end)
	killer.Wait()
	if s.kills == 0 {
		s.t.Error("it was never killed")
	}
	p := s.h.start("check", "--repair", "--config", s.h.config, "--base-dir", s.h.base()) // of what a write left
	if code := p.code(); code > 1 {
		s.t.Errorf("tori check --repair: %d\n%s", code, p.out.String())
	}
	s.h.sound()
}

// kill starts the program and kills it, again and again; the one that runs when the time is over
// lives until the end.
func (s *soak) kill(over, end <-chan struct{}, random *rand.Rand) {
	for {
		p := s.h.start("serve", "--config", s.h.config, "--base-dir", s.h.base())
		ended := make(chan struct{})
		go func() { p.code(); close(ended) }()
		doom := time.After(300*time.Millisecond + time.Duration(random.Int64N(int64(s.interval))))
		select {
		case <-over:
			doom = nil
		default:
		}
		select {
		case <-ended:
			s.t.Errorf("tori serve ended:\n%s", p.out.String())
		case <-end:
		case <-doom:
		}
		_ = p.Process.Kill()
		<-ended
		if out := p.out.String(); s.v.ctx.Err() != nil {
			s.t.Errorf("nobody was told anything for %s; it ended with\n%s", patience, out[max(0, len(out)-4000):])
		}
		select {
		case <-end:
			return
		default:
			s.kills++
		}
		if s.t.Failed() {
			return
		}
	}
}

// Each word is answered once, in the order of its place, and there; every fourth goes to a worker
// first. With TORI_SOAK, 200 places.
func TestChannelsKilledAtRandom(t *testing.T) {
	skipShort(t, "people talk for seconds")
	t.Parallel()
	s := newSoak(t, 18, 200, plays, func(*soak) string { return "" })
	s.run((*talker).talk)
	words := 0
	for _, k := range s.talkers {
		got := k.answers()
		want := make([]string, len(k.asked))
		for i, text := range k.asked {
			want[i] = "You said " + text + "."
		}
		words += len(want)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Errorf("%s: %d of %d answers; after %d it goes on with %.400q", k.place(), len(got), len(want), i, got[min(i, len(got)):])
				break
			}
		}
	}
	t.Logf("seed %d: %d words of %d places answered, killed %d times, %d forged events refused", s.seed, words, len(s.talkers), s.kills, s.forged.Load())
	if words < len(s.talkers) {
		t.Errorf("%d words", words)
	}
}
