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

// fit makes room, and says once more what left the view by that.
func (l *Loop) fit(ctx context.Context) error {
	if err := l.Window.Fit(ctx); err != nil {
		return err
	}
	if said, err := l.remind(); err != nil || !said {
		return err
	}
	return l.Window.Fit(ctx)
}

// remind appends what the model must see and does not any more. It is decided by
// what is in view, so that a run that was killed in between says it all the same,
// and none says it twice.
func (l *Loop) remind() (said bool, err error) {
	event, _ := l.Window.Decision()
	if l.Remind == nil || event.FromSeq == 0 && event.MaskSeq == 0 {
		return false, nil
	}
	kind, text := l.Remind(event.FromSeq, event.MaskSeq, l.Window.Limit()*bytesPerToken/roomShare)
	if text == "" {
		return false, nil
	}
	_, err = l.append(contextstore.Message{Role: llm.RoleUser, Kind: kind, Content: text})
	return err == nil, err
}
