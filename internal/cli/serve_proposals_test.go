package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

// proposesWords is the model of the deals: as Chat it hands to a coder what is to be made, as the
// coder it proposes a file that holds the word, else it is that of the talks.
func proposesWords(r *llmtest.Request) llmtest.Answer {
	last := *r.Messages[len(r.Messages)-1].Content
	if !slices.Contains(r.Tools, "propose") {
		if !strings.Contains(last, "colleagues") && strings.Contains(last, "make word") {
			return llmtest.Answer{Text: "DELEGATE: CODE2\nTASK: make " + said.FindString(last)}
		}
		return plays(r)
	}
	var word []string
	for _, m := range r.Messages {
		if m.Content != nil && strings.Contains(*m.Content, `"user_text":"make `) {
			_, task, _ := strings.Cut(*m.Content, `"user_text":"make `)
			word = said.FindStringSubmatch(task)
		}
	}
	if word == nil {
		return llmtest.Answer{Text: "nothing was asked"}
	}
	return llmtest.Answer{Calls: []llm.ToolCall{{ID: "call_propose", Name: "propose", Arguments: fmt.Sprintf(
		`{"plan":"Add a file.","files":[{"path":"word%s.txt","action":"create","content":"%s\n"}],"risk":{"destructive":false,"rollback_possible":true},"need_approval":true}`, word[1], word[0])}}}
}

// deal is a proposal that somebody asked for, and what they decided.
type deal struct {
	word    string
	job     string
	granted bool
	failed  bool // it was begun as often as is tried, and killed each time
}

// gaveUp is what is told of a step that was begun too often.
const gaveUp = "never came to its end"

// next waits for something that is said at k's place, behind what was waited for before.
func (k *talker) next(ok func(u utterance) bool) utterance {
	for {
		k.v.mu.Lock()
		all := k.v.said[k.place()]
		for k.latest < len(all) {
			u := all[k.latest]
			if k.latest++; ok(u) {
				k.v.mu.Unlock()
				return u
			}
		}
		k.v.mu.Unlock()
		select {
		case <-k.came:
		case <-k.v.ctx.Done():
			return utterance{}
		}
	}
}

// dealing has k ask for changes and decide about them, by words and buttons, ask where they are, and talk, until the time is over.
func (k *talker) dealing(over <-chan struct{}) (all []deal, asked int) {
	says := func(text string) func(utterance) bool {
		return func(u utterance) bool { return strings.Contains(u.text, text) }
	}
	for n := 1; ; n++ {
		select {
		case <-over:
			return all, asked
		default:
		}
		switch k.random.IntN(4) {
		case 0:
			k.say(k.word(n))
			k.next(says("You said " + k.word(n) + "."))
			continue
		case 1:
			k.say("/show channel")
			k.next(says("Channel " + k.kind + ", session "))
			asked++
			continue
		}
		k.say("make " + k.word(n))
		card := k.next(func(u utterance) bool { return u.job != "" })
		k.next(says("You said " + k.word(n) + ".")) // to what the coder says
		d := deal{word: k.word(n), job: card.job, granted: k.random.IntN(3) > 0}
		switch command := map[bool]string{true: "/approve", false: "/deny"}[d.granted]; k.random.IntN(3) {
		case 0:
			k.say(command + " " + d.job + " " + card.hash)
		default:
			k.press(card, d.granted)
		}
		for told, applied := false, !d.granted; (!told || !applied) && k.v.ctx.Err() == nil; { // after a crash in any order
			u := k.next(func(utterance) bool { return true })
			told = told || says("Approved: ")(u) || says("Denied: ")(u) || says(" is decided already: ")(u)
			d.failed = d.failed || says(gaveUp)(u)
			applied = applied || d.failed || says("Applied: ")(u)
		}
		all = append(all, d)
	}
}

// People ask for changes, are shown proposals, decide about them by words and buttons, and ask where
// they are, while tori is killed and the vendors fail: each proposal is shown once, decided once, applied
// once where it was granted and never where it was denied, and told so once, at its place.
func TestProposalsKilledAtRandom(t *testing.T) {
	skipShort(t, "people talk for seconds")
	t.Parallel()
	s := newSoak(t, 6, 30, proposesWords, func(s *soak) string {
		var all []string
		for _, k := range s.talkers {
			session := map[string]string{"line": "line:user:", "slack": "slack:T1:", "http": "http:"}[k.kind]
			if k.kind == "line" && k.shared {
				session = "line:group:"
			}
			all = append(all, fmt.Sprintf("{name: r%d, path: %q, channels: ['%s%s']}", k.n, s.repository(k), session, k.room))
		}
		return "checks: []\nrecovery: {max_attempts: 1000}\nchat: {deliver: branch, repositories: [" + strings.Join(all, ", ") + "]}\n"
	})
	deals, asked := make([][]deal, len(s.talkers)), make([]int, len(s.talkers))
	s.run(func(k *talker, over <-chan struct{}) { deals[k.n], asked[k.n] = k.dealing(over) })
	granted, denied := 0, 0
	for _, k := range s.talkers {
		said := []utterance{}
		for _, u := range s.v.said[k.place()] {
			if !u.instead || !slices.Contains(said, u) { // the same may be put there once more
				said = append(said, u)
			}
		}
		// once says that a text was said once, and where.
		once := func(what string, ok func(u utterance) bool) int {
			t.Helper()
			var at []int
			for i, u := range said {
				if ok(u) {
					at = append(at, i)
				}
			}
			if len(at) != 1 {
				t.Errorf("%s: %s was said %d times, at %v", k.place(), what, len(at), at)
				return -1
			}
			return at[0]
		}
		for _, d := range deals[k.n] {
			title := "make " + d.word + " "
			if begun := s.times(said, "Job "+d.job+". "); begun > 1 { // who is killed before it is told shows the proposal
				t.Errorf("%s: that %s is begun was said %d times", k.place(), d.job, begun)
			}
			shown := once("the proposal "+d.job, func(u utterance) bool { return u.job == d.job })
			answered := once("the answer to "+d.word, func(u utterance) bool { return u.text == "You said "+d.word+"." })
			how := map[bool]string{true: "Approved: ", false: "Denied: "}[d.granted]
			late := "job " + d.job + " is decided already: " // it was told that it is applied before a crash, and after it what was pressed
			decided := once(how+title, func(u utterance) bool { return strings.Contains(u.text, how+title) || strings.Contains(u.text, late) })
			if d.granted {
				granted++
				applied := once("what became of "+title, func(u utterance) bool {
					return strings.Contains(u.text, "Applied: "+title) || strings.Contains(u.text, title) && strings.Contains(u.text, gaveUp)
				})
				if applied < decided && decided >= 0 && !strings.Contains(said[decided].text, late) {
					t.Errorf("%s: %s was applied before it was approved", k.place(), d.job)
				}
			} else {
				denied++
			}
			if k.kind == "slack" && shown >= 0 {
				var last utterance
				for _, u := range s.v.said[k.place()] {
					if u.ts == said[shown].ts {
						last = u
					}
				}
				if want := map[bool]string{true: "applied: " + title, false: "denied"}[d.granted]; !strings.Contains(strings.ToLower(last.text), strings.ToLower(want)) && !d.failed {
					t.Errorf("%s: in the end %s says %q", k.place(), d.job, last.text)
				}
			}
			if answered < shown || decided < answered {
				t.Errorf("%s: %s shown %d, answered %d, decided %d", k.place(), d.job, shown, answered, decided)
			}
		}
		shows := 0
		for _, u := range said {
			if strings.HasPrefix(u.text, "Channel ") {
				shows++
			}
		}
		if shows != asked[k.n] {
			t.Errorf("%s: %d answers to %d times /show", k.place(), shows, asked[k.n])
		}
		s.delivered(k, deals[k.n])
		if t.Failed() {
			for i, u := range said {
				t.Logf("%s %d: %+v", k.place(), i, u)
			}
		}
	}
	t.Logf("seed %d: %d granted, %d denied at %d places, killed %d times, %d forged events refused", s.seed, granted, denied, len(s.talkers), s.kills, s.forged.Load())
	if granted+denied == 0 {
		t.Error("no proposal was decided")
	}
}

// times is how often something was said.
func (s *soak) times(said []utterance, what string) (n int) {
	for _, u := range said {
		if strings.Contains(u.text, what) {
			n++
		}
	}
	return n
}

// repository makes the one that k's place is about.
func (s *soak) repository(k *talker) string {
	s.h.write(fmt.Sprintf("r%d/README.md", k.n), "hello\n")
	dir := filepath.Join(s.h.dir, fmt.Sprint("r", k.n))
	gitOut(s.t, dir, "init", "-q", "-b", "main")
	gitOut(s.t, dir, "add", ".")
	gitOut(s.t, dir, "-c", "user.name=k", "-c", "user.email=k@example.com", "commit", "-q", "-m", "start")
	return dir
}

// delivered asserts that each granted proposal is one commit of a branch, and that there is no other branch.
func (s *soak) delivered(k *talker, deals []deal) {
	s.t.Helper()
	dir := filepath.Join(s.h.dir, fmt.Sprint("r", k.n))
	branches := strings.Fields(gitOut(s.t, dir, "for-each-ref", "--format=%(refname:short)", "refs/heads/tori"))
	for _, d := range deals {
		i := slices.IndexFunc(branches, func(b string) bool { return strings.Contains(b, d.job) })
		if (d.granted && !d.failed) != (i >= 0) {
			s.t.Errorf("%s: %s, granted %t, in %v", k.place(), d.job, d.granted, branches)
		}
		if i < 0 {
			continue
		}
		n, _, _ := strings.Cut(strings.TrimPrefix(d.word, "word "), " ")
		if commits, text := gitOut(s.t, dir, "rev-list", "--count", "main.."+branches[i]), gitOut(s.t, dir, "show", branches[i]+":word"+n+".txt"); commits != "1\n" || text != d.word+"\n" {
			s.t.Errorf("%s: %s has %s commits, and holds %q", k.place(), branches[i], commits, text)
		}
		branches = slices.Delete(branches, i, i+1)
	}
	if len(branches) > 0 {
		s.t.Errorf("%s: nobody granted %v", k.place(), branches)
	}
}
