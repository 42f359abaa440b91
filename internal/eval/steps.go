package eval

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"toritsugi/internal/i18n"
)

// stepsFile describes the work on a case once: what is read, edited and run. The
// answers of all three modes follow from it, so that they differ in nothing but
// what a plan adds, and in the tools.
const stepsFile = "steps.yaml"

// steps is stepsFile.
type steps struct {
	Goal     string    `yaml:"goal"`     // in a sentence
	Criteria []string  `yaml:"criteria"` // of success
	Look     []stepped `yaml:"look"`     // before there is a plan
	Subtasks []subtask `yaml:"subtasks"`
	Say      string    `yaml:"say"` // at the end
}

type subtask struct {
	About string    `yaml:"about"`
	Turns []stepped `yaml:"turns"`
	Done  string    `yaml:"done"` // what came of it
}

// stepped is an answer, of a script without a plan.
type stepped struct {
	Say   string     `yaml:"say" json:"say,omitempty"`
	Calls []stepCall `yaml:"calls" json:"calls,omitempty"`
}

type stepCall struct {
	Tool string         `yaml:"tool" json:"tool"`
	Args map[string]any `yaml:"args" json:"args"`
}

// write makes the scripts of the three modes.
func (s *steps) write() (map[string][]byte, error) {
	plain, bare := append([]stepped(nil), s.Look...), []stepped{}
	for _, t := range s.Subtasks {
		plain = append(plain, t.Turns...)
	}
	for _, turn := range plain {
		b := stepped{Say: turn.Say}
		for _, c := range turn.Calls {
			command, err := c.command()
			if err != nil {
				return nil, err
			}
			b.Calls = append(b.Calls, stepCall{"shell", map[string]any{"command": command}})
		}
		bare = append(bare, b)
	}
	all := map[string][]byte{}
	for name, answers := range map[string][]stepped{Answers: append(plain, stepped{Say: s.Say}), bareScript: append(bare, stepped{Say: s.Say}), plannedScript: s.planned()} {
		data, err := json.Marshal(answers) // which is YAML, too
		if err != nil {
			return nil, err
		}
		all[name+".yaml"] = data
	}
	return all, nil
}

// command is what does the same in a shell.
func (c stepCall) command() (string, error) {
	text := func(name string) string { s, _ := c.Args[name].(string); return s }
	here := func(s string) string { return "$(cat <<'END'\n" + strings.TrimSuffix(s, "\n") + "\nEND\n)" }
	switch file := text("path"); c.Tool {
	case "shell":
		return text("command"), nil
	case "read_file":
		return "cat " + file, nil
	case "grep":
		return "grep -rn -e '" + text("pattern") + "' " + path.Clean(file), nil
	case "write_file":
		return "cat > " + file + " <<'END'\n" + strings.TrimSuffix(text("content"), "\n") + "\nEND", nil
	case "edit_file":
		return fmt.Sprintf("old=%s new=%s text=$(cat %s)\nprintf '%%s\\n' \"${text/\"$old\"/\"$new\"}\" > %[3]s", here(text("old_text")), here(text("new_text")), file), nil
	}
	return "", i18n.E("eval.step_tool", c.Tool)
}

// setSteps reads stepsFile.
func (c *Case) setSteps(data []byte) error {
	var s steps
	if at := decode(data, &s); at != nil {
		return i18n.E("eval.steps", at.Line, at.Why)
	}
	scripts, err := s.write()
	if err != nil {
		return err
	}
	for name, script := range scripts {
		c.Scripts[name] = script
	}
	return nil
}

// What follows is how a model answers what planning asks for. It is the only place
// of this package that knows.

// reflectEvery is planning.reflection.trigger_interval by default: so many calls
// after which a reflection is asked for.
const reflectEvery = 3

// planned are the answers of a run that a plan leads.
func (s *steps) planned() []stepped {
	all := append(append([]stepped(nil), s.Look...), s.plan())
	for i, t := range s.Subtasks {
		calls, due := 0, false
		for _, turn := range t.Turns {
			if due {
				turn.Say = form(map[string]any{"phase": "reflection", "reflection": map[string]any{"status": "success", "evaluation": "The work goes on as planned.", "plan_revision_needed": false}})
			}
			before := calls / reflectEvery
			calls += len(turn.Calls)
			due = calls/reflectEvery > before
			all = append(all, turn)
		}
		done := form(map[string]any{"phase": "execution", "task_id": taskID(i), "status": "done", "summary": t.Done})
		if i == len(s.Subtasks)-1 {
			done += "\n" + form(map[string]any{"phase": "completion", "done": true, "comment": s.Say})
		}
		all = append(all, stepped{Say: done})
	}
	return append(all, s.verified())
}

func taskID(i int) string { return fmt.Sprintf("task_%d", i+1) }

func (s *steps) plan() stepped {
	var tasks, order []any
	for i, t := range s.Subtasks {
		needs := []string{}
		if i > 0 {
			needs = append(needs, taskID(i-1))
		}
		tasks = append(tasks, map[string]any{"id": taskID(i), "description": t.About, "dependencies": needs, "complexity": "low"})
		order = append(order, taskID(i))
	}
	return stepped{Say: form(map[string]any{"phase": "planning",
		"goal_understanding": map[string]any{"main_objective": s.Goal, "success_criteria": s.Criteria},
		"task_decomposition": map[string]any{"reasoning": "One step builds on the other.", "subtasks": tasks},
		"action_plan":        map[string]any{"execution_order": order, "actions": []any{}}})}
}

func (s *steps) verified() stepped {
	var met []any
	for _, c := range s.Criteria {
		met = append(met, map[string]any{"criterion": c, "met": true, "evidence": "the tests: exit 0"})
	}
	return stepped{Say: form(map[string]any{"phase": "verification", "verification_passed": true, "criteria": met, "issues_found": []any{},
		"placeholder_detected": map[string]any{"count": 0, "locations": []any{}}, "additional_work_needed": false, "completion_confidence": 0.9})}
}

// form is an answer of planning as a text.
func form(v map[string]any) string {
	data, _ := json.Marshal(v) // texts, numbers and lists of them always encode
	return string(data)
}
