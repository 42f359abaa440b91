package approval

import (
	"strings"
	"testing"

	"toritsugi/internal/channel"
	"toritsugi/internal/i18n"
)

// What approvers read, field by field, in either language and never in both.
func TestRequest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	d := h.draft(docsPatch + "diff --git a/README.md b/README.md\ndeleted file mode 100644\n--- a/README.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-hello\n")
	d.Summary, d.Commands, d.CoderRisk, d.Cost = []string{"first", "second", "third", "fourth"}, []string{"go generate ./...", "frobnicate"}, "low", Cost{Tokens: 1200, MicroUSD: 2500}
	job := h.propose(t, d)
	job, err := h.Find(t.Context(), job.Job, everyone)
	must(t, err)
	a, err := h.Request(i18n.English, job)
	must(t, err)
	if a.Job != job.Job || a.Hash != job.Hash()[:12] || a.Status != "pending" || a.Diff != string(d.Patch) || len(a.Summary) != 3 || a.Files[0].Action != "delete" || !a.Expires.Equal(job.State.Expires) {
		t.Errorf("%+v", a)
	}
	for l, want := range map[i18n.Lang]string{
		i18n.English: `**Proposal: Say four**
Job: JOB
first
second
third
Files (2):
- DELETED README.md (+0 −1)
- changed docs/a.md (+1 −0)
Environment (commands):
- ` + "`go generate ./...`\n- `frobnicate`" + `
Risk, as computed:
- deletes files: README.md
- runs commands that a model wrote: go generate ./..., frobnicate (no-rule)
Risk, in the coder's words: low
Cannot be taken back: what its commands do outside of the files stays (tori rollback takes back the files)
Cost: 1200 tokens taken by the coder so far, requests and answers together ($0.0025)
Without a decision until 2026-03-07 03:06 UTC it is denied.
/approve JOB HASH
/deny JOB HASH
`,
		i18n.Japanese: `**提案: Say four**
ジョブ: JOB
first
second
third
ファイル（2）:
- 削除 README.md (+0 −1)
- 変更 docs/a.md (+1 −0)
環境（コマンド）:
- ` + "`go generate ./...`\n- `frobnicate`" + `
リスク（プログラムによる判定）:
- ファイルを削除する: README.md
- モデルが書いたコマンドを実行する: go generate ./..., frobnicate (no-rule)
リスク（コーダーの説明）: low
取り消し不可: コマンドがファイルの外で行ったことは残ります（ファイルは tori rollback で戻せます）
コスト: コーダーがここまでに使ったトークン 1200（入力と出力の合計） ($0.0025)
2026-03-07 03:06 UTC までに決定がなければ却下になります。
/approve JOB HASH
/deny JOB HASH
`,
	} {
		a, err := h.Request(l, job)
		must(t, err)
		got := strings.ReplaceAll(strings.ReplaceAll(Markdown(l, a, "/approve", "/deny"), job.Job, "JOB"), a.Hash, "HASH")
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", l, got, want)
		}
	}
}

// Each end of a proposal says whether it can be taken back and why, and a decided request
// asks for nothing.
func TestRequestEnds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
		for _, p := range []Proposal{{Patch: "x", Deliver: Branch}, {Patch: "x", Deliver: Worktree}, {Patch: "x", Deliver: PullRequest}, {Deliver: Branch}, {Patch: "x", Commands: []string{"a"}, Deliver: Branch}} {
			can, why := Job{Proposal: p}.reversible(l)
			if can != (p.Patch != "" && len(p.Commands) == 0) || strings.HasPrefix(why, "approval.") {
				t.Errorf("%+v: %t %s", p, can, why)
			}
		}
		text := Markdown(l, channel.Approval{Title: "x", Job: "j", Hash: "h", Status: string(Granted), Reversible: true, Why: "w"}, "", "")
		if strings.Contains(text, "/approve") || strings.Contains(text, "approval.") {
			t.Errorf("%s", text)
		}
	}
	// The diff is shown redacted, and what is applied are the bytes that were proposed.
	job := h.propose(t, h.draft(newFile("x", "100644", "a.person@example.com")))
	job, err := h.Find(t.Context(), job.Job, everyone)
	must(t, err)
	a, err := h.Request(i18n.English, job)
	must(t, err)
	raw, err := job.ReadPatch()
	must(t, err)
	if strings.Contains(a.Diff, "a.person@") || !strings.Contains(string(raw), "a.person@") {
		t.Errorf("%s\n%s", a.Diff, raw)
	}
}
