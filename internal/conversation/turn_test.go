package conversation

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/disk"
	"toritsugi/internal/i18n"
)

// A message that Chat answers is one leg without tools, streamed, kept, and no event is
// missing.
func TestChat(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.plays("worker", `{"route":"CHAT","confidence":0.9,"reason":"talk","evidence":["hi"]}`)
	h.plays("chat", "Hello **there**, what can I do?")
	h.saw("hi there", "answer: Hello **there**, what can I do?")
	if got := h.legs(); got != "worker CLASSIFY, chat CHAT" {
		t.Error(got)
	}
	if k := h.last("worker"); k.Temperature == nil || *k.Temperature != 0 || k.Most != 300 || len(k.Tools) > 0 {
		t.Errorf("%+v", k)
	}
	if k := h.last("chat"); len(k.Tools) > 0 || len(k.Sent) != 2 || k.Sent[1].Content != "hi there" {
		t.Errorf("%+v", k)
	}
	if got := h.stage.streams["m1"]; got != "Hello **there**, what can I " {
		t.Errorf("streamed %q", got)
	}
	h.tells("router.decision", "initial_route source confidence classifier_route classifier_confidence local_only",
		`initial_route="CHAT" source="classifier" confidence=0.9 classifier_route="CHAT" classifier_confidence=0.9 local_only=false`)
	h.tells("loop.stop", "stop_reason loops final_route", `stop_reason="done" loops=0 final_route="CHAT"`)
	h.tells("final.route", "initial_route final_route reroute_used worker_calls error_reason",
		`initial_route="CHAT" final_route="CHAT" reroute_used=false worker_calls=0 error_reason=null`)
	if got, err := h.History(t.Context(), h.id, 10); err != nil || len(got) != 2 || got[0].User != "terminal:hanako" || got[1].Post == nil || got[1].Post.Key != h.id+"/2" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Each worker gives material, from which Chat writes; its route is declared once.
func TestWorkers(t *testing.T) {
	t.Parallel()
	for route, c := range map[string]struct{ result, ja, en string }{
		"plan":     {planResult, "段取りを組むね。", "I'll lay out a plan."},
		"analyze":  {analyzeResult, "整理して分析するね。", "I'll sort and analyse this."},
		"ops":      {opsResult, "手順で案内するね。", "I'll walk you through it."},
		"research": {researchResult, "調べてまとめるね。", "I'll look into it."},
	} {
		for lang, declared := range map[i18n.Lang]string{i18n.Japanese: c.ja, i18n.English: c.en} {
			t.Run(route+" "+string(lang), func(t *testing.T) {
				t.Parallel()
				h := open(t, lang, "terminal")
				h.plays("worker", "Sure:\n```json\n"+output(c.result, nil)+"\n```", output(c.result, nil))
				h.plays("chat", "first", "second")
				h.saw("/"+route+" これをお願い\n  二行目", "answer: "+declared+"\nfirst")
				h.saw("/"+route+" again", "answer: second")
				up := strings.ToUpper(route)
				if got := h.legs(); got != "worker "+up+", chat CHAT, worker "+up+", chat CHAT" {
					t.Error(got)
				}
				k := h.last("worker")
				if strings.Join(k.Tools, " ") != "grep list_files read_file" {
					t.Errorf("tools %v", k.Tools)
				}
				if first := h.cast.calls[0].asked(); !strings.Contains(first, `"user_text":"これをお願い\n  二行目"`) || !strings.Contains(first, `"prev_primary_route":null`) {
					t.Error(first)
				}
				if !strings.Contains(k.asked(), `"prev_primary_route":"`+up+`"`) || !strings.Contains(k.asked(), `"text":"first"`) {
					t.Error(k.asked())
				}
				if asked := h.last("chat").asked(); !strings.Contains(asked, "### "+up) || strings.Contains(asked, "local_only") {
					t.Error(asked)
				}
				h.tells("worker.success", "route needs_next_loop risk confidence fit error",
					`route="`+up+`" needs_next_loop=false risk="low" confidence=0.9 fit=null error=null`, `route="`+up+`" needs_next_loop=false risk="low" confidence=0.9 fit=null error=null`)
				h.tells("final.route", "initial_route final_route worker_calls", `initial_route="`+up+`" final_route="`+up+`" worker_calls=1`,
					`initial_route="`+up+`" final_route="`+up+`" worker_calls=1`)
			})
		}
	}
}

// RESEARCH without a way to the web says that nothing was looked up.
func TestResearchLooksNothingUp(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.plays("worker", output(researchResult, nil))
	h.plays("chat", "a plan for a search")
	h.hears("/research the latest")
	if asked := h.last("chat").asked(); !strings.Contains(asked, "Nothing was looked up on the web") {
		t.Error(asked)
	}
	if asked := h.last("worker").asked(); !strings.Contains(asked, `"web_search_available":false`) {
		t.Error(asked)
	}
}

// A secret that comes in pieces is shown in none of them and kept nowhere, also where the
// answer is stopped in the middle of it.
func TestSecretsInAnAnswer(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("MIIEpAIBAAKCAQEA", 4)
	key := "-----BEGIN " + "PRIVATE KEY-----\n" + line + "\n" + line + "\nMIIEabc=\n-----END " + "PRIVATE KEY-----"
	for name, c := range map[string]struct{ secret, part string }{
		"a key":   {key, "MIIE"},
		"a token": {"ghp" + "_abcdefghijklmnopqrstuvwxyz0123456789", "abcdefgh"},
		"known":   {"hunter2-hunter2", "hunter2"},
		"a card":  {"4111 1111 1111 1111", "4111"},
	} {
		for _, stopped := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", stopped), func(t *testing.T) {
				t.Parallel()
				h := open(t, i18n.English, "terminal")
				h.play("chat", fmt.Sprintf("- say: %q\n", "It is this one: "+c.secret+"\nand that is all."))
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				h.stage.onText = func(string) {
					if h.stage.mu.Lock(); strings.Contains(h.stage.streams["m1"], c.part) {
						t.Errorf("streamed %q", h.stage.streams["m1"])
					}
					if h.stage.mu.Unlock(); stopped {
						stop()
					}
				}
				if err := h.Handle(ctx, h.message("/chat which one?")); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(h.stage.seen(), "\n"); !strings.HasPrefix(got, "answer: It ") || strings.Contains(got, c.part) || strings.Contains(got, "that is all.") == stopped {
					t.Errorf("%q", got)
				}
				raw, err := disk.Read(filepath.Join(h.Engine.open(h.id, "terminal").Dir, messagesFile), 1<<20)
				if err != nil || strings.Contains(string(raw), c.part) {
					t.Errorf("%s, %v", raw, err)
				}
			})
		}
	}
}

// An answer that comes fast is not looked at for secrets at each word; one that comes slowly
// is shown word by word.
func TestStreamIsLookedAtAsPeopleSeeIt(t *testing.T) {
	t.Parallel()
	for pause, c := range map[time.Duration]struct{ least, most int }{0: {15, 30}, 40 * time.Millisecond: {1000, 1000}} {
		now, looked, shows := start, 0, 0
		v := &shown{strict: func(s string) string { return s }, settled: func(s string) int { looked++; return len(s) }, show: func(string) { shows++ },
			now: func() time.Time { now = now.Add(pause); return now }}
		for range 1000 {
			v.write("word ")
		}
		if looked < c.least || looked > c.most || shows != looked {
			t.Errorf("%v: looked at %d times, shown %d times", pause, looked, shows)
		}
	}
}

// How work is handed over is told where that may be done alone, and the line that declares a
// route is no model's.
func TestWhatChatIsTold(t *testing.T) {
	t.Parallel()
	for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
		h := open(t, lang, "terminal")
		h.plays("chat", "DELEGATE: PLAN\nTASK: sort it")
		h.plays("worker", output(planResult, nil))
		h.plays("chat", "Sorted.")
		declared := lang.T("conversation.declare_plan")
		if got := h.hears("/chat sort it"); len(got) == 0 || got[len(got)-1] != "answer: Sorted." {
			t.Fatalf("%q", got)
		}
		first, final := h.cast.calls[0], h.last("chat")
		if !strings.Contains(first.asked(), "DELEGATE: PLAN|") || strings.Contains(final.asked(), "DELEGATE: PLAN|") {
			t.Errorf("%s: how to hand over:\n%s\n%s", lang, first.asked(), final.asked())
		}
		if strings.Contains(first.asked(), "propose_next_loop") || !strings.Contains(final.asked(), "propose_next_loop") {
			t.Errorf("%s: how to propose another route:\n%s", lang, final.asked())
		}
		h.plays("worker", output(planResult, nil))
		h.plays("chat", "Once more.")
		h.saw("/plan again", "answer: "+declared+"\nOnce more.")
		h.plays("chat", "Yes.")
		h.saw("/chat sure?", "answer: Yes.")
		asked := h.last("chat")
		if strings.Contains(asked.asked(), declared) || !strings.Contains(asked.asked(), "Once more.") {
			t.Errorf("%s: the declaration is shown to the model:\n%s", lang, asked.asked())
		}
		if asked.Sent[0].Content != first.Sent[0].Content {
			t.Errorf("%s: the system prompt is another one", lang)
		}
	}
}

// A message that had no answer and is sent again stands once in what models see.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.hears("/chat what is it?") // Chat is down
	h.plays("worker", output(planResult, nil))
	h.plays("chat", "It.")
	h.hears("/plan what is it?")
	for _, role := range []string{"worker", "chat"} {
		if asked := h.last(role).asked(); strings.Count(asked, "what is it?") != map[string]int{"worker": 1, "chat": 2}[role] { // Chat: with its material's task
			t.Errorf("%s:\n%s", role, asked)
		}
	}
}
