package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// corpora are texts of about half a megabyte each: what usually passes through,
// and what a scanner may stumble over.
func corpora() map[string]string {
	noise := make([]byte, 300_000)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(noise) // it cannot fail
	repeat := func(s string) string { return strings.Repeat(s, 1<<19/len(s)) }
	var log strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&log, "2024-01-15 10:30:%02d INFO [uuid:550e8400] GET http://127.0.0.1:8080/v1/items/%d?page=%d 200 %d.%03dms user_id=%d\n", i%60, i, i%7, i%90, i%1000, i*31)
	}
	return map[string]string{
		"code":     repeat("func (s *Store) Append(ctx context.Context, m Message) (int64, error) {\n\treturn s.next-1, fmt.Errorf(\"open context %s: %w\", id, err) // store_v3\n}\n"),
		"log":      log.String(),
		"base64":   base64.StdEncoding.EncodeToString(noise),
		"hex":      hex.EncodeToString(noise),
		"japanese": repeat("設定ファイルを読み込み、値が正しいかどうかを確認します。エラーの場合は理由と直し方を示します。\n"),
		"minified": repeat(`!function(e,t){"object"==typeof exports?module.exports=t():e.React=t()}(this,function(){var e=n(1),t=e.key||null;return{type:"a",token:t,pass:0}});`),
		"words":    repeat("the token of the parser, a secret key and a password: string; author, disk-usage, task-list, https://example.org/a?b=c#d\n"),
		"marks":    repeat("@:-=_./@:-=_./ 0123456789 "),
		"digits":   repeat("090-1234-5678 4242 4242 4242 4242 "),
		"sk-":      repeat("sk-"),
		"at":       repeat("a@b.c@"),
		"assign":   repeat("password=token:secret="),
	}
}

// BenchmarkClean reports bytes a second over every corpus; 300 is the number of
// known values.
func BenchmarkClean(b *testing.B) {
	var known []string
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		v := make([]byte, 24)
		for i := range v {
			v[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[r.IntN(62)]
		}
		known = append(known, string(v))
	}
	texts := corpora()
	for _, name := range []string{"code", "log", "base64", "hex", "japanese", "minified", "words", "marks", "digits", "sk-", "at", "assign"} {
		for _, z := range []struct {
			name string
			z    *Sanitizer
		}{{"0", new(Sanitizer)}, {"3", New(known[:3], nil)}, {"300", New(known, nil)}} {
			b.Run(name+"/"+z.name, func(b *testing.B) {
				b.SetBytes(int64(len(texts[name])))
				b.ReportAllocs()
				for b.Loop() {
					_ = z.z.String(texts[name])
				}
			})
		}
	}
}

func BenchmarkSecrets(b *testing.B) {
	s := strings.Repeat("token ghp_0123456789abcdef0123456789abcdef0123 of me@example.org at https://u:p@h.org/\n"+strings.Repeat("plain text\n", 20), 100)
	z := new(Sanitizer)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		_ = z.String(s)
	}
}
