package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/llm"
	"toritsugi/internal/llm/llmtest"
)

const png = "\x89PNG\r\n\x1a\n"

// Images of the command line and of the issue reach the model with each request
// of a run that is killed and resumed, after the files themselves are gone. What
// cannot be shown is told to the user and to the model.
func TestRunWithImages(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, func(r *llmtest.Request) llmtest.Answer {
		switch r.Turn() {
		case 0:
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c1", Name: "shell", Arguments: `{"command":"echo x > new.txt; touch began; sleep 60"}`}}}
		case 1:
			return llmtest.Answer{Calls: []llm.ToolCall{{ID: "c2", Name: "shell", Arguments: `{"command":"echo y >> new.txt"}`}}}
		}
		return llmtest.Answer{Text: "Done."}
	})
	h := newHouse(t, server.URL, "")
	h.write("issue.md", "# As the picture shows\n\n![before](shots/before.jpg) ![logo](repo/logo.gif) ![](shots/before.jpg)\n\n```\n![code](shots/code.png)\n```\n\n"+
		"![secret](../../secret.png) ![web](https://example.com/a.png) ![text](shots/notes.png)\n")
	files := []string{h.write("shot, one.png", png+"one"), h.write("shots/before.jpg", "\xff\xd8\xff\xe0before"), h.write("repo/logo.gif", "GIF89alogo")}
	h.write("shots/notes.png", "only text")
	if err := os.Symlink(files[0], filepath.Join(h.dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	p := h.start(append(h.args, "--image", filepath.Join(h.dir, "link.png"), "--image", filepath.Join(h.dir, "missing.png"), "--image", files[0])...)
	h.await("workspaces/*/tree/began")
	_ = p.Process.Kill()
	_ = p.Wait()
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	told := p.out.String()
	for _, want := range []string{"missing.png is not shown", "../../secret.png is not shown", "outside of the issue's directory", "shots/notes.png is not shown", "not png, jpeg, gif or webp"} {
		if !strings.Contains(told, want) {
			t.Errorf("the user was not told %q:\n%s", want, told)
		}
	}
	p = h.start(append([]string{"run", "--resume", h.only().Metadata.UUID, "--base-dir", h.base()}, h.bare...)...)
	if code := p.code(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.out.String())
	}
	// Each one is on record of the requests, also of those after it was taken up.
	for _, want := range []string{`missing.png.* drop_reason=read_failed`, `secret.png.* drop_reason=outside_directory`, `shots/notes.png.* local_size_before_bytes=9 included=false drop_reason=unsupported_type`} {
		for name, out := range map[string]string{"begun": told, "taken up": p.out.String()} {
			if !regexp.MustCompile(`LLM image audit before request.* source_path=\S*` + want).MatchString(out) {
				t.Errorf("%s: %q is not on record:\n%s", name, want, out)
			}
		}
	}
	requests := server.Requests()
	llmtest.CheckPrefix(t, requests)
	for n, r := range requests {
		var got []string
		for _, i := range r.Messages[1].Images {
			got = append(got, i.MediaType+" "+string(i.Data))
		}
		if want := "image/png " + png + "one|image/jpeg \xff\xd8\xff\xe0before|image/gif GIF89alogo"; strings.Join(got, "|") != want {
			t.Errorf("request %d shows %q", n, got)
		}
	}
	const request = "\nImages of the task, shown after this text in this order:\n1. shot, one.png\n2. shots/before.jpg\n3. repo/logo.gif\n" +
		"\nImages of the task that are not shown to you:\n- missing.png: read_failed\n- ../../secret.png: outside_directory\n- https://example.com/a.png: a link, which is not fetched\n- shots/notes.png: unsupported_type\n"
	if got := *requests[0].Messages[1].Content; !strings.HasSuffix(got, request) {
		t.Errorf("the request ends with %q", got[max(0, len(got)-len(request)):])
	}
	var m contextstore.Message
	v := h.only()
	err := v.Tail(contextstore.Messages, -1, func(b []byte) error {
		if bytes.HasPrefix(b, []byte(`{"seq":2,`)) {
			return json.Unmarshal(b, &m)
		}
		return nil
	})
	if err != nil || len(m.Images) != 6 || m.Images[0].Source != files[0] || m.Images[1].Dropped != "read_failed" || m.Images[4].Dropped != "outside_directory" {
		t.Errorf("%+v, %v", m.Images, err)
	}
	if b, err := readFile(filepath.Join(v.Dir, m.Images[0].Path)); err != nil || string(b) != png+"one" {
		t.Errorf("%q, %v", b, err)
	}
	if code := h.start("check", "--base-dir", h.base()).code(); code != 0 {
		t.Errorf("tori check: exit code %d", code)
	}
}

// Images belong to the beginning of a run, and to a message as to an issue.
func TestImagesOfTheCommandLine(t *testing.T) {
	t.Parallel()
	server := llmtest.NewServer(t, llmtest.Sequence(llmtest.Answer{Text: "Nothing to do."}))
	h := newHouse(t, server.URL, "")
	file := h.write("a.png", png)
	p := h.start("run", "--resume", "12345678", "--image", file, "--base-dir", h.base())
	if code := p.code(); code != exitUsage || !strings.Contains(p.out.String(), "--image") {
		t.Errorf("exit code %d: %s", code, p.out.String())
	}
	args := append([]string{"run", "--repo", filepath.Join(h.dir, "repo"), "--message", "look ![x](a.png)", "--image", file, "--image", "", "--config", h.config, "--base-dir", h.base()}, h.bare...)
	p = h.start(args...)
	if code := p.code(); code != exitOK {
		t.Fatalf("exit code %d: %s", code, p.out.String())
	}
	m := server.Requests()[0].Messages[1]
	if len(m.Images) != 1 || !strings.HasSuffix(*m.Content, "1. a.png\n\nImages of the task that are not shown to you:\n- \"\": empty_path\n") || !strings.Contains(p.out.String(), "no path was given") {
		t.Errorf("%d images, %q\n%s", len(m.Images), *m.Content, p.out.String())
	}
}
