package sandbox

import (
	"testing"
	"time"

	"toritsugi/internal/i18n"
)

// Every limit has a name in both languages, and says how much it allows.
func TestBound(t *testing.T) {
	t.Parallel()
	l := Limits{CPU: 90 * time.Second, Memory: 2 << 30, Processes: 64, Disk: 1536 << 20, NewFiles: 4000, Output: 1 << 10, FileSize: 5}
	for limit, want := range map[string]string{
		limitCPU: "processor time limit of 1m30s", limitMemory: "memory limit of 2 GiB", limitProcesses: "limit of 64 processes at once",
		limitDisk: "limit of 1.5 GiB written to disk", limitFiles: "limit of 4000 new files", limitOutput: "output limit of 1 KiB",
		limitFileSize: "limit of 5 bytes for one file", limitSpace: "the disk is nearly full",
	} {
		var args []any
		if b := l.bound(limit); b != "" {
			args = append(args, b)
		}
		if got := i18n.English.T("limit."+limit, args...); got != want {
			t.Errorf("%s: %q", limit, got)
		}
		if i18n.Japanese.T("limit."+limit, args...) == i18n.English.T("limit."+limit, args...) {
			t.Errorf("%s is not translated", limit)
		}
	}
}

// What ended a command is told with how much it was allowed, for limits that are
// watched and those that the kernel keeps.
func TestExitTellsTheLimit(t *testing.T) {
	t.Parallel()
	for script, c := range map[string]struct {
		limits Limits
		want   string
	}{
		"exec head -c 8000000 /dev/zero >big":            {Limits{FileSize: 1 << 20}, limitFileSize + " 1 MiB"},
		"head -c 9000000 /dev/zero; sleep 60":            {Limits{Output: 2 << 20}, limitOutput + " 2 MiB"},
		"while :; do :; done":                            {Limits{CPU: time.Second}, limitCPU + " 1s"},
		"for i in 1 2 3 4 5 6; do sleep 60 & done; wait": {Limits{Processes: 3}, limitProcesses + " 3"},
		"kill -9 $$": {Limits{}, " "},
		"exit 3":     {Limits{}, " "},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			e, err := Unconfined(Spec{Workspace: t.TempDir(), Limits: c.limits}).Run(t.Context(), Command{Script: script, Timeout: 20 * time.Second})
			if got := e.Limit + " " + e.Bound; err != nil || got != c.want {
				t.Errorf("%q, %+v, %v", got, e, err)
			}
		})
	}
}
