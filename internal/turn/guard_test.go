package turn

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
)

// act is a call with its result, or an answer without one.
type act struct {
	tool, args, result string
	failed             bool
	said               string
}

// story plays acts, each in an answer of its own unless it is joined to the one
// before, and returns what was found where.
func story(g *Guard, from int64, acts ...act) (found []string) {
	for i, a := range acts {
		var f Circle
		if a.said != "" {
			f = g.Said(from+int64(i), a.said)
		} else {
			f = g.Observe(from+int64(i), a.tool, a.args, a.result, a.failed)
		}
		if f.Stage != StageNone {
			found = append(found, fmt.Sprint(i+1, " ", f.Kind, " ", [...]string{"none", "nudge", "replan", "stop"}[f.Stage]))
		}
	}
	return found
}

func times(n int, a ...act) (all []act) {
	for range n {
		all = append(all, a...)
	}
	return all
}

func TestGuard(t *testing.T) {
	t.Parallel()
	a := act{tool: "shell", args: `{"command":"make"}`, result: "ok"}
	b := act{tool: "read_file", args: `{"path":"x"}`, result: "text"}
	c := act{tool: "grep", args: `{"pattern":"y"}`, result: "none"}
	numbered := func(n int, failed bool) (all []act) {
		for i := range n {
			all = append(all, act{tool: "shell", args: `{"command":"make"}`, result: fmt.Sprint("took ", i), failed: failed})
		}
		return all
	}
	say := func(texts ...string) (all []act) {
		for _, s := range texts {
			all = append(all, act{said: s})
		}
		return all
	}
	for name, tc := range map[string]struct {
		acts []act
		want string
	}{
		"work":                              {[]act{a, b, a, c, b, c, a}, ""},
		"twice is no loop":                  {[]act{a, a, b, b, a, a}, ""},
		"the same again and again":          {times(12, a), "3 repeat nudge, 5 repeat replan, 7 repeat stop"},
		"it ceases, and comes again":        {slices.Concat(times(5, a), []act{b}, times(3, a)), "3 repeat nudge, 5 repeat replan, 9 repeat nudge"},
		"polling that makes progress":       {numbered(20, false), ""},
		"failing, whatever it says":         {numbered(7, true), "3 repeat nudge, 5 repeat replan, 7 repeat stop"},
		"failing twice, then not":           {slices.Concat(numbered(2, true), numbered(3, false), numbered(2, true)), ""},
		"tests that fail between edits":     {slices.Concat(numbered(1, true), []act{b}, numbered(1, true), []act{c}, numbered(1, true), []act{b}), ""},
		"to and fro":                        {times(10, a, b), "6 cycle nudge, 9 cycle replan, 12 cycle stop"},
		"to and fro, with progress":         {slices.Concat([]act{b}, numbered(1, false), []act{b}, numbered(2, false)[1:], []act{b}, numbered(3, false)[2:], []act{b}, numbered(4, false)[3:]), ""},
		"round and round":                   {times(4, a, b, c), "9 cycle nudge"},
		"round and round, by four":          {times(3, a, b, c, act{tool: "z"}), "12 cycle nudge"},
		"two rounds are none":               {append(times(2, a, b, c), b), ""},
		"a monologue":                       {say("1", "2", "3", "4", "5", "6", "7"), "3 monologue nudge, 5 monologue replan, 7 monologue stop"},
		"a monologue that ends":             {slices.Concat(say("1", "2"), []act{a}, say("3", "4"), []act{b}, say("5", "6")), ""},
		"the same words between calls":      {slices.Concat(say("done"), []act{a}, say("done"), []act{b}, say("done"), []act{c}, say("done"), []act{a}, say("done")), "5 monologue nudge, 9 monologue replan"},
		"words that come again much later":  {slices.Concat(say("done", "done"), times(3, a, b)[:5], times(2, c, b), say("done")), ""},
		"one finding after another":         {slices.Concat(times(3, a), times(3, b)), "3 repeat nudge, 6 repeat nudge"},
		"order of fields, and space":        {[]act{{tool: "t", args: `{"a":1,"b":[1, 2]}`}, {tool: "t", args: `{ "b":[1,2], "a":1 }`}, {tool: "t", args: "{\n\"a\": 1, \"b\": [1,2]}"}}, "3 repeat nudge"},
		"no arguments":                      {[]act{{tool: "t"}, {tool: "t", args: "{}"}, {tool: "t", args: " null "}}, "3 repeat nudge"},
		"other arguments":                   {[]act{{tool: "t", args: "1"}, {tool: "t", args: "2"}, {tool: "t", args: "3"}}, ""},
		"what is no JSON":                   {[]act{{tool: "t", args: "{"}, {tool: "t", args: "{ "}, {tool: "t", args: "{} {}"}, {tool: "t", args: "{}{}"}}, ""},
		"numbers that a float cannot tell":  {[]act{{tool: "t", args: "9007199254740993"}, {tool: "t", args: "9007199254740992"}, {tool: "t", args: "9007199254740994"}}, ""},
		"another tool of the same argument": {[]act{{tool: "t", args: "1"}, {tool: "u", args: "1"}, {tool: "v", args: "1"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g Guard
			if got := strings.Join(story(&g, 1, tc.acts...), ", "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Many calls of one answer are one act: the model has heard of nothing yet.
func TestGuardTakesAnAnswerAsOne(t *testing.T) {
	t.Parallel()
	var g Guard
	var found []Circle
	for answer := range int64(8) {
		for range 5 {
			f := g.Observe(answer+1, "read", `{}`, "7", false)
			if f.Stage != StageNone {
				found = append(found, f)
			}
		}
	}
	want := []Circle{{LoopRepeat, StageNudge, 3, []string{"read"}}, {LoopRepeat, StageReplan, 5, []string{"read"}}, {LoopRepeat, StageStop, 7, []string{"read"}}}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("%+v", found)
	}
	// So are those that fail, whatever they say; different ones reach a stage once, however far they go.
	for name, tc := range map[string]struct {
		fails int
		want  string
	}{"one that fails": {1, ""}, "each fails three times": {3, "3 nudge"}} {
		g, got := Guard{}, ""
		for answer := range tc.fails {
			for i := range 20 {
				if f := g.Observe(int64(answer+1), "poll", "", fmt.Sprint(i), true); f.Stage != StageNone {
					got += fmt.Sprint(answer+1, " ", [...]string{"none", "nudge", "replan", "stop"}[f.Stage])
				}
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Calls in circles are told from the first stage on, though talk in circles was
// told before and has not ceased.
func TestCirclesAfterTalk(t *testing.T) {
	t.Parallel()
	var g Guard
	talk := story(&g, 1, times(8, act{said: "done"})...)
	calls := story(&g, 9, times(10, act{tool: "a", result: "1"})...)
	stages := func(all []string) (s string) {
		for _, f := range all {
			s += f[strings.LastIndexByte(f, ' '):]
		}
		return s
	}
	if stages(talk) != " nudge replan stop" || stages(calls) != " nudge replan stop" {
		t.Errorf("%q, then %q", talk, calls)
	}
}

// The guard is what is persisted of it: a run that is resumed after any answer,
// and takes that answer once more, finds the same. It stays small, and it comes
// to a stop whatever is repeated.
func TestGuardIsAFold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.Custom(func(t *rapid.T) act {
			if rapid.IntRange(0, 4).Draw(t, "what") == 0 {
				return act{said: rapid.SampledFrom([]string{"done", "so"}).Draw(t, "said")}
			}
			return act{tool: rapid.SampledFrom([]string{"a", "b", strings.Repeat("語", 100)}).Draw(t, "tool"), args: rapid.SampledFrom([]string{"", "{}", "\xff", `{"x":1}`}).Draw(t, "args"),
				result: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "result"), failed: rapid.Bool().Draw(t, "failed")}
		})
		acts := rapid.SliceOfN(one, 0, 40).Draw(t, "acts")
		var live, stored Guard
		for i, a := range acts {
			want := story(&live, int64(i+1), a)
			b, err := json.Marshal(stored)
			if err != nil || len(b) > 1200 {
				t.Fatalf("%d bytes: %v", len(b), err)
			}
			stored = Guard{}
			if err := json.Unmarshal(b, &stored); err != nil {
				t.Fatal(err)
			}
			if got := story(&stored, int64(i+1), a); !reflect.DeepEqual(got, want) {
				t.Fatalf("act %d: %q after a resume, %q without", i+1, got, want)
			}
			if again := story(&stored, int64(i+1), a); again != nil {
				t.Fatalf("act %d: taken in again it finds %q", i+1, again)
			}
		}
		if !reflect.DeepEqual(live, stored) {
			t.Fatalf("%+v\n%+v", live, stored)
		}
		loop := rapid.SliceOfN(one, 1, maxPeriod).Draw(t, "loop")
		loop = slices.DeleteFunc(loop, func(a act) bool { return a.said != "" })
		if len(loop) == 0 {
			return
		}
		found := story(&live, int64(len(acts)+1), times(30, loop...)...)
		if len(found) == 0 || !strings.HasSuffix(found[len(found)-1], " stop") {
			t.Fatalf("%+v for ever: %q", loop, found)
		}
	})
}

func FuzzGuardArguments(f *testing.F) {
	f.Add("t", []byte(`{"a":[1,{"b":null}]}`), []byte(`{"a":[1,{"b":null}] }`))
	f.Add("t", []byte("\x00\xff"), []byte(strings.Repeat("[", 20000)))
	f.Fuzz(func(t *testing.T, tool string, a, b []byte) {
		defer disktest.Bounded(t, len(tool)+len(a)+len(b))()
		same := normal(string(a)) == normal(string(b))
		var va, vb any
		if len(a) > 0 && len(b) > 0 && json.Unmarshal(a, &va) == nil && json.Unmarshal(b, &vb) == nil && va != nil && vb != nil && !reflect.DeepEqual(va, vb) && same {
			t.Errorf("%q and %q are one call", a, b)
		}
		var g Guard
		g.Observe(1, tool, string(a), "1", true)
		g.Observe(2, tool, string(b), "1", true)
		if (g.Cycles[0] == 1) != same {
			t.Errorf("%v in cycles", g.Cycles)
		}
	})
}
