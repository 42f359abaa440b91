package slack

import (
	"strings"
	"testing"
	"time"

	"toritsugi/internal/channel"
)

func asks(choices ...string) channel.Post {
	return channel.Post{SessionID: session, ReplyTo: "C1.946684000.000100", Key: "run-1/question/ask1", Kind: channel.Notice, Job: "run-1", Text: "The run of acme/widgets#1 asks:\n\n> Which color & why?",
		Question: &channel.Question{ID: "run-1/question/ask1", Text: "> Which color & why?", Choices: choices}}
}

func answered() channel.Post {
	p := asks("red")
	p.Key, p.Text = p.Key+"/answered", "It was answered by hanako:\n\n> red"
	p.Question.Over, p.Question.By, p.Question.At = true, "slack:U2", time.Unix(1700000100, 0)
	return p
}

func (r *rig) posts(p channel.Post) {
	r.t.Helper()
	if err := r.s.Post(r.t.Context(), p); err != nil {
		r.t.Fatal(err)
	}
}

// A question has a button for each choice. What became of it stands in its place, without
// buttons, also where a process that ended asked.
func TestQuestions(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.posts(asks("red", strings.Repeat("green ", 20)))
		if s := r.f.shown(); !strings.Contains(s, "[red]") || !strings.Contains(s, "gr…][Answer in words]") || !strings.Contains(s, "Which color & why?") {
			t.Fatal(s)
		}
		r.press("U2", "choice1", nil)
		told := r.h.Told()
		if len(told) != 1 || told[0].Question != "run-1/question/ask1" || told[0].UserText != "1" || told[0].User != "slack:U2" || told[0].SessionID != session {
			t.Fatalf("%+v", told)
		}
		time.Sleep(time.Minute)
		r.restart(nil)
		r.posts(asks("red", "green")) // it does not know that this was said
		r.posts(answered())
		r.posts(answered())
		s := r.f.shown()
		if strings.Contains(s, "[") || strings.Count(s, "Which color & why?") != 1 || !strings.Contains(s, "answered by hanako") || !strings.Contains(s, "<@U2> · <!date^1700000100^") {
			t.Error(s)
		}
	})
}

// A question that was not asked here is told of in words.
func TestAnswerToWhatWasNotAsked(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.posts(answered())
		r.posts(answered())
		if s := r.f.shown(); strings.Count(s, "answered by hanako") != 1 {
			t.Error(s)
		}
	})
}

// A form takes an answer in words; where it cannot be opened, that is said.
func TestForms(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.posts(asks())
		r.press("U1", inWords, func(p map[string]any) { p["trigger_id"] = "t1" })
		if len(r.f.forms) != 1 || r.f.forms[0] != "t1 words "+session+" run-1/question/ask1" {
			t.Fatal(r.f.forms)
		}
		send := func(user, trigger string) {
			r.interact(map[string]any{"type": "view_submission", "trigger_id": trigger, "user": map[string]any{"id": user}, "view": map[string]any{"callback_id": inWords,
				"private_metadata": session + " run-1/question/ask1", "state": map[string]any{"values": map[string]any{inWords: map[string]any{inWords: map[string]any{"type": "plain_text_input", "value": "/stop it"}}}}}})
			r.work()
		}
		send("U3", "t2")
		send("U1", "t3")
		send("U1", "t3") // Slack sends it again
		told := r.h.Told()
		if len(told) != 1 || told[0].UserText != "/stop it" || told[0].Question != "run-1/question/ask1" || told[0].User != "slack:U1" || told[0].SessionID != session {
			t.Fatalf("%+v", told)
		}
		r.f.fail = func(c call, _ func()) (int, string, map[string][]string) {
			if c.method == "views.open" {
				return 200, `{"ok":false,"error":"expired_trigger_id"}`, nil
			}
			return 0, "", nil
		}
		r.press("U1", inWords, nil)
		if s := r.f.shown(); len(r.f.forms) != 1 || strings.Count(s, "The form could not be opened") != 1 {
			t.Error(s)
		}
	})
}

// Who presses a button of a copy is told so, once for a copy; strangers are told nothing.
func TestButtonsOfACopy(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.posts(asks("red"))
		elsewhere := func(p map[string]any) {
			p["container"] = map[string]any{"channel_id": "C9", "message_ts": "1700000009.1", "thread_ts": "1700000009.1"}
		}
		r.press("U3", "choice1", elsewhere)
		if s := r.f.shown(); strings.Contains(s, "copy") {
			t.Error(s)
		}
		for _, user := range []string{"U1", "U2", "U1"} {
			r.press(user, "choice1", elsewhere)
		}
		if s := r.f.shown(); strings.Count(s, "This is a copy") != 1 || len(r.h.Told()) != 0 {
			t.Errorf("%s %+v", s, r.h.Told())
		}
	})
}
