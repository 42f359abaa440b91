package policy

import "testing"

func TestDefaultRulesAreSound(t *testing.T) {
	t.Parallel()
	rules, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for i := range rules {
		if err := rules[i].check(); err != nil {
			t.Error(err)
		}
	}
	if _, err := New(rules); err != nil {
		t.Error(err)
	}
	if len(rules) < 50 {
		t.Errorf("only %d rules", len(rules))
	}
}
