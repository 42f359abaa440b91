package cli

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toritsugi/internal/forge/github/githubtest"
)

// wording is the words of a life in one language.
type wording struct {
	lang, title, question, answer, wants, remark string
	because                                      string // what the model says of the remark
	asks, waits, completed                       string // what people read of us
	proposal                                     map[bool]string
	foreign                                      *regexp.Regexp // what stands in no text in it
}

var wordings = []wording{
	{lang: "en", title: "The answer is wrong", question: "Which number?", answer: "Take 42.", wants: "Say why.", remark: "Why 42?", because: "why.txt says it now.",
		asks: "A question before the work can go on", waits: "Waiting for an answer", completed: "✅ **Completed**",
		proposal: map[bool]string{true: "Merge request: ", false: "Pull request: "}, foreign: regexp.MustCompile(`[\p{Hiragana}\p{Katakana}\p{Han}]`)},
	{lang: "ja", title: "答えが違う", question: "どの数ですか。", answer: "42 です。", wants: "理由も書いてください。", remark: "なぜ 42 ですか。", because: "why.txt に書きました。",
		asks: "作業を続ける前に確認があります", waits: "回答を待っています", completed: "✅ **完了しました**",
		proposal: map[bool]string{true: "マージリクエスト: ", false: "プルリクエスト: "}, foreign: regexp.MustCompile(`[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}\b`)},
}

// planOf is a plan of one step, its calls, and a verification that passes.
func planOf(goal string, calls ...string) string {
	s := `- say: '{"phase":"planning","goal_understanding":{"main_objective":"` + goal + `","success_criteria":["` + goal + `"],"constraints":[]},"task_decomposition":{"reasoning":"r","subtasks":[{"id":"write","description":"` + goal + `","dependencies":[]}]},"action_plan":{"execution_order":[],"actions":[]}}'` + "\n"
	for _, c := range calls {
		s += "- calls: [" + c + "]\n"
	}
	return s + `- say: '{"task_id":"write","status":"done","summary":"` + goal + `"}'` + "\n" +
		`- say: '{"phase":"verification","verification_passed":true,"criteria":[{"criterion":"` + goal + `","met":true,"evidence":"answer.txt:1"}],"issues_found":[],"placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":false,"completion_confidence":0.9}'` + "\n"
}

// One whole life at each forge: a label, a plan, a question, an answer, a draft that becomes
// ready, a review with a remark on a line, the follow-up on the draft's branch, done. What
// people read is in their language, and in the forge's own words.
func TestAWholeLifeAtEachForge(t *testing.T) {
	t.Parallel()
	for i, at := range places {
		for _, l := range spoken(i) {
			t.Run(at.source+" "+l.lang, func(t *testing.T) {
				t.Parallel()
				w, all := newHomes(t, "language: "+l.lang+"\n", at.owner, at.source)
				w.env = append(w.env, "TORI_PLANNING_ENABLED=true")
				wholeLife(t, w, all[0], l, func(string, func() bool) string { return w.look() })
			})
		}
		for _, l := range spoken(i + 1) {
			t.Run(at.source+" "+l.lang+" by webhooks", func(t *testing.T) {
				t.Parallel()
				w, all := newHomes(t, "language: "+l.lang+"\n", at.owner, at.source)
				w.env = append(w.env, "TORI_PLANNING_ENABLED=true", "TORI_"+strings.ToUpper(at.source)+"_WEBHOOK_SECRET="+hookSecret)
				d := w.start()
				wholeLife(t, w, all[0], l, func(item string, so func() bool) string {
					w.deliver(d, at.source, at.owner, item)
					if so != nil {
						w.until(d, "what was asked for at "+item+" is there", so)
					}
					return d.out.String()
				})
				w.end(d)
			})
		}
	}
}

// places are a repository at each forge.
var places = []struct{ source, owner string }{{"github", "acme"}, {"gitlab", "acme/tools"}, {"gitea", "acme"}}

// spoken is one of the languages, another one for the next n; with TORI_SOAK it is all.
func spoken(n int) []wording {
	if os.Getenv("TORI_SOAK") != "" {
		return wordings
	}
	return wordings[n%2 : n%2+1]
}

// deliver sends a delivery of an item as its forge does, twice or once; some get lost, which
// a look at the next interval makes up for.
func (w *town) deliver(d *daemon, source, owner, item string) {
	w.t.Helper()
	body := eventOf(w.t, source, owner, item)
	mac := hmac.New(sha256.New, []byte(hookSecret))
	_, _ = mac.Write(body)
	sum := hex.EncodeToString(mac.Sum(nil))
	id, at := fmt.Sprint("delivery-", rand.Uint64()), ""
	w.until(d, "it listens", func() bool {
		m := regexp.MustCompile(`http://([0-9.:]+)/healthz`).FindStringSubmatch(d.out.String())
		if m != nil {
			at = "http://" + m[1] + "/webhooks/" + source
		}
		return m != nil
	})
	for range rand.IntN(3) {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, at, bytes.NewReader(body))
		if err != nil {
			w.t.Fatal(err)
		}
		for name, value := range map[string]string{"X-GitHub-Event": "issues", "X-GitHub-Delivery": id, "X-Hub-Signature-256": "sha256=" + sum, "X-Gitea-Event": "issues",
			"X-Gitea-Delivery": id, "X-Gitea-Signature": sum, "X-Gitlab-Event": "Issue Hook", "X-Gitlab-Token": hookSecret, "Idempotency-Key": id} {
			r.Header.Set(name, value)
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil || a.StatusCode != http.StatusOK {
			w.t.Errorf("%v %+v", err, a)
			continue
		}
		_ = a.Body.Close()
	}
}

// wholeLife leads it. comes returns once the forge told that something happened at an item, and, where that is not
// at once, it is so.
func wholeLife(t *testing.T, w *town, h home, l wording, comes func(item string, so func() bool) (log string)) {
	script := filepath.Join(w.dir, "script.yaml")
	const writes, explains = `{tool: write_file, args: {path: answer.txt, content: "42\n"}}`, `{tool: write_file, args: {path: why.txt, content: because}}`
	asks := fmt.Sprintf(`{tool: ask_user, args: {question: %q, assumption: "42"}}`, l.question)
	write(t, script, planOf(l.title, asks, writes, writes)) // who is killed may not know the outcome of the first
	n := h.open(l.title, "41 → 42")
	h.label(n, "coding agent")
	log := comes(n, func() bool { return h.labels(n) == "coding agent waiting" && len(h.said(n)) == 2 })
	ours := h.said(n)
	if h.labels(n) != "coding agent waiting" || len(ours) != 2 || !strings.Contains(ours[0], l.waits) || !strings.Contains(ours[1], l.asks) || !strings.Contains(ours[1], l.question) {
		t.Fatalf("labels %q, comments %q\n%s", h.labels(n), ours, log)
	}
	w.later(time.Minute)
	h.say(n, l.answer)
	log = comes(n, func() bool {
		all := h.pulls()
		return h.labels(n) == "coding agent done" && len(h.said(n)) == 3 && len(all) == 1 && !all[0].draft && len(all[0].reviewers) == 1
	})
	_, isGitLab := h.(*gitLabHome)
	ours = h.said(n)
	if h.labels(n) != "coding agent done" || len(ours) != 3 || !strings.Contains(ours[0], l.completed) || !strings.Contains(ours[0], l.proposal[isGitLab]+"http") || !strings.Contains(ours[0], l.answer) {
		t.Fatalf("labels %q, comments %q\n%s", h.labels(n), ours, log)
	}
	pulls := h.pulls()
	if len(pulls) != 1 || countBranches(t, h) != 2 {
		t.Fatalf("%+v\n%s", pulls, log)
	}
	p := pulls[0]
	if p.draft || p.title != l.title || !strings.HasPrefix(p.body, "Closes "+n+"\n") || strings.Join(p.reviewers, " ") != "hanako" || inBranch(h, p.head, "answer.txt") != "42" {
		t.Errorf("%+v\n%s", p, log)
	}
	w.later(time.Minute)
	remark := h.review(p.item, l.wants, "answer.txt", 1, l.remark)
	write(t, script, planOf(l.remark, explains, explains, fmt.Sprintf(`{tool: answer_remark, args: {remark: %d, answer: %q}}`, remark, l.because)))
	log = comes(p.item, func() bool {
		return h.labels(p.item) == "coding agent done" && inBranch(h, p.head, "why.txt") == "because"
	})
	if h.labels(p.item) != "coding agent done" || len(h.pulls()) != 1 || countBranches(t, h) != 2 || inBranch(h, p.head, "why.txt") != "because" {
		t.Errorf("labels %q, comments %q, %+v\n%s", h.labels(p.item), h.said(p.item), h.pulls(), log)
	}
	if c := w.conversations(); !strings.Contains(c, `> 42\n`+l.remark) || !strings.Contains(c, l.wants) || !strings.Contains(c, "answer.txt:1") {
		t.Errorf("the review did not reach the run\n%s", log)
	}
	comes(n, nil) // nothing is left to do
	_, onLines := h.reviews(p.item)
	if len(onLines) != 2 || !strings.HasPrefix(onLines[1], "answer.txt:1 "+l.because+"\n") || !strings.Contains(onLines[1], p.head) {
		t.Errorf("on lines %q\n%s", onLines, log)
	}
	about := h.said(p.item)
	ours = slices.DeleteFunc(append(h.said(n), about...), func(s string) bool {
		return s == l.answer || s == l.wants || s == l.remark || strings.HasPrefix(s, l.because)
	})
	if len(ours) != 3 || len(w.runs()) != 2 {
		t.Errorf("%d comments %q, %d runs", len(ours), ours, len(w.runs()))
	}
	commits, err := h.git("log", "--format=%B", "main.."+p.head)
	if err != nil {
		t.Error(err)
	}
	wrong := regexp.MustCompile(`(?i)merge request|マージリクエスト|![0-9]`)
	if isGitLab {
		wrong = regexp.MustCompile(`(?i)pull request|プルリクエスト|/pull/|\bPR\b`)
	}
	for _, text := range append(ours, onLines[len(onLines)-1], h.pulls()[0].title, h.pulls()[0].body, commits) {
		if found := wrong.FindString(text); found != "" {
			t.Errorf("%q is not this forge's word:\n%s", found, text)
		}
		if found := l.foreign.FindString(regexp.MustCompile("`[^`]*`").ReplaceAllString(text, "")); found != "" { // code has no language
			t.Errorf("%q is not of this language:\n%s", found, text)
		}
	}
	if last, err := h.git("log", "-1", "--format=%B", p.head); err != nil || isGitLab && strings.Contains(last, "#") || strings.Contains(last, "Issue:") == isGitLab {
		t.Errorf("the follow-up's commit names %s as an issue: %v\n%s", p.item, err, last)
	}
	w.sound()
}

// broken is a forge in trouble: what is asked of it is answered like this.
var broken = map[string]func(http.ResponseWriter, *http.Request){
	"refuses": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"hangs":   func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() },
	"is under maintenance": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "<html><title>Back soon</title></html>")
	},
}

// Two forges with a repository of the same name: each gets its own work. One goes down with work
// for all of the pool queued and on its way there; the other one is served meanwhile, tori ends when
// it is told to, and what waited is done when the forge is back.
func TestOneForgeIsDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ how, down, up string }{{"refuses", "github", "gitea"}, {"hangs", "gitlab", "github"}, {"is under maintenance", "gitea", "gitlab"}} {
		t.Run(c.down+" "+c.how, func(t *testing.T) {
			t.Parallel()
			w, all := newHomes(t, "workers: {max: 2}\n", "acme", c.down, c.up)
			down, up := all[0], all[1]
			first := up.open("The answer is wrong", "It says 41.")
			up.label(first, "coding agent")
			var waits []string
			for range 3 { // as many as there are places, and one
				n := down.open("The answer is wrong", "It says 41.")
				down.label(n, "coding agent")
				waits = append(waits, n)
			}
			var fails atomic.Bool
			down.wrap(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if fails.Load() {
						broken[c.how](rw, r)
						return
					}
					next.ServeHTTP(rw, r)
				})
			})
			d := w.start()
			done := func(h home, items ...string) func() bool {
				return func() bool {
					return !slices.ContainsFunc(items, func(i string) bool { return h.labels(i) != "coding agent done" })
				}
			}
			w.until(d, "work is taken up", func() bool { return len(w.runs()) == 4 })
			fails.Store(true)
			second := up.open("Again", "It says 41.")
			up.label(second, "coding agent")
			w.until(d, "the other is served", done(up, first, second))
			if done(down, waits...)() {
				t.Error("it was not down")
			}
			w.end(d)
			fails.Store(false)
			log := w.once()
			if !done(down, waits...)() || len(down.pulls()) != 3 || len(up.pulls()) != 2 || len(w.runs()) != 5 {
				t.Errorf("%d and %d pulls, %d runs\n%s%s", len(down.pulls()), len(up.pulls()), len(w.runs()), d.out, log)
			}
			w.sound()
		})
	}
}

// The same life while the process is killed again and again, at a request or a push of its own:
// one draft, one progress comment, no branch beside. With TORI_SOAK, fifty lives at each forge.
func TestAWholeLifeKilledAtRandom(t *testing.T) {
	skipShort(t, "it is served and killed")
	t.Parallel()
	killedAtRandom(t, 2, "", []string{"gitlab", "gitea"}, func(t *testing.T, w *town, h home, l wording, comes func(*town) string) {
		wholeLife(t, w, h, l, func(string, func() bool) string { return comes(w) })
	})
}

// The remark is answered once though the process is killed as the answer is on its way.
func TestKilledAtAnAnswer(t *testing.T) {
	skipShort(t, "it is served and killed")
	t.Parallel()
	for _, source := range []string{"github", "gitlab"} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(source, " after ", after), func(t *testing.T) {
				t.Parallel()
				w, all := newHomes(t, "language: en\n"+patient, "acme", source)
				w.env = append(w.env, "TORI_PLANNING_ENABLED=true")
				d := &doom{at: 1, most: 1, after: after}
				d.over(all[0], `^POST .*(/replies|/discussions/\w+/notes)$`)
				wholeLife(t, w, all[0], wordings[0], func(string, func() bool) string { return d.live(w) })
				if d.kills != 1 {
					t.Error("nothing was answered")
				}
			})
		}
	}
}

// over has the requests to a forge that match be what it counts: "POST /path".
func (d *doom) over(h home, like string) {
	var n atomic.Int64
	counts := regexp.MustCompile(like)
	h.wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if !counts.MatchString(r.Method + " " + r.URL.Path) {
				next.ServeHTTP(rw, r)
				return
			}
			switch f := d.fate(&githubtest.Request{N: int(n.Add(1))}); {
			case f == nil:
				next.ServeHTTP(rw, r)
			case f.After != nil:
				next.ServeHTTP(httptest.NewRecorder(), r)
				f.After()
				panic(http.ErrAbortHandler)
			default:
				panic(http.ErrAbortHandler)
			}
		})
	})
}

// killedAtRandom leads so many lives at each forge, their contexts kept by one backend after the
// other, while the process is killed at random.
func killedAtRandom(t *testing.T, lives int, settings string, sources []string, life func(*testing.T, *town, home, wording, func(*town) string)) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if os.Getenv("TORI_SOAK") != "" {
		lives = 50
	}
	if s := os.Getenv("TORI_SOAK_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("TORI_SOAK_SEED=%d", seed)
	var kills atomic.Int64
	rounds(t, len(sources)*lives, func(t *testing.T, i int) {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		w, all := newHomes(t, settings+"language: en\n"+patient, "acme", sources[i%len(sources)])
		w.keep(backends[i%len(backends)])
		w.env = append(w.env, "TORI_PLANNING_ENABLED=true")
		d := &doom{at: 1 + random.IntN(40), every: 15 + random.IntN(40), most: 6, after: random.IntN(2) == 0}
		d.over(all[0], "")
		life(t, w, all[0], wordings[0], d.live)
		for _, v := range w.runs() {
			checkNumbers(t, v)
		}
		kills.Add(int64(d.kills))
	})
	if most := int64(3 * len(sources) * lives); kills.Load() < most {
		t.Errorf("killed %d times only", kills.Load())
	}
}
