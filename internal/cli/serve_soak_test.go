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
	said   map[string][]string // texts of ours, by place
	came   map[string]chan struct{}
	tokens map[string]time.Time // reply tokens that are not used, and from when
	keys   map[string]bool      // retry keys, and ids of posts, that were used
	slack  map[string][]slackMessage
}

type slackMessage struct {
	TS       string          `json:"ts"`
	ThreadTS string          `json:"thread_ts,omitempty"`
	User     string          `json:"user"`
	BotID    string          `json:"bot_id"`
	Text     string          `json:"text"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

func newVendors(ctx context.Context, t *testing.T, seed uint64) *vendors {
	t.Helper()
	v := &vendors{t: t, ctx: ctx, random: rand.New(rand.NewPCG(seed, 1)), faults: true, said: map[string][]string{}, came: map[string]chan struct{}{},
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

// show is called with mu held. Of an answer it keeps what is behind the line that declares a
// route; what is told of a delegation is none.
func (v *vendors) show(place, text string) {
	if strings.Contains(text, "Shiro") {
		return
	}
	if _, behind, ok := strings.Cut(text, "\nYou said "); ok {
		text = "You said " + behind
	}
	v.said[place] = append(v.said[place], text)
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

// line says messages by a reply token, once, or by a push, once for each retry key.
func (v *vendors) line(w http.ResponseWriter, r *http.Request) {
	var in struct {
		To, ReplyToken string
		Messages       []struct{ Text string }
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
				v.show(place, m.Text)
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
	var in struct{ Conversation, Thread, Text string }
	if err := json.Unmarshal(body, &in); err != nil || r.Header.Get("webhook-signature") != bridged(id, r.Header.Get("webhook-timestamp"), body) {
		v.t.Errorf("%v: %v %s", err, r.Header, body)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	do := func() {
		if !v.keys[id] {
			v.keys[id] = true
			v.show("http/"+in.Conversation+"/"+in.Thread, in.Text)
		}
	}
	if !v.faulty(w, do) {
		do()
	}
}

// api is Slack's Web API.
func (v *vendors) api(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		v.t.Error(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
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
		do = func() {
			v.slack[in] = append(v.slack[in], m)
			v.show("slack/"+in+"/"+thread, m.Text)
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
	again  []func() // have the latest events sent once more
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

// say says the nth word.
func (k *talker) say(n int) {
	text := fmt.Sprintf("word %d of %s/%s", n, k.kind, k.room)
	k.asked = append(k.asked, text)
	k.v.mu.Lock()
	k.v.clock++
	clock := k.v.clock
	k.v.mu.Unlock()
	user := fmt.Sprintf("U%d", k.n)
	switch k.kind {
	case "line":
		k.sayLINE(clock, user, text)
	case "slack":
		k.saySlack(clock, user, text)
	default:
		id := fmt.Sprintf("E%d", clock)
		k.send("/webhooks/http", func(h http.Header, stamp string, b []byte) {
			h.Set("webhook-id", id)
			h.Set("webhook-timestamp", stamp)
			h.Set("webhook-signature", bridged(id, stamp, b))
		}, k.json(map[string]any{"kind": "message", "id": fmt.Sprintf("M%d", clock), "conversation": k.room, "thread": k.thread, "user": map[string]any{"id": user}, "text": text}))
	}
}

func (k *talker) sayLINE(clock int, user, text string) {
	token := fmt.Sprintf("%s.%d", k.room, clock)
	k.v.mu.Lock()
	k.v.tokens[token] = time.Now()
	k.v.mu.Unlock()
	e := map[string]any{"type": "message", "mode": "active", "webhookEventId": fmt.Sprintf("E%d", clock), "replyToken": token, "timestamp": time.Now().UnixMilli()}
	m := map[string]any{"id": fmt.Sprintf("M%d", clock), "type": "text", "text": text, "quoteToken": "q"}
	e["source"] = map[string]any{"type": "user", "userId": user}
	if k.shared {
		m["text"] = "@tori " + text
		m["mention"] = map[string]any{"mentionees": []map[string]any{{"index": 0, "length": 5, "type": "user", "isSelf": true}}}
		e["source"] = map[string]any{"type": "group", "userId": user, "groupId": k.room}
	}
	e["message"] = m
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
			came := k.place()
			k.thread = ts
			k.v.mu.Lock()
			k.v.came[k.place()] = k.v.came[came]
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
		k.send("/webhooks/slack/events", func(h http.Header, stamp string, b []byte) {
			h.Set("X-Slack-Request-Timestamp", stamp)
			h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(signature(slackSecret, append([]byte("v0:"+stamp+":"), b...))))
		}, k.json(map[string]any{"type": "event_callback", "event_id": fmt.Sprintf("Ev%d.%d", clock, i), "event": e}))
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

// answers are what was said to k so far.
func (k *talker) answers() []string {
	k.v.mu.Lock()
	defer k.v.mu.Unlock()
	return slices.Clone(k.v.said[k.place()])
}

// talk says words until the time is over, and waits for the answers.
func (k *talker) talk(over <-chan struct{}, came <-chan struct{}) {
	for n := 1; ; n++ {
		select {
		case <-over:
		default:
			k.say(n)
			if k.random.IntN(3) > 0 { // else the next word comes before the answer
				k.await(came)
			}
			continue
		}
		k.await(came)
		return
	}
}

func (k *talker) await(came <-chan struct{}) {
	for len(k.answers()) < len(k.asked) {
		select {
		case <-came:
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

// People talk with tori by LINE, Slack and a bridge, alone and in groups, while it is killed at
// random moments and the vendors send again, twice, late, forged, in any order, refuse and break. Every fourth
// word goes to a worker first. Each is answered once, in the order of its place, and there. TORI_SOAK says for how long ("5m",
// with 200 places), TORI_SOAK_SEED with which chances.
func TestChannelsKilledAtRandom(t *testing.T) {
	skipShort(t, "people talk for seconds")
	t.Parallel()
	length, places := 8*time.Second, 18
	if s := os.Getenv("TORI_SOAK"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
		places = 200
	}
	seed := rand.Uint64()
	if s := os.Getenv("TORI_SOAK_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	v := newVendors(ctx, t, seed)
	model := llmtest.NewServer(t, plays)
	listen, err := net.Listen("tcp", "127.0.0.77:0") // no way out takes a port of this address
	if err != nil {
		t.Fatal(err)
	}
	tori := listen.Addr().String()
	if err := listen.Close(); err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, model.URL, "")
	users := make([]string, places)
	for n := range users {
		users[n] = fmt.Sprintf("U%d", n)
	}
	h.config = h.write("config.yaml", fmt.Sprintf("language: en\nllm:\n  provider: openai\n  openai: {base_url: %q, model: m, api_key: key-for-a-test}\n"+
		"routing: {classifier: {enabled: false}, llm: {chat_provider: openai, chat_model: m, worker_provider: openai, worker_model: m}}\nserve: {listen: %q, public_url: 'https://tori.example'}\n"+
		"channels:\n  line: {channel_secret: %s, access_token: line-token-of-a-test, allow_from: [%[5]s], base_url: %[6]q}\n"+
		"  slack: {bot_token: xoxb-test, signing_secret: %[4]s, allow_from: [%[5]s], base_url: %[7]q, entry: chat}\n"+
		"  http: {secret: %[8]s, url: %[9]q, allow_from: [%[5]s], entry: chat}\n",
		model.URL, tori, lineSecret, slackSecret, strings.Join(users, ","), v.http.URL, v.http.URL+"/api", httpSecret, v.http.URL+"/bridge"))
	over, killed := make(chan struct{}), 0
	var all, killer sync.WaitGroup
	end := make(chan struct{})
	random := rand.New(rand.NewPCG(seed, 2))
	killer.Go(func() {
		for {
			p := h.start("serve", "--config", h.config, "--base-dir", h.base())
			ended := make(chan struct{})
			go func() { p.code(); close(ended) }()
			doom := time.After(time.Duration(300+random.IntN(2500)) * time.Millisecond)
			select {
			case <-over: // the last one lives
				doom = nil
			default:
			}
			select {
			case <-ended:
				t.Errorf("tori serve ended:\n%s", p.out.String())
			case <-end:
			case <-doom:
			}
			_ = p.Process.Kill()
			<-ended
			if out := p.out.String(); ctx.Err() != nil {
				t.Errorf("nobody was told anything for %s; it ended with\n%s", patience, out[max(0, len(out)-4000):])
			}
			select {
			case <-end:
				return
			default:
				killed++
			}
			if t.Failed() {
				return
			}
		}
	})
	var forged atomic.Int64
	talkers := make([]*talker, places)
	for n := range talkers {
		k := &talker{v: v, random: rand.New(rand.NewPCG(seed, uint64(100+n))), tori: tori, n: n, kind: []string{"line", "slack", "http"}[n%3], shared: n%6 > 2, room: fmt.Sprint("U", n), forged: &forged}
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
		talkers[n] = k
		v.came[k.place()] = make(chan struct{}, 1)
	}
	came := maps.Clone(v.came)
	for _, k := range talkers {
		at := came[k.place()]
		all.Go(func() { k.talk(over, at) })
	}
	<-time.After(length)
	close(over)
	go v.watch(giveUp)
	all.Wait()
	close(end)
	killer.Wait()
	words := 0
	for _, k := range talkers {
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
	t.Logf("seed %d: %d words of %d places answered, killed %d times, %d forged events refused", seed, words, places, killed, forged.Load())
	if words < places || killed == 0 {
		t.Errorf("%d words, killed %d times", words, killed)
	}
	h.sound()
}
