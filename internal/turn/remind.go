package turn

import (
	"context"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
)

// roomShare is the part of the window that a reminder may take, and
// bytesPerToken what a token has of it at the least.
const (
	roomShare     = 8
	bytesPerToken = 3
)

// fit makes room in the window, and repeats what left the view (Director.Remind).
func (l *Loop) fit(ctx context.Context) error {
	if err := l.Window.Fit(ctx); err != nil {
		return err
	}
	if said, err := l.remind(); err != nil || !said {
		return err
	}
	return l.Window.Fit(ctx)
}

// remind appends the text of Director.Remind. The window alone decides whether there is one:
// a run that was killed before the append repeats it when it is resumed, and nothing
// is repeated twice.
func (l *Loop) remind() (said bool, err error) {
	event, _ := l.Window.Decision()
	if event.FromSeq == 0 && event.MaskSeq == 0 {
		return false, nil
	}
	kind, text := l.director.Remind(event.FromSeq, event.MaskSeq, l.Window.Limit()*bytesPerToken/roomShare)
	if text == "" {
		return false, nil
	}
	_, err = l.append(contextstore.Message{Role: llm.RoleUser, Kind: kind, Content: text})
	return err == nil, err
}
