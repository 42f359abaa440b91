package scan

import (
	"regexp"
	"slices"

	"toritsugi/internal/lazyregexp"
)

// notDone is how code says that it is not there yet.
const notDone = `(not[ -](yet[ -])?implemented|unimplemented|implement me|\btodo\b|未実装|実装予定)`

var (
	goPanic  = lazyregexp.New(`(?i)\bpanic\(\s*(fmt\.(Sprintf|Sprint|Errorf)\(\s*|errors\.New\(\s*)?["` + "`" + `][^"` + "`" + `]*` + notDone)
	goError  = lazyregexp.New(`(?i)\breturn\b.*\b(errors\.New|fmt\.Errorf)\(\s*"\s*` + notDone + `( yet)?[.!]?"\s*\)`)
	rustTodo = lazyregexp.New(`\b(todo|unimplemented)!\s*[(\[{]|\bpanic!\s*\(\s*"(?i:[^"]*` + notDone + `)`)
	jsThrow  = lazyregexp.New(`(?i)\bthrow\s+(new\s+)?([\w.]*(Error|Exception)\s*\(\s*)?["'` + "`" + `][^"'` + "`" + `]*` + notDone + `|\bthrow\s+new\s+\w*NotImplemented\w*\s*\(`)
	javaTodo = lazyregexp.New(`(?i:\bthrow\s+(new\s+)?[\w.\\]*(Error|Exception)\s*\(\s*["'][^"']*` + notDone + `)|\bthrow\s+(new\s+)?[\w.\\]*NotImplemented\w*\s*\(|^\s*TODO\(\s*("[^"]*")?\s*\)|=\s*TODO\(`)
	scalaTo  = lazyregexp.New(`=\s*\?\?\?\s*$`)
	swiftTo  = lazyregexp.New(`(?i)\b(fatalError|preconditionFailure)\(\s*"[^"]*` + notDone)
	dartTo   = lazyregexp.New(`\bthrow\s+UnimplementedError\s*\(`)
	cAssert  = lazyregexp.New(`(?i)\b(assert|abort_msg)\s*\(\s*((0|false|!)\s*&&\s*)?!?"[^"]*` + notDone + `|^\s*#\s*error\b.*` + notDone + `|\bthrow\s+std::(runtime_error|logic_error)\s*\(\s*"[^"]*` + notDone)
	notImpl  = lazyregexp.New(`^\s*raise\s+NotImplementedError\b(.*)`)
	dotsOnly = lazyregexp.New(`^\s*(\.{3}|…)\s*$`)
	excused  = lazyregexp.New(`(?i)subclass|sub-class|derived|child class|overrid|abstract|must (be )?implement|should (be )?implement|implemented (by|in)|unsupported|not supported|does(n't| not) support|サブクラス|派生|継承|オーバーライド|対応してい`)
	promises = lazyregexp.New(`(?i)\byet\b|todo|not (yet )?implemented|実装`)
)

// undone finds code of a family that only says that it is not written yet; at
// least its first byte has to be code by class.
func undone(family string, s string, class []byte) bool {
	if !hopeful(s) {
		return false
	}
	var all []func() *regexp.Regexp
	switch family {
	case "go":
		all = append(all, goPanic, goError)
	case "rust":
		all = append(all, rustTodo)
	case "js", "html":
		all = append(all, jsThrow)
	case "java", "cs", "php":
		all = append(all, javaTodo, scalaTo)
	case "swift":
		all = append(all, swiftTo)
	case "dart":
		all = append(all, dartTo, jsThrow)
	case "c":
		all = append(all, cAssert)
	}
	return slices.ContainsFunc(all, func(p func() *regexp.Regexp) bool { return found(p(), s, class) })
}

// hopeful sorts out most lines before any expression is tried.
func hopeful(s string) bool {
	return anyOf(s, "mplement", "odo", "TODO", "MPLEMENT", "実装", "???")
}

// found reports whether p matches s from a byte of code on.
func found(p *regexp.Regexp, s string, class []byte) bool {
	for _, m := range p.FindAllStringIndex(s, 8) {
		at := m[0]
		for at < m[1]-1 && (s[at] == ' ' || s[at] == '\t') {
			at++
		}
		if class[at] == code {
			return true
		}
	}
	return false
}

// standsIn matches names of what does nothing on purpose, or is there to be
// derived from.
var standsIn = lazyregexp.New(`(?i)(^|[_\W])(base|abstract|null|no_?op|dummy|fake|stub|mock|unimplemented|interface)|(base|mixin|protocol|interface|abc|noop)$|^I[A-Z]|Abstract|Unimplemented|Base[A-Z]|Null[A-Z]|Fake|Stub|Mock`)
