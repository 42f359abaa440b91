package agent

import "strings"

// learned are the lessons that the model drew, for the final summary; "" for none.
func (r *run) learned() string {
	lead := r.led.Load()
	if lead == nil || len(lead.Lessons()) == 0 {
		return ""
	}
	return "\nLessons that the model drew:\n- " + strings.Join(lead.Lessons(), "\n- ") + "\n"
}
