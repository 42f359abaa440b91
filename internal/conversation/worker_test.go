package conversation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// A worker reads the session's repository with its tools, and changes nothing, whatever
// it calls.
func TestWorkerReads(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	file := filepath.Join(h.Here.Path, "notes.txt")
	if err := os.WriteFile(file, []byte("the answer is 42\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.play("worker", "- calls: [{tool: read_file, args: {path: notes.txt}}, {tool: write_file, args: {path: notes.txt, content: x}}, {tool: shell, args: {command: rm notes.txt}}, {tool: read_file, args: {path: ../../etc/passwd}}]\n"+
		says(output(planResult, nil)))
	h.plays("chat", "42")
	h.saw("/plan do", "answer: I'll lay out a plan.\n42")
	asked := h.last("worker").asked()
	if !strings.Contains(asked, "\n1: the answer is 42\n") || strings.Contains(asked, "root:") || strings.Count(asked, "There is no tool named") != 2 {
		t.Error(asked)
	}
	if raw, err := os.ReadFile(file); err != nil || string(raw) != "the answer is 42\n" {
		t.Errorf("%q, %v", raw, err)
	}
}

// Texts and images that come with a message reach who answers it, and only that.
func TestAttachments(t *testing.T) {
	t.Parallel()
	h := open(t, i18n.English, "terminal")
	h.plays("worker", output(analyzeResult, nil))
	h.plays("chat", "one", "two", "three")
	with := func(text string) {
		t.Helper()
		m := h.message(text)
		m.Attachments = []channel.Attachment{{Name: "a.csv", MediaType: "text/csv", Content: []byte("x,y\n" + strings.Repeat("1,2\n", 5000) + "hunter2-hunter2")},
			{Name: "p.png", MediaType: "image/png", Content: []byte("PNG")}}
		if err := h.Handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	with("/chat look at this")
	k := h.last("chat")
	if last := k.Sent[len(k.Sent)-1]; len(last.Images) != 1 || last.Images[0].Source != "p.png" || !strings.Contains(last.Content, "a.csv:\n<facts>\nx,y\n1,2") || !strings.Contains(last.Content, "[left out: ") {
		t.Errorf("%+v", last)
	}
	with("/analyze this")
	if asked := h.last("worker").asked(); !strings.Contains(asked, `this\n\na.csv:`) || strings.Contains(asked, "hunter2") {
		t.Error(asked)
	}
	h.hears("/chat and?")
	if asked := h.last("chat").asked(); strings.Contains(asked, "1,2\n1,2") {
		t.Error("it is sent again")
	}
	raw, err := os.ReadFile(filepath.Join(h.open(h.id, "terminal").Dir, messagesFile))
	if err != nil || !strings.Contains(string(raw), fmt.Sprintf(`"files":[{"name":"a.csv","media_type":"text/csv","bytes":%d}`, 20000+4+15)) {
		t.Errorf("%v, %s", err, raw)
	}
}
