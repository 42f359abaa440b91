package line

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"toritsugi/internal/channel/channeltest"
)

var described = sync.OnceValues(func() (*channeltest.Description, error) {
	return channeltest.ReadDescription("testdata/messaging-api.json")
})

// The description refuses what LINE refuses; else the fake would take anything.
func TestTheDescriptionRefuses(t *testing.T) {
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	const push = "/v2/bot/message/push"
	text := `{"type":"text","text":"x"}`
	button := func(action string) string {
		return `{"to":"U1","messages":[{"type":"flex","altText":"a","contents":{"type":"bubble","body":{"type":"box","layout":"vertical","contents":[{"type":"button","action":` + action + `}]}}}]}`
	}
	for _, c := range []struct {
		method, path, body string
		ok                 bool
	}{
		{"POST", push, `{"to":"U1","messages":[` + text + `]}`, true},
		{"POST", push, `{"messages":[` + text + `]}`, false},
		{"POST", push, `{"to":"U1","messages":[]}`, false},
		{"POST", push, `{"to":"U1","messages":[{"type":"text"}]}`, false},
		{"POST", push, `{"to":"U1","messages":[{"type":"telegram","text":"x"}]}`, false},
		{"POST", push, `{"to":"U1","messages":[` + strings.Repeat(text+",", 5) + text + `]}`, false},
		{"POST", push, button(`{"type":"postback","label":"a","data":"x"}`), true},
		{"POST", push, button(`{"type":"uri","label":"a","uri":"https://tori.example"}`), true},
		{"POST", push, button(`{"type":"shout","label":"a"}`), false},
		{"POST", push, strings.Replace(button(`{"type":"postback","data":"x"}`), "vertical", "diagonal", 1), false},
		{"GET", push, "", false},
		{"POST", "/v2/bot/chat/loading/start", `{"chatId":"U1","loadingSeconds":60}`, true},
		{"POST", "/v2/bot/chat/loading/start", `{"chatId":"U1","loadingSeconds":65}`, false},
		{"POST", "/v2/bot/chat/loading/start", `{"loadingSeconds":5}`, false},
		{"GET", "/v2/bot/message/1/content", "", true},
		{"GET", "/v2/bot/message/1/context", "", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, "https://api.line.me"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if said := d.Check(r, r.URL.Path, []byte(c.body)); (said == "") != c.ok {
			t.Errorf("%s %s %s: %q", c.method, c.path, c.body, said)
		}
	}
}
