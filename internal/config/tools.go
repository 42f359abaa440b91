package config

import (
	"path"
	"slices"
	"strings"

	"toritsugi/internal/i18n"
)

// Tools is the section tools: which tools a model may use. Each of the rules
// that apply to a run (all, that of its role, those of its project) has to allow
// a tool.
type Tools struct {
	ToolRules
	Roles    ToolRoles     `yaml:"roles" doc:"The same for single roles."`
	Projects []ToolProject `yaml:"projects" expand:"no" doc:"The same for single repositories, each {project, allow, deny}: project is REPO or OWNER/REPO, with * for any part of a name."`
}

// ToolRules are two lists of names of tools, in which * stands for any text, ?
// for one character and [a-z] for one of several.
type ToolRules struct {
	Allow []string `yaml:"allow" check:"tool" expand:"no" doc:"Tools that may be used: names as the model sees them, with * for any part of one; those of servers are SERVER__TOOL. None: all."`
	Deny  []string `yaml:"deny" check:"tool" expand:"no" doc:"Tools that may not be used, whatever allow says."`
}

// ToolRoles is the section tools.roles.
type ToolRoles struct {
	Chat       ToolRules `yaml:"chat" doc:"Tools of the role chat."`
	Worker     ToolRules `yaml:"worker" doc:"Tools of the role worker."`
	Coder      ToolRules `yaml:"coder" doc:"Tools of the role coder."`
	Coder2     ToolRules `yaml:"coder2" doc:"Tools of the role coder2."`
	Coder3     ToolRules `yaml:"coder3" doc:"Tools of the role coder3."`
	Task       ToolRules `yaml:"task" doc:"Tools of the role task, which works where no other is asked for."`
	Summarizer ToolRules `yaml:"summarizer" doc:"Tools of the role summarizer."`
}

// Role returns the rules of a role, none where there is no such role.
func (r *ToolRoles) Role(name string) ToolRules {
	return map[string]ToolRules{"chat": r.Chat, "worker": r.Worker, "coder": r.Coder, "coder2": r.Coder2, "coder3": r.Coder3, "task": r.Task, "summarizer": r.Summarizer}[name]
}

// ToolProject is the rules for the repositories that Project names.
type ToolProject struct {
	Project string   `yaml:"project" check:"project"` // unique
	Allow   []string `yaml:"allow" check:"tool"`
	Deny    []string `yaml:"deny" check:"tool"`
}

// Matches reports whether the rules are for a repository. Forges tell no
// difference between capital and small letters.
func (p ToolProject) Matches(owner, repo string) bool {
	name := repo
	if strings.Contains(p.Project, "/") {
		name = owner + "/" + repo
	}
	ok, err := path.Match(strings.ToLower(p.Project), strings.ToLower(name))
	return ok && err == nil
}

// ToolNames lists the tools that are always known, and what parts of them are called
// in rules, sorted; those of servers are known once they run.
func ToolNames() []string {
	return []string{"answer_remark", "ask_user", "call_tool", "edit_file", "find_tools", "git", "git_blame", "git_diff", "git_log", "git_status", "glob", "grep", "list_files", "read_file", "read_output", "recall",
		"shell", "shell_job", "web_fetch", "web_search", "write_file"}
}

// toolPattern returns what was expected where s can name no tool, else nil.
// Names that have a part of a server, and patterns, may be those of tools that
// are not known yet.
func toolPattern(s string) error {
	if _, err := path.Match(s, ""); err == nil && strings.TrimSpace(s) != "" &&
		(strings.ContainsAny(s, `*?[\`) || strings.Contains(s, "__") || slices.Contains(ToolNames(), s)) {
		return nil
	}
	return i18n.E("config.want.tool", strings.Join(ToolNames(), ", "))
}

// projectPattern reports whether s can name repositories.
func projectPattern(s string) bool {
	_, err := path.Match(s, "")
	return err == nil && strings.TrimSpace(s) != "" && strings.Count(s, "/") <= 1 && !strings.HasPrefix(s, "/") && !strings.HasSuffix(s, "/")
}
