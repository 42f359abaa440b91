package routing

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"toritsugi/internal/lazyregexp"
)

// kinds are the tests that a rule names by kind (spec/chat §3).
var kinds = map[string]func(*message) (string, bool){
	"unified_diff":      unifiedDiff,
	"closed_fence":      closedFence,
	"stacktrace_go":     traceGo,
	"stacktrace_python": tracePython,
	"stacktrace_node":   traceNode,
	"stacktrace_java":   traceJava,
	"build_file":        workOn(buildFile),
	"source_file":       workOn(sourceFile),
	"table":             table,
	"json":              jsonBlock,
	"bulk_log":          bulkLog,
	"statement":         statement,
}

// Kinds lists the names that a rule may give as kind.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// StrongEvidence reports whether a message shows by itself that code is to be changed: a
// code-made kind of the dictionary, or an identifier in the form of code with a verb of
// change (spec/chat §3). It is the test of a classifier's or Chat's CODE.
func StrongEvidence(text string) bool {
	m := newMessage(text)
	for _, kind := range []func(*message) (string, bool){unifiedDiff, closedFence, traceGo, tracePython, traceNode, traceJava, table, jsonBlock, bulkLog} {
		if _, ok := kind(m); ok {
			return true
		}
	}
	if buildFile(m.raw).end > 0 || sourceFile(m.raw).end > 0 {
		return true
	}
	if signals().find(m.folded)[signalChange].end == 0 {
		return false
	}
	return slices.ContainsFunc(identifier().FindAllString(m.raw, maxBlocks), func(name string) bool { return !brands[strings.ToLower(name)] })
}

// brands are written like identifiers, and are none.
var brands = setOf("iphone ipad ipod imac ios ipados macos tvos watchos icloud airpods ebay youtube github gitlab javascript typescript powerpoint linkedin wordpress paypal facebook whatsapp tiktok onedrive onenote sharepoint chatgpt openai deepseek postgresql mysql mongodb devops bigquery salesforce mcdonald macbook photoshop latex")

// identifier finds a name as code has it: in backticks, with brackets of a call, or of
// several words (snake_case, camelCase, pkg.Name).
var identifier = lazyregexp.New("`[^`\n]*[A-Za-z_][^`\n]*`" + `|\b[A-Za-z_][A-Za-z0-9_]*\(|\b[A-Za-z0-9]+_[A-Za-z0-9_]+\b|\b[a-z]+[a-z0-9]*[A-Z][A-Za-z0-9]*\b|\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b|\b[a-z][a-z0-9]+\.[A-Z][A-Za-z0-9]+\b`)

var (
	hunk    = lazyregexp.New(`(?m)^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*\r?\n[-+ \\]`)
	headers = lazyregexp.New(`(?m)^--- \S.*\r?\n\+\+\+ \S`)
	gitDiff = lazyregexp.New(`(?m)^diff --git \S+ \S+`)
)

func unifiedDiff(m *message) (string, bool) {
	for _, p := range []struct {
		sign string
		find func() *regexp.Regexp
	}{{"diff --git ", gitDiff}, {"\n+++ ", headers}, {"@@ -", hunk}} {
		if !strings.Contains(m.raw, p.sign) {
			continue
		}
		if piece := p.find().FindString(m.raw); piece != "" {
			return piece, true
		}
	}
	return "", false
}

var (
	pythonHead  = lazyregexp.New(`(?m)^[> \t]*(?:\S+ )?Traceback \(most recent call last\):`)
	pythonFile  = lazyregexp.New(`(?m)^[> \t]*File ".+", line \d+`)
	nodeAt      = lazyregexp.New(`(?m)^[> \t]*at (?:.+ \()?[^()\n]*[^()\s]:\d+:\d+\)?\r?$`)
	nodeError   = lazyregexp.New(`(?m)^(?:Uncaught )?(?:TypeError|ReferenceError|SyntaxError|RangeError|EvalError|URIError): [\x21-\x7e]+ [\x21-\x7e]+`)
	javaAt      = lazyregexp.New(`(?m)^[> \t]*at [\w.$<>/]+\([\w$]+\.(?:java|kt|scala):\d+\)`)
	javaThrown  = lazyregexp.New(`\b[\w.$]*(?:Exception|Error)\b`)
	goPanic     = lazyregexp.New(`(?m)^(?:panic|fatal error): .+`)
	goGoroutine = lazyregexp.New(`(?m)^goroutine \d+ \[`)
)

var (
	tracePython = trace("Traceback (", pythonFile, pythonHead)
	traceJava   = trace("at ", javaThrown, javaAt)
	traceGo     = trace("goroutine ", goGoroutine, goPanic)
)

// trace finds the piece of a stack trace, where the message has a sign of one and
// what else belongs to it.
func trace(sign string, besides, piece func() *regexp.Regexp) func(*message) (string, bool) {
	return func(m *message) (string, bool) {
		if !strings.Contains(m.raw, sign) || !besides().MatchString(m.raw) {
			return "", false
		}
		found := piece().FindString(m.raw)
		return found, found != ""
	}
}

func traceNode(m *message) (string, bool) {
	if strings.Contains(m.raw, "Error: ") {
		if piece := nodeError().FindString(m.raw); piece != "" {
			return piece, true
		}
	}
	if !strings.Contains(m.raw, "at ") {
		return "", false
	}
	piece := nodeAt().FindString(m.raw)
	return piece, piece != ""
}

// What the word behind the backticks of a fence says of what is in it.
var (
	codeFences  = setOf("go golang py python python3 js javascript mjs ts typescript tsx jsx java kotlin kt scala groovy rust rs c h cpp c++ cc hpp cs csharp fsharp vb php ruby rb swift objc dart elixir erlang haskell hs ocaml clojure lua perl r julia sql html xml css scss sass less vue svelte yaml yml toml ini dockerfile makefile cmake hcl terraform tf nginx graphql proto protobuf diff patch asm wasm zig nim solidity vim lisp")
	shellFences = setOf("sh bash zsh fish shell powershell ps1 bat cmd")
	textFences  = setOf("text txt plain plaintext log csv tsv json jsonl console terminal shell-session shellsession output md markdown mermaid")
)

func setOf(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// closedFence finds a fence that is closed and has code in it.
func closedFence(m *message) (string, bool) {
	rest := m.raw
	for {
		i := strings.Index(rest, "```")
		if i < 0 {
			return "", false
		}
		inside := rest[i+3:]
		n := strings.Index(inside, "```")
		if n < 0 {
			return "", false
		}
		rest = strings.TrimLeft(inside[n+3:], "`")
		tag, body, lines := strings.Cut(inside[:n], "\n")
		if !lines { // within a line, as chats show it
			tag, body = "", tag
		}
		tag, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(tag)), " ")
		switch {
		case strings.TrimSpace(body) == "" || textFences[tag]:
		case codeFences[tag], looksLikeCode(body, shellFences[tag]):
			return strings.TrimSpace(body), true
		}
	}
}

var (
	// codeStart is how a line of code begins, codeEnd how it ends or what it has in it.
	codeStart = lazyregexp.New(`^\s*(?:func |def |class \w|import |from [\w.]+ import |package |const \w|let \w|var \w|return\b|if\s*\(|if .*[:{]$|for\s*\(|for .*[:{]$|while\s*\(|else\b|elif |try\b|except\b|catch\b|public |private |protected |static |async |await |export |fn |impl |struct |enum |interface |type \w+ |use \w|using |namespace |#include|#!|@\w+|SELECT .*FROM|INSERT INTO|CREATE TABLE|UPDATE .* SET|</?[a-zA-Z][^>]*>|//|/\*|print\(|console\.|fmt\.)`)
	codeEnd   = lazyregexp.New(`[;{}]\s*$|^\s*[)\]}]+[;,]?\s*$|\w\(.*\)\s*[:;{]?\s*$| (?::=|=>|->|==|!=|\+=) |^\s*[\w.\[\]"']+ = .`)
	// scriptLine is a line that only a script has, not a list of commands.
	scriptLine = lazyregexp.New(`^\s*(?:#!|if |then\b|fi\b|for .*; do|for .* in |while |done\b|case |esac\b|function |\w+\(\)|export \w+=|[A-Za-z_]\w*=|set -|local |param\b|\$\w+ = )`)
)

// looksLikeCode reports whether a third of the lines of a text are such as code has.
func looksLikeCode(text string, shell bool) bool {
	all, code := 0, 0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		all++
		if shell && scriptLine().MatchString(line) || !shell && (codeStart().MatchString(line) || codeEnd().MatchString(line)) {
			code++
		}
		if all == 400 {
			break
		}
	}
	return code > 0 && code*3 >= all
}

// table finds three rows in a row with as many commas, tabs or bars.
func table(m *message) (string, bool) {
	for _, sep := range []byte{',', '\t', '|'} {
		if strings.Count(m.raw, string(sep)) < 3 {
			continue
		}
		first, n, rows, numbers, spaced := "", 0, 0, 0, 0
		for line := range strings.SplitSeq(m.raw, "\n") {
			cells, number, prose := row(strings.TrimRight(line, "\r"), sep)
			if cells == 0 || cells != n {
				first, n, rows, numbers, spaced = line, cells, 0, 0, 0
			}
			if cells == 0 {
				continue
			}
			rows++
			if number {
				numbers++
			}
			if prose {
				spaced++
			}
			// Three sentences with a comma each are no table: their cells are no numbers.
			if rows >= 3 && (spaced == 0 || numbers >= 2) {
				return first, true
			}
		}
	}
	return "", false
}

// maxCell is the longest cell of a table, in bytes: what is longer is a sentence.
const maxCell = 120

// row counts the cells of a line, 0 where it is none of a table. number says that a cell
// is a number, prose that a space follows each comma.
func row(line string, sep byte) (cells int, number, prose bool) {
	line = strings.TrimSpace(line)
	if sep == '|' {
		if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") || len(line) < 3 || strings.Trim(line, "|-: ") == "" {
			return 0, false, false
		}
		line = line[1 : len(line)-1]
	}
	if len(line) > 4000 || strings.Count(line, string(sep)) == 0 || strings.HasSuffix(line, ";") || strings.HasSuffix(line, "{") || strings.HasSuffix(line, ",") ||
		strings.HasSuffix(line, "。") {
		return 0, false, false
	}
	prose = sep == ','
	for cell := range strings.SplitSeq(line, string(sep)) {
		if cells > 0 && !strings.HasPrefix(cell, " ") {
			prose = false
		}
		cells++
		cell = strings.Trim(cell, " \"'¥$€%")
		if len(cell) > maxCell {
			return 0, false, false
		}
		if cell != "" && strings.Trim(cell, "0123456789.-+:/%") == "" && strings.ContainsAny(cell, "0123456789") {
			number = true
		}
	}
	return cells, number, prose
}

// maxBlocks is how many brackets in front of a line are tried as JSON.
const maxBlocks = 20

// jsonBlock finds a message that is one JSON object or list, or a block of three lines of
// JSON in it.
func jsonBlock(m *message) (string, bool) {
	text := strings.TrimSpace(m.raw)
	if text == "" || !strings.ContainsAny(text, "{[") {
		return "", false
	}
	if text[0] == '{' || text[0] == '[' {
		if m.cut && strings.Contains(text, `":`) || jsonValue(text) == len(text) && telling(text) {
			return text, true
		}
	}
	tries, objects, first := 0, 0, ""
	for at := 0; at < len(text) && tries < maxBlocks; {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text) - at
		}
		line := strings.TrimSpace(text[at : at+end])
		if line == "" || line[0] != '{' && line[0] != '[' {
			objects, at = 0, at+end+1
			continue
		}
		tries++
		n := jsonValue(text[at:])
		switch value := strings.TrimSpace(text[at : at+n]); {
		case n == 0:
			objects = 0
		case strings.Count(value, "\n") >= 2:
			return value, true
		case line[0] == '{' && value == line:
			if objects++; objects == 1 {
				first = line
			}
			if objects >= 3 {
				return first, true
			}
		}
		at += max(end, n) + 1
	}
	return "", false
}

// jsonValue is the length of the JSON value that text begins with, 0 where it is none.
func jsonValue(text string) int {
	var raw json.RawMessage
	d := json.NewDecoder(strings.NewReader(text))
	if d.Decode(&raw) != nil {
		return 0
	}
	return int(d.InputOffset())
}

// telling reports whether a JSON value is more than a bracket that somebody wrote: [1],
// {} are not.
func telling(text string) bool {
	return strings.Contains(text, `":`) || strings.Contains(text, `" :`) || strings.Count(text, ",") >= 2
}

// bulkLines is how many lines make a text bulk: fifteen behind the first.
const bulkLines = 16

var logLine = lazyregexp.New(`^\W{0,3}(?:\d{4}[-/]\d\d?[-/]\d\d?|\d{1,2}:\d\d:\d\d|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d |\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|\d{10,13}\b)|\b(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL|NOTICE|CRITICAL)\b|\blevel=\w+|^[A-Z]\d{4} \d\d:`)

// bulkLog finds lines that were logged: sixteen or more, half of which have a time, an
// address or a level in front.
func bulkLog(m *message) (string, bool) {
	if strings.Count(m.raw, "\n") < bulkLines-1 {
		return "", false
	}
	all, logged, first := 0, 0, ""
	for line := range strings.SplitSeq(m.raw, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		all++
		if logLine().MatchString(line[:min(len(line), 200)]) {
			if logged++; logged == 1 {
				first = line
			}
		}
	}
	return first, all >= bulkLines && logged*2 >= all
}
