package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/tool"
)

// recaller is a run with a few messages and an output that was cut.
func recaller(t *testing.T) (*tool.Registry, *Recall) {
	t.Helper()
	client := openaiClient(t)
	o := &owner{t: t, base: t.TempDir(), open: func() llm.Conversation { return client.Open(llm.Settings{}) }, p: Policy{Limit: 100_000}}
	o.claim()
	t.Cleanup(o.kill)
	image, err := o.ctx.SaveImage(picture(2000), "image/png")
	if err != nil {
		t.Fatal(err)
	}
	o.append(contextstore.Message{Role: "system", Content: "SYSTEM"}, contextstore.Message{Role: "user", Content: "REQUEST", Images: []contextstore.Image{image}},
		contextstore.Message{Role: "assistant", Content: "I write.", ToolCalls: []contextstore.ToolCall{{ID: "call_1", Name: "write_file", Arguments: `{"path":"a.go","content":"package a\n\nvar x = 1\n","mode":1}`}}},
		contextstore.Message{Role: "tool", ToolCallID: "call_1", ToolName: "write_file", Content: text(4, 5000)},
		contextstore.Message{Role: "tool", ToolCallID: "call_2", ToolName: "shell", Content: "short"})
	spill := t.TempDir()
	if err := os.WriteFile(filepath.Join(spill, "output-000001.txt"), []byte(strings.Repeat("spilled line\n", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Recall{Record: o.ctx.MessageLog(), Image: o.ctx.ReadImage, SpillDir: spill, MaxOutput: 2000}
	registry, err := tool.NewRegistry(tool.Limits{MaxOutput: 2000}, r)
	if err != nil {
		t.Fatal(err)
	}
	return registry, r
}

func TestRecall(t *testing.T) {
	t.Parallel()
	registry, _ := recaller(t)
	if !registry.ReadOnly("recall") {
		t.Error("recall changes nothing")
	}
	for args, want := range map[string]string{
		`{"ref":"m-5"}`:                                          "short",
		`{"ref":"[m-5]"}`:                                        "short",
		`{"ref":"call_2"}`:                                       "short",
		`{"ref":"m-3"}`:                                          "I write.\n\ncall of write_file\npath:\na.go\ncontent:\npackage a\n\nvar x = 1\n\nmode:\n1\n",
		`{"ref":"m-4"}`:                                          "lines of m-4 shown, ",
		`{"ref":"m-4","from_line":7,"limit":2}`:                  "7\t4:6 the quick brown fox 速い茶色の狐 <&>\n8\t4:7 ",
		`{"ref":"m-4","from_line":7.0,"limit":1}`:                "7\t4:6 the quick",
		`{"ref":"call_1","pattern":"^4:(11|12) "}`:               "12\t4:11 the quick brown fox 速い茶色の狐 <&>\n13\t4:12 the quick",
		`{"ref":"output-000001"}`:                                "continue with from_line=",
		`{"ref":"output-000001.txt","from_line":4999}`:           "5000\tspilled line\n",
		`{"ref":"output-000009"}`:                                "There is no output",
		`{"ref":"output-../../etc/passwd"}`:                      "There is nothing by the reference",
		`{"ref":"m-99"}`:                                         "There is nothing by the reference",
		`{"ref":"m-999999999999999999"}`:                         "There is nothing by the reference",
		`{"ref":""}`:                                             "There is nothing by the reference",
		`{"ref":"m-4","pattern":"("}`:                            "not a regular expression",
		`{"ref":"m-4","pattern":"nowhere"}`:                      "No line of m-4",
		`{"reference":"m-4"}`:                                    "not valid",
		`{"ref":"m-4","from_line":100000}`:                       "past its end",
		fmt.Sprintf(`{"ref":%q}`, strings.Repeat("m-4", 10_000)): "There is nothing by the reference",
	} {
		res, err := registry.Call(t.Context(), "recall", args)
		if err != nil || !strings.Contains(res.Text, want) || len(res.Text) > 2000 {
			t.Errorf("%.80s: %d bytes, %.400s, %v", args, len(res.Text), res.Text, err)
		}
	}
	res, err := registry.Call(t.Context(), "recall", `{"ref":"m-2"}`)
	if err != nil || res.Text != "REQUEST" || len(res.Images) != 1 || len(res.Images[0].Data) != 2008 {
		t.Errorf("%q with %d images, %v", res.Text, len(res.Images), err)
	}
}

// What an earlier run left is recalled by references of its own.
func TestRecallOfFurtherSources(t *testing.T) {
	t.Parallel()
	_, r := recaller(t)
	r.Sources = []Source{func(_ context.Context, ref string) (string, bool, error) {
		switch ref {
		case "earlier/tools":
			return text(1, 9000), true, nil
		case "earlier/broken":
			return "", true, errors.New("gone")
		}
		return "", false, nil
	}}
	for ref, want := range map[string]string{"earlier/tools": "lines of earlier/tools shown", "earlier/broken": "cannot be read: gone", "m-5": "short"} {
		args, _ := json.Marshal(map[string]string{"ref": ref})
		if res, err := r.Call(t.Context(), args); err != nil || !strings.Contains(res.Text, want) {
			t.Errorf("%s: %.300s, %v", ref, res.Text, err)
		}
	}
}

// Every stub in a window names an original that recall has whole.
func TestEveryStubCanBeRecalled(t *testing.T) {
	t.Parallel()
	client := openaiClient(t)
	o := &owner{t: t, base: t.TempDir(), open: func() llm.Conversation { return client.Open(llm.Settings{}) }, p: Policy{Limit: 100_000, Masking: Masking{true, 2, 0.01}}}
	o.claim()
	t.Cleanup(o.kill)
	o.append(contextstore.Message{Role: "system", Content: "SYSTEM"}, contextstore.Message{Role: "user", Content: "REQUEST"})
	for n := range 30 {
		for _, m := range turnOf(n) {
			o.append(m...)
		}
		if err := o.win.Fit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r := &Recall{Record: o.ctx.MessageLog(), MaxOutput: 100_000}
	stubs := 0
	err := o.ctx.Messages(0, func(m contextstore.Message) bool {
		if m.Role != "tool" || m.Seq > o.win.event.MaskSeq || len(m.Content) < bulky {
			return true
		}
		stubs++
		if !strings.Contains(string(o.win.Conversation().Serialized()), "recall ref "+ref(m.Seq)+"]") {
			t.Errorf("message %d is not shown as a stub", m.Seq)
		}
		res, err := r.Call(t.Context(), fmt.Appendf(nil, `{"ref":%q}`, ref(m.Seq)))
		if err != nil || res.Text != m.Content {
			t.Errorf("message %d: %d bytes of %d, %v", m.Seq, len(res.Text), len(m.Content), err)
		}
		return true
	})
	if err != nil || stubs < 10 {
		t.Errorf("%d stubs, %v", stubs, err)
	}
}

// Of the run that was inherited from, tools and metadata can be read, masked.
func TestRecallOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	client := openaiClient(t)
	o := &owner{t: t, base: t.TempDir(), open: func() llm.Conversation { return client.Open(llm.Settings{}) }, p: Policy{Limit: 100_000}}
	o.claim()
	t.Cleanup(o.kill)
	if err := o.ctx.AppendTools(contextstore.ToolRun{Tool: "shell", Args: json.RawMessage(`{"command":"make"}`), Result: "built by hanako", Status: "success"}); err != nil {
		t.Fatal(err)
	}
	key := o.ctx.Metadata().TaskKey
	in := Inherited{UUID: o.id, Key: key}
	e, err := OpenEarlier(in, key, Inheritance{}, o.store.View, func(s string) string { return strings.ReplaceAll(s, "hanako", "[NAME]") })
	if err != nil {
		t.Fatal(err)
	}
	r := &Recall{Record: o.ctx.MessageLog(), Sources: []Source{e.Recall}}
	for ref, want := range map[string]string{"earlier/tools": "shell {\"command\":\"make\"} -> success\nbuilt by [NAME]", "earlier/metadata": o.id, "earlier/planning": "nothing is on record", "earlier/approvals": "There is nothing"} {
		if res, err := r.Call(t.Context(), fmt.Appendf(nil, `{"ref":%q}`, ref)); err != nil || !strings.Contains(res.Text, want) {
			t.Errorf("%s: %s, %v", ref, res.Text, err)
		}
	}
}
