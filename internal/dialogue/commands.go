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

// Command reads the command that a comment begins with, a line "/stop", "/pause",
// "/resume", "/retry", "/approve JOB …" or "/deny JOB …", and returns what follows that line.
func Command(body string) (command, rest string, ok bool) {
	first, rest, _ := strings.Cut(strings.TrimSpace(body), "\n")
	name, _ := strings.CutPrefix(strings.TrimSpace(first), "/")
	switch name {
	default:
		if name, _, _ = strings.Cut(name, " "); name != CommandApprove && name != CommandDeny {
			break
		}
		fallthrough
	case CommandStop, CommandPause, CommandResume, CommandRetry:
		return name, strings.TrimSpace(rest), strings.HasPrefix(strings.TrimSpace(first), "/")
	}
	return "", body, false
}
