package routing

import (
	"sync"

	"toritsugi/internal/i18n"
)

// coderWords are the words of Code3 and Code1 (spec/facts §2.7).
var coderWords = sync.OnceValue(func() *matcher {
	m := &matcher{}
	m.add([]string{"高品質", "仕様策定", "複雑な推論", "重大バグ", "失敗コスト", "クリティカル", "本番環境", "production", "high quality", "critical", "complex reasoning"}, nil)
	m.add([]string{"仕様", "設計", "文書", "論点", "意思決定", "要件定義", "アーキテクチャ", "構成案", "比較検討", "spec", "design", "architecture", "requirements", "rfc", "proposal", "decision"},
		[]string{"requirements.txt"})
	return m
})

// Coder chooses the coder of a text by content: Code3 by its words, else Code1 by its,
// else Code2 (spec/facts §2.7).
func Coder(text string) Route {
	switch found := coderWords().find(newMessage(text).folded); {
	case found[0].end > 0:
		return Code3
	case found[1].end > 0:
		return Code1
	}
	return Code2
}

// CoderRole returns the role (of routing.llm) that a coding route is served by: Code1 by
// "coder", Code2 by "coder2" or, where that is not set, by "coder", Code3 by "coder3".
// Code is to be resolved by Coder before. The error is an *i18n.Error that names the
// setting that is missing.
func CoderRole(route Route, set func(role string) bool) (string, error) {
	role := "coder"
	switch {
	case route == Code3:
		role = "coder3"
	case route == Code2 && set("coder2"):
		return "coder2", nil
	}
	if !set(role) {
		return "", i18n.E("routing.coder_unset", string(route), "routing.llm."+role+"_provider", "routing.llm."+role+"_model")
	}
	return role, nil
}
