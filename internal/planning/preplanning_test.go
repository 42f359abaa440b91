package planning

import "testing"

func TestForbiddenSubjects(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "",
		"port 8080":                             "",
		"tokenizer":                             "",
		"the parser reads tokenised text":       "",
		"secretary":                             "",
		"db_password hunter2":                   "password",
		"dbPassword":                            "password",
		"API-Keys":                              "api_key",
		"theAPIKey of the service":              "api_key",
		"CONNECTION_STRING":                     "connection_string",
		"which databases there are":             "database",
		"Credentials come from the environment": "credential",
		"PII":                                   "pii",
		"personal info of users":                "personal_info",
		"接続先のパスワードはadmin":                       "password",
		"個人情報は含まれない":                            "personal_info",
		"ポートは8080":                              "",
	} {
		if got := forbiddenIn(text); got != want {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
}

// An understanding that is not sure enough is shown so; where the model does not
// say, or nothing is asked about it, it is not.
func TestUncertainIsShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		said string
		pre  PrePlanning
		want bool
	}{
		{`"understanding_confidence":0.69`, PrePlanning{Enabled: true, Sure: 0.7}, true},
		{`"understanding_confidence":0.7`, PrePlanning{Enabled: true, Sure: 0.7}, false},
		{`"understanding_confidence":0`, PrePlanning{Enabled: true, Sure: 0.7}, true},
		{`"context_analysis":"x"`, PrePlanning{Enabled: true, Sure: 0.7}, false},
		{`"understanding_confidence":0.1`, PrePlanning{Sure: 0.7}, false},
	} {
		h := history(t, begin(t, newStore(t)), nil)
		s := defaults()
		s.Pre = c.pre
		f := newFeed(t, h, s)
		f.ask(askPlan)
		f.say(goal(plans("a"), c.said))
		if v := f.lead.View(); v.Uncertain != c.want || v.Plan == nil {
			t.Errorf("%s with %+v: uncertain %t", c.said, c.pre, v.Uncertain)
		}
	}
}
