package dialogue

import "strings"

// The commands that comments give.
const (
	CommandStop   = "stop"
	CommandPause  = "pause"
	CommandResume = "resume"
	CommandRetry  = "retry"

	CommandApprove = "approve"
	CommandDeny    = "deny"
)

// Line is the line of a comment that may hold a command. A mention may stand before it: GitLab
// has an /approve of its own, and takes that out of a comment that begins with it.
func Line(body string) (first, rest string) {
	first, rest, _ = strings.Cut(strings.TrimSpace(body), "\n")
	first = strings.TrimSpace(first)
	if mention, after, has := strings.Cut(first, " "); has && strings.HasPrefix(mention, "@") {
		first = strings.TrimSpace(after)
	}
	return first, strings.TrimSpace(rest)
}

// AsksReview reports whether a comment asks for a review: by a line "/review", or by the one
// word to an account.
func AsksReview(body, login string) bool {
	first, _ := Line(body)
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(body), "@"), " ")
	return first == "/review" || first == "review" && strings.EqualFold(name, strings.TrimSuffix(login, "[bot]"))
}

// Command reads the command that a comment begins with, a line "/stop", "/pause",
// "/resume", "/retry", "/approve JOB …" or "/deny JOB …", and returns what follows that line.
func Command(body string) (command, rest string, ok bool) {
	first, rest := Line(body)
	name, slash := strings.CutPrefix(first, "/")
	switch name {
	default:
		if name, _, _ = strings.Cut(name, " "); name != CommandApprove && name != CommandDeny {
			break
		}
		fallthrough
	case CommandStop, CommandPause, CommandResume, CommandRetry:
		return name, rest, slash
	}
	return "", body, false
}
