package planning

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// planOf makes a plan of "id" and "id < dependency dependency" in the given order
// of execution.
func planOf(order string, subtasks ...string) Plan {
	p := Plan{Phase: PhasePlanning, Actions: ActionPlan{ExecutionOrder: strings.Fields(order)}}
	for _, s := range subtasks {
		id, deps, _ := strings.Cut(s, " < ")
		p.Decomposition.Subtasks = append(p.Decomposition.Subtasks, Subtask{ID: id, Description: "do " + id, Dependencies: strings.Fields(deps)})
		p.Actions.Actions = append(p.Actions.Actions, Action{TaskID: id, Tool: "shell", Purpose: "first of " + id})
	}
	return p
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		plan Plan
		want string
	}{
		{"as listed", planOf("", "a", "b", "c"), "a b c"},
		{"as ordered", planOf("c a b", "a", "b", "c"), "c a b"},
		{"what is ordered first", planOf("c", "a", "b", "c"), "c a b"},
		{"dependencies over order", planOf("c b a", "a", "b < a", "c < b"), "a b c"},
		{"dependencies and order", planOf("d c b a", "a", "b", "c < b", "d < a"), "b c a d"},
		{"twice and unknown", planOf("x b b a", "a", "b"), "b a"},
		{"twice needed", planOf("", "a < b b", "b"), "b a"},
		{"a circle comes last", planOf("a b c", "a < b", "b < a", "c"), "c a b"},
		{"the same id twice", planOf("", "a", "a", "b"), "a b"},
		{"needs what is not there", planOf("", "a < x", "b"), "a b"},
		{"nothing", Plan{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(c.plan.Order(), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		plan       Plan
	}{
		{"nothing", "the plan has no subtask; a small task has one", Plan{}},
		{"too many", "the plan has 4 subtasks; at most 3 are allowed", planOf("", "a", "b", "c", "d")},
		{"no id", "subtasks[1].id must not be empty", planOf("", "a", " ")},
		{"one id twice", `subtasks[1].id: "a" is the id of subtasks[0] already`, planOf("", "a", "a")},
		{"unknown dependency", `subtasks[0].dependencies: "a" needs "x", and no subtask has that id`, planOf("", "a < b x", "b")},
		{"a circle of one", "the dependencies go in a circle among these subtasks: b", planOf("", "a", "b < b")},
		{"a circle, and what needs it", "the dependencies go in a circle among these subtasks: a, b, c", planOf("", "a < b", "b < c", "c < b")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := c.plan.Check(3)
			var broken *ContractError
			if !errors.As(err, &broken) {
				t.Fatalf("got %v, want a ContractError", err)
			}
			if broken.Error() != c.want {
				t.Errorf("got %s\nwant %s", broken, c.want)
			}
		})
	}
	p := planOf("c x c", "a", "b < c", "c")
	if err := p.Check(3); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Actions.ExecutionOrder, " "); got != "c a b" {
		t.Errorf("the order was completed to %q", got)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	base := func() Plan { return planOf("a b c", "a", "b < a", "c < b") }
	done := map[string]bool{"a": true}
	for _, c := range []struct {
		name, rev string
		order     string // of the plan after it
		subtask   string // one that is looked at: "id: description < dependencies"
		actions   string // purposes of the actions
		refused   string
	}{
		{name: "nothing but words", rev: `{"reason": "r", "changes": []}`, order: "a b c"},
		{name: "remarks", rev: `{"changes": [{"type": "modify", "details": "take care"}]}`, order: "a b c", subtask: "b: do b < a"},
		{name: "an action plan without anything", rev: `{"changes": [], "updated_action_plan": {"execution_order": [], "actions": []}}`, order: "a b c", actions: "first of a, first of b, first of c"},
		{name: "add at the end", rev: `{"changes": [{"type": "add", "subtask": {"id": "d", "description": "do d", "dependencies": ["b"]}}]}`, order: "a b c d", subtask: "d: do d < b"},
		{name: "add after", rev: `{"changes": [{"type": "add", "after": "a", "subtask": {"id": "d", "description": "do d"}}]}`, order: "a d b c"},
		{name: "add in words", rev: `{"changes": [{"type": "add", "details": "write a test"}]}`, order: "a b c task_4", subtask: "task_4: write a test < "},
		{name: "add in words and order", rev: `{"changes": [{"type": "add", "task_id": "t", "details": "write a test"}], "updated_action_plan": {"execution_order": ["a", "b", "t", "c"], "actions": [{"task_id": "t", "purpose": "write the test"}]}}`,
			order: "a b t c", subtask: "t: write a test < ", actions: "first of a, first of b, first of c"},
		{name: "modify", rev: `{"changes": [{"type": "modify", "task_id": "c", "subtask": {"description": "do less", "dependencies": []}}]}`, order: "a b c", subtask: "c: do less < "},
		{name: "modify in words", rev: `{"changes": [{"type": "modify", "task_id": "c", "details": "but not all"}]}`, order: "a b c", subtask: "c: do c\nbut not all < b"},
		{name: "remove", rev: `{"changes": [{"type": "remove", "task_id": "c"}]}`, order: "a b"},
		{name: "remove and depend on another", rev: `{"changes": [{"type": "remove", "task_id": "b"}, {"type": "modify", "task_id": "c", "subtask": {"dependencies": ["a"]}}]}`, order: "a c"},
		{name: "another order", rev: `{"changes": [{"type": "modify", "task_id": "c", "subtask": {"dependencies": []}}], "updated_action_plan": {"execution_order": ["c", "b"], "actions": [{"task_id": "c", "purpose": "new"}, {"task_id": "a", "purpose": "again"}]}}`,
			order: "a c b"},

		{name: "remove what is done", rev: `{"changes": [{"type": "remove", "task_id": "a"}]}`, refused: `changes[0].task_id: "a" is done and stays as it is; add a subtask for what is still to be changed`},
		{name: "modify what is done", rev: `{"changes": [{"type": "modify", "task_id": "a", "details": "x"}]}`, refused: `changes[0].task_id: "a" is done and stays as it is; add a subtask for what is still to be changed`},
		{name: "remove what is needed", rev: `{"changes": [{"type": "remove", "task_id": "b"}]}`, refused: `subtasks[1].dependencies: "c" needs "b", and no subtask has that id`},
		{name: "a circle", rev: `{"changes": [{"type": "modify", "task_id": "b", "subtask": {"dependencies": ["c"]}}]}`, refused: `the dependencies go in a circle among these subtasks: b, c`},
		{name: "remove what is not there", rev: `{"changes": [{"type": "remove", "task_id": "x"}, {"type": "remove"}]}`, refused: "changes[0].task_id: no subtask has the id \"x\"\nchanges[1].task_id: say which subtask to remove"},
		{name: "add what is there", rev: `{"changes": [{"type": "add", "subtask": {"id": "b", "description": "x"}}]}`, refused: `changes[0].subtask.id: "b" is the id of another subtask already`},
		{name: "add nothing", rev: `{"changes": [{"type": "add"}]}`, refused: `changes[0].subtask.description: must not be empty`},
		{name: "add after nothing", rev: `{"changes": [{"type": "add", "after": "x", "details": "d"}]}`, refused: `changes[0].after: no subtask has the id "x"`},
		{name: "rename", rev: `{"changes": [{"type": "modify", "task_id": "b", "subtask": {"id": "x"}}]}`, refused: `changes[0].subtask.id: the id of "b" cannot change`},
		{name: "order what is not there", rev: `{"changes": [], "updated_action_plan": {"execution_order": ["x"], "actions": [{"task_id": "y"}]}}`,
			refused: "updated_action_plan.execution_order[0]: no subtask has the id \"x\"; add it in changes"},
		{name: "no such change", rev: `{"changes": [{"type": "swap"}]}`, refused: `changes[0].type: expected one of add, remove, modify, found "swap"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var rev PlanRevision
			if err := json.Unmarshal([]byte(c.rev), &rev); err != nil {
				t.Fatal(err)
			}
			before := base()
			p, err := before.Apply(rev, done, 0)
			if diff := cmp.Diff(base(), before); diff != "" {
				t.Errorf("the plan itself was changed: %s", diff)
			}
			if c.refused != "" {
				var broken *ContractError
				if !errors.As(err, &broken) || broken.Error() != c.refused {
					t.Errorf("got  %v\nwant %s", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(p.Actions.ExecutionOrder, " "); got != c.order || strings.Join(p.Order(), " ") != c.order {
				t.Errorf("the order is %q, want %q", got, c.order)
			}
			if c.subtask != "" {
				id, _, _ := strings.Cut(c.subtask, ":")
				s, _ := p.Subtask(id)
				if got := s.ID + ": " + s.Description + " < " + strings.Join(s.Dependencies, " "); got != c.subtask {
					t.Errorf("got %q, want %q", got, c.subtask)
				}
			}
			if got := purposes(p); c.actions != "" && got != c.actions {
				t.Errorf("the actions are %q, want %q", got, c.actions)
			}
		})
	}
}

func TestApplyEmptiesNoPlan(t *testing.T) {
	t.Parallel()
	p := planOf("", "a")
	if _, err := p.Apply(PlanRevision{Changes: []Change{{Type: "remove", ID: "a"}}}, nil, 0); err == nil || !strings.Contains(err.Error(), "the plan has no subtask") {
		t.Errorf("a revision that removes everything gives %v", err)
	}
	many := PlanRevision{Changes: make([]Change, maxChanges+1)}
	if _, err := p.Apply(many, nil, 0); err == nil || !strings.Contains(err.Error(), "at most 1000, found 1001") {
		t.Errorf("many changes give %v", err)
	}
}

func purposes(p Plan) string {
	var all []string
	for _, a := range p.Actions.Actions {
		all = append(all, a.Purpose)
	}
	return strings.Join(all, ", ")
}

// TestReplace: what is done stays, and no work of the new plan is taken for
// done because it has the number of something that is.
func TestReplace(t *testing.T) {
	t.Parallel()
	old := planOf("a b c", "a", "b < a", "c < b")
	next := planOf("b a d", "a", "b < a", "d < b")
	next.Decomposition.Subtasks[1].Description = "something else"
	p, err := old.Replace(next, map[string]bool{"a": true, "b": true}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range p.Order() {
		s, _ := p.Subtask(id)
		got = append(got, fmt.Sprintf("%s (%s) < %s", s.ID, s.Description, strings.Join(s.Dependencies, " ")))
	}
	want := []string{"a (do a) < ", "b (do b) < a", "task_4 (something else) < a", "d (do d) < task_4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := purposes(p); got != purposes(next) {
		t.Errorf("its actions are not recorded as given: %s", got)
	}
	if _, err := old.Replace(Plan{}, nil, 0); err == nil {
		t.Error("a plan was replaced by none")
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	p := planOf("", "a", "verification_fix_1")
	got := p.Extend([]Action{
		{TaskID: "verification_fix_1", Purpose: "mend x", ExpectedOutcome: "x works"}, {TaskID: "verification_fix_1", Purpose: "test x"}, {Purpose: "more"},
		{TaskID: "a", Purpose: "again", ExpectedOutcome: "in one line"}, {TaskID: "a", Purpose: "again in one line"}, {TaskID: "empty"},
	}, map[string]bool{"verification_fix_1": true}, 9, "")
	if order := strings.Join(got.Actions.ExecutionOrder, " "); order != "a verification_fix_1 verification_fix_2 task_4" {
		t.Errorf("the order is %q", order)
	}
	if s, _ := got.Subtask("verification_fix_2"); s.Description != "mend x\nx works\ntest x" {
		t.Errorf("it says %q", s.Description)
	}
	if s, _ := got.Subtask("a"); s.Description != "do a\nagain in one line" {
		t.Errorf("the open one says %q", s.Description)
	}
	if again := p.Extend([]Action{{TaskID: "a", Purpose: "do a"}}, map[string]bool{"a": true}, 9, ""); len(again.Decomposition.Subtasks) != 3 {
		t.Errorf("what is done is not done again: %v", again.Actions.ExecutionOrder)
	}
	if s, _ := p.Subtask("a"); len(p.Decomposition.Subtasks) != 2 || s.Description != "do a" {
		t.Error("the plan itself was changed")
	}
}

// The plan of a request that the model gives none for says what is wanted, and not
// what is wrong.
func TestSingle(t *testing.T) {
	t.Parallel()
	p := Single()
	if err := p.Check(1); err != nil {
		t.Error(err)
	}
	if want := "Do what the task asks for, and show it by a test."; p.Decomposition.Subtasks[0].Description != want || p.Goal.MainObjective != "" {
		t.Errorf("%+v", p)
	}
}

// drawPlan draws a plan without circles whose order of execution says anything.
func drawPlan(t *rapid.T) Plan {
	n := rapid.IntRange(1, 12).Draw(t, "n")
	ids := rapid.Permutation(func() (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprintf("t%d", i))
		}
		return
	}()).Draw(t, "ids")
	p := Plan{}
	for i, id := range ids {
		s := Subtask{ID: id, Description: "do " + id}
		if i > 0 {
			s.Dependencies = rapid.SliceOfN(rapid.SampledFrom(ids[:i]), 0, 3).Draw(t, "dependencies")
		}
		p.Decomposition.Subtasks = append(p.Decomposition.Subtasks, s)
	}
	p.Decomposition.Subtasks = rapid.Permutation(p.Decomposition.Subtasks).Draw(t, "list")
	p.Actions.ExecutionOrder = rapid.SliceOf(rapid.SampledFrom(append(slices.Clone(ids), "x", ""))).Draw(t, "order")
	return p
}

// extends fails unless the order of a plan has every subtask once, each after
// its dependencies.
func extends(t *rapid.T, p Plan) {
	at := map[string]int{}
	order := p.Order()
	for i, id := range order {
		at[id] = i
	}
	if len(order) != len(p.Decomposition.Subtasks) || len(at) != len(order) {
		t.Fatalf("the order %v of %d subtasks", order, len(p.Decomposition.Subtasks))
	}
	for _, s := range p.Decomposition.Subtasks {
		for _, id := range s.Dependencies {
			if at[id] >= at[s.ID] {
				t.Fatalf("%s stands before %s in %v", s.ID, id, order)
			}
		}
	}
}

func TestOrderLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		extends(t, p)
		if err := p.Check(0); err != nil {
			t.Fatal(err)
		}
		if again := p.Order(); !slices.Equal(again, p.Actions.ExecutionOrder) {
			t.Fatalf("the completed order %v is not kept: %v", p.Actions.ExecutionOrder, again)
		}
	})
}

// TestCycleLaw: Check finds a circle where there is one, whatever else there is.
func TestCycleLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		order := p.Order()
		if len(order) < 2 {
			return
		}
		first := p.index(order[0])
		p.Decomposition.Subtasks[first].Dependencies = []string{order[len(order)-1]}
		last := p.index(order[len(order)-1])
		p.Decomposition.Subtasks[last].Dependencies = append(slices.Clone(p.Decomposition.Subtasks[last].Dependencies), order[0])
		if err := p.Check(0); err == nil || !strings.Contains(err.Error(), "circle") {
			t.Fatalf("the circle is not found: %v", err)
		}
	})
}

// TestApplyLaw: no revision loses or changes what is done, and what comes out
// is a plan.
func TestApplyLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		order := p.Order()
		done := map[string]bool{}
		for _, id := range order[:rapid.IntRange(0, len(order)).Draw(t, "done")] {
			done[id] = true
		}
		ids := append(slices.Clone(order), "", "x", "new")
		id := rapid.SampledFrom(ids)
		rev := PlanRevision{Changes: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Change {
			c := Change{Type: rapid.SampledFrom([]string{"add", "remove", "modify", "other"}).Draw(t, "type"), ID: id.Draw(t, "id"), Details: rapid.SampledFrom([]string{"", "words"}).Draw(t, "details")}
			if rapid.Bool().Draw(t, "subtask") {
				c.Subtask = &Subtask{ID: id.Draw(t, "id"), Description: "d", Dependencies: rapid.SliceOfN(id, 0, 2).Draw(t, "dependencies")}
			}
			if rapid.Bool().Draw(t, "after") {
				c.After = id.Draw(t, "after")
			}
			return c
		}), 0, 3).Draw(t, "changes")}
		if rapid.Bool().Draw(t, "actions") {
			rev.Actions = &ActionPlan{ExecutionOrder: rapid.SliceOfN(id, 0, 6).Draw(t, "order")}
			for _, id := range rapid.SliceOfN(id, 0, 4).Draw(t, "of") {
				rev.Actions.Actions = append(rev.Actions.Actions, Action{TaskID: id, Purpose: "p"})
			}
		}
		next, err := p.Apply(rev, done, 0)
		if err != nil {
			var broken *ContractError
			if !errors.As(err, &broken) || len(broken.Problems) == 0 {
				t.Fatal(err)
			}
			return
		}
		keeps(t, p, next, done)
		replaced, err := next.Replace(p, done, 0)
		if err != nil {
			t.Fatal(err)
		}
		keeps(t, next, replaced, done)
	})
}

// keeps fails unless next is a plan that has what is done of p as it was.
func keeps(t *rapid.T, p, next Plan, done map[string]bool) {
	extends(t, next)
	if err := next.Check(0); err != nil {
		t.Fatal(err)
	}
	for _, id := range slices.Sorted(maps.Keys(done)) {
		before, _ := p.Subtask(id)
		after, there := next.Subtask(id)
		if !there || !cmp.Equal(before, after) {
			t.Fatalf("%s was done and is %v", id, after)
		}
	}
}

// TestLargePlans: what a model can write in one answer is ordered at once.
func TestLargePlans(t *testing.T) {
	t.Parallel()
	var p Plan
	for i := range 20_000 {
		s := Subtask{ID: fmt.Sprint(i), Description: "d"}
		if i > 0 {
			s.Dependencies = []string{fmt.Sprint(i - 1)}
		}
		p.Decomposition.Subtasks = append(p.Decomposition.Subtasks, s)
	}
	if err := p.Check(0); err != nil {
		t.Fatal(err)
	}
	if last := p.Actions.ExecutionOrder[len(p.Actions.ExecutionOrder)-1]; last != "19999" {
		t.Errorf("the last one is %s", last)
	}
}

// What is said of a criterion is found by its words; like words count where they can mean
// no other one, and nothing is evidence of two.
func TestPair(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		criteria, said []string
		want           []int // of said, -1 for nothing
	}{
		{[]string{"X = +0 works", "X = -0 works"}, []string{"x = -0 works.", "X = +0  works"}, []int{1, 0}},
		{[]string{`withBase("/admin-dashboard", "/admin") returns /admin/admin-dashboard`, `withoutBase("/admin-dashboard", "/admin") returns /admin-dashboard`},
			[]string{`withoutBase("/admin-dashboard", "/admin") returns /admin-dashboard`}, []int{-1, 0}},
		{[]string{"The parser refuses empty input", "The command tells users about it"}, []string{"parser refuses an empty input with an error"}, []int{0, -1}},
		{[]string{"The parser refuses empty input", "The parser refuses large input"}, []string{"the parser refuses bad input"}, []int{-1, -1}},
		{[]string{"It works"}, []string{"a test shows it"}, []int{0}},
		{[]string{"a", "b"}, []string{"a", "a"}, []int{1, -1}},
	} {
		var said []Criterion
		for _, text := range c.said {
			said = append(said, Criterion{Criterion: text})
		}
		for i, got := range pair(c.criteria, said) {
			if want := c.want[i]; (got == nil) != (want < 0) || want >= 0 && got != &said[want] {
				t.Errorf("%q of %q: %v, want %d", c.criteria[i], c.said, got, want)
			}
		}
	}
}

// A command that ended well shows of its parts only what its exit code tells of.
func TestProvenBy(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"go test ./...":                                     "go test ./...",
		"cd a && go test ./... 2>&1 | tail -3":              "cd a && go test ./... 2>&1 | tail -3 + go test ./...",
		"npx prettier -c a.ts; git diff --stat":             "git diff --stat",
		"make lint || true":                                 "",
		"! grep -q x a":                                     "",
		"npm test &":                                        "",
		"go vet ./... && go test ./...":                     "go vet ./... && go test ./... + go vet ./... + go test ./...",
		"python3 - <<'E'\nprint(1); print(2)\nE\npytest -q": "pytest -q",
		"go test 'unclosed":                                 "",
	} {
		if got := strings.Join(provenBy(command), " + "); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	if got := outcome("npx prettier -c a.ts; git diff --stat is clean", []string{"git diff --stat"}); got != "" {
		t.Errorf("a command behind another that may have failed shows %q", got)
	}
}
