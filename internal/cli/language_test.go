package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"toritsugi/internal/i18n"
)

// life is a run that a script leads. What its model and its people say is Greek, so
// that every other word is the program's.
type life struct {
	steps []map[string]any
	env   []string
	exit  int
	checks,
	then string // what is done when it waits or has ended: stop
}

func says(v any) map[string]any {
	text, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		text = string(b)
	}
	return map[string]any{"say": text}
}

func calls(tool string, args map[string]string) map[string]any {
	return map[string]any{"calls": []any{map[string]any{"tool": tool, "args": args}}}
}

type object = map[string]any

// lives are the ways in which a run that is planned speaks to people, to each of its
// ends.
func lives() map[string]life {
	goal := object{"main_objective": "σκοπός", "success_criteria": []string{"κριτήριο"}, "constraints": []string{"όριο"}}
	plan := func(goal object, ids ...string) map[string]any {
		var all []object
		for i, id := range ids {
			need := []string{}
			if i > 0 && strings.HasPrefix(id, "+") {
				need = []string{strings.TrimPrefix(ids[i-1], "+")}
			}
			all = append(all, object{"id": strings.TrimPrefix(id, "+"), "description": "έργο", "dependencies": need})
		}
		return says(object{"phase": "planning", "goal_understanding": goal, "task_decomposition": object{"reasoning": "ρ", "subtasks": all},
			"action_plan": object{"execution_order": []string{}, "actions": []string{}}, "comment": "σχόλιο"})
	}
	ends := func(id, status string) map[string]any {
		return says(object{"task_id": id, "status": status, "summary": "σύνοψη"})
	}
	decides := func(kind string, level int, confidence float64, more object) map[string]any {
		d := object{"replan_needed": true, "confidence": confidence, "reasoning": "λόγος", "replan_type": kind, "target_phase": "execution", "replan_level": level}
		for k, v := range more {
			d[k] = v
		}
		return says(object{"replan_decision": d})
	}
	judges := func(passed, met bool, evidence string, more object) map[string]any {
		v := object{"phase": "verification", "verification_passed": passed, "criteria": []object{{"criterion": "κριτήριο", "met": met, "evidence": evidence}}, "issues_found": []string{},
			"placeholder_detected": object{"count": 0, "locations": []string{}}, "additional_work_needed": false, "completion_confidence": 0.9}
		for k, x := range more {
			v[k] = x
		}
		return says(v)
	}
	writes := calls("write_file", map[string]string{"path": "answer.txt", "content": "42\n"})
	fails := calls("shell", map[string]string{"command": "exit 3"})
	reflects := says(object{"phase": "reflection", "reflection": object{"status": "failure", "evaluation": "κρίση", "plan_revision_needed": true},
		"plan_revision": object{"reason": "αιτία", "changes": []object{{"type": "add", "subtask": object{"id": "γ", "description": "έργο", "dependencies": []string{}}}}, "updated_action_plan": object{"execution_order": []string{"γ", "α"}}}})
	unsure := object{"main_objective": "σκοπός", "success_criteria": []string{"κριτήριο"}, "task_type": "bug_fix", "understanding_confidence": 0.4, "expected_deliverables": []string{"παραδοτέο"},
		"scope":            object{"in_scope": []string{"εντός"}, "out_of_scope": []string{"εκτός"}},
		"ambiguities":      []object{{"item": "ασάφεια", "selected_interpretation": "ερμηνεία"}},
		"assumptions":      []object{{"info_id": "θύρα", "assumed_value": "8080", "confidence": 0.9}, {"info_id": "api_key", "assumed_value": "κλειδί"}, {"assumed_value": "secret 1"}, {"assumed_value": "ίσως", "confidence": 0.1}},
		"information_gaps": []object{{"description": "άγνωστο"}}}
	read := calls("read_file", map[string]string{"path": "answer.txt"})
	return map[string]life{
		"completed": {steps: []map[string]any{plan(unsure, "α", "+β"), writes, ends("α", "done"), ends("β", "skipped"), judges(true, true, "answer.txt:1", nil)}},
		"completed with open points": {env: []string{"TORI_PLANNING_VERIFICATION_ON_OPEN_POINTS=complete"},
			steps: []map[string]any{plan(goal, "α"), writes, ends("α", "done"), judges(true, true, "", nil), judges(true, true, "", nil), ends("verification_fix_1", "done"), judges(true, false, "", object{"additional_work_needed": true, "placeholder_detected": object{"count": 1, "locations": []string{"answer.txt:1"}}})}},
		"completed without a verification that can be read": {env: []string{"TORI_PLANNING_VERIFICATION_ON_OPEN_POINTS=complete"},
			steps: []map[string]any{plan(goal, "α"), writes, ends("α", "done"), says("όχι"), says("όχι")}},
		"completed by a model that cannot plan": {
			steps: []map[string]any{says("όχι"), says("όχι"), writes, says("έτοιμο"), says("έτοιμο"), judges(true, true, "answer.txt:1", nil)}},
		"failed: a verification leaves points open, and subtasks failed": {exit: exitFailed, env: []string{"TORI_PLANNING_VERIFICATION_MAX_ROUNDS=1"},
			steps: []map[string]any{plan(goal, "α", "+β", "δ"), writes, fails, reflects, ends("γ", "done"), ends("α", "failed"), decides("retry", 1, 0.6, nil), ends("α", "blocked"), decides("retry", 1, 0.1, nil),
				says(object{"task_id": "δ", "status": "μισό"}), says(object{"task_id": "δ", "status": "μισό"}), decides("none", 0, 0.9, object{"replan_needed": false}), judges(true, true, "answer.txt:1", nil)}},
		"failed: the result of another subtask": {exit: exitFailed, env: []string{"TORI_PLANNING_VERIFICATION_MAX_ROUNDS=1", "TORI_PLANNING_REPLANNING_GLOBAL_MAX_TOTAL_REPLANS=0"},
			steps: []map[string]any{plan(goal, "α", "β"), ends("β", "done"), ends("β", "done"), writes, ends("β", "done"), judges(false, false, "answer.txt:1", object{"issues_found": []string{}})}},
		"failed: nothing left to try": {exit: exitFailed, env: []string{"TORI_PLANNING_REPLANNING_GLOBAL_MAX_TOTAL_REPLANS=2", "TORI_PLANNING_REPLANNING_EXECUTION_MAX_ACTION_RETRIES=1"},
			steps: []map[string]any{plan(goal, "α"), ends("α", "failed"), decides("retry", 1, 0.9, nil), ends("α", "failed"), decides("retry", 1, 0.7, object{"additional_actions": []object{{"task_id": "ζ", "purpose": "έργο"}}}),
				says(object{"reason": "αιτία", "changes": []object{{"type": "modify", "task_id": "ζ", "details": "έργο"}}}), ends("α", "failed"), decides("full_replan", 5, 0.9, nil)}},
		"failed: round in circles": {exit: exitFailed, steps: append([]map[string]any{plan(goal, "α")}, slices.Repeat([]map[string]any{read}, 10)...)},
		"failed: talk":             {exit: exitFailed, steps: append([]map[string]any{plan(goal, "α", "β", "γ", "δ", "ε")}, slices.Repeat([]map[string]any{says("ναι")}, 12)...)},
		"failed: handed over":      {exit: exitFailed, env: []string{"TORI_BUDGET_MAX_TURNS=3"}, steps: []map[string]any{plan(goal, "α", "+β"), ends("α", "done"), says("παράδοση")}},
		"failed: put together":     {exit: exitFailed, env: []string{"TORI_BUDGET_MAX_TURNS=1"}, steps: []map[string]any{plan(goal, "α", "+β")}},
		"failed: the checks":       {exit: exitFailed, checks: "test ! -e answer.txt", steps: []map[string]any{plan(goal, "α"), writes, ends("α", "done"), says("ναι"), says("ναι"), says("ναι")}},
		"failed: no answer":        {exit: exitFailed, steps: []map[string]any{plan(goal, "α")}},
		"waiting for the model's question": {exit: exitWaiting, then: "stop",
			steps: []map[string]any{plan(goal, "α"), calls("ask_user", map[string]string{"question": "ποιο;", "assumption": "αυτό"})}},
		"waiting for a yes": {exit: exitWaiting, then: "answer",
			steps: []map[string]any{plan(goal, "α"), ends("α", "failed"), decides("action_regeneration", 3, 0.4, nil), ends("α", "failed"), decides("plan_revision", 2, 0.4, nil)}},
		"waiting for another revision": {exit: exitWaiting, env: []string{"TORI_PLANNING_REVISION_MAX_REVISIONS=0"}, steps: []map[string]any{plan(goal, "α"), fails, reflects}},
		"waiting about the plan":       {exit: exitWaiting, steps: []map[string]any{plan(object{"main_objective": "σκοπός", "understanding_confidence": 0.1, "clarification_questions": []string{"ποιο;"}}, "α")}},
	}
}

// Whatever a planned run tells people, while it goes on and at each of its ends, is in
// their language alone: of those who read beside the issue in that of the settings, of
// who runs tori in theirs.
func TestATextIsInOneLanguage(t *testing.T) {
	skipShort(t, "whole runs, one after the other or killed")
	t.Parallel()
	for name, l := range lives() {
		for _, lang := range []struct{ posted, reader i18n.Lang }{{i18n.Japanese, i18n.English}, {i18n.English, i18n.Japanese}} {
			t.Run(fmt.Sprintf("%s/%s, read in %s", name, lang.posted, lang.reader), func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, "http://127.0.0.1:1", "test -e README.md")
				h.write("issue.md", "---\nauthor: Αννα\n---\n# Ζήτημα\n\nΚάτι.\n")
				checks := "test -e README.md"
				if l.checks != "" {
					checks = l.checks
				}
				h.write("config.yaml", fmt.Sprintf("language: %s\nchecks: [%q]\n", lang.posted, checks))
				script, err := json.Marshal(l.steps)
				if err != nil {
					t.Fatal(err)
				}
				h.args = append(h.args, "--script", h.write("script.yaml", string(script)))
				env := append(append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(h.dir, "state"), "LC_ALL="+string(lang.reader)+".UTF-8", "TORI_PLANNING_ENABLED=true"), l.env...)
				tori := func(exit int, args ...string) string {
					t.Helper()
					var out, log bytes.Buffer
					cmd := exec.CommandContext(t.Context(), "tori", args...)
					cmd.Stdout, cmd.Stderr, cmd.Env = &out, &log, env
					var ee *exec.ExitError
					err := cmd.Run()
					code := 0
					if errors.As(err, &ee) {
						code = ee.ExitCode()
					}
					if code != exit || err != nil && ee == nil {
						t.Fatalf("tori %v: exit code %d, %v\n%s%s", args, code, err, out.String(), log.String())
					}
					return out.String()
				}
				rest := []string{"--base-dir", h.base(), "--config", h.config}
				show := func() {
					t.Helper()
					speaks(t, lang.reader, "tori show --plan", tori(0, append([]string{"show", h.only().Metadata.UUID, "--plan"}, rest...)...))
					for _, file := range []string{"issue.comments.md", "issue.progress.md"} {
						b, err := readFile(filepath.Join(h.dir, file))
						if err != nil {
							t.Error(err)
						}
						speaks(t, lang.posted, file, string(b))
					}
					b, _ := readFile(filepath.Join(h.only().Dir, "summaries.jsonl")) // of a run that has ended
					speaks(t, i18n.English, "the final summary", string(b))
				}
				speaks(t, lang.reader, "tori run", tori(l.exit, h.args...))
				show()
				id := h.only().Metadata.UUID
				switch l.then {
				case "stop":
					tori(0, append([]string{"stop", id}, rest...)...)
					show()
				case "answer":
					tori(0, append([]string{"answer", id, "ναι"}, rest...)...)
					tori(exitWaiting, append([]string{"run", "--resume", id, "--script", filepath.Join(h.dir, "script.yaml")}, append(rest, h.bare...)...)...)
					show()
				}
			})
		}
	}
}

// Names and marks that are the same in each language: of files, tools, settings and
// verbs, of what a plan calls a kind of task, of times and of exit codes.
var names = regexp.MustCompile("[0-9a-f]{8}-[0-9a-f-]{27}|⚠️ (shell|read_file): .*|`[^`\n]*`|<[^>]*>|\\S*[/_.:=][\\w/_.:=-]+|--[a-z-]+|\\b(tori|UTC|JSON|id|TEXT|run|show|answer|stop|shell|exit|test|sh|script|root|tori-bot|api_key|secret|MiB|README|issue|git|YAML)\\b|[0-9a-f]{8,}")

// speaks demands that a text has words of one language alone, beside names and Greek.
func speaks(t *testing.T, l i18n.Lang, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		switch l {
		case i18n.Japanese:
			if words := regexp.MustCompile(`[A-Za-z]{2,}`).FindAllString(names.ReplaceAllString(line, " "), -1); words != nil {
				t.Errorf("%s: %q in\n%s", what, words, line)
			}
		default:
			if strings.ContainsFunc(line, func(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }) {
				t.Errorf("%s: Japanese in\n%s", what, line)
			}
		}
	}
}

// So are a pull request, the comment on it, and a question on a forge.
func TestAForgeIsToldInOneLanguage(t *testing.T) {
	t.Parallel()
	lives := lives()
	for _, lang := range []i18n.Lang{i18n.Japanese, i18n.English} {
		for _, name := range []string{"completed with open points", "waiting for a yes", "failed: a verification leaves points open, and subtasks failed"} {
			t.Run(fmt.Sprintf("%s/%s", name, lang), func(t *testing.T) {
				t.Parallel()
				w := newTown(t, "")
				w.env = append([]string{"TORI_PLANNING_ENABLED=true", "TORI_LANGUAGE=" + string(lang)}, lives[name].env...)
				script, err := json.Marshal(lives[name].steps)
				if err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(w.dir, "script.yaml"), string(script))
				n := w.repo.OpenIssue("hanako", "Ζήτημα", "Κάτι.")
				w.repo.Label(n, "coding agent", "hanako")
				log := w.once()
				_, ours := w.shown(n)
				for _, p := range w.repo.Pulls() {
					ours = append(ours, strings.ReplaceAll(p.Body, "Closes #", "#"))
				}
				if len(ours) < 1 || strings.HasPrefix(name, "completed") && len(ours) != 2 {
					t.Fatalf("%d texts\n%s", len(ours), log)
				}
				for _, text := range ours {
					speaks(t, lang, name, text)
				}
			})
		}
	}
}

// What a run that somebody stops leaves to later ones is in one language, and names
// nobody.
func TestTheSummaryOfAStoppedRunIsInOneLanguage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sleeper(t).URL, "")
	h.env = []string{"TORI_LANGUAGE=ja"}
	p := h.start(h.args...)
	h.await("workspaces/*/tree/began")
	h.tori(0, "stop", h.only().Metadata.UUID)
	p.code()
	b, err := readFile(filepath.Join(h.only().Dir, "summaries.jsonl"))
	if err != nil || !strings.Contains(string(b), "Outcome: stopped. stopped on request of somebody") {
		t.Errorf("%v: %s\n%s", err, b, p.out.String())
	}
	speaks(t, i18n.English, "the final summary", string(b))
}
