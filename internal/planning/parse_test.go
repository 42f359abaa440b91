package planning

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"toritsugi/internal/disk/disktest"
)

// parseAny is Parse for a kind that is known when the test runs.
func parseAny(kind AnswerKind, text string) (any, error) {
	switch kind {
	case KindPlan:
		return Parse[Plan](kind, text)
	case KindSubtask:
		return Parse[SubtaskResult](kind, text)
	case KindReflection:
		return Parse[Reflection](kind, text)
	case KindRevision:
		return Parse[PlanRevision](kind, text)
	case KindVerification:
		return Parse[Verification](kind, text)
	case KindReplan:
		return Parse[ReplanDecision](kind, text)
	default:
		return Parse[Completion](kind, text)
	}
}

// TestAnswers reads the answers in testdata/answers as what their names begin
// with, and as every other kind whose form they have.
func TestAnswers(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/answers/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			prefix, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txt"), "-")
			kinds := Detect(string(data))
			for _, kind := range AnswerKinds() {
				if strings.HasPrefix(string(kind), prefix) && !slices.Contains(kinds, kind) {
					kinds = append(kinds, kind)
				}
			}
			var b strings.Builder
			for _, kind := range kinds {
				fmt.Fprintf(&b, "%s\n", kind)
				answer, err := parseAny(kind, string(data))
				var broken *ContractError
				switch {
				case errors.As(err, &broken):
					fmt.Fprintf(&b, "refused: it begins %q\n%s\n", broken.Excerpt, broken.Retry())
				case err != nil:
					t.Fatal(err)
				default:
					e := json.NewEncoder(&b)
					e.SetEscapeHTML(false)
					e.SetIndent("", "  ")
					if err := e.Encode(answer); err != nil {
						t.Fatal(err)
					}
				}
			}
			golden(t, strings.TrimSuffix(file, ".txt")+".golden", b.String())
		})
	}
}

// golden compares a text with a file, or writes that.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestParseBounds(t *testing.T) {
	t.Parallel()
	plan := `{"phase":"planning","task_decomposition":{"subtasks":[{"id":"task_1","description":"Do it"}]}}`
	for _, c := range []struct{ name, text, want string }{
		{"nothing", " \n", "- the answer is empty"},
		{"no object", "All done.", "- there is no JSON object in the answer"},
		{"another one", `{"done": true}`, "- no JSON object in the answer has the form that was asked for"},
		{"50 MB before it", strings.Repeat("word ", 10<<20) + plan, "- the answer has 52428894 bytes, and no object of this kind stands in the first 1048576"},
		{"50 MB in it", strings.Replace(plan, "Do it", strings.Repeat("do ", 17<<20), 1), "- the answer breaks off before it is complete; give all of it, with shorter texts"},
		{"50 MB after it", plan + strings.Repeat(" {\"a\":", 8<<20), ""},
		{"objects in objects", strings.Repeat(`{"a":`, 200_000), "- the JSON is nested more than 64 deep"},
		{"lists in lists", `{"task_decomposition":` + strings.Repeat(`[`, 200_000), "- the JSON is nested more than 64 deep"},
		{"brackets", strings.Repeat(`{`, 1<<20), "- no JSON object in the answer has the form that was asked for"},
		{"objects", strings.Repeat(`{"a":[{`, 150_000), "- the JSON is nested more than 64 deep"},
		{"small objects", strings.Repeat(`{"phase":"planning"}`, 50_000), "- missing: task_decomposition"},
		{"quotes", `{"phase":"planning","comment":"` + strings.Repeat(`"`, 1_000_000), "- missing: task_decomposition"},
		{"line breaks", `{"phase":"planning","comment":"` + strings.Repeat("\n ", 500_000), "- missing: task_decomposition"},
		{"quotes and spaces", `{"phase":"planning","comment":"` + strings.Repeat(`"  ,  `, 160_000), "- missing: task_decomposition"},
		{"thoughts", strings.Repeat("<think>", 140_000) + plan, ""},
		{"comments", `{` + strings.Repeat("/*", 500_000), "- no JSON object in the answer has the form that was asked for"},
		{"backslashes", `{"phase":"planning","comment":"` + strings.Repeat(`\`, 1_000_000), "- missing: task_decomposition"},
		{"no text", "{\"phase\":\"\x00\xff\xfe\", \"task_decomposition\":{\"subtasks\":[{\"id\":\"\x00\",\"description\":\"\xff\"}]}}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse[Plan](KindPlan, c.text)
			if c.want == "" {
				if err != nil {
					t.Fatal(cutError(err))
				}
				return
			}
			var broken *ContractError
			if !errors.As(err, &broken) || broken.Retry() != c.want {
				t.Fatal(cutError(err))
			}
			if len(broken.Error()) > 3000 {
				t.Errorf("the error has %d bytes", len(broken.Error()))
			}
		})
	}
}

func cutError(err error) string {
	if err == nil {
		return "there is no error"
	}
	return excerpt(err.Error())
}

func TestParseWrongType(t *testing.T) {
	t.Parallel()
	_, err := Parse[Plan](KindCompletion, `{"done": true}`)
	var broken *ContractError
	if err == nil || errors.As(err, &broken) {
		t.Errorf("a plan was read as a completion: %v", err)
	}
}

func TestContractError(t *testing.T) {
	t.Parallel()
	e := &ContractError{Kind: KindSubtask, Excerpt: "{"}
	for i := range 30 {
		e.Violations = append(e.Violations, Violation{fmt.Sprintf("$.a[%d]", i), "is wrong"})
	}
	if got := e.Retry(); strings.Count(got, "\n") != maxViolations || !strings.HasSuffix(got, "\n- and 10 more") {
		t.Error(got)
	}
	if got := e.Error(); !strings.HasPrefix(got, "the answer is no subtask result: $.a[0]: is wrong; $.a[1]") || !strings.HasSuffix(got, `(it begins "{")`) {
		t.Error(got)
	}
	if len(e.Violations) != 30 {
		t.Error("violations were lost")
	}
	if got := excerpt(strings.Repeat("あ\n", 500)); len([]rune(got)) != maxExcerpt+1 {
		t.Errorf("the excerpt has %d runes", len([]rune(got)))
	}
}

// FuzzParse: whatever the model writes, the answer keeps its contract or the
// error says what is wrong; what was read is read the same again.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/answers/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	full := strict(f)
	f.Fuzz(func(t *testing.T, text string) {
		defer disktest.Bounded(t, len(text))()
		Detect(text)
		for _, kind := range AnswerKinds() {
			answer, err := parseAny(kind, text)
			var broken *ContractError
			if errors.As(err, &broken) && len(broken.Violations) > 0 && broken.Retry() != "" {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if err := full[kind].Validate(doc); err != nil && !strings.Contains(string(data), `"dependencies":null`) { // of a change that keeps them
				t.Fatalf("%s breaks its schema: %v", data, err)
			}
			again, err := parseAny(kind, string(data))
			if err != nil {
				t.Fatalf("%s cannot be read again: %v", data, err)
			}
			twice, _ := json.Marshal(again)
			if !bytes.Equal(data, twice) {
				t.Fatalf("%s is read as %s", data, twice)
			}
		}
	})
}
