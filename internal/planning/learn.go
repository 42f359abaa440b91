package planning

import (
	"slices"
	"strings"
)

// How much is kept of the lessons that a model draws: of one completion and of a
// run, and runes of each.
const (
	maxLessons = 8
	maxLesson  = 240
)

// lessonsOf are those of a completion, as they are recorded.
func lessonsOf(all []string) (list []string) {
	for _, s := range all[:min(len(all), maxLessons)] {
		if strings.TrimSpace(s) != "" {
			list = appendNew(list, brief(s, maxLesson))
		}
	}
	return list
}

// learn keeps lessons in mind, of too many the latest.
func (l *Lead) learn(lessons []string) {
	for _, s := range lessons {
		l.s.Lessons = appendNew(l.s.Lessons, s)
	}
	if over := len(l.s.Lessons) - maxLessons; over > 0 {
		l.s.Lessons = slices.Delete(l.s.Lessons, 0, over)
	}
}

// Lessons are what the model says it learned in the run, in a line each.
func (l *Lead) Lessons() []string { return slices.Clone(l.s.Lessons) }

// maxScanned is how many placeholders of a scan are recorded.
const maxScanned = 20

// noteScan records the placeholders that a scan found, before the model is asked
// about the result: the verifications of later runs are told of them. They are
// those found after the last answer; a run that is taken up records them once.
func (l *Lead) noteScan(e Evidence) error {
	if s := &l.s; len(e.Placeholders) == 0 || s.Judged || s.Asked == askVerify || s.Want == askVerify {
		return nil
	}
	var all []string
	for _, s := range e.Placeholders[:min(len(e.Placeholders), maxScanned)] {
		all = append(all, brief(s, maxLesson))
	}
	_, err := l.history.Append(Entry{Seq: l.s.Answer, Scan: &ScanRecord{Placeholders: all}})
	return err
}
