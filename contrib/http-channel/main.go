// Command http-channel is an example of a bridge to channels.http (docs/http.md): what is
// typed is sent to tori serve, what tori says is printed. Put the API of another chat in
// the place of the two.
package main

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type post struct {
	ID, Conversation, Kind, Text string
	Approval                     *struct{ Job, Hash, Title, Diff string }
}

type bridge struct {
	key  []byte
	mu   sync.Mutex
	seen map[string]bool // ids of posts; a bridge that starts anew keeps them in a file
}

// sign is the webhook-signature of a request.
func (b *bridge) sign(id, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, b.key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// ServeHTTP shows what tori says.
func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	id, stamp := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
	seconds, _ := strconv.ParseInt(stamp, 10, 64)
	signed := hmac.Equal([]byte(b.sign(id, stamp, body)), []byte(r.Header.Get("webhook-signature")))
	var p post
	if err != nil || !signed || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		http.Error(w, "not signed", http.StatusUnauthorized)
		return
	}
	if err := json.Unmarshal(body, &p); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[id] || p.Text == "" && p.Approval == nil { // shown already, or nothing goes on any more
		return
	}
	b.seen[id] = true
	fmt.Printf("[%s] %s\n", p.Kind, p.Text)
	if a := p.Approval; a != nil && p.Kind == "request" {
		fmt.Printf("%s\n%s\nSay /approve %s %s, or /deny %s %s.\n", a.Title, a.Diff, a.Job, a.Hash, a.Job, a.Hash)
	}
}

// send sends an event until tori has it, always with the same id.
func (b *bridge) send(to, id string, event map[string]any) error {
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		stamp := strconv.FormatInt(time.Now().Unix(), 10)
		r, err := http.NewRequest(http.MethodPost, to, bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("webhook-id", id)
		r.Header.Set("webhook-timestamp", stamp)
		r.Header.Set("webhook-signature", b.sign(id, stamp, body))
		res, err := http.DefaultClient.Do(r)
		if err == nil {
			said, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
			if err = fmt.Errorf("%s: %s", res.Status, said); res.StatusCode < 500 {
				return err
			}
		}
		log.Printf("tori does not take it, once more in %s: %v", wait, err)
		time.Sleep(wait)
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9000", "address that channels.http.url names")
	tori := flag.String("tori", "http://127.0.0.1:8080/webhooks/http", "where tori serve takes events")
	user, room := flag.String("user", "me", "id of who types"), flag.String("room", "terminal", "id of the conversation")
	flag.Parse()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("BRIDGE_SECRET"), "whsec_"))
	if err != nil || len(key) == 0 {
		log.Fatal("BRIDGE_SECRET is channels.http.secret: whsec_ and Base64")
	}
	b := &bridge{key: key, seen: map[string]bool{}}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listening on ", l.Addr())
	go func() {
		s := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
		log.Fatal(s.Serve(l))
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		id := rand.Text()
		if err := b.send(*tori, id, map[string]any{"kind": "message", "id": id, "conversation": *room, "user": map[string]any{"id": *user}, "text": lines.Text()}); err != nil {
			log.Print(err)
		}
	}
}
