package cli

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// What a verification leaves open, where the run is to complete all the same,
// stands in the pull request, which stays a draft; and in the comment.
func TestOpenPointsKeepAPullRequestADraft(t *testing.T) {
	t.Parallel()
	for name, passes := range map[string]bool{"open": false, "passed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(t, "planning: {verification: {on_open_points: complete, max_rounds: 1}}\n")
			w.env = []string{"TORI_PLANNING_ENABLED=true"}
			met := "false"
			if passes {
				met = "true"
			}
			write(t, filepath.Join(w.dir, "script.yaml"), `
- say: '{"phase":"planning","goal_understanding":{"main_objective":"The answer is 42","success_criteria":["it is documented"],"constraints":[]},"task_decomposition":{"reasoning":"r","subtasks":[{"id":"write","description":"Write 42","dependencies":[]}]},"action_plan":{"execution_order":[],"actions":[]}}'
- calls: [{tool: write_file, args: {path: answer.txt, content: "42\n"}}]
- say: '{"task_id":"write","status":"done","summary":"answer.txt says 42"}'
- say: '{"phase":"verification","verification_passed":`+met+`,"criteria":[{"criterion":"it is documented","met":`+met+`,"evidence":"README.md:1"}],"issues_found":[],"comment":"Say 42\n\nIt said 41.","placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":false,"completion_confidence":0.4}'
`)
			n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
			w.repo.Label(n, "coding agent", "hanako")
			log := w.once()
			pulls := w.repo.Pulls()
			_, ours := w.shown(n)
			if len(pulls) != 1 || len(ours) != 1 {
				t.Fatalf("%d pull requests, %d comments\n%s", len(pulls), len(ours), log)
			}
			const point = "not met: it is documented"
			if p := pulls[0]; p.Title != "Say 42" || p.Pull.Draft == passes || strings.Contains(p.Body, point) == passes || strings.Contains(ours[0], point) == passes {
				t.Errorf("draft %t, %s\n%s\ncomment\n%s\n%s", p.Pull.Draft, p.Title, p.Body, ours[0], log)
			}
		})
	}
}

// People see that the task may be understood wrongly, and what is not known: also
// what the model wanted to assume and may not.
func TestAnUncertainUnderstandingIsShown(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	w.env = []string{"TORI_PLANNING_ENABLED=true"}
	write(t, filepath.Join(w.dir, "script.yaml"), `
- say: '{"phase":"planning","goal_understanding":{"main_objective":"The answer is 42","success_criteria":["it is documented"],"constraints":[],"understanding_confidence":0.5,"assumptions":[{"info_id":"unit","assumed_value":"Metres","confidence":0.9},{"info_id":"api_key","assumed_value":"sesame","confidence":0.9}]},"task_decomposition":{"reasoning":"r","subtasks":[{"id":"write","description":"Write 42","dependencies":[]}]},"action_plan":{"execution_order":[],"actions":[]}}'
- calls: [{tool: write_file, args: {path: answer.txt, content: "42\n"}}]
- say: '{"task_id":"write","status":"done","summary":"answer.txt says 42"}'
- say: '{"phase":"verification","verification_passed":true,"criteria":[{"criterion":"it is documented","met":true,"evidence":"README.md:1"}],"issues_found":[],"placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":false,"completion_confidence":0.9}'
`)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	log := w.once()
	_, ours := w.shown(n)
	if len(ours) != 1 {
		t.Fatalf("%d comments\n%s", len(ours), log)
	}
	for _, part := range []string{"is uncertain.", "assumed: Metres", "not known: api_key: nothing about api_key may be assumed"} {
		if !strings.Contains(ours[0], part) {
			t.Errorf("%q is missing in\n%s", part, ours[0])
		}
	}
	if strings.Contains(ours[0], "sesame") {
		t.Errorf("what may not be assumed is shown:\n%s", ours[0])
	}
}

// What the model says it learned stands in the final summary, which later runs
// take over.
func TestLessonsStandInTheFinalSummary(t *testing.T) {
	t.Parallel()
	w := newTown(t, "")
	w.env = []string{"TORI_PLANNING_ENABLED=true"}
	write(t, filepath.Join(w.dir, "script.yaml"), `
- say: '{"phase":"planning","goal_understanding":{"main_objective":"The answer is 42","success_criteria":["it is documented"],"constraints":[]},"task_decomposition":{"reasoning":"r","subtasks":[{"id":"write","description":"Write 42","dependencies":[]}]},"action_plan":{"execution_order":[],"actions":[]}}'
- calls: [{tool: write_file, args: {path: answer.txt, content: "42\n"}}]
- say: '{"task_id":"write","status":"done","summary":"answer.txt says 42"} {"phase":"completion","done":true,"comment":"It says 42.","summary":{"goal_achieved":true,"lessons_learned":["the answer stands in answer.txt alone"]}}'
- say: '{"phase":"verification","verification_passed":true,"criteria":[{"criterion":"it is documented","met":true,"evidence":"README.md:1"}],"issues_found":[],"placeholder_detected":{"count":0,"locations":[]},"additional_work_needed":false,"completion_confidence":0.9}'
`)
	n := w.repo.OpenIssue("hanako", "The answer is wrong", "It says 41.")
	w.repo.Label(n, "coding agent", "hanako")
	log := w.once()
	const lesson = `Lessons that the model drew:\n- the answer stands in answer.txt alone`
	all := ""
	files, err := filepath.Glob(filepath.Join(w.dir, "base", "completed", "*", "summaries.jsonl"))
	for _, f := range files {
		raw, rerr := readFile(f)
		all, err = all+string(raw), errors.Join(err, rerr)
	}
	if err != nil || !strings.Contains(all, lesson) {
		t.Errorf("%v: %s\n%s", err, all, log)
	}
}
