package planning

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"

	"toritsugi/internal/config"
	"toritsugi/internal/i18n"
)

// defaultLimits are those of the settings.
func defaultLimits() ReplanLimits {
	return ReplanLimits{
		MaxClarifications:   2,
		MaxRedecompositions: 3, MaxRegenerations: 3, MaxActionRetries: 3, MaxPartialReplans: 2, MaxPlanRevisions: 2,
		MaxTotal: 10, DetectLoops: true, SameTrigger: 2,
		MinConfidence: 0.5, ConfirmLow: true, ConfirmFrom: 0.3,
	}
}

// wish is what a model that is sure of it wishes.
func wish(kind string) Replan {
	return Replan{Needed: true, Confidence: 0.9, Type: kind, Target: "execution"}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	sureOf := func(c float64) Replan { r := wish(DoPartial); r.Confidence = c; return r }
	asking := func(kind string, questions ...string) Replan {
		r := wish(kind)
		r.Clarify, r.Questions = true, questions
		return r
	}
	spent := Counts{Clarifications: 2}
	for name, tc := range map[string]struct {
		r     Replan
		used  Counts
		alter func(*ReplanLimits)
		want  string // do, level, overrides
	}{
		"retry":                       {r: wish(DoRetry), want: "retry 1"},
		"partial":                     {r: wish(DoPartial), want: "partial_replan 2"},
		"revision":                    {r: wish(DoRevise), want: "plan_revision 2"},
		"regeneration":                {r: wish(DoRegenerate), want: "action_regeneration 3"},
		"redecomposition":             {r: wish(DoRedecompose), want: "task_redecomposition 4"},
		"goal":                        {r: wish(DoRestart), want: "goal_revision 5"},
		"full":                        {r: wish(TypeFullReplan), want: "goal_revision 5"},
		"none":                        {r: wish(TypeNone), want: "nothing 0 unknown_type"},
		"not needed":                  {r: Replan{Type: TypeFullReplan, Confidence: 1}, want: "nothing 0"},
		"no such type":                {r: wish("begin_again"), want: "nothing 0 unknown_type"},
		"no such type, but its level": {r: Replan{Needed: true, Confidence: 0.9, Type: "partial", Level: 2}, want: "partial_replan 2"},
		"the type before the level":   {r: Replan{Needed: true, Confidence: 0.9, Type: DoRetry, Level: 5}, want: "retry 1"},

		"sure":                   {r: sureOf(0.8), want: "partial_replan 2"},
		"not quite sure":         {r: sureOf(0.79), want: "partial_replan 2 (warn)"},
		"just sure enough":       {r: sureOf(0.5), want: "partial_replan 2 (warn)"},
		"for a person to say":    {r: sureOf(0.49), want: "ask 0 needs_confirmation"},
		"just to be asked about": {r: sureOf(0.3), want: "ask 0 needs_confirmation"},
		"too unsure":             {r: sureOf(0.29), want: "nothing 0 low_confidence"},
		"in percent":             {r: sureOf(85), want: "partial_replan 2"},
		"less than nothing":      {r: sureOf(-1), want: "nothing 0 low_confidence"},
		"nobody is to be asked":  {r: sureOf(0.4), alter: func(l *ReplanLimits) { l.ConfirmLow = false }, want: "nothing 0 low_confidence"},
		"nobody can be asked":    {r: sureOf(0.4), used: spent, want: "nothing 0 needs_confirmation, clarifications_spent"},
		"a person said yes":      {r: sureOf(0.4).Confirmed(), used: spent, want: "partial_replan 2"},

		"question":                     {r: asking(TypeClarification, "which?"), want: "ask 0"},
		"an unsure question":           {r: Replan{Needed: true, Type: TypeClarification, Questions: []string{"which?"}}, want: "ask 0"},
		"a question of nothing":        {r: asking(TypeClarification), want: "nothing 0 no_question"},
		"no questions left":            {r: asking(TypeClarification, "which?"), used: spent, want: "assume 0 clarifications_spent"},
		"nothing left":                 {r: asking(TypeClarification, "which?"), used: Counts{Clarifications: 2, Total: 10}, want: "stop 0 clarifications_spent, total_spent"},
		"questions beside a replan":    {r: asking(DoRedecompose, "which?"), want: "ask 0 questions_first"},
		"none left beside a replan":    {r: asking(DoRedecompose, "which?"), used: spent, want: "task_redecomposition 4 clarifications_spent"},
		"no question beside a replan":  {r: asking(DoRedecompose), want: "task_redecomposition 4"},
		"none left, and in doubt":      {r: func() Replan { r := asking(DoRestart, "which?"); r.Confidence = 0.4; return r }(), used: spent, want: "nothing 0 clarifications_spent, needs_confirmation, clarifications_spent"},
		"a retry of what cannot be":    {r: func() Replan { r := wish(DoRetry); r.Classification = "fatal"; return r }(), want: "partial_replan 2 fatal_error"},
		"retries spent":                {r: wish(DoRetry), used: Counts{Retries: map[string]int{"a": 3}}, want: "partial_replan 2 action_retries_spent"},
		"retries of another spent":     {r: wish(DoRetry), used: Counts{Retries: map[string]int{"b": 3}}, want: "retry 1"},
		"partials spent":               {r: wish(DoPartial), used: Counts{Partials: 2}, want: "action_regeneration 3 partial_replans_spent"},
		"revisions spent":              {r: wish(DoRevise), used: Counts{Revisions: 2}, want: "ask 0 plan_revisions_spent"},
		"revisions and questions":      {r: wish(DoRevise), used: Counts{Revisions: 2, Clarifications: 2}, want: "action_regeneration 3 plan_revisions_spent"},
		"regenerations spent":          {r: wish(DoRegenerate), used: Counts{Regenerations: 3}, want: "task_redecomposition 4 regenerations_spent"},
		"redecompositions spent":       {r: wish(DoRedecompose), used: Counts{Redecompositions: 3}, want: "goal_revision 5 redecompositions_spent"},
		"all below spent":              {r: wish(DoRetry), used: Counts{Retries: map[string]int{"a": 3}, Partials: 2, Regenerations: 3, Redecompositions: 3}, want: "goal_revision 5 action_retries_spent, partial_replans_spent, regenerations_spent, redecompositions_spent"},
		"total spent":                  {r: wish(DoRetry), used: Counts{Total: 10}, want: "stop 0 total_spent"},
		"total spent at the top":       {r: wish(DoRestart), used: Counts{Total: 10}, want: "stop 0 total_spent"},
		"nothing may be planned anew":  {r: wish(DoRetry), alter: func(l *ReplanLimits) { *l = ReplanLimits{MinConfidence: 0.5} }, want: "stop 0 action_retries_spent, partial_replans_spent, regenerations_spent, redecompositions_spent, total_spent"},
		"a loop":                       {r: wish(DoPartial), used: Counts{Triggers: map[string]int{"execution:partial_replan": 2}}, want: "action_regeneration 3 loop"},
		"a longer loop":                {r: wish(DoPartial), used: Counts{Triggers: map[string]int{"execution:partial_replan": 4}}, want: "goal_revision 5 loop"},
		"an endless loop":              {r: wish(DoPartial), used: Counts{Triggers: map[string]int{"execution:partial_replan": 99}}, want: "stop 0 loop"},
		"another target is no loop":    {r: wish(DoPartial), used: Counts{Triggers: map[string]int{"reflection:partial_replan": 2}}, want: "partial_replan 2"},
		"loops are not looked for":     {r: wish(DoPartial), alter: func(l *ReplanLimits) { l.DetectLoops = false }, used: Counts{Triggers: map[string]int{"execution:partial_replan": 5}}, want: "partial_replan 2"},
		"retries are no loop":          {r: wish(DoRetry), used: Counts{Retries: map[string]int{"a": 2}, Triggers: map[string]int{"execution:retry": 2}}, want: "retry 1"},
		"a loop over several retries":  {r: wish(DoRetry), used: Counts{Retries: map[string]int{"b": 3}, Triggers: map[string]int{"execution:retry": 3}}, want: "partial_replan 2 loop"},
		"made up targets are one loop": {r: Replan{Needed: true, Confidence: 1, Type: DoRestart, Target: "x17"}, used: Counts{Triggers: map[string]int{"other:goal_revision": 2}}, want: "stop 0 loop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := defaultLimits()
			if tc.alter != nil {
				tc.alter(&l)
			}
			before, _ := json.Marshal(tc.used)
			v := Decide(ReplanDecision{Decision: tc.r}, "a", tc.used, l)
			got := fmt.Sprint(v.Do, " ", v.Level)
			if v.Override != "" {
				got += " " + v.Override
			}
			if v.Doubtful() {
				got += " (warn)"
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if after, _ := json.Marshal(tc.used); string(after) != string(before) {
				t.Errorf("the counts that were given changed: %s", after)
			}
			for _, lang := range []i18n.Lang{i18n.English, i18n.Japanese} {
				if s := v.Why(lang); (s == "") != (v.Override == "") || strings.Contains(s, "planning.") && !strings.Contains(s, "replanning.") || strings.Contains(s, "planning.override") {
					t.Errorf("%s: %q", lang, s)
				}
			}
		})
	}
}

// What limits promise can be had: three retries, and three of what has three,
// if there is progress in between.
func TestEveryLimitIsReachable(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]struct {
		do string
		n  int
	}{DoRetry: {DoRetry, 3}, DoPartial: {DoPartial, 2}, DoRevise: {DoRevise, 2}, DoRegenerate: {DoRegenerate, 3},
		DoRedecompose: {DoRedecompose, 3}, DoRestart: {DoRestart, 10}, TypeClarification: {DoAsk, 2}} {
		var c Counts
		r := ReplanDecision{Decision: wish(kind)}
		r.Decision.Questions = []string{"which?"}
		n := 0
		for v := Decide(r, "a", c, defaultLimits()); v.Do == want.do && n <= 20; v = Decide(r, "a", c, defaultLimits()) {
			n++
			c = v.Counts
			if kind != DoRetry {
				c = c.Done("b")
			}
		}
		if n != want.n {
			t.Errorf("%s: %d times, want %d", kind, n, want.n)
		}
	}
}

// A model that wishes the same for ever goes up level by level and is stopped.
func TestTheSameWishForEver(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		DoRetry:       "retry retry retry partial_replan action_regeneration task_redecomposition goal_revision stop stop",
		DoPartial:     "partial_replan partial_replan action_regeneration task_redecomposition goal_revision stop stop",
		DoRestart:     "goal_revision goal_revision stop stop",
		DoRevise:      "plan_revision plan_revision ask ask action_regeneration task_redecomposition goal_revision stop stop",
		DoRedecompose: "task_redecomposition task_redecomposition goal_revision stop stop",
	} {
		var c Counts
		var did []string
		for len(did) < 50 && (len(did) < 2 || did[len(did)-2] != "stop") {
			v := Decide(ReplanDecision{Decision: wish(kind)}, "a", c, defaultLimits())
			did = append(did, v.Do)
			c = v.Counts
		}
		if got := strings.Join(did, " "); got != want {
			t.Errorf("%s:\n%s, want\n%s", kind, got, want)
		}
	}
}

// Whatever the model answers, whatever is done in between and however often the
// run is resumed: the course is changed a bounded number of times, what was
// used stays used, and what is recorded is true.
func TestReplansAreBounded(t *testing.T) {
	t.Parallel()
	small := rapid.IntRange(0, 4)
	rapid.Check(t, func(t *rapid.T) {
		l := ReplanLimits{small.Draw(t, "clarifications"), small.Draw(t, "redecompositions"), small.Draw(t, "regenerations"), small.Draw(t, "retries"), small.Draw(t, "partials"),
			small.Draw(t, "revisions"), rapid.IntRange(0, 12).Draw(t, "total"), rapid.Bool().Draw(t, "loops"), small.Draw(t, "same"), 0.5, rapid.Bool().Draw(t, "confirm"), 0.3}
		types := []string{DoRetry, DoPartial, DoRevise, DoRegenerate, DoRedecompose, DoRestart, TypeFullReplan, TypeClarification, TypeNone, "", "x"}
		did := map[string]int{}
		changed, asked := 0, 0
		var c Counts
		for range 60 {
			d := ReplanDecision{Decision: Replan{Needed: rapid.Bool().Draw(t, "needed"), Confidence: rapid.Float64Range(-1, 101).Draw(t, "percent") / 100, Type: rapid.SampledFrom(types).Draw(t, "type"),
				Target: rapid.SampledFrom([]string{"execution", "reflection", "", "y"}).Draw(t, "target"), Level: rapid.IntRange(-1, 7).Draw(t, "level"),
				Clarify: rapid.Bool().Draw(t, "clarify"), Questions: rapid.SliceOfN(rapid.Just("which?"), 0, 1).Draw(t, "questions"),
				Classification: rapid.SampledFrom([]string{"", "fatal"}).Draw(t, "class")}}
			r := d.Decision
			action := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "action")
			v := Decide(d, action, c, l)
			did[v.Do]++
			switch v.Do {
			case DoAsk:
				asked++
			case DoNothing, DoStop:
			default:
				changed++
			}
			if v.Executed != (v.Do != DoNothing && v.Do != DoStop) || !v.Executed && r.Needed && v.Override == "" {
				t.Fatalf("nothing is done and nobody says why: %+v", v)
			}
			if own, _ := wished(r); v.Executed && v.Do != own && v.Override == "" {
				t.Fatalf("%s in place of %s, and nobody says why", v.Do, own)
			}
			b, err := json.Marshal(v.Counts)
			if err != nil {
				t.Fatal(err)
			}
			var back Counts
			if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(Decide(d, action, back, l), Decide(d, action, v.Counts, l)) {
				t.Fatalf("a resumed run decides otherwise: %s %v", b, err)
			}
			c = back
			if len(c.Retries) > l.MaxTotal || len(c.Triggers) > 6*9 {
				t.Fatalf("%d retries, %d triggers are kept", len(c.Retries), len(c.Triggers))
			}
			if rapid.IntRange(0, 3).Draw(t, "progress") == 0 {
				c = c.Done(action)
			}
		}
		most := map[string]int{DoPartial: l.MaxPartialReplans, DoRevise: l.MaxPlanRevisions, DoRegenerate: l.MaxRegenerations, DoRedecompose: l.MaxRedecompositions, DoAsk: l.MaxClarifications}
		for do, n := range most {
			if did[do] > n {
				t.Fatalf("%s %d times, the limit is %d", do, did[do], n)
			}
		}
		if changed > l.MaxTotal || asked > l.MaxClarifications || changed != c.Total || asked != c.Clarifications {
			t.Fatalf("changed %d times, asked %d times; limits %+v, counts %+v", changed, asked, l, c)
		}
	})
}

func TestARecordSaysWhatIsDone(t *testing.T) {
	t.Parallel()
	d := ReplanDecision{Decision: wish(DoRetry)}
	r := Decide(d, "a", Counts{Retries: map[string]int{"a": 3}}, defaultLimits())
	if !r.Executed || r.Override != "action_retries_spent" || r.Do != DoPartial || r.Level != 2 || r.Counts.Partials != 1 || r.Counts.Total != 1 || r.Confidence != 0.9 {
		t.Errorf("%+v", r)
	}
	d.Decision.Confidence = 0.1
	r = Decide(d, "a", Counts{}, defaultLimits())
	if r.Executed || r.Override != "low_confidence" || !slices.Equal([]string{r.Do}, []string{DoNothing}) {
		t.Errorf("%+v", r)
	}
}

// What people are told of a decision that was overridden names settings that there
// are, by their whole names.
func TestOverridesNameSettings(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("", nil, func(string) string { return "" }, nil)
	must(t, err)
	var printed bytes.Buffer
	must(t, cfg.Print(&printed))
	var settings map[string]any
	must(t, yaml.Unmarshal(printed.Bytes(), &settings))
	named := 0
	for _, key := range i18n.Keys() {
		if !strings.HasPrefix(key, "planning.override.") {
			continue
		}
		for _, l := range []i18n.Lang{i18n.English, i18n.Japanese} {
			for _, setting := range regexp.MustCompile(`[a-z_]+(\.[a-z_]+)+`).FindAllString(l.T(key), -1) {
				named++
				var at any = settings
				for part := range strings.SplitSeq(setting, ".") {
					section, _ := at.(map[string]any)
					at = section[part]
				}
				if at == nil {
					t.Errorf("%s: there is no setting %s", key, setting)
				}
			}
		}
	}
	if named < 20 {
		t.Errorf("%d settings are named", named)
	}
}
