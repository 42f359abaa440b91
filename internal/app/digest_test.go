package app

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
	"toritsugi/internal/task"
)

// A digest is told once a day, not while it is quiet, not where nothing happened, and once over
// a kill; what ended while it was made is in the next one.
func TestDigest(t *testing.T) {
	t.Parallel()
	for lang, says := range map[i18n.Lang][]string{
		i18n.English: {"🗒 **Since 2026-03-04 12:00**\nRuns that ended: 2 completed, 1 failed (0 tokens, $0)\nWaiting for an approval or an answer: 1\n- **wait**",
			"🗒 **Since 2026-03-05 10:00**\nRuns that ended: 1 stopped (0 tokens, $0)\nWaiting for an approval or an answer: 1\n- **wait**",
			"🗒 **Since 2026-03-06 09:30**\nRuns that ended: 1 completed (0 tokens, $0)\nWaiting for an approval or an answer: 1\n- **wait**"},
		i18n.Japanese: {"🗒 **2026-03-04 12:00 以降のまとめ**\n終わった実行: 完了 2 件、失敗 1 件（0 トークン、$0）\n承認か回答を待っているもの: 1 件\n- **wait**",
			"🗒 **2026-03-05 10:00 以降のまとめ**\n終わった実行: 停止 1 件（0 トークン、$0）\n承認か回答を待っているもの: 1 件\n- **wait**",
			"🗒 **2026-03-06 09:30 以降のまとめ**\n終わった実行: 完了 1 件（0 トークン、$0）\n承認か回答を待っているもの: 1 件\n- **wait**"},
	} {
		t.Run(string(lang), func(t *testing.T) {
			t.Parallel()
			h := newVendorHouse(t)
			h.write("config.yaml", "language: "+string(lang)+"\nsandbox: {mode: none}\nllm: {script: {file: "+filepath.Join(h.dir, "script.yaml")+"}}\npause_resume: {enabled: false}\n"+
				"routing: {llm: {chat_provider: script, coder_provider: script, coder2_provider: script}}\ncontext_storage: {base_dir: "+h.base+", durability: os}\n"+
				"channels: {slack: {bot_token: xoxb-test, app_token: xapp-test, allow_from: [U1], notify: ['slack:T1:C1'], digest_at: '09:00', quiet: '08:00-09:30'}}\n")
			posts := filepath.Join(h.dir, "posts")
			now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)
			d := h.vendorDaemon(posts, func() time.Time { return now }, nil)
			ends := func(id string, to task.Status) {
				t.Helper()
				uuid, err := d.store.Enqueue(t.Context(), contextstore.Metadata{TaskKey: task.Key{Source: "github", Owner: "acme", Repo: "widgets", Type: "issue", ID: id}, Title: id, Run: []byte("{}")})
				h.must(err)
				c, _, err := d.store.Claim(t.Context(), uuid)
				h.must(err)
				h.must(c.Transition(t.Context(), task.Outcome{Status: to, Reason: "because"}))
			}
			tell := func(at string, want int) {
				t.Helper()
				var err error
				now, err = time.ParseInLocation("2006-01-02 15:04", at, time.Local)
				h.must(err)
				for range 2 {
					h.must(d.tellDigests(t.Context()))
				}
				if all := posted(t, posts); len(all) != want {
					t.Fatalf("%s: %+v", at, all)
				}
			}
			ends("before", task.Completed)
			tell("2026-03-04 12:00", 0)
			tell("2026-03-05 10:00", 0) // nothing happened
			now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)
			h.must(d.store.SetMark(t.Context(), digestScope, "slack:T1:C1", ""))
			tell("2026-03-04 12:00", 0)
			ends("1", task.Completed)
			ends("2", task.Failed)
			now = now.Add(6 * time.Hour)
			ends("3", task.Completed)
			ends("wait", task.AwaitingApproval)
			tell("2026-03-04 23:59", 0)
			tell("2026-03-05 09:00", 0) // it is quiet
			tell("2026-03-05 10:00", 1)
			ends("4", task.Stopped)
			tell("2026-03-05 23:00", 1)
			tell("2026-03-06 09:30", 2)
			// It was killed when the text stood, and when it was told.
			last, err := d.store.Mark(t.Context(), digestScope, "slack:T1:C1")
			h.must(err)
			p := posted(t, posts)[1]
			h.must(d.store.SetMark(t.Context(), digestScope, "slack:T1:C1", strings.TrimSuffix(last, "}")+`,"text":"again","key":"`+p.Key+`"}`))
			ends("5", task.Completed)
			tell("2026-03-06 10:00", 2)
			tell("2026-03-07 10:00", 3)
			for i, p := range posted(t, posts) {
				if p.Text != says[i] {
					t.Errorf("%q, not %q", p.Text, says[i])
				}
			}
		})
	}
}
