package scan

import (
	"regexp"

	"toritsugi/internal/lazyregexp"
)

// dialect is how a language writes tests.
type dialect struct {
	declare func() *regexp.Regexp // a test; its last group that matched is the name
	mark    func() *regexp.Regexp // the next function is a test; nil where names tell
	marked  func() *regexp.Regexp // that function
	skip    func() *regexp.Regexp
	focus   func() *regexp.Regexp
	assert  func() *regexp.Regexp
	trivial func() *regexp.Regexp
	other   func() *regexp.Regexp // another function: what follows is not the test's before
	ends    func() *regexp.Regexp // the program, without an error; nil where no test can, and for Go, which is parsed
	endsAll func() *regexp.Regexp // and so that nothing that runs tests notices, wherever it stands
}

var (
	goDialect = dialect{
		declare: lazyregexp.New(`^func ((?:Test|Fuzz|Example)\w*)\(`),
		skip:    lazyregexp.New(`\b[a-z]+\.(Skip|Skipf|SkipNow)\(`),
		assert:  lazyregexp.New(`\b(t|b|f|tb|rt)\.(Errorf?|Fatalf?|Fail|FailNow)\(|\b(assert|require|is|qt|must)\.\w+\(|\b(assert|require|must|check|expect|want|verify|equal|same|diff)\w*\((t|rt|tb)\b`),
		trivial: lazyregexp.New(`\b(assert|require)\.(True\(\s*t\s*,\s*true|False\(\s*t\s*,\s*false|Equal\(\s*t\s*,\s*(true\s*,\s*true|1\s*,\s*1)|Nil\(\s*t\s*,\s*nil)\s*[,)]`),
		other:   lazyregexp.New(`^func `),
	}
	pythonDialect = dialect{
		declare: lazyregexp.New(`^\s*(?:async\s+)?def\s+(test\w*)\s*\(`),
		skip:    lazyregexp.New(`@?pytest\.mark\.(skip|skipif|xfail)\b|\bpytest\.(skip|xfail)\(|@(unittest\.)?(skip|skipIf|skipUnless|expectedFailure)\b|\bself\.skipTest\(|\braise\s+(unittest\.)?SkipTest\b`),
		assert:  lazyregexp.New(`^\s*assert\b|\bself\.(assert|fail)\w*\(|\bpytest\.(raises|warns|fail)\b|\.assert_(called|not_called|any_call|has_calls|awaited)\w*|\bnp\.testing\.assert|\bassert_\w+\(`),
		trivial: lazyregexp.New(`^\s*assert\s+(True|1|not\s+False|1\s*==\s*1|"[^"]*"|\(.*,\s*["'].*\))\s*(,.*)?(#.*)?$|\bself\.assertTrue\(\s*True\s*[,)]|\bself\.assertFalse\(\s*False\s*[,)]|\bself\.assertEqual\(\s*(1\s*,\s*1|True\s*,\s*True)\s*[,)]`),
		other:   lazyregexp.New(`^\s*(?:async\s+)?(def|class)\s`),
		ends:    lazyregexp.New(`\b(os\._exit|sys\.exit|exit|quit|SystemExit)\(\s*(0|None)?\s*\)|\braise\s+SystemExit\s*$`),
		endsAll: lazyregexp.New(`\b_exit\(\s*0?\s*\)|\b_exit\s*,\s*0\b`),
	}
	jsDialect = dialect{
		declare: lazyregexp.New("^\\s*(?:x?it|x?test|x?specify|fit|Deno\\.test)(?:\\.(?:each|concurrent|skip|only|failing|todo|fixme)\\b(?:\\([^\"'`]*\\)|`[^`]*`)?)*\\s*\\(\\s*(\"[^\"]*\"|'[^']*'|`[^`]*`)"),
		skip:    lazyregexp.New("\\b(?:it|test|describe|context|suite|specify)\\.(?:skip|todo|failing|fixme)\\b|\\b(?:xit|xtest|xdescribe|xcontext|xspecify)\\s*\\(|\\bthis\\.skip\\(\\)|\\bt\\.skip\\(|\\bignore:\\s*true\\b"),
		focus:   lazyregexp.New("\\b(?:it|test|describe|context|suite|specify)\\.only\\b|\\b(?:fit|fdescribe)\\s*\\(\\s*[\"'`]|\\bonly:\\s*true\\b"),
		assert:  lazyregexp.New(`\bexpect\w*\s*\(|\bassert\w*(\.\w+)*\s*\(|\.should\b|\bt\.(is|not|true|false|truthy|falsy|deepEqual|throws\w*|equal|ok|same|match)\b`),
		trivial: lazyregexp.New(`\bexpect\(\s*(true|1)\s*\)\.(toBe\w*|toEqual|to\.(be|equal|eq)\w*)\b(\.true|\(\s*(true|1)?\s*\))?|\bassert(\.ok|\.equal|\.strictEqual)?\(\s*(true|1\s*,\s*1|true\s*,\s*true)\s*[,)]`),
		ends:    lazyregexp.New(`\bprocess\.(exit|reallyExit)\(\s*0?\s*\)|\bprocess\.exitCode\s*=\s*0\b|\bDeno\.exit\(\s*0?\s*\)`),
		endsAll: lazyregexp.New(`\bprocess\.reallyExit\(\s*0?\s*\)|\bprocess\.exitCode\s*=\s*0\b`),
	}
	rustDialect = dialect{
		mark:    lazyregexp.New(`^\s*#\[\s*(?:[\w:]+::)?(?:test|rstest|test_case|proptest|wasm_bindgen_test)\b`),
		marked:  lazyregexp.New(`\bfn\s+(\w+)`),
		skip:    lazyregexp.New(`^\s*#\[\s*ignore\b`),
		assert:  lazyregexp.New(`\b(debug_|prop_)?assert(_\w+)?!|\bpanic!`),
		trivial: lazyregexp.New(`\bassert!\(\s*true\s*[,)]|\bassert_eq!\(\s*(1\s*,\s*1|true\s*,\s*true)\s*[,)]`),
		other:   lazyregexp.New(`^\s*(pub\s+)?(async\s+)?fn\s`),
		ends:    lazyregexp.New(`\bprocess::exit\(\s*0\s*\)`),
	}
	javaDialect = dialect{
		declare: lazyregexp.New("^\\s*(?:it|test|should|scenario|Scenario|feature)\\s*\\(\\s*(\"[^\"]+\")"),
		mark:    lazyregexp.New(`^\s*@(Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b|^\s*\[\s*(Fact|Theory|Test|TestMethod|TestCase)\b`),
		marked:  lazyregexp.New("(?:\\bfun\\s+(`[^`]+`|\\w+)|\\b(\\w+))\\s*\\("),
		skip:    lazyregexp.New(`^\s*@(Disabled|Ignore)\b|^\s*\[\s*(Ignore|Explicit)\b|\[\s*(Fact|Theory)\s*\(.*\bSkip\s*=|\bAssume\.|\bassume(True|False|That)\(|\bAssert\.(Ignore|Inconclusive)\(`),
		assert:  lazyregexp.New(`\b(assert\w*|verify\w*|fail|expect\w*|should\w*)\s*(\(|\{)|\bAssert\.\w+|\bAssertions?\.\w+|\.Should\(\)`),
		trivial: lazyregexp.New(`\b(assertTrue|Assert\.(True|IsTrue)|Assertions\.assertTrue)\(\s*true\s*[,)]|\b(assertFalse|Assert\.(False|IsFalse))\(\s*false\s*[,)]|\b(assertEquals|Assert\.(Equal|AreEqual))\(\s*(1\s*,\s*1|true\s*,\s*true)\s*[,)]`),
		ends:    lazyregexp.New(`\b(System|Environment)\.[eE]xit\(\s*0\s*\)|\bhalt\(\s*0\s*\)|\bexitProcess\(\s*0\s*\)`),
	}
	rubyDialect = dialect{
		declare: lazyregexp.New(`^\s*def\s+(test_\w+)|^\s*(?:[xf]?it|x?test|[xf]?specify|scenario|example)\s*\(?\s*("[^"]*"|'[^']*')`),
		skip:    lazyregexp.New(`^\s*(xit|xtest|xspecify|xdescribe|xcontext|skip|pending)\b|,\s*:?(skip|pending)\b(:|\s*=>|\s+do)`),
		focus:   lazyregexp.New(`^\s*(fit|fdescribe|fcontext)\b|,\s*(:focus\b|focus:\s*true)`),
		assert:  lazyregexp.New(`\b(assert\w*|refute\w*|expect|flunk)\b|\.(must|wont|should)(_\w+)?\b`),
		ends:    lazyregexp.New(`^\s*(Kernel\.)?exit!?(\s*\(?\s*(0|true)\s*\)?)?\s*$`),
		endsAll: lazyregexp.New(`\bexit!\s*\(?\s*(0|true)\b`),
		trivial: lazyregexp.New(`^\s*assert\s*\(?\s*true\s*\)?\s*$|\bassert_equal\s*\(?\s*(1\s*,\s*1|true\s*,\s*true)|\bexpect\(\s*true\s*\)\.to\s+(be\(?\s*true|eq\(?\s*true|be_truthy)`),
	}
	phpDialect = dialect{
		declare: lazyregexp.New(`\bfunction\s+(test\w+)\s*\(|^\s*(?:it|test)\s*\(\s*("[^"]*"|'[^']*')`),
		mark:    lazyregexp.New(`^\s*#\[\s*Test\b|^\s*\*\s*@test\b`),
		marked:  lazyregexp.New(`\bfunction\s+(\w+)`),
		skip:    lazyregexp.New(`\bmarkTest(Skipped|Incomplete)\(|->(skip|todo)\(|@doesNotPerformAssertions`),
		focus:   lazyregexp.New(`->only\(\)`),
		ends:    lazyregexp.New(`\b(exit|die)\s*(\(\s*0?\s*\))?\s*;`),
		assert:  lazyregexp.New(`(\$this->|self::|static::)(assert|expect|fail)\w*\(|\bexpect\(|\bassert\(`),
		trivial: lazyregexp.New(`(\$this->|self::|static::)assertTrue\(\s*true\s*[,)]|\bexpect\(\s*true\s*\)->toBeTrue`),
	}
	cDialect = dialect{
		declare: lazyregexp.New(`^\s*(?:TEST(?:_F|_P|_CASE|_METHOD)?|TYPED_TEST|BOOST_AUTO_TEST_CASE|SCENARIO)\s*\(\s*([^)]*)`),
		skip:    lazyregexp.New(`\bGTEST_SKIP\(\)|\bTEST\w*\(\s*\w+\s*,\s*DISABLED_|\[\.\w*\]|\bSKIP\(|\bTEST_IGNORE\w*\(`),
		assert:  lazyregexp.New(`\b(EXPECT|ASSERT|CHECK|REQUIRE|BOOST_(CHECK|REQUIRE|TEST)|TEST_ASSERT|FAIL)(_\w+)?\s*\(|\bassert\s*\(|\bck_assert\w*\(`),
		ends:    lazyregexp.New(`\b_?[eE]xit\(\s*(0|EXIT_SUCCESS)\s*\)`),
		trivial: lazyregexp.New(`\b(EXPECT_TRUE|ASSERT_TRUE|CHECK|REQUIRE|TEST_ASSERT_TRUE)\(\s*(true|1)\s*\)|\bassert\(\s*(true|1)\s*\)`),
	}
	swiftDialect = dialect{
		declare: lazyregexp.New(`^\s*(?:override\s+)?func\s+(test\w*)\s*\(`),
		mark:    lazyregexp.New(`^\s*@Test\b`),
		marked:  lazyregexp.New(`\bfunc\s+(\w+)`),
		skip:    lazyregexp.New(`\bthrow\s+XCTSkip\b|\.disabled\(`),
		assert:  lazyregexp.New(`\bXCT(Assert|Fail|Unwrap)\w*|#expect\(|#require\(`),
		trivial: lazyregexp.New(`\bXCTAssert(True)?\(\s*true\s*[,)]|#expect\(\s*true\s*\)`),
	}
	dartDialect = dialect{
		declare: lazyregexp.New(`^\s*(?:test|testWidgets|group)\s*\(\s*("[^"]*"|'[^']*')`),
		skip:    lazyregexp.New(`\bskip:\s*(true|'|")`),
		focus:   lazyregexp.New(`\bsolo:\s*true`),
		assert:  lazyregexp.New(`\bexpect(Later)?\s*\(|\bfail\(`),
		trivial: lazyregexp.New(`\bexpect\(\s*true\s*,\s*(true|isTrue)\s*\)`),
	}
	elixirDialect = dialect{
		declare: lazyregexp.New(`^\s*(?:test|property)\s+("[^"]*")`),
		skip:    lazyregexp.New(`^\s*@(module)?tag\s+:?skip\b`),
		assert:  lazyregexp.New(`\b(assert|refute)\w*\b`),
		trivial: lazyregexp.New(`^\s*assert\s+true\s*$`),
	}
	shellDialect = dialect{
		declare: lazyregexp.New(`^\s*@test\s+("[^"]*"|'[^']*')|^\s*(?:function\s+)?(test_\w+)\s*\(\)`),
		skip:    lazyregexp.New(`^\s*skip\b`),
		assert:  lazyregexp.New(`\b(assert|refute)\w*\b|^\s*(\[|\[\[|test)\s`),
		trivial: lazyregexp.New(`^\s*(\[ 1 -eq 1 \]|\[\[ true \]\])`),
	}
)

// dialectOf finds how a family of languages writes tests, nil for none.
func dialectOf(family string) *dialect {
	switch family {
	case "go":
		return &goDialect
	case "python":
		return &pythonDialect
	case "js":
		return &jsDialect
	case "rust":
		return &rustDialect
	case "java", "cs":
		return &javaDialect
	case "ruby":
		return &rubyDialect
	case "php":
		return &phpDialect
	case "c":
		return &cDialect
	case "swift":
		return &swiftDialect
	case "dart":
		return &dartDialect
	case "elixir":
		return &elixirDialect
	case "shell":
		return &shellDialect
	}
	return nil
}
