package turn

import (
	"context"
	"strings"
	"testing"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/tool"
)

// What calls bring to look at is kept in the ledger and shown once, after all
// results of the answer; what no model reads is named.
func TestImagesOfResults(t *testing.T) {
	t.Parallel()
	shot := func(images ...tool.Image) func(context.Context, string) (tool.Result, error) {
		return func(context.Context, string) (tool.Result, error) {
			return tool.Result{Text: "shot", Images: images}, nil
		}
	}
	png := []byte("\x89PNG\r\n\x1a\n")
	b := setup(t, hands{
		"shot":  shot(tool.Image{MediaType: "image/png", Data: png}, tool.Image{MediaType: "image/svg+xml", Data: []byte("<svg/>")}),
		"plain": ok("text"), "big": shot(tool.Image{MediaType: "image/png", Data: make([]byte, contextstore.MaxImage+1)}),
	}, say("", call("1", "shot"), call("2", "plain")), say("", call("3", "big")), say("", call("4", "plain")), say("done"))
	if _, err := b.loop.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := b.roles(t); r != "suattuatuata" {
		t.Fatalf("messages %s", r)
	}
	var all []contextstore.Message
	if err := b.ctx.Messages(0, func(m contextstore.Message) bool { all = append(all, m); return true }); err != nil {
		t.Fatal(err)
	}
	m := all[5]
	if len(m.Images) != 1 || m.Images[0].Source != "tool:shot" || !strings.Contains(m.Content, "image 1: of shot") || !strings.Contains(m.Content, "of shot: left out (image/svg+xml, 6 bytes)") {
		t.Errorf("%+v", m)
	}
	if data, err := b.ctx.ReadImage(m.Images[0]); err != nil || string(data) != string(png) {
		t.Errorf("%q, %v", data, err)
	}
	if sent := b.model.sent[1][5]; len(sent.Images) != 1 || string(sent.Images[0].Data) != string(png) {
		t.Errorf("the model saw %+v", sent)
	}
	if m := all[8]; len(m.Images) != 0 || !strings.Contains(m.Content, "of big: left out") {
		t.Errorf("%+v", m)
	}
}
