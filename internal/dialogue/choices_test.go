package dialogue

import "testing"

func TestChosen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		choices      []string
		answer, want string
	}{
		{[]string{"red", "green"}, " 2. ", "green"},
		{[]string{"red", "green"}, "1", "red"},
		{[]string{"red", "green"}, "green", "green"},
		{[]string{"red", "green"}, "3", "3"},
		{[]string{"red", "green"}, "0", "0"},
		{[]string{"red", "green"}, "2 of them", "2 of them"},
		{[]string{"2", "1"}, "1", "1"}, // it is a choice itself
		{nil, "1", "1"},
	} {
		if got := Chosen(c.choices, c.answer); got != c.want {
			t.Errorf("%q of %q: %q", c.answer, c.choices, got)
		}
	}
}
