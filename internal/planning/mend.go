package planning

import (
	"fmt"
	"slices"
	"strings"
)

// idList is the name of a list of ids, which may be written in one line.
const idList = "ids"

// aliases are names of fields that models use for those of a definition. The
// table is never written to.
var aliases = map[string]map[string]string{
	"plan":               {"request_understanding": "goal_understanding", "understanding": "goal_understanding", "goal": "goal_understanding", "decomposition": "task_decomposition", "plan_applicability": "previous_plan"},
	"task_decomposition": {"tasks": "subtasks", "sub_tasks": "subtasks", "steps": "subtasks"},
	"goal": {"objective": "main_objective", "primary_goal": "main_objective", "goal": "main_objective", "criteria": "success_criteria",
		"confidence": "understanding_confidence", "deliverables": "expected_deliverables", "questions": "clarification_questions", "gaps": "information_gaps"},
	"subtask":         {"estimated_complexity": "complexity", "task_id": "id", "subtask_id": "id", "depends_on": "dependencies", "tools": "required_tools", "title": "description", "name": "description", "task": "description"},
	"revised_subtask": {"estimated_complexity": "complexity", "task_id": "id", "subtask_id": "id", "depends_on": "dependencies", "tools": "required_tools", "title": "description", "name": "description", "task": "description"},
	"action_plan":     {"order": "execution_order"},
	"action":          {"subtask_id": "task_id", "tool_name": "tool", "arguments": "parameters", "args": "parameters", "description": "purpose", "fallback": "fallback_strategy"},
	"assumption":      {"id": "info_id", "value": "assumed_value", "assumption": "assumed_value", "description": "assumed_value"},
	"gap":             {"id": "info_id", "gap": "description", "item": "description"},
	"ambiguity":       {"interpretations": "possible_interpretations", "selected": "selected_interpretation", "ambiguity": "item", "description": "item"},
	"subtask_result":  {"id": "task_id", "subtask_id": "task_id", "subtask": "task_id", "result": "summary", "outcome": "summary"},
	"judgement":       {"issues": "issues_identified", "revision_needed": "plan_revision_needed"},
	"reflection":      {"revision": "plan_revision"},
	"revision":        {"action_plan": "updated_action_plan", "updated_plan": "updated_action_plan", "revision_reason": "reason"},
	"change":          {"change_type": "type", "action": "type", "change": "type", "id": "task_id", "subtask_id": "task_id", "target": "task_id", "new_subtask": "subtask", "task": "subtask", "description": "details", "after_task_id": "after", "insert_after": "after"},
	"verification": {"passed": "verification_passed", "issues": "issues_found", "confidence": "completion_confidence", "success_criteria": "criteria",
		"placeholders": "placeholder_detected", "placeholders_detected": "placeholder_detected", "additional_work": "additional_actions"},
	"criterion":       {"name": "criterion", "description": "criterion", "satisfied": "met", "passed": "met", "achieved": "met", "status": "met", "result": "met"},
	"replan_decision": {"decision": "replan_decision"},
	"replan":          {"type": "replan_type", "level": "replan_level", "needed": "replan_needed", "reason": "reasoning", "issues": "issues_found", "questions": "clarification_questions"},
	"completion":      {"completed": "done", "is_done": "done", "complete": "done"},
	"summary":         {"outcomes": "key_outcomes", "lessons": "lessons_learned", "completed_tasks": "tasks_completed", "failed_tasks": "tasks_failed"},
}

// synonyms are words for those of any enumeration; enumSynonyms for those of
// the enumeration that begins with the key, where a word means different
// things. The tables are never written to.
var (
	synonyms = map[string]string{
		"easy": "low", "simple": "low", "trivial": "low", "small": "low", "moderate": "medium", "mid": "medium", "normal": "medium", "hard": "high", "complex": "high", "difficult": "high",
		"低": "low", "中": "medium", "高": "high",
		"new": "add", "insert": "add", "create": "add", "added": "add", "delete": "remove", "drop": "remove", "removed": "remove", "update": "modify", "change": "modify", "edit": "modify", "replace": "modify", "modified": "modify", "reorder": "modify",
		"reference": "reference_only", "continuable": "continue", "継続可能": "continue", "参考のみ": "reference_only",
		"clarification": "clarification_request", "ask_user": "clarification_request", "redecomposition": "task_redecomposition", "regenerate_actions": "action_regeneration", "retry_action": "retry", "no_replan": "none",
	}
	enumSynonyms = map[string]map[string]string{
		"done": {"completed": "done", "complete": "done", "success": "done", "successful": "done", "succeeded": "done", "finished": "done", "ok": "done", "passed": "done", "完了": "done",
			"failure": "failed", "error": "failed", "unsuccessful": "failed", "失敗": "failed", "stuck": "blocked", "waiting": "blocked", "not_needed": "skipped", "skip": "skipped", "unnecessary": "skipped"},
		"success": {"ok": "success", "successful": "success", "succeeded": "success", "passed": "success", "done": "success", "completed": "success", "成功": "success",
			"partial_success": "partial", "failed": "failure", "fail": "failure", "error": "failure", "失敗": "failure", "partially_done": "partial", "in_progress": "partial", "mixed": "partial", "部分的": "partial"},
	}
	shares = map[string]float64{"very high": 0.95, "high": 0.9, "medium": 0.6, "moderate": 0.6, "low": 0.3, "very low": 0.1, "高": 0.9, "中": 0.6, "低": 0.3}
)

// fromText makes an object of a definition out of what is none: a bare text
// fills the field that says most.
func fromText(name string, v any) map[string]any {
	if name == "placeholders" {
		return countOf(v)
	}
	if list, ok := v.([]any); ok {
		switch name {
		case "task_decomposition":
			return map[string]any{"subtasks": list}
		case "action_plan":
			return map[string]any{"actions": list}
		case "revision":
			return map[string]any{"changes": list}
		case "scope":
			return map[string]any{"in_scope": list}
		}
		return nil
	}
	text, ok := v.(string)
	if !ok || isNothing(text) {
		return nil
	}
	field := map[string]string{
		"goal": "main_objective", "scope": "in_scope", "ambiguity": "item", "assumption": "assumed_value", "gap": "description", "subtask": "description",
		"revised_subtask": "description", "action": "purpose", "previous": "applicability", "judgement": "evaluation", "criterion": "criterion", "revision": "reason", "change": "details",
	}[name]
	switch {
	case field != "":
		return map[string]any{field: text}
	case name == "summary":
		return map[string]any{"key_outcomes": []any{text}}
	default:
		return nil
	}
}

// countOf reads how many placeholders there are, or which.
func countOf(v any) map[string]any {
	switch v := v.(type) {
	case []any:
		return map[string]any{"locations": v}
	case string:
		if isNothing(v) {
			return map[string]any{"count": 0}
		}
		return map[string]any{"locations": []any{v}}
	case bool:
		if !v {
			return map[string]any{"count": 0}
		}
		return map[string]any{"count": 1}
	case nil:
		return nil
	default:
		return map[string]any{"count": v}
	}
}

// mend fills in what an object of a definition says by its other fields. The
// fields have their names already.
func mend(name string, m map[string]any) {
	switch name {
	case string(KindPlan):
		gather(m, "task_decomposition", "subtasks", "tasks", "steps")
		gather(m, "action_plan", "execution_order", "actions")
		gather(m, "goal_understanding", "main_objective", "success_criteria", "constraints", "understanding_confidence", "assumptions", "information_gaps", "ambiguities", "scope", "clarification_questions")
		for _, part := range []string{"goal_understanding", "task_decomposition"} {
			hoist(m, part, "action_plan", "task_decomposition", "previous_plan", "comment")
		}
		complete(m, "goal_understanding", "action_plan")
	case "task_decomposition":
		number(m["subtasks"])
	case string(KindReflection):
		flat := m["plan_revision_needed"]
		gather(m, "reflection", "status", "evaluation", "action_evaluated", "issues_identified", "root_cause", "reasoning", "plan_revision_needed")
		gather(m, "plan_revision", "changes", "updated_action_plan")
		hoist(m, "reflection", "plan_revision", "comment")
		needed(m, flat)
	case string(KindRevision):
		mendRevision(m)
	case "change":
		mendChange(m)
	case string(KindReplan):
		gather(m, "replan_decision", "replan_needed", "confidence", "reasoning", "replan_type", "target_phase", "replan_level", "issues_found", "recommended_actions",
			"clarification_needed", "clarification_questions", "error_classification", "recovery_strategy", "affected_actions", "evaluation_result", "achievement_rate",
			"additional_actions", "assumptions_to_make")
		hoist(m, "replan_decision", "comment")
	case "replan":
		if is, ok := toBool(m["replan_needed"]); ok && is == false && m["replan_type"] == nil {
			m["replan_type"] = "none"
		}
		if m["replan_needed"] == nil && m["replan_type"] != nil {
			m["replan_needed"] = m["replan_type"] != "none"
		}
	case string(KindVerification):
		mendVerification(m)
		complete(m, "placeholder_detected")
	case "placeholders":
		if list, ok := m["locations"].([]any); ok && m["count"] == nil {
			m["count"] = fmt.Sprint(len(list))
		}
	case string(KindCompletion):
		gather(m, "summary", "goal_achieved", "tasks_completed", "tasks_failed", "key_outcomes", "lessons_learned")
		if m["done"] == nil && m["phase"] == PhaseCompletion {
			m["done"] = achieved(m["summary"])
		}
		if text, ok := m["summary"].(string); ok {
			m["summary"] = map[string]any{"goal_achieved": m["done"], "key_outcomes": []any{text}}
		}
	case string(KindSubtask):
		if o, ok := m["task_id"].(map[string]any); ok {
			m["task_id"] = o["id"]
		}
	}
}

// partOf is the definition of a part of an answer. It is never written to.
var partOf = map[string]string{"goal_understanding": "goal", "task_decomposition": "task_decomposition", "action_plan": "action_plan",
	"reflection": "judgement", "plan_revision": "revision", "placeholder_detected": "placeholders"}

// gather moves fields of m into its part, if they are not there.
func gather(m map[string]any, part string, fields ...string) {
	inner, ok := m[part].(map[string]any)
	if !ok && m[part] != nil {
		if inner = fromText(partOf[part], m[part]); inner == nil {
			return
		}
		m[part] = inner
	}
	for _, field := range fields {
		v, there := m[field]
		if !there {
			continue
		}
		if inner == nil {
			inner = map[string]any{}
			m[part] = inner
		}
		if inner[field] == nil {
			inner[field] = v
		}
	}
}

// hoist moves fields of a part of m beside it, if they are not there.
func hoist(m map[string]any, part string, fields ...string) {
	inner, ok := m[part].(map[string]any)
	if !ok {
		return
	}
	for _, field := range fields {
		if v, there := inner[field]; there && field != part && m[field] == nil {
			m[field] = v
		}
	}
}

// complete puts empty parts where there are none, or none that can be read.
func complete(m map[string]any, parts ...string) {
	for _, part := range parts {
		if _, ok := m[part].(map[string]any); !ok && fromText(partOf[part], m[part]) == nil {
			m[part] = map[string]any{}
		}
	}
}

// number gives ids to subtasks where none has one: nothing can refer to them.
func number(subtasks any) {
	list, _ := subtasks.([]any)
	for _, s := range list {
		o, ok := s.(map[string]any)
		if ok && (o["id"] != nil || o["task_id"] != nil || o["subtask_id"] != nil || o["ID"] != nil) {
			return
		}
	}
	for i, s := range list {
		id := fmt.Sprintf("task_%d", i+1)
		switch o := s.(type) {
		case map[string]any:
			o["id"] = id
		case string:
			list[i] = map[string]any{"id": id, "description": o}
		}
	}
}

// needed decides whether a revision is needed: it is where the reflection says
// so beside or within its judgement, and where neither says anything and there
// are changes.
func needed(m map[string]any, flat any) {
	inner, ok := m["reflection"].(map[string]any)
	if !ok {
		return
	}
	if is, ok := toBool(flat); ok && is == true {
		inner["plan_revision_needed"] = true
	}
	revision, _ := m["plan_revision"].(map[string]any)
	if changes, _ := revision["changes"].([]any); len(changes) > 0 && inner["plan_revision_needed"] == nil {
		inner["plan_revision_needed"] = true
	}
}

func mendRevision(m map[string]any) {
	if m["changes"] == nil && (m["updated_action_plan"] != nil || m["reason"] != nil) {
		m["changes"] = []any{}
	}
	if plan, ok := m["updated_action_plan"].(map[string]any); ok {
		if inner, ok := plan["action_plan"].(map[string]any); ok {
			m["updated_action_plan"] = inner
		}
	}
}

// mendChange reads what models put into details, and names the subtask that is
// meant.
func mendChange(m map[string]any) {
	if o, ok := m["details"].(map[string]any); ok {
		if m["subtask"] == nil && (o["description"] != nil || o["dependencies"] != nil) {
			m["subtask"] = o
			delete(m, "details")
		}
		for _, key := range []string{"task_id", "id"} {
			if m["task_id"] == nil && o[key] != nil {
				m["task_id"] = o[key]
			}
		}
	}
	if text, ok := m["subtask"].(string); ok && m["task_id"] == nil && !strings.ContainsAny(text, " \n") {
		m["task_id"] = text
		delete(m, "subtask")
	}
	if m["type"] == nil {
		m["type"] = "modify"
	}
}

func mendVerification(m map[string]any) {
	if list, ok := m["additional_actions"].([]any); ok {
		for i, item := range list {
			id := fmt.Sprintf("verification_fix_%d", i+1)
			switch o := item.(type) {
			case map[string]any:
				if o["task_id"] == nil {
					o["task_id"] = id
				}
			case string:
				list[i] = map[string]any{"task_id": id, "purpose": o}
			}
		}
		if m["additional_work_needed"] == nil {
			m["additional_work_needed"] = len(list) > 0
		}
	}
}

// achieved reports whether a summary says that the goal is reached.
func achieved(summary any) bool {
	o, _ := summary.(map[string]any)
	is, ok := toBool(o["goal_achieved"])
	return ok && is == true
}

// wrappers are names under which models put a whole answer.
var wrappers = []string{"response", "answer", "result", "output", "data", "arguments", "parameters", "json", "content", "final_answer", "message"}

// unwrap finds the fields of an answer of a kind in an object, which may be
// wrapped once or twice. The score is 0 where there are none, 1 where it may be
// one and 2 where it looks like one.
func unwrap(kind AnswerKind, m map[string]any) (fields map[string]any, score int) {
	for range 3 {
		if score = likeness(kind, m); score > 0 {
			return m, score
		}
		var inner map[string]any
		for _, key := range append([]string{string(kind), within(kind)}, wrappers...) {
			if o, ok := m[key].(map[string]any); ok {
				inner = o
				break
			}
		}
		if inner == nil {
			return nil, 0
		}
		m = inner
	}
	return nil, 0
}

// within is the name of the field that another kind has an answer of kind in.
func within(kind AnswerKind) string {
	switch kind {
	case KindRevision:
		return "plan_revision"
	case KindSubtask:
		return "subtask"
	default:
		return string(kind)
	}
}

// signs tells the kinds apart: the phases that an answer of a kind names, and
// fields that only it has.
func signs(kind AnswerKind) (phases, fields []string) {
	switch kind {
	case KindPlan:
		return []string{PhasePlanning, "plan"}, []string{"goal_understanding", "request_understanding", "task_decomposition", "subtasks", "action_plan"}
	case KindSubtask:
		return []string{PhaseExecution}, []string{"task_id", "subtask_id", "id", "status", "summary"}
	case KindReflection:
		return []string{PhaseReflection}, []string{"reflection", "plan_revision_needed"}
	case KindRevision:
		return []string{"revision", "plan_revision", "plan_revised"}, []string{"changes", "updated_action_plan"}
	case KindVerification:
		return []string{PhaseVerification}, []string{"verification_passed", "passed", "criteria", "completion_confidence"}
	case KindReplan:
		return []string{PhaseReplan, "replan", "replanning"}, []string{"replan_decision", "replan_needed", "replan_type"}
	default:
		return []string{PhaseCompletion, "complete"}, []string{"done", "completed", "goal_achieved"}
	}
}

// likeness says how much an object looks like an answer of a kind.
func likeness(kind AnswerKind, m map[string]any) int {
	phases, fields := signs(kind)
	phase, _ := m["phase"].(string)
	has := 0
	for key := range m {
		if slices.ContainsFunc(fields, func(f string) bool { return plain(f) == plain(key) }) {
			has++
		}
	}
	switch {
	case slices.Contains(phases, strings.ToLower(strings.TrimSpace(phase))):
		return 2
	case kind == KindSubtask && (has < 2 || phase != ""): // others have ids and summaries, too
		return 0
	case has >= 2:
		return 2
	case has == 1:
		return 1
	default:
		return 0
	}
}
