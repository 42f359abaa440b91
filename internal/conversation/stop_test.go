package conversation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toritsugi/internal/contract"
	"toritsugi/internal/i18n"
)

// Each reason for which a turn ends: what Chat is told, and what is on record.
func TestStops(t *testing.T) {
	t.Parallel()
	again := map[string]any{"needs_next_loop": true}
	for name, c := range map[string]struct {
		worker []string
		stop   string
		loops  int
		told   map[i18n.Lang]string
		ask    string // what Chat is to ask
	}{
		"done": {[]string{output(planResult, nil)}, "done", 1, nil, ""},
		"max_loops": {[]string{output(planResult, again), output(`{"goal":"G","plan":[{"title":"U"}]}`, again), output(`{"goal":"G","plan":[{"title":"V"}]}`, again)},
			"max_loops", 3, map[i18n.Lang]string{i18n.English: "took as many passes", i18n.Japanese: "作業の回数が上限"}, ""},
		"the same again": {[]string{output(planResult, again), output(planResult, again)}, "done", 2, nil, ""},
		"worker_fail":    {[]string{"not JSON", "nor this"}, "worker_fail", 1, map[i18n.Lang]string{i18n.English: "could not do the work", i18n.Japanese: "作業できませんでした"}, ""},
		"risk high": {[]string{output(planResult, map[string]any{"risk": "high"})}, "need_user_confirmation", 1,
			map[i18n.Lang]string{i18n.English: "has to confirm", i18n.Japanese: "相手の確認"}, ""},
		"questions": {[]string{output(planResult, map[string]any{"questions_for_user": []string{"Which town?", "When?", "Who?", "Why?"}})}, "need_user_confirmation", 1,
			map[i18n.Lang]string{i18n.English: "has to confirm", i18n.Japanese: "相手の確認"}, "Which town?\nWhen?\nWho?"},
		"unsure before CODE": {[]string{output(planResult, map[string]any{"fit": false, "suggested_route": "CODE", "confidence": 0.5})}, "need_user_confirmation", 1,
			map[i18n.Lang]string{i18n.English: "has to confirm", i18n.Japanese: "相手の確認"}, ""},
	} {
		for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
			t.Run(name+" "+string(lang), func(t *testing.T) {
				t.Parallel()
				h := open(t, lang, "terminal")
				if name == "worker_fail" {
					h.play("worker", says(c.worker...))
				} else {
					h.plays("worker", c.worker...)
				}
				h.plays("chat", "That is it.")
				if got := h.hears("/plan do"); len(got) != 1 || !strings.HasSuffix(got[0], "\nThat is it.") {
					t.Fatalf("%q", got)
				}
				asked := h.last("chat").asked()
				if want := c.told[lang]; want != "" && !strings.Contains(asked, want) || !strings.Contains(asked, c.ask) {
					t.Errorf("%s", asked)
				}
				if strings.Contains(asked, "Why?") {
					t.Error("a fourth question")
				}
				h.tells("loop.stop", "stop_reason final_route", `stop_reason="`+c.stop+`" final_route="PLAN"`)
				if got := h.told("loop.stop", "loops"); got[0] != "loops="+string(rune('0'+c.loops)) {
					t.Error(got)
				}
				if name == "worker_fail" {
					if got := h.told("worker.fail", "error"); len(got) != 1 || !strings.Contains(got[0], "contract") {
						t.Error(got)
					}
					if got := h.told("final.route", "error_reason"); got[0] == "error_reason=null" {
						t.Error(got)
					}
				}
			})
		}
	}
}

// slowly is a script that answers after a while.
func slowly(text string, after time.Duration) string {
	return fmt.Sprintf("- say: %q\n  delay_ms: %d\n", text, after.Milliseconds())
}

// A turn whose time is over has Chat say so, from what there is.
func TestTimeIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, i18n.English, "terminal", func(_ *house, o *Options) { o.Now = time.Now })
		// A third of the time is Chat's, who is told what there was by then.
		h.play("worker", slowly(output(planResult, map[string]any{"needs_next_loop": true}), 40*time.Second),
			"- calls: [{tool: read_file, args: {path: main.go}}]\n"+slowly("too late", time.Hour))
		h.play("chat", slowly("It took too long.", 29*time.Second))
		began := time.Now()
		if got := h.hears("/plan do"); len(got) != 1 || !strings.HasSuffix(got[0], "It took too long.") || time.Since(began) != 89*time.Second {
			t.Fatalf("%q after %s", got, time.Since(began))
		}
		asked := h.last("chat").asked()
		for _, want := range []string{"its time was over; nothing failed", `"title": "T"`, "Not finished: the time for it was over", `read_file {"path":"main.go"}`, "There is no file or directory main.go"} {
			if !strings.Contains(asked, want) {
				t.Errorf("%q is not in\n%s", want, asked)
			}
		}
		h.tells("loop.stop", "stop_reason loops elapsed", `stop_reason="max_millis" loops=2 elapsed=89000`)
		// What the classifier takes counts, and Chat's own leg ends with the turn.
		h.play("worker", slowly(`{"route":"CHAT","confidence":0.9,"reason":"r","evidence":[]}`, 50*time.Second))
		h.play("chat", slowly("never", time.Hour))
		began = time.Now()
		if got := h.hears("well"); len(got) != 1 || !strings.HasPrefix(got[0], "notice: The time for this message (90 s, loop.max_millis) was over") || time.Since(began) != 90*time.Second {
			t.Errorf("%q after %s", got, time.Since(began))
		}
	})
}

// The short memory is renewed in the turn's time: a summary that takes longer is given up when
// that is over, and where none is left it is not begun; a later turn makes it.
func TestShortMemoryIsInTheTurnsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, i18n.English, "terminal", func(_ *house, o *Options) { o.Now = time.Now })
		for range 10 {
			h.plays("chat", "a")
			h.hears("/chat q")
		}
		for _, c := range []struct {
			worker, answer, summary time.Duration
			takes                   time.Duration
			legs                    int
			renewed                 bool
		}{
			{0, 70 * time.Second, time.Hour, 90 * time.Second, 2, false},
			{time.Hour, 29 * time.Second, time.Hour, 90 * time.Second, 2, false}, // Chat tells what was found out in its part of the time
			{0, 80 * time.Second, 9 * time.Second, 89 * time.Second, 2, true},
		} {
			h.cast.scripts = map[string][]string{}
			text := "/chat q"
			if c.worker > 0 {
				text = "/plan do"
				h.play("worker", slowly("late", c.worker))
			}
			h.play("chat", slowly("an answer", c.answer), slowly("remembered", c.summary))
			before, began := len(h.cast.calls), time.Now()
			h.hears(text)
			legs := 0
			for _, k := range h.cast.calls[before:] {
				if k.Role == "chat" {
					legs++
				}
			}
			if took := time.Since(began); took != c.takes || legs != c.legs || (h.stateNow().ShortMemory != "") != c.renewed {
				t.Errorf("%+v: %d legs in %s, %q", c, legs, took, h.stateNow().ShortMemory)
			}
		}
	})
}

// The time in which a local model is loaded does not count, and the user is told of it
// after five seconds.
func TestLoading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, i18n.Japanese, "terminal", func(_ *house, o *Options) { o.Now = time.Now })
		h.cast.cold = map[string]bool{"worker": true, "chat": true}
		h.play("worker", slowly(output(planResult, nil), 10*time.Minute))
		h.play("chat", slowly("できました。", 4*time.Second))
		h.saw("/plan do", "notice: モデル script/worker を読み込んでいます。少しお待ちください。", "answer: 段取りを組むね。\nできました。")
		h.tells("loop.stop", "stop_reason elapsed", `stop_reason="done" elapsed=0`)
		// One that has answered is not asked about again.
		h.play("worker", slowly(output(planResult, nil), 20*time.Second))
		h.plays("chat", "again")
		h.saw("/plan do", "answer: again")
		h.tells("loop.stop", "elapsed", "elapsed=0", "elapsed=20000")
	})
}

// A worker that says that another route fits better is followed once, also where it wants
// no further loop; so is Chat's proposal. Both are taken out of what the user sees.
func TestReroute(t *testing.T) {
	t.Parallel()
	propose := func(route string, confidence float64, next bool) string {
		return fmt.Sprintf("Well.\n\n```json\n{\"propose_next_loop\":%t,\"route\":%q,\"reason\":\"r\",\"confidence\":%g}\n```", next, route, confidence)
	}
	unfit := func(result, to string) string {
		return output(result, map[string]any{"fit": false, "suggested_route": to})
	}
	for name, c := range map[string]struct {
		text         string
		worker, chat []string
		want, legs   string
		override     []string
		used         bool
	}{
		"by a worker":       {"/plan do", []string{unfit(planResult, "ops"), output(opsResult, nil)}, []string{"Steps."}, "I'll walk you through it.\nSteps.", "worker PLAN, worker OPS, chat CHAT", []string{`from="PLAN" to="OPS" by="reroute"`}, true},
		"only once":         {"/plan do", []string{unfit(planResult, "OPS"), unfit(opsResult, "ANALYZE")}, []string{"Steps."}, "I'll walk you through it.\nSteps.", "worker PLAN, worker OPS, chat CHAT", []string{`from="PLAN" to="OPS" by="reroute"`}, true},
		"to itself":         {"/plan do", []string{unfit(planResult, "PLAN")}, []string{"A plan."}, "I'll lay out a plan.\nA plan.", "worker PLAN, chat CHAT", nil, false},
		"to nonsense":       {"/plan do", []string{unfit(planResult, "SANTA")}, []string{"A plan."}, "I'll lay out a plan.\nA plan.", "worker PLAN, chat CHAT", nil, false},
		"without a result":  {"/research do", []string{`{"fit": "false", "suggested_route": "CHAT", "why": "a question about now"}`}, []string{"All is well."}, "All is well.", "worker RESEARCH, chat CHAT", []string{`from="RESEARCH" to="CHAT" by="reroute"`}, true},
		"no result, to ops": {"/analyze do", []string{`{"fit": false, "suggested_route": "OPS", "result": {}}`, output(opsResult, nil)}, []string{"Steps."}, "I'll walk you through it.\nSteps.", "worker ANALYZE, worker OPS, chat CHAT", []string{`from="ANALYZE" to="OPS" by="reroute"`}, true},
		"no result, once":   {"/plan do", []string{`{"fit": false, "suggested_route": "OPS"}`, `{"fit": false, "suggested_route": "ANALYZE", "why": "data"}`}, []string{"Well."}, "I'll walk you through it.\nWell.", "worker PLAN, worker OPS, chat CHAT", []string{`from="PLAN" to="OPS" by="reroute"`}, true},
		"no result to code": {"/plan do", []string{`{"fit": false, "suggested_route": "CODE"}`}, []string{"Shall I?"}, "I'll lay out a plan.\nShall I?", "worker PLAN, chat CHAT", nil, false},
		"by Chat":           {"/chat do", []string{output(planResult, nil)}, []string{propose("PLAN", 0.6, true), "A plan."}, "I'll lay out a plan.\nA plan.", "chat CHAT, worker PLAN, chat CHAT", []string{`from="CHAT" to="PLAN" by="reroute"`}, true},
		"by Chat, late":     {"/ops do", []string{output(opsResult, nil), output(planResult, nil)}, []string{propose("PLAN", 0.9, true), "A plan." + propose("OPS", 0.9, true)}, "I'll lay out a plan.\nA plan.Well.", "worker OPS, chat CHAT, worker PLAN, chat CHAT", []string{`from="OPS" to="PLAN" by="reroute"`}, true},
		"unsure":            {"/chat do", nil, []string{propose("PLAN", 0.59, true)}, "Well.", "chat CHAT", nil, false},
		"not wanted":        {"/chat do", nil, []string{propose("PLAN", 0.9, false)}, "Well.", "chat CHAT", nil, false},
		"code, unsure":      {"/chat rename `foo_bar()` in main.go", nil, []string{propose("CODE", 0.7, true)}, "Well.", "chat CHAT", nil, false},
		"code, no evidence": {"/chat do something", nil, []string{propose("CODE", 0.9, true)}, "Well.", "chat CHAT", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, i18n.English, "terminal")
			h.plays("worker", c.worker...)
			h.plays("chat", c.chat...)
			h.saw(c.text, "answer: "+c.want)
			if got := h.legs(); got != c.legs {
				t.Error(got)
			}
			h.tells("route.override", "from to by", c.override...)
			h.tells("final.route", "reroute_used", fmt.Sprint("reroute_used=", c.used))
			for _, s := range h.stage.streams {
				if strings.Contains(s, "propose_next_loop") {
					t.Errorf("streamed %q", s)
				}
			}
		})
	}
	h := open(t, i18n.English, "terminal")
	h.plays("chat", propose("CODE2", 0.9, true))
	if got := h.hears("/chat rename `foo_bar()` in main.go to `baz_qux()`"); len(h.desk.jobs) != 1 || h.desk.jobs[0].Route != "CODE2" || !strings.Contains(got[0], "Job ") {
		t.Errorf("%q, %+v", got, h.desk.jobs)
	}
}

// A call that failed has loaded no model: while the next one loads it, that is said, and does
// not count.
func TestLoadingAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, i18n.English, "terminal", func(_ *house, o *Options) { o.Now = time.Now })
		h.play("chat", slowly("never", time.Hour), slowly("There.", 10*time.Minute))
		h.hears("/chat hello")
		h.cast.cold = map[string]bool{"chat": true}
		h.saw("/chat hello", "notice: The model script/chat is being loaded; this takes a moment.", "answer: There.")
	})
}

// A report on a proposal that somebody decides about while Chat writes it is not told: it would
// say that it waits. Nor is it begun anew.
func TestDecidedBeforeItIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, i18n.English, "terminal", func(_ *house, o *Options) { o.Now = time.Now })
		h.play("chat", slowly("It waits for you.", 20*time.Second))
		f := Finished{SessionID: h.id, ID: "20260301-101010-0123abcd", Title: "greet", Route: "CODE2", Proposal: &contract.Coder{Plan: "p", Patch: "x"}}
		done := make(chan error, 1)
		go func() { done <- h.Finish(t.Context(), f) }()
		synctest.Wait()
		h.hears("/approve 20260301-101010-0123abcd 0123456789ab")
		h.Decided(h.id, f.ID)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := h.Finish(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(h.stage.seen(), "\n"); strings.Contains(got, "It waits") || strings.Contains(got, "I cannot answer") {
			t.Error(got)
		}
	})
}
