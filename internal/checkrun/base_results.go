package checkrun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/sandbox"
)

// keptTime is how long the result of a check of a base is used again.
const keptTime = 7 * 24 * time.Hour

// toolsScript tells what a check may depend on besides the tree: where programs and
// the modules of languages lie, and when any was added, changed or removed there.
const toolsScript = `command -v stat >/dev/null || exit
uname -rm; echo "$PATH"
IFS=:
for d in $PATH; do stat -L -c '%n %d %i %Y %Z' "$d"; done
unset IFS
for d in /usr/lib/python3*/dist-packages /usr/local/lib/python3*/*-packages /usr/lib/node_modules /usr/local/lib/node_modules /usr/lib/jvm; do
	test ! -d "$d" || stat -L -c '%n %d %i %Y %Z' "$d"
done`

// installed tells of what is installed where checks run, and what the walls are made of;
// "" where that cannot be told.
func (r *Runner) installed(ctx context.Context, spec sandbox.Spec) (string, error) {
	spec.Workspace, spec.Scratch = r.apart.Tree(), spec.Scratch+"-look"
	shell, err := r.Shell(spec)
	if err != nil {
		return "", err
	}
	defer func() { _ = shell.Close() }()
	out := &HeadBuffer{Most: 64 << 10}
	exit, err := shell.Run(ctx, sandbox.Command{Script: toolsScript, Timeout: probeTime, Output: out})
	if err != nil || exit.Code != 0 {
		return "", err
	}
	return shell.Kind() + "\n" + out.String(), nil
}

// resultName is what the result of a check of this base is kept by. The files of
// the base, the setup and the variables of commands are what it is kept beside.
func (r *Runner) resultName(c Check, tools string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "1 %q %q %d %q %q", r.Workspace.Base(), c.Command, c.Timeout, c.Reports, tools)
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// keptResult is the result of a check that passed on the same base not long ago.
func (r *Runner) keptResult(name string) (run contextstore.CheckRun, ok bool) {
	data, err := r.Workspace.Kept(name)
	if err == nil && data != nil {
		err = json.Unmarshal(data, &run)
	}
	if err != nil {
		r.Log.Warn("A kept result of a check cannot be read: " + err.Error())
		return run, false
	}
	age := r.Now().Sub(run.Timestamp.Time)
	if data == nil || !run.Passed() || age < 0 || age > keptTime {
		return run, false
	}
	at := run.Timestamp
	run.Cached = &at
	return run, true
}

// keepResult keeps one that passed: what failed, or did not end, may do otherwise
// the next time.
func (r *Runner) keepResult(name string, run contextstore.CheckRun) {
	if !run.Passed() {
		return
	}
	run.Timestamp = contextstore.Time{Time: r.Now()}
	data, err := json.Marshal(run)
	if err == nil {
		err = r.Workspace.Keep(name, data)
	}
	if err != nil {
		r.Log.Warn("The result of a check is not kept: " + err.Error())
	}
}
