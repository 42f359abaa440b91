package routing

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"toritsugi/internal/i18n"
)

// Command is what a message with a command in front asks for: one of ToRoute, Local, Repo,
// Approve, Deny, AutoApprove, Jobs, Status, Stop, Help, Work, Show, List, Link, Issue, or Malformed.
// None but ToRoute, and the text behind Local, ever reaches a model (spec/chat §3).
type Command interface{ command() }

// ToRoute sends the rest of the message to a route: /code, /plan … Rest is byte for byte
// what follows the one space or line break behind the command; "" is a bare command.
type ToRoute struct {
	Route Route
	Rest  string
}

// Local is /local (On) or /cloud. Rest is then a message of its own, "" for none.
type Local struct {
	On   bool
	Rest string
}

// Repo is /repo NAME; Name is "" where the session's repository is asked for.
type Repo struct{ Name string }

// Approve is /approve JOB HASH. Hash is in lower case; "" where none was given, which grants
// nothing and has the command told (spec/chat §7).
type Approve struct{ Job, Hash string }

// Deny is /deny JOB [HASH] [REASON…].
type Deny struct{ Job, Hash, Reason string }

// AutoApprove is /auto-approve off, or scope=docs/ types=design,review tools=apply_patch
// ttl=30m. What is nil or 0 was not given: the configured scope holds for it.
type AutoApprove struct {
	Off                 bool
	Paths, Types, Tools []string
	TTL                 time.Duration // at least a second
}

// Jobs is /jobs, Status is /status, Help is /help [COMMAND].
type (
	Jobs   struct{}
	Status struct{}
	Help   struct{ Topic string }
)

// Stop is /stop [JOB]; Job is "" for the turn at hand.
type Stop struct{ Job string }

// Work is /work [N] (Turns 1 to 50, 8 where none is given), /work status (Show), or /work
// off and /normal (Turns 0) (spec/facts §8.5).
type Work struct {
	Turns int
	Show  bool
}

// Show is /show model or /show channel, List is /list models, channels or repositories.
type (
	Show struct{ What string }
	List struct{ What string }
)

// Link is /link CODE. Code is "" where none was said.
type Link struct{ Code string }

// Issue is /issue NUMBER [REPOSITORY], or a message that asks for the same in plain words.
type Issue struct {
	Number     string
	Repository string // a name or owner/name, "" for that of the session
}

// Malformed is a control command whose arguments cannot be read. Err is an *i18n.Error
// that gives its usage.
type Malformed struct {
	Name string // "/work"
	Err  error
}

func (ToRoute) command()     {}
func (Local) command()       {}
func (Repo) command()        {}
func (Approve) command()     {}
func (Deny) command()        {}
func (AutoApprove) command() {}
func (Jobs) command()        {}
func (Status) command()      {}
func (Help) command()        {}
func (Stop) command()        {}
func (Work) command()        {}
func (Show) command()        {}
func (List) command()        {}
func (Link) command()        {}
func (Issue) command()       {}
func (Malformed) command()   {}

// Known is a command for completion and help.
type Known struct {
	Name string // "/approve"
	Args string // "JOB HASH", "" for none
	Help string // i18n key of one line
}

// commands are all commands, in the order of help. read gets what stands behind the name.
var commands = []struct {
	name, args string
	read       func(rest string) Command // nil: the arguments cannot be read
}{
	{"/chat", "[TEXT]", to(Chat)},
	{"/plan", "[TEXT]", to(Plan)},
	{"/analyze", "[TEXT]", to(Analyze)},
	{"/ops", "[TEXT]", to(Ops)},
	{"/research", "[TEXT]", to(Research)},
	{"/code", "[TEXT]", to(Code)},
	{"/code1", "[TEXT]", to(Code1)},
	{"/code2", "[TEXT]", to(Code2)},
	{"/code3", "[TEXT]", to(Code3)},
	{"/local", "[TEXT]", func(rest string) Command { return Local{true, rest} }},
	{"/cloud", "[TEXT]", func(rest string) Command { return Local{false, rest} }},
	{"/repo", "[NAME]", one(func(name string) Command { return Repo{name} })},
	{"/issue", "NUMBER [REPOSITORY]", issue},
	{"/approve", "JOB HASH", approve},
	{"/deny", "JOB [HASH] [REASON]", deny},
	{"/auto-approve", "off | scope=PATHS types=TYPES tools=TOOLS ttl=30m", autoApprove},
	{"/jobs", "", none(Jobs{})},
	{"/status", "", none(Status{})},
	{"/stop", "[JOB]", one(func(job string) Command { return Stop{job} })},
	{"/work", "[N] | status | off", work},
	{"/normal", "", none(Work{})},
	{"/show", "model | channel", choice(func(s string) Command { return Show{s} }, "model", "channel")},
	{"/list", "models | channels | repositories", choice(func(s string) Command { return List{s} }, "models", "channels", "repositories")},
	{linkCommand, "CODE", link},
	{"/help", "[COMMAND]", one(func(topic string) Command { return Help{topic} })},
}

// Commands lists all commands in the order of help.
func Commands() []Known {
	all := make([]Known, len(commands))
	for i, c := range commands {
		all[i] = Known{c.name, c.args, "routing.help." + c.name[1:]}
	}
	return all
}

// ParseCommand reads the command in front of a message; nil where there is none, as for a
// /word that is not known. Spaces may stand before it, its slash may be full-width, its
// letters of any case and width (spec/chat §3).
func ParseCommand(text string) Command {
	text = strings.TrimLeft(text, " \t　")
	word, rest := text, ""
	if i := strings.IndexFunc(text[:min(len(text), maxToken)], unicode.IsSpace); i >= 0 {
		_, n := utf8.DecodeRuneInString(text[i:])
		if strings.HasPrefix(text[i:], "\r\n") {
			n = 2
		}
		word, rest = text[:i], text[i+n:]
	}
	if len(word) > maxToken || !strings.HasPrefix(word, "/") && !strings.HasPrefix(word, "／") {
		return nil
	}
	word = strings.ToLower(halfWidth(word))
	for _, c := range commands {
		if c.name != word {
			continue
		}
		if strings.TrimSpace(rest) == "" {
			rest = ""
		}
		if read := c.read(rest); read != nil {
			return read
		}
		return Malformed{word, i18n.E("routing.usage", word, c.args)}
	}
	return nil
}

// maxToken bounds the search for the end of a command, in bytes; full-width letters have
// three.
const maxToken = 3*len("/auto-approve") + 3

// halfWidth maps the full-width forms of ASCII, as Japanese keyboards write them.
func halfWidth(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' {
			return r - '！' + '!'
		}
		return r
	}, s)
}

func to(r Route) func(string) Command {
	return func(rest string) Command { return ToRoute{r, rest} }
}

func none(c Command) func(string) Command {
	return func(rest string) Command {
		if rest != "" {
			return nil
		}
		return c
	}
}

func one(made func(string) Command) func(string) Command {
	return func(rest string) Command {
		switch f := strings.Fields(rest); len(f) {
		case 0:
			return made("")
		case 1:
			return made(f[0])
		}
		return nil
	}
}

func choice(made func(string) Command, known ...string) func(string) Command {
	return func(rest string) Command {
		asked := strings.ToLower(strings.TrimSpace(halfWidth(rest)))
		for _, k := range known {
			if asked == k || asked != "" && asked+"s" == k || asked == k+"s" {
				return made(k)
			}
		}
		return nil
	}
}

// hashDigits is how many digits of a bound hash a decision carries (spec/chat §7).
const hashDigits = 12

// boundHash reports whether s is written as what a proposal is bound to.
func boundHash(s string) bool {
	return len(s) >= hashDigits && len(s) <= 64 && strings.Trim(strings.ToLower(s), "0123456789abcdef") == ""
}

func approve(rest string) Command {
	switch f := strings.Fields(halfWidth(rest)); {
	case len(f) == 1:
		return Approve{Job: f[0]}
	case len(f) == 2 && boundHash(f[1]):
		return Approve{f[0], strings.ToLower(f[1])[:hashDigits]}
	}
	return nil
}

func deny(rest string) Command {
	job, more := cutWord(rest)
	if job == "" {
		return nil
	}
	d := Deny{Job: halfWidth(job), Reason: more}
	if hash, reason := cutWord(more); boundHash(halfWidth(hash)) {
		d.Hash, d.Reason = strings.ToLower(halfWidth(hash))[:hashDigits], reason
	}
	return d
}

// cutWord returns the first word of s and what follows it, without spaces around.
func cutWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

func autoApprove(rest string) Command {
	fields := strings.Fields(rest)
	if len(fields) == 1 && strings.EqualFold(halfWidth(fields[0]), "off") {
		return AutoApprove{Off: true}
	}
	var a AutoApprove
	for _, f := range fields {
		name, value, ok := strings.Cut(strings.ReplaceAll(f, "＝", "="), "=")
		if !ok || value == "" {
			return nil
		}
		list := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '，' || r == '、' })
		switch name = strings.ToLower(halfWidth(name)); {
		case name == "scope" && a.Paths == nil:
			a.Paths = list
		case name == "types" && a.Types == nil:
			a.Types = list
		case name == "tools" && a.Tools == nil:
			a.Tools = list
		case name == "ttl" && a.TTL == 0:
			if a.TTL = ttl(halfWidth(value)); a.TTL < time.Second {
				return nil
			}
		default:
			return nil
		}
		if len(list) == 0 {
			return nil
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return a
}

// ttl reads a duration: 30m, 2h, or a number of seconds; 0 where it cannot be read.
func ttl(s string) time.Duration {
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n <= 366*24*3600 {
		return time.Duration(n) * time.Second
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0
	}
	return d
}

// The turns of the work overlay (spec/facts §8.5).
const (
	workTurns    = 8
	maxWorkTurns = 50
)

func work(rest string) Command {
	switch s := strings.ToLower(strings.TrimSpace(halfWidth(rest))); s {
	case "":
		return Work{Turns: workTurns}
	case "status":
		return Work{Show: true}
	case "off":
		return Work{}
	default:
		if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= maxWorkTurns {
			return Work{Turns: n}
		}
	}
	return nil
}
