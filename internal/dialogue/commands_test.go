package dialogue

import "testing"

// A comment gives the command that it begins with, also behind a mention; not in a sentence.
func TestCommand(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][3]string{
		"/stop":                            {"stop", "", "true"},
		" /retry \r\n but smaller ":        {"retry", "but smaller", "true"},
		"@tori-bot /approve J abc\nthanks": {"approve", "thanks", "true"},
		"/deny J no":                       {"deny", "", "true"},
		"stop":                             {"stop", "", "false"},
		"please /stop":                     {"", "please /stop", "false"},
		"@tori-bot please /stop":           {"", "@tori-bot please /stop", "false"},
		"/stopping":                        {"", "/stopping", "false"},
		"@tori-bot":                        {"", "@tori-bot", "false"},
	} {
		got := [3]string{"", "", "false"}
		var ok bool
		if got[0], got[1], ok = Command(body); ok {
			got[2] = "true"
		}
		if got != want {
			t.Errorf("%q: %q, not %q", body, got, want)
		}
	}
}

// A review is asked for by its command, also behind a mention, or by the word to our account.
func TestAsksReview(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"/review": true, " @tori /review \nplease": true, "@Tori review": true, "@tori-app review\nthanks": false, "review": false, "@hanako review": false, "please /review": false, "/reviewed": false, "@tori review it": false,
	} {
		if AsksReview(body, "tori") != want {
			t.Errorf("%q: %t", body, !want)
		}
	}
	if !AsksReview("@tori review", "tori[bot]") {
		t.Error("an app is mentioned without [bot]")
	}
}
