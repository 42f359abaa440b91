package approval

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/task"
)

func TestParseAuto(t *testing.T) {
	t.Parallel()
	s := settings().Auto
	s.Paths = []string{"docs/", "spec"}
	r, err := ParseAuto("scope=docs/api,spec types=design tools=apply_patch ttl=30m", s)
	if err != nil || !slices.Equal(r.Paths, []string{"docs/api", "spec"}) || !slices.Equal(r.Types, []TaskType{Design}) || r.TTL != 30*time.Minute || !slices.Equal(r.Tools, []string{ToolPatch}) {
		t.Errorf("%+v %v", r, err)
	}
	if r, err = ParseAuto("", s); err != nil || !slices.Equal(r.Paths, s.Paths) || r.TTL != s.TTL {
		t.Errorf("%+v %v", r, err)
	}
	if r, err = ParseAuto(" OFF ", AutoSettings{}); err != nil || !r.Off {
		t.Errorf("off where it is off in the settings: %+v %v", r, err)
	}
	if _, err = ParseAuto("", AutoSettings{}); key(err) != "approval.auto_disabled" {
		t.Error(err)
	}
	for args, want := range map[string]string{
		"scope=src/": "approval.auto_wider", "scope=.": "approval.auto_wider", "scope=docs/../src": "approval.auto_wider", "scope=docsx": "approval.auto_wider", "scope=/docs": "approval.auto_wider", "scope=../docs": "approval.auto_wider",
		"types=codegen": "approval.auto_wider", "tools=shell": "approval.auto_wider", "ttl=2h": "approval.auto_wider",
		"ttl=0s": "approval.auto_usage", "ttl=-5m": "approval.auto_usage", "ttl=30": "approval.auto_usage", "scope=": "approval.auto_usage", "please": "approval.auto_usage", "off now": "approval.auto_usage", "color=red": "approval.auto_usage",
	} {
		if _, err := ParseAuto(args, s); key(err) != want {
			t.Errorf("%s: %v (%s)", args, err, key(err))
		}
	}
}

// allow switches automatic approval on for the session of draft.
func (h *house) allow(t *testing.T, args string) AutoGrant {
	t.Helper()
	r, err := ParseAuto(args, h.Settings.Auto)
	if err != nil {
		t.Fatal(err)
	}
	g, err := h.Allow(t.Context(), "slack:T:C:1", "slack:BOSS", "slack", r, bytes.NewReader([]byte(t.Name()+"12345678")))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// reopen is the same base directory in another process.
func (h *house) reopen(t *testing.T) *Jobs {
	j := open(t, h.Store.BaseDir)
	j.Now = h.clock.now
	return j
}

func TestAutoApprove(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	job := h.propose(t, h.draft(docsPatch))
	if did, err := h.AutoApprove(t.Context(), &job); did || err != nil {
		t.Fatalf("without a grant: %t %v", did, err)
	}
	if _, err := h.Allow(t.Context(), "slack:T:C:1", "slack:HANAKO", "", AutoRequest{}, bytes.NewReader(make([]byte, 8))); key(err) != "approval.auto_not_allowed" {
		t.Errorf("switched on by who asks: %v", err)
	}
	g := h.allow(t, "ttl=30m")
	h.clock.add(29 * time.Minute)
	later := h.reopen(t) // it survives a restart
	did, err := later.AutoApprove(t.Context(), &job)
	if !did || err != nil || job.State.Status != AutoApproved || job.State.Approver != "slack:BOSS" || job.State.Auto != g.ID || h.status(t, job) != task.Queued {
		t.Fatalf("%t %v %+v %s", did, err, job.State, h.status(t, job))
	}
	h.clock.add(2 * time.Minute) // its time is over: what was approved is
	if err := h.Confirm(t.Context(), &job); err != nil {
		t.Error(err)
	}
	other := h.propose(t, h.draft(strings.Replace(docsPatch, "four", "4", 1)))
	if did, err := h.AutoApprove(t.Context(), &other); did || err != nil {
		t.Errorf("after its end: %t %v", did, err)
	}
}

// What an automatic approval does not cover waits for people.
func TestAutoApproveNot(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.allow(t, "scope=docs/ types=design,review")
	for name, change := range map[string]func(*Draft){
		"another session": func(d *Draft) { d.Session = "slack:T:C:2" },
		"no session":      func(d *Draft) { d.Session = "" },
		"task type":       func(d *Draft) { d.Type = Codegen },
		"path":            func(d *Draft) { d.Patch = []byte("--- a/README.md\n+++ b/README.md\n@@ -1 +1,2 @@\n hello\n+x\n") },
		"path beside":     func(d *Draft) { d.Patch = []byte(newFile("docsx/a", "100644", "x")) },
		"one path of two": func(d *Draft) { d.Patch = []byte(newFile("docs/b", "100644", "x") + newFile("b", "100644", "x")) },
		"commands":        func(d *Draft) { d.Commands = []string{"go generate ./..."} },
		"delete": func(d *Draft) {
			d.Patch = []byte("diff --git a/docs/a.md b/docs/a.md\ndeleted file mode 100644\n--- a/docs/a.md\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n")
		},
		"moved in": func(d *Draft) {
			d.Patch = []byte("diff --git a/README.md b/docs/R.md\nsimilarity index 100%\nrename from README.md\nrename to docs/R.md\n")
		},
		"wide": func(d *Draft) {
			d.Patch = []byte("--- a/docs/a.md\n+++ b/docs/a.md\n@@ -1,3 +1,1 @@\n-one\n-two\n three\n")
		},
		"sensitive": func(d *Draft) { d.Patch = []byte(newFile("docs/b", "100644", "a.person@example.com")) },
		"public":    func(d *Draft) { d.Deliver, d.Visibility = PullRequest, Public },
		"cost":      func(d *Draft) { d.Cost.Tokens = 99999 },
		"review":    func(d *Draft) { d.Patch, d.Type = nil, Review },
	} {
		d := h.draft(docsPatch)
		change(&d)
		job := h.propose(t, d)
		if did, err := h.AutoApprove(t.Context(), &job); did || err != nil || job.State.Status != Pending {
			t.Errorf("%s: %t %v", name, did, err)
		}
	}
	h.Settings.Auto.Enabled = false // also what was allowed before
	job := h.propose(t, h.draft(docsPatch))
	if did, err := h.AutoApprove(t.Context(), &job); did || err != nil {
		t.Errorf("switched off in the settings: %t %v", did, err)
	}
	h.Settings.Auto.Enabled, h.Settings.Auto.Paths = true, []string{"spec/"} // the settings became narrower
	if did, err := h.AutoApprove(t.Context(), &job); did || err != nil {
		t.Errorf("wider than the settings: %t %v", did, err)
	}
}

// Where two people must agree, what somebody switched on covers nothing of their own.
func TestAutoApproveByFourEyes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.Settings.FourEyes = true
	h.allow(t, "")
	own := h.draft(docsPatch)
	own.Requester = "slack:BOSS"
	job := h.propose(t, own)
	if did, err := h.AutoApprove(t.Context(), &job); did || err != nil || job.State.Status != Pending {
		t.Errorf("of their own: %t %v", did, err)
	}
	job = h.propose(t, h.draft(docsPatch))
	if did, err := h.AutoApprove(t.Context(), &job); !did || err != nil {
		t.Errorf("of somebody else: %t %v", did, err)
	}
}

// Switching it off acts at once, in every process, also on what was approved and is not
// applied.
func TestAutoOff(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.allow(t, "")
	job, other := h.propose(t, h.draft(docsPatch)), h.propose(t, h.draft(strings.Replace(docsPatch, "four", "4", 1)))
	if did, err := h.AutoApprove(t.Context(), &job); !did || err != nil {
		t.Fatal(err)
	}
	if n, err := h.reopen(t).Off(t.Context(), "terminal:elsewhere", "terminal:ken"); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := h.reopen(t).Off(t.Context(), "", "terminal:ken"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if all, err := h.Allowed(); len(all) != 0 || err != nil {
		t.Errorf("%v %v", all, err)
	}
	if did, err := h.AutoApprove(t.Context(), &other); did || err != nil {
		t.Errorf("approved afterwards: %v", err)
	}
	if err := h.Confirm(t.Context(), &job); !errors.As(err, new(*WithdrawnError)) || job.State.Status != Pending || job.State.Reason != "auto_approve_off" {
		t.Fatalf("%v %+v", err, job.State)
	}
	if job, err := h.grant(job, "slack:BOSS"); err != nil || job.State.Status != Granted { // people are asked again
		t.Error(err)
	}
}

// Where nothing must be asked by default the hard list is asked about all the same.
func TestNotRequiredByDefault(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.Settings.Required = false
	d := h.draft(docsPatch)
	d.Type, d.Session = Codegen, ""
	job := h.propose(t, d)
	if did, err := h.AutoApprove(t.Context(), &job); !did || err != nil || job.State.By != "required_by_default" || job.State.Approver != System {
		t.Errorf("%t %v %+v", did, err, job.State)
	}
	if err := h.Confirm(t.Context(), &job); err != nil {
		t.Error(err)
	}
	d.Patch = []byte("diff --git a/README.md b/R.md\nsimilarity index 100%\nrename from README.md\nrename to R.md\n")
	job = h.propose(t, d)
	if did, err := h.AutoApprove(t.Context(), &job); did || err != nil {
		t.Errorf("a rename: %t %v", did, err)
	}
}
