package broker

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// notes is a record in memory.
type notes struct {
	all []contextstore.EffectRecord
	err error
}

func (n *notes) Append(r contextstore.EffectRecord) error {
	if n.err == nil {
		n.all = append(n.all, r)
	}
	return n.err
}

func (n *notes) Each(f func(contextstore.EffectRecord) bool) error {
	for _, r := range n.all {
		if !f(r) {
			break
		}
	}
	return n.err
}

var key = task.Key{Source: "github", Owner: "o", Repo: "r", Type: "issue", ID: "7"}

func rules() Settings {
	return Settings{
		MaxTextBytes: 60000, MaxPatchMB: 1,
		MaxComments: 3, MaxPushes: 2, MaxPullRequests: 1,
	}
}

func open(t *testing.T, n *notes, change ...func(*Options)) *Broker {
	t.Helper()
	o := Options{Settings: rules(), Filter: newFilter(), Recorder: n,
		Scope: Scope{Task: key, Items: []string{"7", "9"}, Branch: "tori/issue-7-x", Base: "main"}}
	for _, f := range change {
		f(&o)
	}
	b, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func judge(t *testing.T, b *Broker, r Request) Verdict {
	t.Helper()
	if r.Task == (task.Key{}) {
		r.Task = key
	}
	v, err := b.Judge(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if (v.Decision == Allow) != (v.Reason == nil) {
		t.Errorf("%s because of %v", v.Decision, v.Reason)
	}
	return v
}

func comment(text string) Request {
	return Request{Kind: Comment, Target: Target{Item: "7"}, Text: text}
}

func TestWhatMayBeReached(t *testing.T) {
	t.Parallel()
	other := key
	other.ID = "8"
	patch := "+++ b/a.go\n+x := 1\n"
	push := func(branch string) Request { return Request{Kind: Push, Target: Target{Branch: branch}, Patch: patch} }
	content := func(patch string) Request {
		return Request{Kind: Push, Target: Target{Branch: "tori/issue-7-x"}, Patch: patch}
	}
	created := func(name string) string {
		return "diff --git a/" + name + " b/" + name + "\nnew file mode 100644\nindex 0000000..e69de29\n"
	}
	pr := func(change func(*Request)) Request {
		r := Request{Kind: PullRequest, Target: Target{Branch: "tori/issue-7-x", Base: "main"}, Title: "Add x", Text: "It adds x.", Patch: patch, Draft: true}
		change(&r)
		return r
	}
	for _, tc := range []struct {
		name string
		r    Request
		key  string // of the refusal, "" where it is allowed
	}{
		{"comment", comment("hello"), ""},
		{"comment on its pull request", Request{Kind: Comment, Target: Target{Item: "9"}, Text: "x"}, ""},
		{"comment on another issue", Request{Kind: Comment, Target: Target{Item: "8"}, Text: "x"}, "broker.other_target"},
		{"comment on nothing", Request{Kind: Comment, Text: "x"}, "broker.other_target"},
		{"comment for another task", Request{Kind: Comment, Task: other, Target: Target{Item: "8"}, Text: "x"}, "broker.other_task"},
		{"empty comment", comment(" \n\u200b"), "broker.empty"},
		{"long comment", comment(strings.Repeat("word ", 20000)), "broker.too_long"},
		{"endless comment", comment(strings.Repeat("word ", 200000)), "broker.too_long"},
		{"another kind", Request{Kind: "mail"}, "broker.kind"},

		{"push", push("tori/issue-7-x"), ""},
		{"push to main", push("main"), "broker.other_target"},
		{"push to another's branch", push("tori/issue-8-x"), "broker.other_target"},
		{"push to a ref", push("refs/heads/tori/issue-7-x"), "broker.other_target"},
		{"push to an option", push("--mirror"), "broker.other_target"},
		{"push to nothing", push(""), "broker.other_target"},
		{"push upwards", push("tori/../main"), "broker.other_target"},
		{"push with a colon", push("tori/issue-7-x:main"), "broker.other_target"},
		{"push with a hidden character", push("tori/issue-7-x\u200b"), "broker.other_target"},
		{"push of a secret", Request{Kind: Push, Target: Target{Branch: "tori/issue-7-x"}, Patch: "+token = \"" + github + "\"\n"}, "broker.secret_in_patch"},
		{"push of a known secret in lines", Request{Kind: Push, Target: Target{Branch: "tori/issue-7-x"}, Patch: "+a = \"" + known[:9] + "\" +\n+  \"" + known[9:] + "\"\n"}, "broker.secret_in_patch"},
		{"push that takes a secret away", Request{Kind: Push, Target: Target{Branch: "tori/issue-7-x"}, Patch: "-" + github + "\n+x\n"}, ""},
		{"push of an empty file with a secret for a name", Request{Kind: Push, Target: Target{Branch: "tori/issue-7-x"}, Patch: "diff --git a/" + github + " b/" + github + "\nnew file mode 100644\nindex 0000000..e69de29\n"}, "broker.secret_in_patch"},
		{"push that gives a file a secret for a name", Request{Kind: Push, Target: Target{Branch: "tori/issue-7-x"}, Patch: "diff --git a/x b/" + known + "\nsimilarity index 100%\nrename from x\nrename to " + known + "\n"}, "broker.secret_in_patch"},
		{"push of a token as a sum", content("+t := \"" + github[:4] + "\" +\n+\t\"" + github[4:] + "\"\n"), "broker.secret_in_patch"},
		{"push of a token whose first letters stand alone", content("+$t = '" + github[:2] + "'.'" + github[2:9] + "'.'" + github[9:] + "';\n"), "broker.secret_in_patch"},
		{"push of a token as strings side by side", content("+t = (\"" + github[:3] + "\"\n+     b\"" + github[3:] + "\")\n"), "broker.secret_in_patch"},
		{"push of a token that grows", content("+t = \"" + github[:3] + "\"\n+t += \"" + github[3:] + "\"\n"), "broker.secret_in_patch"},
		{"push of a token over lines", content("+t: >-\n+  " + github[:3] + "\n+  " + github[3:] + "\n"), "broker.secret_in_patch"},
		{"push of a token over a continued line", content("+t=" + github[:3] + "\\\n+" + github[3:] + "\n"), "broker.secret_in_patch"},
		{"push of a token in directories", content(created("k/" + github[:3] + "/" + github[3:] + "/x.go")), "broker.secret_in_patch"},
		{"push of a token in the names of two files", content(created("k/"+github[:3]) + created("k/"+github[3:])), "broker.secret_in_patch"},
		{"push of a known secret in directories", content(created("k/" + known + "/x.go")), "broker.secret_in_patch"},
		{"push of a secret in a quoted name", content("diff --git \"a/\\343\\201\\202 " + github + "\" \"b/\\343\\201\\202 " + github + "\"\nnew file mode 100644\n"), "broker.secret_in_patch"},
		{"push of prefixes", content("+for _, p := range []string{\"ghp_\", \"gho_\", \"sk-\"} {\n+\treturn p + \"x9\" + random(36)\n+}\n"), ""},
		{"push of a file", content(created("internal/ghp/abcdefghijklmnopqrstuvwxyz0123456789.go")), ""},
		{"push that is too large", Request{Kind: Push, Target: Target{Branch: "tori/issue-7-x"}, Patch: strings.Repeat("+x\n", 1<<19)}, "broker.patch_size"},

		{"pull request", pr(func(*Request) {}), ""},
		{"pull request to another base", pr(func(r *Request) { r.Target.Base = "release" }), "broker.other_target"},
		{"pull request from main", pr(func(r *Request) { r.Target.Branch = "main" }), "broker.other_target"},
		{"pull request without a title", pr(func(r *Request) { r.Title = "\u200b" }), "broker.title"},
		{"pull request with a long title", pr(func(r *Request) { r.Title = strings.Repeat("x", 251) }), "broker.title"},
		{"pull request with a secret", pr(func(r *Request) { r.Patch = "+" + known + "\n" }), "broker.secret_in_patch"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			n := &notes{}
			v := judge(t, open(t, n), tc.r)
			var e *i18n.Error
			got := ""
			if errors.As(v.Reason, &e) {
				got = e.Key
			}
			if got != tc.key {
				t.Fatalf("%s: %q, want %q: %v", v.Decision, got, tc.key, v.Reason)
			}
			if len(n.all) != 1 || n.all[0].Decision != string(v.Decision) || n.all[0].Kind != string(tc.r.Kind) {
				t.Errorf("record %+v", n.all)
			}
			line, err := json.Marshal(n.all)
			if err != nil || strings.Contains(string(line), known) || strings.Contains(string(line), github) || len(line) > 70<<10 {
				t.Errorf("recorded: %s %v", line, err)
			}
			if strings.Contains(v.Text+i18n.English.Error(v.Reason)+i18n.Japanese.Error(v.Reason), known) {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestTextsAreCleaned(t *testing.T) {
	t.Parallel()
	n := &notes{}
	v := judge(t, open(t, n), comment("key "+known+" ![x](https://evil.example/?d)\n"))
	if v.Decision != Allow || v.Text != "key [REDACTED] [x] (hxxps://evil[.]example/?d)\n" {
		t.Errorf("%+v", v)
	}
	var kinds []string
	for _, f := range v.Findings {
		if f.Place != "text, line 1" {
			t.Errorf("%+v", f)
		}
		kinds = append(kinds, f.Kind)
	}
	for _, want := range []string{FoundSecret, FoundImage, FoundLink} {
		if !slices.Contains(kinds, want) {
			t.Errorf("%q in %q", want, kinds)
		}
	}
	if r := n.all[0]; r.Text != v.Text || len(r.Findings) != len(v.Findings) || r.Digest != v.Digest || r.Target != "github/o/r#7" {
		t.Errorf("%+v", r)
	}
}

func TestLimitsArePerRunAndSurviveIt(t *testing.T) {
	t.Parallel()
	n := &notes{}
	b := open(t, n)
	one := comment("one")
	one.Key = "k1"
	judge(t, b, one)
	judge(t, b, one) // again: the same one
	judge(t, b, comment("two"))
	b = open(t, n) // after a crash
	judge(t, b, one)
	if v := judge(t, b, comment("three")); v.Decision != Allow {
		t.Errorf("%+v", v)
	}
	v := judge(t, b, comment("four"))
	if v.Decision != Refuse || !strings.Contains(v.Reason.Error(), "broker.max_comments") {
		t.Errorf("%+v", v)
	}
	if v := judge(t, b, one); v.Decision != Allow {
		t.Errorf("what was allowed before: %+v", v)
	}
	if v := judge(t, b, Request{Kind: Push, Target: Target{Branch: "tori/issue-7-x"}}); v.Decision != Allow {
		t.Errorf("another kind: %+v", v)
	}
	none := open(t, &notes{}, func(o *Options) { o.Settings.MaxComments = 0 })
	if v := judge(t, none, comment("x")); v.Decision != Refuse {
		t.Errorf("%+v", v)
	}
}

func TestTrifecta(t *testing.T) {
	t.Parallel()
	stranger, secret := Fact{Untrusted, StrangerText, "comment 3"}, Fact{Sensitive, SecretEnvironment, "NPM_TOKEN"}
	draft := Request{Kind: PullRequest, Target: Target{Branch: "tori/issue-7-x", Base: "main"}, Title: "x", Draft: true}
	ready := draft
	ready.Draft = false
	for _, tc := range []struct {
		name    string
		setting string
		facts   []Fact
		r       Request
		want    Decision
		legs    int
	}{
		{"nothing", "", nil, comment("x"), Allow, 1},
		{"two of them", "", []Fact{stranger}, comment("x"), Allow, 2},
		{"the other two", "", []Fact{secret}, comment("x"), Allow, 2},
		{"all", "", []Fact{stranger, secret}, comment("x"), Ask, 3},
		{"all, ask", "ask", []Fact{secret, stranger}, comment("x"), Ask, 3},
		{"all, refuse", TrifectaRefuse, []Fact{secret, stranger}, comment("x"), Refuse, 0},
		{"all, allow", TrifectaAllow, []Fact{secret, stranger}, comment("x"), Allow, 3},
		{"its own branch", "", []Fact{secret, stranger}, Request{Kind: Push, Target: Target{Branch: "tori/issue-7-x"}}, Allow, 2},
		{"its own draft", "", []Fact{secret, stranger}, draft, Allow, 2},
		{"no draft", "", []Fact{secret, stranger}, ready, Ask, 3},
		{"its own branch with an open network", "", []Fact{secret, stranger, {Outward, OpenNetwork, ""}}, Request{Kind: Push, Target: Target{Branch: "tori/issue-7-x"}}, Allow, 2},
		{"the repository's files", "", []Fact{secret, {Untrusted, RepositoryFiles, "r"}}, comment("x"), Allow, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			n := &notes{}
			set := func(o *Options) { o.Settings.Trifecta = tc.setting }
			b := open(t, n, set)
			for _, f := range tc.facts {
				if err := b.Report(f); err != nil {
					t.Fatal(err)
				}
				if err := b.Report(f); err != nil { // known by now
					t.Fatal(err)
				}
			}
			facts := len(n.all)
			for _, b := range []*Broker{b, open(t, n, set)} { // and in the run that takes it up
				v := judge(t, b, tc.r)
				if v.Decision != tc.want || len(v.Legs) != tc.legs {
					t.Errorf("%s %v: %v", v.Decision, v.Legs, v.Reason)
				}
				if v.Decision == Ask && (v.Text != tc.r.Text || !strings.Contains(v.Reason.Error(), "NPM_TOKEN")) {
					t.Errorf("%+v", v)
				}
			}
			if facts > len(tc.facts) || len(n.all) != facts+2 {
				t.Errorf("%d facts, %d lines", facts, len(n.all))
			}
		})
	}
}

func TestTheWayOutIsRemembered(t *testing.T) {
	t.Parallel()
	n := &notes{}
	judge(t, open(t, n), comment("x"))
	b := open(t, n)
	if got := b.Exposure(); !slices.Equal(got, []Leg{Outward}) {
		t.Errorf("%v", got)
	}
	for range 100 {
		if err := b.Report(Fact{Untrusted, StrangerText, rapid.String().Example()}); err != nil {
			t.Fatal(err)
		}
	}
	if len(n.all) > 1+maxFacts {
		t.Errorf("%d lines", len(n.all))
	}
	if err := b.Report(Fact{"other", StrangerText, ""}); err == nil {
		t.Error("a leg of its own")
	}
}

func TestRepositoryFilesBySetting(t *testing.T) {
	t.Parallel()
	b := open(t, &notes{}, func(o *Options) { o.Settings.RepositoryUntrusted = true })
	if err := b.Report(Fact{Untrusted, RepositoryFiles, "r"}); err != nil {
		t.Fatal(err)
	}
	if got := b.Exposure(); !slices.Equal(got, []Leg{Untrusted}) {
		t.Errorf("%v", got)
	}
}

func TestNothingGoesOutUnrecorded(t *testing.T) {
	t.Parallel()
	n := &notes{}
	b := open(t, n)
	n.err = errors.New("disk full")
	if v, err := b.Judge(t.Context(), Request{Kind: Comment, Task: key, Target: Target{Item: "7"}, Text: "x"}); !errors.Is(err, n.err) || v.Decision == Allow {
		t.Errorf("%+v %v", v, err)
	}
	if err := b.Report(Fact{Untrusted, StrangerText, ""}); !errors.Is(err, n.err) {
		t.Error(err)
	}
	if _, err := Open(Options{Filter: newFilter(), Recorder: n}); !errors.Is(err, n.err) {
		t.Error(err)
	}
	if _, err := Open(Options{}); err == nil {
		t.Error("without a filter")
	}
}

// Judging what was allowed allows the same again and finds nothing.
func TestJudgeIsAtRest(t *testing.T) {
	t.Parallel()
	bits := pieces()
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(bits), 1, 10).Draw(rt, "text"), "")
		title := rapid.SampledFrom(bits).Draw(rt, "title")
		r := Request{Kind: rapid.SampledFrom([]Kind{Comment, PullRequest}).Draw(rt, "kind"), Title: title, Text: text}
		r.Target = Target{Item: "7", Branch: "tori/issue-7-x", Base: "main"}
		a := judge(t, open(t, &notes{}), r)
		if b := judge(t, open(t, &notes{}), r); a.Digest != b.Digest || a.Text != b.Text || len(a.Findings) != len(b.Findings) {
			rt.Fatalf("judged otherwise:\n%+v\n%+v", a, b)
		}
		if a.Decision != Allow {
			return
		}
		r.Title, r.Text = a.Title, a.Text
		if b := judge(t, open(t, &notes{}), r); b.Decision != Allow || b.Text != a.Text || b.Title != a.Title || len(b.Findings) > 0 {
			rt.Fatalf("%q: %+v", text, b)
		}
	})
}
