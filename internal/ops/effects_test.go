package ops

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/i18n"
)

const effectLines = `{"seq":1,"type":"fact","timestamp":"2024-01-15T10:30:02Z","leg":"sensitive","fact":"secret_environment","detail":"DEPLOY_TOKEN"}
{"seq":2,"type":"request","timestamp":"2024-01-15T10:30:03Z","kind":"push","key":"u.push","target":"tori/issue-1-clean","decision":"allow","legs":["outward"],"bytes":10,"digest":"00"}
{"seq":3,"type":"request","timestamp":"2024-01-15T10:30:04Z","kind":"pull_request","target":"tori/a-very-long-branch-name-that-does-not-fit-into-its-column → main","decision":"refuse","reason":"the run has used up its requests of kind pull_request (1): raise broker.max_pull_requests, or let a person do it by hand","findings":[{"kind":"link","excerpt":"https://evil.example/\u001b[2J","place":"text, line 3"}]}
{"seq":4,"type":"request","timestamp":"2024-01-15T10:30:05Z","kind":"comment","target":"長い長い長い長い長い長い宛先","decision":"ask","reason":"外部への作用と信頼できない入力と機密の三つが一つの実行に揃ったため人の判断が必要ですとこの長い理由は途中で折り返されて読めなければなりません"}
not json
`

func showEffects(t *testing.T, lines string, o ShowOptions) string {
	t.Helper()
	base, uuid := example(t)
	if lines != "" {
		if err := os.WriteFile(filepath.Join(base, "completed", uuid, "effects.jsonl"), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v, err := contextstore.Find(base, uuid, contextstore.Viewer{Admin: true})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	o.Effects, o.Now = true, time.Now()
	if err := Show(&b, v, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestShowEffects(t *testing.T) {
	t.Parallel()
	got := showEffects(t, effectLines, ShowOptions{Last: -1, Lang: i18n.English})
	const want = `   #  Time (UTC)           What          Decision  Target
   1  2024-01-15 10:30:02  sensitive     met       -
      secret_environment DEPLOY_TOKEN
   2  2024-01-15 10:30:03  push          allowed   tori/issue-1-clean
   3  2024-01-15 10:30:04  pull_request  refused   -
      tori/a-very-long-branch-name-that-does-not-fit-into-its-column → main
      why: the run has used up its requests of kind pull_request (1): raise
      broker.max_pull_requests, or let a person do it by hand
      changed: link at text, line 3: https://evil.example/[2J
   4  2024-01-15 10:30:05  comment       asks      長い長い長い長い長い長い宛先
      why:
      外部への作用と信頼できない入力と機密の三つが一つの実行に揃ったため人の判断
      が必要ですとこの長い理由は途中で折り返されて読めなければなりません
  not json (invalid character 'o' in literal null (expecting 'u'))
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
	for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
		for line := range strings.Lines(showEffects(t, effectLines, ShowOptions{Last: -1, Lang: l})) {
			if n := columns(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
	if got := showEffects(t, effectLines, ShowOptions{Last: -1, Lang: i18n.Japanese}); !strings.Contains(got, "拒否") || !strings.Contains(got, "理由: ") {
		t.Error(got)
	}
	if got := showEffects(t, effectLines, ShowOptions{Last: 3, JSON: true}); !strings.HasSuffix(effectLines, got) || strings.Count(got, "\n") != 3 {
		t.Errorf("JSON is not the lines themselves: %s", got)
	}
	if got := showEffects(t, "", ShowOptions{Last: -1, Lang: i18n.English}); got != "Nothing was to leave the house.\n" {
		t.Error(got)
	}
	if got := showEffects(t, "", ShowOptions{Last: -1, JSON: true}); got != "" {
		t.Error(got)
	}
}
