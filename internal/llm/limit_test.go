package llm_test

import (
	"context"
	"testing"

	"toritsugi/internal/llm"
)

func TestAnswerLimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, c := range []struct {
		limits       []int
		client, want int
	}{
		{nil, 0, 0}, {nil, 5, 5}, {[]int{0}, 0, 0}, {[]int{-1}, 7, 7}, {[]int{3}, 0, 3}, {[]int{3}, 5, 3}, {[]int{9}, 5, 5}, {[]int{3, 9}, 0, 3}, {[]int{9, 3}, 0, 3},
	} {
		in := ctx
		for _, n := range c.limits {
			in = llm.LimitAnswer(in, n)
		}
		if got := llm.AnswerLimit(in, c.client); got != c.want {
			t.Errorf("%v of a client with %d: %d, want %d", c.limits, c.client, got, c.want)
		}
	}
}
