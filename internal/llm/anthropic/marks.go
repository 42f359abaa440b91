package anthropic

import "toritsugi/internal/llm"

// Marks returns where in a conversation the cache marks stand: the indices of
// the messages that they follow. A further one stands before the first message,
// behind the tools.
func Marks(all []llm.Message) (behind []int) {
	first := 0
	for first < len(all) && all[first].Role == llm.RoleSystem {
		first++
	}
	if first > 0 {
		behind = append(behind, first-1)
	}
	for i := len(all) - 1; i > first; i-- { // what came before the latest answer
		if all[i].Role == llm.RoleAssistant {
			behind = append(behind, i-1)
			break
		}
	}
	if len(all) > first {
		behind = append(behind, len(all)-1)
	}
	return behind
}
