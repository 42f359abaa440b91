package conversation

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toritsugi/internal/channel"
	"toritsugi/internal/contract"
	"toritsugi/internal/i18n"
	"toritsugi/internal/routing"
)

// Chat hands over: three legs, notices before and after, and nothing of the directive or
// of the worker's own words reaches the user or the history.
func TestDelegation(t *testing.T) {
	t.Parallel()
	for lang, want := range map[i18n.Lang][3]string{
		i18n.English:  {"notice: Shiro is looking into it: look at the disk of the server", "notice: Shiro has come back: look at the disk of the server", "answer: The disk is full."},
		i18n.Japanese: {"notice: Shiro に頼んでみますね: look at the disk of the server", "notice: Shiro の作業が終わりました: look at the disk of the server", "answer: The disk is full."},
	} {
		t.Run(string(lang), func(t *testing.T) {
			t.Parallel()
			h := open(t, lang, "terminal")
			h.plays("chat", "I'll pass that on.\n```\ndelegate： ops\nTask: look at the disk of the server\nbig-7 first\n```", "The disk is full.", "As I said.")
			h.plays("worker", output(opsResult, nil))
			h.saw("/chat what about the disk?", want[:]...)
			if got := h.legs(); got != "chat CHAT, worker OPS, chat CHAT" {
				t.Error(got)
			}
			if k := h.cast.calls[1]; !strings.Contains(k.asked(), `"user_text":"look at the disk of the server\nbig-7 first"`) || strings.Contains(k.asked(), "what about the disk") && !strings.Contains(k.asked(), `"recent_turns":[]`) {
				t.Error(k.asked())
			}
			h.hears("/chat and?")
			asked := h.last("chat").asked()
			for _, not := range []string{"delegate", "DELEGATE： ", "big-7", "df -h", "Shiro"} {
				if strings.Contains(strings.ReplaceAll(asked, "DELEGATE: PLAN|", ""), not) {
					t.Errorf("the history holds %q:\n%s", not, asked)
				}
			}
			if !strings.Contains(asked, "The disk is full.") {
				t.Error(asked)
			}
			for id, text := range h.stage.streams {
				if strings.Contains(strings.ToLower(text), "delegate") || strings.Contains(text, "TASK") {
					t.Errorf("%s streamed %q", id, text)
				}
			}
			// The leg is kept below its session.
			legs, err := filepath.Glob(filepath.Join(h.Engine.open(h.id, "terminal").Dir, "legs", "*.jsonl"))
			if err != nil || len(legs) != 1 || filepath.Base(legs[0]) != "1.1.jsonl" {
				t.Errorf("%v, %v", legs, err)
			}
			// Chat's own route stays: the delegated one is declared on LINE alone.
			if s := h.stateNow(); *s.PrevRoute != routing.Chat {
				t.Error(*s.PrevRoute)
			}
		})
	}
}

// On LINE everything goes to Chat, the route that was wanted is a hint, and the delegated
// route is the one that is declared.
func TestLine(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.Japanese, "line")
	h.plays("chat", "DELEGATE: PLAN\nTASK: 旅行の段取り", "では、こうしましょう。")
	h.plays("worker", output(planResult, nil))
	got := h.hears("/plan 旅行の段取りを決めて")
	if len(got) != 3 || got[2] != "answer: 段取りを組むね。\nでは、こうしましょう。" {
		t.Errorf("%q", got)
	}
	if first := h.cast.calls[0]; first.Role != "chat" || !strings.Contains(first.asked(), "PLAN の仕事のようです") {
		t.Error(first.asked())
	}
	h.tells("router.decision", "initial_route source confidence evidence", `initial_route="CHAT" source="line_forced_chat" confidence=1 evidence=["channel=line"]`)
}

// A directive without a task is asked about once; a second one in the final text is
// ignored, and Chat is asked for words.
func TestBadDelegations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chat   []string
		worker int
		want   []string
		legs   string
	}{
		"no task, then one":       {[]string{"DELEGATE: PLAN", "DELEGATE: PLAN\nTASK: do", "done"}, 1, []string{"", "", "answer: done"}, "chat CHAT, chat CHAT, worker PLAN, chat CHAT"},
		"no task, then an answer": {[]string{"DELEGATE: PLAN\nTASK:", "I can tell you myself."}, 0, []string{"answer: I can tell you myself."}, "chat CHAT, chat CHAT"},
		"no task twice":           {[]string{"DELEGATE: PLAN", "Well.\nDELEGATE: PLAN\nTASK: ", "In words."}, 0, []string{"answer: In words."}, "chat CHAT, chat CHAT, chat CHAT"},
		"a second one":            {[]string{"DELEGATE: PLAN\nTASK: do", "DELEGATE: OPS\nTASK: more", "In words."}, 1, []string{"", "", "answer: In words."}, "chat CHAT, worker PLAN, chat CHAT, chat CHAT"},
		"again and again":         {[]string{"DELEGATE: PLAN\nTASK: do", "DELEGATE: OPS\nTASK: more", "Words.\nDELEGATE: OPS\nTASK: more"}, 1, []string{"", "", "answer: Words."}, "chat CHAT, worker PLAN, chat CHAT, chat CHAT"},
		"to nobody":               {[]string{"DELEGATE: SANTA\nTASK: gifts", "I cannot."}, 0, []string{"answer: I cannot."}, "chat CHAT, chat CHAT"},
		"nothing":                 {[]string{"  \n", "Words."}, 0, []string{"answer: Words."}, "chat CHAT, chat CHAT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, i18n.English, "terminal")
			for _, s := range c.chat {
				if strings.TrimSpace(s) == "" {
					h.play("chat", "- finish: stop\n")
					continue
				}
				h.plays("chat", s)
			}
			for range c.worker {
				h.plays("worker", output(planResult, nil))
			}
			got := h.hears("/chat please")
			if len(got) != len(c.want) {
				t.Fatalf("%q", got)
			}
			for i, w := range c.want {
				if w != "" && got[i] != w || strings.Contains(got[i], "DELEGATE") {
					t.Errorf("%q", got)
				}
			}
			if got := h.legs(); got != c.legs {
				t.Error(got)
			}
		})
	}
}

// A coding route becomes a job: the turn ends when it is accepted, and Chat tells of it
// when it comes back. The first one of a session is read as any other (no declaration
// stands before what a coder wrote).
func TestJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, route, role, declared, task string }{
		"by command":   {"/code3 fix\n\tthe  thing", "CODE3", "coder3", "I'll write this with extra care.", "fix\n\tthe  thing"},
		"by a rule":    {"```go\nfunc f() {}\n```", "CODE2", "coder2", "I'll write the code.", "```go\nfunc f() {}\n```"},
		"by content":   {"/code 高品質な実装にして", "CODE3", "coder3", "I'll write this with extra care.", "高品質な実装にして"},
		"a design":     {"/code write the spec of it", "CODE1", "coder", "I'll draw up the design.", "write the spec of it"},
		"an unset one": {"/code2 do", "CODE2", "coder", "I'll write the code.", "do"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, i18n.English, "terminal")
			h.sets["coder2"] = name != "an unset one"
			got := h.hears(c.text)
			if len(got) != 1 || !strings.HasPrefix(got[0], "notice: "+c.declared+"\n") || !strings.HasSuffix(got[0], "\nJob 20260301-101010-00000001. /jobs shows how far it is.") {
				t.Fatalf("%q", got)
			}
			j := h.desk.jobs[0]
			if string(j.Route) != c.route || j.Role != c.role || j.Task != c.task || j.Repository.Name != "widgets" || j.ReplyTo != "m1" || !strings.Contains(j.Prompt, "CODE") || !j.Input.Tooling.RepoRead || h.legs() != "" {
				t.Errorf("%+v, legs %s", j, h.legs())
			}
			h.plays("chat", "Here is a proposal.\n```json\n{\"propose_next_loop\":true,\"route\":\"OPS\",\"reason\":\"r\",\"confidence\":1}\n```") // whose input is over
			p := &contract.Coder{Plan: "Change it.\nThen test.", Patch: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", NeedApproval: true, Risk: contract.Risk{Rollback: true}}
			f := Finished{SessionID: h.id, ReplyTo: j.ReplyTo, ID: "20260301-101010-00000001", Title: j.Task, Route: j.Route, Proposal: p}
			for range 2 { // told once, however often it is said
				if err := h.Finish(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
			all := h.stage.seen()
			if len(all) != 3 || !strings.HasPrefix(all[1], "notice: ") || all[2] != "answer: Here is a proposal." || h.stage.posts[2].ReplyTo != "m1" {
				t.Errorf("%q", all)
			}
			if asked := h.last("chat").asked(); !strings.Contains(asked, "- x (+1 -1)") || !strings.Contains(asked, "-a\n+b") || !strings.Contains(asked, "waits for somebody's approval") {
				t.Error(asked)
			}
			h.tells("coder.plan_generated", "job_id plan", `job_id="20260301-101010-00000001" plan="Change it.\nThen test."`)
			h.tells("worker.success", "route risk", `route="`+c.route+`" risk="low"`)
		})
	}
}

// CODE again, or CODE2, is silent; another coder declares itself.
func TestDeclarationsOfCoders(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.Japanese, "terminal")
	var got []string
	for _, m := range []string{"/code make it", "/code2 make it", "/code1 make it", "/code3 make it"} {
		first, _, _ := strings.Cut(h.hears(m)[0], "\n")
		got = append(got, first)
	}
	if got[0] != "notice: コーディングするね。" || strings.Contains(got[1], "するね。") || got[2] != "notice: 設計・仕様をまとめるね。" || got[3] != "notice: 高品質なコードを作るね。" {
		t.Errorf("%q", got)
	}
	h.tells("route.override", "from to by", `from="CODE2" to="CODE1" by="command"`, `from="CODE1" to="CODE3" by="command"`)
}

// A kill between the notice that a job has come back and the answer: the next attempt does not
// say the notice again.
func TestFinishIsCutShort(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.hears("/code2 do")
	const job = "20260301-101010-00000001"
	x := h.open(h.id, channel.Terminal)
	if _, err := h.append(t.Context(), x, Entry{Role: roleAssistant, Kind: channel.Notice, ReplyTo: "m1", Job: job, Content: h.prompts.notice("done", h.Alias(t.Context(), "coder2"), "do")}); err != nil {
		t.Fatal(err)
	}
	h.plays("chat", "Here is a proposal.")
	f := Finished{SessionID: h.id, ReplyTo: "m1", ID: job, Title: "do", Route: routing.Code2, Proposal: &contract.Coder{Plan: "Change it.", Patch: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", NeedApproval: true}}
	if err := h.Finish(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if all := h.stage.seen(); len(all) != 3 || !strings.HasPrefix(all[1], "notice: ") || all[2] != "answer: Here is a proposal." {
		t.Errorf("%q", all)
	}
	said := 0
	if err := x.back(func(n Entry) bool {
		if n.Kind == channel.Notice && n.Job == job && !strings.Contains(n.Content, "/jobs") {
			said++
		}
		return true
	}); err != nil || said != 1 {
		t.Errorf("%d notices on record, %v", said, err)
	}
}

// Chat is told of a job as it stands: only of one that waits is it said that it does.
func TestChatIsToldHowAJobStands(t *testing.T) {
	t.Parallel()
	for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
		for i, c := range []struct {
			proposal *contract.Coder
			err      error
			frame    string
		}{
			{&contract.Coder{Plan: "Change it.", Patch: "p", NeedApproval: true}, nil, "job"},
			{&contract.Coder{Plan: "Change it.", Patch: "p"}, nil, "job_granted"},
			{&contract.Coder{Plan: "Nothing is wrong."}, nil, "job_nothing"},
			{nil, errors.New("the model is away"), "job_failed"},
		} {
			h := open(t, l, "terminal")
			h.plays("chat", "It is so.")
			if err := h.Finish(t.Context(), Finished{SessionID: h.id, ID: "j", Title: "do", Route: routing.Code2, Proposal: c.proposal, Err: c.err}); err != nil {
				t.Fatal(i, err)
			}
			begins, _, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(h.prompts.text("turn/"+c.frame+".md"), "{job}", "j"), "{title}", "do"), "\n")
			if asked := h.last("chat").asked(); !strings.Contains(asked, begins) {
				t.Errorf("%s, %d: %s", l, i, asked)
			}
		}
	}
}

// A job that fails, that is refused, that has no coder or no repository.
func TestJobsThatAreNone(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.plays("chat", "It did not work out.")
	if err := h.Finish(t.Context(), Finished{SessionID: h.id, ID: "j", Title: "do", Route: routing.Code2, Err: errors.New("the model is away")}); err != nil {
		t.Fatal(err)
	}
	h.tells("worker.fail", "route error", `route="CODE2" error="the model is away"`)
	if p := h.stage.posts[len(h.stage.posts)-1]; !p.Failed {
		t.Errorf("the report of a job that failed counts as an answer: %+v", p)
	}
	if asked := h.last("chat").asked(); !strings.Contains(asked, "the model is away") || !strings.Contains(asked, "did not work out") {
		t.Error(asked)
	}
	// Where Chat is away, too, the program says it.
	if err := h.Finish(t.Context(), Finished{SessionID: h.id, ID: "k", Title: "do", Route: routing.Code2, Err: errors.New("the model is away")}); err != nil {
		t.Fatal(err)
	}
	if all := h.stage.seen(); !strings.HasPrefix(all[len(all)-1], "notice: The work on \"do\" ended without a proposal: the model is away\n") {
		t.Errorf("%q", all[len(all)-1])
	}
	h.desk.refuse = i18n.E("conversation.too_many", 3)
	h.saw("/code2 do", "notice: 3 messages of this conversation wait already; send it again when one was answered")
	h.desk.refuse = nil
	h.sets = map[string]bool{}
	if got := h.hears("/code3 do"); len(got) != 1 || !strings.Contains(got[0], "coder3") {
		t.Errorf("%q", got)
	}
	if s := h.stateNow(); s.PrevRoute != nil && s.PrevRoute.Coding() {
		t.Errorf("a turn that failed is the route of the last answer: %s", *s.PrevRoute)
	}
	nowhere := open(t, i18n.English, "slack", func(_ *house, o *Options) {
		o.Here, o.Repositories = nil, []Repository{{Name: "a", Path: "/a"}, {Name: "b", Path: "/b"}, {Name: "c", Path: "/c", Users: []string{"slack:taro"}}}
	})
	nowhere.plays("chat", "Which one?")
	nowhere.saw("/code2 do", "answer: Which one?")
	if asked := nowhere.last("chat").asked(); !strings.Contains(asked, "may be named: a, b.") {
		t.Error(asked)
	}
}

// A bare command asks what to do, and calls no model of the route.
func TestBareCommand(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.plays("chat", "What shall it be?", "And what?")
	h.saw("/code", "answer: What shall it be?")
	h.saw("  ／ＰＬＡＮ ", "answer: And what?")
	if len(h.desk.jobs) > 0 || h.legs() != "chat CHAT, chat CHAT" {
		t.Errorf("%v, %s", h.desk.jobs, h.legs())
	}
}

// local_only holds for commands, rules, delegations, suggestions of workers, proposals of
// Chat, and all that is called meanwhile, the summariser too.
func TestLocalOnly(t *testing.T) {
	t.Parallel()
	proposal := "Fine.\n```json\n{\"propose_next_loop\":true,\"route\":\"CODE\",\"reason\":\"r\",\"confidence\":0.95}\n```"
	suggests := output(planResult, map[string]any{"fit": false, "suggested_route": "CODE"})
	for name, c := range map[string]struct {
		text         string
		chat, worker []string
		want, legs   string
	}{
		"a command":    {"/code do", []string{"Not while local; /cloud lifts it."}, nil, "answer: Not while local; /cloud lifts it.", "chat CHAT local"},
		"a fixed one":  {"/code3 do", []string{"No."}, nil, "answer: No.", "chat CHAT local"},
		"a rule":       {"```go\nx\n```", []string{"No."}, nil, "answer: No.", "chat CHAT local"},
		"a delegation": {"/chat do", []string{"DELEGATE: CODE\nTASK: do", "No."}, nil, "answer: No.", "chat CHAT local, chat CHAT local"},
		"a worker":     {"/plan do", []string{"A plan."}, []string{suggests}, "answer: I'll lay out a plan.\nA plan.", "worker PLAN local, chat CHAT local"},
		"a proposal":   {"/chat fix `foo_bar()` in main.go", []string{proposal}, nil, "answer: Fine.", "chat CHAT local"},
		"Chat is down": {"/code do", nil, nil, "answer: coding needs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, i18n.English, "terminal")
			h.saw("/local", "notice: Working locally only; /cloud lifts it.")
			h.plays("chat", c.chat...)
			h.plays("worker", c.worker...)
			got := h.hears(c.text)
			if name == "Chat is down" {
				if len(got) != 1 || !strings.Contains(got[0], "/cloud") {
					t.Errorf("%q", got)
				}
			} else if len(got) != 1 || got[0] != c.want {
				t.Errorf("%q", got)
			}
			if got := h.legs(); got != c.legs || len(h.desk.jobs) > 0 {
				t.Errorf("%s; jobs %v", got, h.desk.jobs)
			}
			if !h.stateNow().LocalOnly {
				t.Error("the flag is gone")
			}
			h.saw("/cloud", "notice: Cloud models may be used again.")
			if got := h.hears("/code2 do"); len(h.desk.jobs) != 1 {
				t.Errorf("%q", got)
			}
		})
	}
}

// Behind a turn of another route /local is told as what it is, nothing is handed over, and
// where Chat is down a fixed text refuses code; the route that was declared stays.
func TestLocalBehindAnotherRoute(t *testing.T) {
	t.Parallel()
	for lang, want := range map[i18n.Lang][3]string{
		i18n.English:  {"answer: I'll lay out a plan.\nFirst this.", "notice: Working locally only; /cloud lifts it.", "answer: Coding is not possible while working locally only. /cloud lifts it."},
		i18n.Japanese: {"answer: 段取りを組むね。\nFirst this.", "notice: ローカルだけで動きます。/cloud で解除できます。", "answer: ローカル限定中はコーディングできません。/cloud で解除してください。"},
	} {
		h := open(t, lang, "terminal")
		h.plays("worker", output(planResult, nil))
		h.plays("chat", "First this.")
		h.saw("/plan do", want[0])
		h.saw("/local", want[1])
		if got := h.hears("/code do"); len(got) != 1 || !strings.HasPrefix(got[0], want[2]) {
			t.Errorf("%q", got)
		}
		if got := h.legs(); got != "worker PLAN, chat CHAT" || len(h.desk.jobs) > 0 {
			t.Error(got)
		}
		h.plays("worker", output(planResult, nil))
		h.plays("chat", "Then that.")
		h.hears("/plan more")
		h.tells("router.decision", "initial_route local_only", `initial_route="PLAN" local_only=false`, `initial_route="CHAT" local_only=true`, `initial_route="PLAN" local_only=true`)
	}
}

// A model in a cloud is not called on a route that may not leave, nor at all while local,
// whatever a role is set to; what follows /local is a message of its own.
func TestCloud(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.cast.cloud = map[string]bool{"worker": true}
	h.plays("worker", output(planResult, nil), output(planResult, nil))
	h.plays("chat", "It may not leave.")
	if got := h.hears("/plan do"); len(got) != 1 || !strings.HasSuffix(got[0], "It may not leave.") {
		t.Errorf("%q", got)
	}
	if sent := h.cast.calls[0].Sent; len(sent) > 0 {
		t.Errorf("a cloud was sent %v", sent)
	}
	if got := h.told("worker.fail", "error"); len(got) != 1 {
		t.Errorf("%q", got)
	}
	h.plays("chat", "Good.")
	h.saw("/local\tthanks", "notice: Working locally only; /cloud lifts it.", "answer: Good.")
	if k := h.last("chat"); !k.Local || k.Sent[len(k.Sent)-1].Content != "thanks" {
		t.Errorf("%+v", k)
	}
}

// /local acts at once: on the next leg of a turn that goes on.
func TestLocalActsAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.plays("worker", output(planResult, nil))
	h.plays("chat", "DELEGATE: PLAN\nTASK: do", "done")
	once := false
	var said sync.WaitGroup
	hook := &hooked{stage: h.stage, on: func(p channel.Post) {
		if p.Kind == channel.Notice && !once {
			once = true
			m := h.message("/local")
			said.Go(func() { // which is answered behind what is being shown
				if err := h.Handle(t.Context(), m); err != nil {
					t.Error(err)
				}
			})
			for !h.LocalOnly(m.SessionID) {
				<-time.After(time.Millisecond)
			}
		}
	}}
	h.Add(hook)
	h.hears("/chat do")
	said.Wait()
	if got := h.legs(); got != "chat CHAT, worker PLAN local, chat CHAT local" {
		t.Error(got)
	}
}

// hooked is a stage that does something after a post.
type hooked struct {
	*stage
	on func(channel.Post)
}

func (k *hooked) Post(ctx context.Context, p channel.Post) error {
	err := k.stage.Post(ctx, p)
	k.on(p)
	return err
}
