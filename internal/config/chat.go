package config

import (
	"reflect"
	"time"

	"github.com/goccy/go-yaml/ast"

	"toritsugi/internal/i18n"
)

// Chat is the section chat (spec/chat §1, §8).
type Chat struct {
	Deliver      string           `yaml:"deliver" check:"enum=|pull_request|branch|worktree" doc:"Where a granted patch goes in a repository of this machine: branch (a branch of it) or worktree (the files at hand). Empty and pull_request take worktree where tori chat was started in the repository, else branch. In a repository of a forge it is always pull_request: a branch and a draft."`
	PromptsDir   string           `yaml:"prompts_dir" check:"absfile" doc:"Folder with persona, policy, overlays and notices instead of the built-in ones; an absolute path. tori chat prompts export writes those to begin with. What it lacks is taken from the built-in ones."`
	Repositories []ChatRepository `yaml:"repositories" expand:"no" doc:"Repositories that conversations are about, each {name, url or path, base, users, channels}: url names one of a forge (github:owner/name), path one of this machine; base is the branch that work starts from (none: the one that is checked out, or the forge's default); users may name it (ids such as slack:U1; none: everybody), channels have it without being asked (beginnings of session ids, such as slack:T1:C1). tori chat has the one that it is started in besides."`
}

// ChatRepository is one item of chat.repositories.
type ChatRepository struct {
	Name     string   `yaml:"name" check:"nonempty"` // unique
	Path     string   `yaml:"path" check:"absfile"`  // of this machine; either this
	URL      string   `yaml:"url" check:"forgeurl"`  // or github:owner/name
	Base     string   `yaml:"base"`
	Users    []string `yaml:"users" check:"nonempty"`
	Channels []string `yaml:"channels" check:"nonempty"`
}

// Channels is the section channels.
type Channels struct {
	Terminal Channel `yaml:"terminal" doc:"The terminal of tori chat."`
}

// Channel is what the sections of channels have in common.
type Channel struct {
	Entry string `yaml:"entry" default:"router" check:"enum=router|chat" doc:"Who takes a message first: router (commands, dictionary, classifier) or chat (all but commands go to Chat, who may hand them over)."`
}

// Sessions is the section sessions (spec/chat §8).
type Sessions struct {
	Cutover       string `yaml:"cutover" default:"04:00" check:"clock" doc:"When a conversation's day ends, as HH:MM of this machine's time zone: what was said before is not sent to models any more, what was set stays."`
	RecentTurns   int    `yaml:"recent_turns" default:"5" check:"min=1,max=50" doc:"Latest turns of a conversation that stay as they are when its short memory is renewed, and that workers are given."`
	RetentionDays int    `yaml:"retention_days" default:"90" check:"min=1,max=3650" doc:"How long a conversation is kept after the last word in it, and what ANALYZE kept of it, in days."`
}

// Web is the section web (spec/chat §2).
type Web struct {
	SearchURL string `yaml:"search_url" check:"url,optional" doc:"Address of a SearXNG whose settings.yml has json among search.formats, such as http://127.0.0.1:8888; with it RESEARCH has web_search. Queries leave this machine by it, but not where only local models may work."`
}

// DayEnd is sessions.cutover, after midnight.
func (s Sessions) DayEnd() time.Duration {
	t, err := time.Parse("15:04", s.Cutover)
	if err != nil {
		return 0 // it was checked
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
}

// Retention is sessions.retention_days.
func (s Sessions) Retention() time.Duration {
	return time.Duration(s.RetentionDays) * 24 * time.Hour
}

func (p *parser) repositories(n ast.Node, line int, where string, target reflect.Value) bool {
	return readItems(p, n, line, where, target, false, p.chatRepository, func(r *ChatRepository) string { return r.Name })
}

// chatRepository reads one item of chat.repositories.
func (p *parser) chatRepository(items *schema, n ast.Node, line int, shown string) (ChatRepository, bool) {
	var r ChatRepository
	before := len(p.problems)
	if !p.item(items, n, line, shown, reflect.ValueOf(&r).Elem()) {
		return r, false
	}
	switch {
	case len(p.problems) > before:
	case r.Name == "":
		p.problem("config.value", p.line(line), shown+".name", i18n.E("config.want.nonempty"), i18n.E("config.found.nothing"))
	case (r.Path == "") == (r.URL == ""):
		p.problem("config.chat_where", p.line(line), shown, short(r.Name))
	}
	return r, len(p.problems) == before
}
