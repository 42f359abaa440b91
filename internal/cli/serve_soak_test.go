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
)

// vendors are LINE and Slack for a test: what was said at which place, in order. Now and then
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
	keys   map[string]bool      // retry keys that were used
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
	v.http = httptest.NewServer(mux)
	t.Cleanup(v.http.Close)
	return v
}

// show is called with mu held.
func (v *vendors) show(place, text string) {
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
	switch {
	case !v.faults || at > 3:
		return false
	case at == 0:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"ok":false,"error":"ratelimited"}`))
		return true
	case at == 1:
		w.WriteHeader(http.StatusInternalServerError)
		return true
	case at == 2:
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
	slack  bool
	shared bool   // a group, or a channel
	place  string // as vendors names it
	thread string
	asked  []string
	forged *atomic.Int64
}

// send has one event delivered as vendors do: again and again until it is taken.
func (k *talker) send(path, signature string, sign func(stamp string, body []byte) string, body []byte) {
	for k.v.ctx.Err() == nil {
		r, err := http.NewRequestWithContext(k.v.ctx, http.MethodPost, "http://"+k.tori+path, bytes.NewReader(body))
		if err != nil {
			k.v.t.Error(err)
			return
		}
		stamp := strconv.FormatInt(time.Now().Unix(), 10)
		forged := k.random.IntN(30) == 0
		said := body
		if forged {
			said = append([]byte("forged"), body...)
		}
		r.Header.Set("X-Slack-Request-Timestamp", stamp)
		r.Header.Set(signature, sign(stamp, said))
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

func (k *talker) say(n int) {
	text := fmt.Sprintf("word %d of %s", n, k.place)
	k.asked = append(k.asked, text)
	k.v.mu.Lock()
	k.v.clock++
	clock := k.v.clock
	token := ""
	if !k.slack {
		token = fmt.Sprintf("%s.%d", strings.TrimPrefix(k.place, "line/"), clock)
		k.v.tokens[token] = time.Now()
	}
	k.v.mu.Unlock()
	if !k.slack {
		e := map[string]any{"type": "message", "mode": "active", "webhookEventId": fmt.Sprintf("E%d", clock), "replyToken": token, "timestamp": time.Now().UnixMilli()}
		user := fmt.Sprintf("U%d", k.n)
		m := map[string]any{"id": fmt.Sprintf("M%d", clock), "type": "text", "text": text, "quoteToken": "q"}
		e["source"] = map[string]any{"type": "user", "userId": user}
		if k.shared {
			m["text"] = "@tori " + text
			m["mention"] = map[string]any{"mentionees": []map[string]any{{"index": 0, "length": 5, "type": "user", "isSelf": true}}}
			e["source"] = map[string]any{"type": "group", "userId": user, "groupId": strings.TrimPrefix(k.place, "line/")}
		}
		e["message"] = m
		k.send("/webhooks/line", "X-Line-Signature", func(_ string, b []byte) string {
			return base64.StdEncoding.EncodeToString(signature(lineSecret, b))
		}, k.json(map[string]any{"destination": "x", "events": []any{e}}))
		return
	}
	ts := fmt.Sprintf("%d.%06d", time.Now().Unix(), clock)
	m := map[string]any{"type": "message", "channel": strings.Split(k.place, "/")[1], "user": fmt.Sprintf("U%d", k.n), "text": text, "ts": ts}
	events := []map[string]any{m}
	if k.shared {
		m["text"] = "<@" + slackBot + "> " + text
		if k.thread == "" {
			k.thread = ts
			k.v.mu.Lock()
			k.v.came["slack/"+m["channel"].(string)+"/"+ts] = k.v.came[k.place]
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
		k.send("/webhooks/slack/events", "X-Slack-Signature", func(stamp string, b []byte) string {
			return "v0=" + hex.EncodeToString(signature(slackSecret, append([]byte("v0:"+stamp+":"), b...)))
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

// answers are what was said to k so far.
func (k *talker) answers() []string {
	k.v.mu.Lock()
	defer k.v.mu.Unlock()
	place := k.place
	if k.slack {
		place = strings.TrimSuffix(place, "/") + "/" + k.thread
	}
	return slices.Clone(k.v.said[place])
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

var said = regexp.MustCompile(`word \d+ of \S+`)

// People talk with tori by LINE and Slack, alone and in groups, while it is killed at random
// moments and the vendors send again, twice, forged, in any order, refuse and break. Each word
// is answered once, in the order of its place, and there. TORI_SOAK says for how long ("5m",
// with 200 places), TORI_SOAK_SEED with which chances.
func TestChannelsKilledAtRandom(t *testing.T) {
	skipShort(t, "people talk for seconds")
	t.Parallel()
	length, places := 8*time.Second, 16
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
	model := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		all := said.FindAllString(*r.Messages[len(r.Messages)-1].Content, -1)
		if len(all) == 0 {
			return llmtest.Answer{Text: "nothing was said"}
		}
		return llmtest.Answer{Text: "You said " + all[len(all)-1] + "."}
	})
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
		"routing: {classifier: {enabled: false}, llm: {chat_provider: openai, chat_model: m}}\nserve: {listen: %q, public_url: 'https://tori.example'}\n"+
		"channels:\n  line: {channel_secret: %s, access_token: line-token-of-a-test, allow_from: [%[5]s], base_url: %[6]q}\n"+
		"  slack: {bot_token: xoxb-test, signing_secret: %[4]s, allow_from: [%[5]s], base_url: %[7]q, entry: chat}\n",
		model.URL, tori, lineSecret, slackSecret, strings.Join(users, ","), v.http.URL, v.http.URL+"/api"))
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
		k := &talker{v: v, random: rand.New(rand.NewPCG(seed, uint64(100+n))), tori: tori, n: n, slack: n%2 == 0, shared: n%4 > 1, forged: &forged}
		switch {
		case k.slack && k.shared:
			k.place = fmt.Sprintf("slack/C%d/", n)
		case k.slack:
			k.place = fmt.Sprintf("slack/D%d/", n)
		case k.shared:
			k.place = fmt.Sprintf("line/G%d", n)
		default:
			k.place = fmt.Sprintf("line/U%d", n)
		}
		talkers[n] = k
		v.came[k.place] = make(chan struct{}, 1)
	}
	came := maps.Clone(v.came)
	for _, k := range talkers {
		all.Go(func() { k.talk(over, came[k.place]) })
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
				t.Errorf("%s: %d of %d answers; after %d it goes on with %.400q", k.place, len(got), len(want), i, got[min(i, len(got)):])
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
