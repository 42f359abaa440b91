package dialogue

import "strings"

// The commands that comments give.
const (
	CommandStop   = "stop"
	CommandPause  = "pause"
	CommandResume = "resume"
	CommandRetry  = "retry"
)

// Command reads the command that a comment begins with, a line "/stop", "/pause",
// "/resume" or "/retry", and returns what follows that line.
func Command(body string) (command, rest string, ok bool) {
	first, rest, _ := strings.Cut(strings.TrimSpace(body), "\n")
	name, _ := strings.CutPrefix(strings.TrimSpace(first), "/")
	switch name {
	case CommandStop, CommandPause, CommandResume, CommandRetry:
		return name, strings.TrimSpace(rest), strings.HasPrefix(strings.TrimSpace(first), "/")
	}
	return "", body, false
}
