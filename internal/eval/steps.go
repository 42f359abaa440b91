package eval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
	"toritsugi/internal/planning"
)

// stepsFile describes the work on a case once: what is read, edited and run. The
// answers of all three modes follow from it, so that they differ in nothing but
// what a plan adds, and in the tools.
const stepsFile = "steps.yaml"

// steps is stepsFile.
type steps struct {
	Goal     string    `yaml:"goal"`     // in a sentence
	Criteria []string  `yaml:"criteria"` // of success, which a command shows
	Judged   []string  `yaml:"judged"`   // of success, which have to be judged
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
	plain, bare := slices.Clone(s.Look), []stepped{}
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
	maps.Copy(c.Scripts, scripts)
	return err
}

// setPlan makes the script of a run that a plan leads out of the one of a run without,
// where there is none of its own: the work is one subtask that begins with the first edit.
func (c *Case) setPlan() error {
	var answers []stepped
	if c.Scripts[plannedScript+".yaml"] != nil || decode(c.Scripts[Answers+".yaml"], &answers) != nil {
		return nil // answers that are written otherwise lead no plan
	}
	ends := func(a stepped) bool { return len(a.Calls) == 0 }
	edits := func(a stepped) bool {
		return slices.ContainsFunc(a.Calls, func(c stepCall) bool { return c.Tool == "edit_file" || c.Tool == "write_file" })
	}
	end, first := slices.IndexFunc(answers, ends), slices.IndexFunc(answers, edits)
	if first < 0 || end < first {
		return nil
	}
	s := steps{Goal: c.About, Criteria: []string{c.About}, Look: answers[:first], Say: answers[end].Say,
		Subtasks: []subtask{{About: c.About, Turns: answers[first:end], Done: answers[end].Say}}}
	data, err := json.Marshal(s.planned())
	c.Scripts[plannedScript+".yaml"] = data
	return err
}

// What follows is how a model answers what planning asks for. It is the only place
// of this package that knows.

// reflectEvery is planning.reflection.trigger_interval by default: so many turns
// that act, after which a plan of several subtasks is reflected on, unless a command
// has just ended well.
const reflectEvery = 3

// planned are the answers of a run that a plan leads.
func (s *steps) planned() []stepped {
	all := slices.Clone(s.Look)
	turns, due, shown, place := 0, false, "", ""
	for i, t := range s.Subtasks {
		for n, turn := range t.Turns {
			calls := slices.Clone(turn.Calls)
			if i == 0 && n == 0 { // the plan comes beside the first edit
				calls = append(calls, s.plan().Calls...)
			}
			if due {
				calls = append(calls, stepCall{planning.ToolReflect, object{"evaluation": "The work goes on as planned."}})
				turns = 0
			}
			turns++
			last := turn.Calls[len(turn.Calls)-1]
			if last.Tool == "shell" {
				shown, _ = last.Args["command"].(string)
				shown = strings.TrimSpace(shown)
				shown = strings.TrimSpace(shown[strings.LastIndexAny(shown, "&\n")+1:]) // what a person would name
			}
			for _, c := range turn.Calls {
				if file, ok := c.Args["path"].(string); ok {
					place = file + ":1"
				}
			}
			due = len(s.Subtasks) > 1 && turns >= reflectEvery && last.Tool != "shell"
			all = append(all, stepped{Say: turn.Say, Calls: calls})
		}
		done := stepCall{planning.ToolReport, object{"status": "done", "summary": t.Done}}
		if i < len(s.Subtasks)-1 { // beside the last calls
			last := &all[len(all)-1]
			last.Calls = append(last.Calls, done)
			continue
		}
		var criteria []any
		for _, c := range s.Criteria {
			criteria = append(criteria, object{"criterion": c, "evidence": cmp.Or(shown, place)})
		}
		done.Args["criteria"], done.Args["comment"] = criteria, s.Say
		all = append(all, stepped{Calls: []stepCall{done}})
	}
	return append(all, s.verified(strings.TrimPrefix(place+", "+shown, ", ")))
}

type object = map[string]any

func (s *steps) plan() stepped {
	var tasks []any
	for _, t := range s.Subtasks {
		tasks = append(tasks, object{"description": t.About})
	}
	if len(tasks) == 1 {
		tasks[0] = object{"description": s.Subtasks[0].About, "complexity": "low"}
	}
	return stepped{Calls: []stepCall{{planning.ToolPlan, object{
		"goal_understanding": object{"main_objective": s.Goal, "success_criteria": slices.Concat(s.Criteria, s.Judged)},
		"task_decomposition": object{"subtasks": tasks}}}}}
}

// verified judges by the file that was edited last and the command that was run last.
func (s *steps) verified(shown string) stepped {
	var met []any
	for _, c := range slices.Concat(s.Criteria, s.Judged) {
		met = append(met, object{"criterion": c, "met": true, "evidence": shown})
	}
	return stepped{Calls: []stepCall{{planning.ToolReflect, object{"verification_passed": true, "criteria": met, "comment": s.Say}}}}
}
