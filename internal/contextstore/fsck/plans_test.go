package fsck

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/task"
)

func TestCheckReadsPlans(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"whole":    {`{"type":"plan"}` + "\n", ""},
		"garbage":  {"garbage\n" + `{"type":"plan"}` + "\n", "garbage"},
		"torn":     {`{"type":"plan"}` + "\n{", "torn"},
		"strange":  {`{"kind":"plan"}` + "\n", "strange"},
		"too open": {"", "mode"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, dir := healthy(t, task.Completed)
			plans := t.TempDir()
			path := filepath.Join(plans, filepath.Base(dir)+".jsonl")
			must(t, os.WriteFile(path, []byte(tc.text), 0o600))
			if tc.want == "mode" {
				must(t, os.Chmod(path, 0o644))
			}
			for _, repair := range []bool{false, true} {
				r, err := Check(t.Context(), base, Options{Plans: plans, Repair: repair})
				must(t, err)
				if got := strings.Join(kinds(r), " "); got != tc.want {
					t.Errorf("%q, want %q", got, tc.want)
				}
			}
			r, err := Check(t.Context(), base, Options{Plans: plans})
			must(t, err)
			if mends := tc.want == "torn" || tc.want == "mode"; mends && r.Found > 0 {
				t.Errorf("left: %q", kinds(r))
			}
		})
	}
	base, dir := healthy(t, task.Completed)
	must(t, os.Mkdir(filepath.Join(dir, "planning"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "planning", "x.jsonl.gz"), []byte("no gzip"), 0o600))
	if got := kinds(check(t, base, false)); !slices.Equal(got, []string{"unreadable"}) {
		t.Errorf("%q", got)
	}
}

func TestCheckReadsEffects(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"whole":    {`{"seq":1,"type":"fact"}` + "\n" + `{"seq":2,"type":"request"}` + "\n", ""},
		"gap":      {`{"seq":1,"type":"fact"}` + "\n" + `{"seq":3,"type":"request"}` + "\n", "gap"},
		"again":    {`{"seq":1,"type":"fact"}` + "\n" + `{"seq":1,"type":"request"}` + "\n", "again"},
		"torn end": {`{"seq":1,"type":"fact"}` + "\n" + `{"seq":2`, "torn"},
		"garbage":  {"garbage\n" + `{"seq":2,"type":"request"}` + "\n", "garbage"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, dir := healthy(t, task.Completed)
			must(t, os.WriteFile(filepath.Join(dir, contextstore.RequestLog), []byte(tc.text), 0o600))
			got := strings.Join(kinds(check(t, base, false)), " ")
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if tc.want == "torn" {
				check(t, base, true)
				if left := kinds(check(t, base, false)); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			}
		})
	}
}
