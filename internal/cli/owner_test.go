package cli

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"toritsugi/internal/i18n"
	"toritsugi/internal/llm/llmtest"
	"toritsugi/internal/task"
)

// Who starts an issue that another process works on is told who does; and when
// that process died, every verb that looks says so, without a tori serve.
func TestARunThatLivesElsewhere(t *testing.T) {
	t.Parallel()
	gate, reached := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		once.Do(func() { close(reached) })
		<-gate
		return llmtest.Answer{Text: "Done."}
	})
	h := newHouse(t, server.URL, "")
	p := h.start(h.args...)
	<-reached
	v := h.only()
	short := v.Metadata.UUID[:8]
	h.ends(exitUsage, fmt.Sprintf(`run %s of this issue \(#issue\) is in the hands of process %d on .*: watch it with tori show %s --base-dir .*, or end it with tori stop %s`,
		v.Metadata.UUID, p.Process.Pid, short, short), h.args...)
	if err := p.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	close(gate)
	if code, out, errs := inProcess(i18n.English, "tasks", "--base-dir", h.base()); code != 0 || !strings.Contains(out, "Run "+short+": process") || !strings.Contains(out, "is gone; tori run --resume "+short) {
		t.Errorf("%d\n%s%s", code, out, errs)
	}
	other := append([]string{"run", "--repo", h.dir + "/repo", "--message", "another thing", "--config", h.config, "--base-dir", h.base()}, h.bare...)
	if out := h.ends(exitOK, "^completed: ", other...); !strings.Contains(out, "Run "+v.Metadata.UUID+" (#issue) was left by process") {
		t.Error(out)
	}
	if v := runs(t, h.base())[0]; v.Status() != task.Running || !v.Interrupted() {
		t.Errorf("%s", v.Status())
	}
	h.env = append(h.env, "TORI_RECOVERY_MODE=fail")
	h.ends(exitOK, "^completed: ", other...)
	if v := runs(t, h.base())[0]; v.Status() != task.Failed || v.State.Error == nil {
		t.Errorf("%s: %+v", v.Status(), v.State)
	}
}
