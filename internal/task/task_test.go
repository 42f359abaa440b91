package task

import (
	"errors"
	"testing"
)

func TestTransitions(t *testing.T) {
	t.Parallel()
	legal := map[[2]Status]bool{}
	for from, to := range map[Status][]Status{
		Queued:           {Running, Stopped, Failed},
		Running:          {Queued, Paused, AwaitingApproval, Completed, Stopped, Failed},
		Paused:           {Queued, Stopped, Failed},
		AwaitingApproval: {Queued, Stopped, Failed},
	} {
		for _, s := range to {
			legal[[2]Status{from, s}] = true
		}
	}
	for _, from := range Statuses() {
		for _, to := range Statuses() {
			err := CheckTransition(from, to)
			if legal[[2]Status{from, to}] != (err == nil) || err != nil && !errors.Is(err, ErrIllegalTransition) {
				t.Errorf("%s to %s: %v", from, to, err)
			}
		}
		if want := from == Completed || from == Stopped || from == Failed; from.Final() != want {
			t.Errorf("%s final: %v", from, !want)
		}
	}
	if len(Statuses()) != len(transitions) || Status("done").Valid() || Status("done").Final() {
		t.Error("statuses and table differ")
	}
}

func TestKeyString(t *testing.T) {
	t.Parallel()
	if s := (Key{"github", "notfolder", "coding_agent", "issue", "27"}).String(); s != "github/notfolder/coding_agent#27" {
		t.Error(s)
	}
}
