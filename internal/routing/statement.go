package routing

import (
	"slices"
	"strings"
	"sync"
)

// What a message that only tells something ends or begins with. It is chat, whatever word
// of the dictionary is in it: who wants something asks, or names it.
var (
	tellingEnds = []string{"た", "よ", "ね", "な", "なぁ", "なあ", "です", "ます", "だ", "る", "ない", "い", "ー", "わ", "ぞ", "けど", "のに", "から", "たり"}
	askingEnds  = []string{
		"たい", "たいな", "たいです", "たいんだけど", "たいのですが", "たいと思う", "たいと思います", "ほしい", "ほしいな", "ほしいです", "欲しい", "欲しいです", "ほしいんだけど", "てよ", "てね", "てくれる", "てもらえる", "ください", "下さい", "くださいね", "なさい",
		"お願いします", "お願いね", "お願いしたいです", "頼みます", "頼むよ", "助かります", "助かる", "困っています", "困ってる", "知りたい", "分からない", "わからない", "分かりません", "わかりません", "必要です", "必要がある", "みたい", "ましょう",
		"しよう", "ような", "できる", "できない", "できません", "教えてほしいです", "迷っている", "悩んでいる", "悩んでいます", "迷っています", "ばいい", "たらいい", "ていいよ", "でいいよ",
	}
	tellingStarts = []string{"i ", "i'm ", "i've ", "i'll ", "my ", "we ", "our ", "he ", "she ", "his ", "her ", "it ", "it's ", "they ", "the ", "this ", "that ", "that's ", "you ", "your ", "what a ", "there ", "nice ", "sounds ", "yes", "no,", "so ", "wow", "finally", "yesterday", "today "}
	asks          = sync.OnceValue(func() *matcher {
		m := &matcher{}
		m.add([]string{"?", "please", "need", "want", "would like", "i'd like", "can you", "could you", "should", "help", "tell me", "show me", "give me", "find", "look up", "let's", "make", "write", "draft", "create", "prepare", "compare", "list"}, nil)
		return m
	})
)

// statement finds a short message that tells something and asks for nothing.
func statement(m *message) (string, bool) {
	const most = 400 // bytes: what is longer has a matter
	text := strings.TrimSpace(m.folded)
	if text == "" || len(text) > most || strings.Contains(text, "\n") {
		return "", false
	}
	if asks().find(text)[0].end > 0 {
		return "", false
	}
	if slices.ContainsFunc(tellingStarts, func(s string) bool { return strings.HasPrefix(text, s) }) {
		return text, true
	}
	text = strings.TrimRight(text, " 。.!…~〜ー笑w()")
	ends := func(list []string) bool {
		return slices.ContainsFunc(list, func(e string) bool { return strings.HasSuffix(text, e) })
	}
	return text, ends(tellingEnds) && !ends(askingEnds)
}
