// Package document reads YAML that others wrote. A parser of YAML takes a
// multiple of a text's length, and of some texts its square; here what it would
// take is known and bounded before it is asked.
package document

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"toritsugi/internal/i18n"
)

// Bounds of a document. A bracket is a token of some 200 bytes, so that one of
// MaxBytes takes 300 MB at the very most.
const (
	MaxBytes = 1 << 20
	maxDepth = 100      // of what lies within each other: the parser recurses
	maxWork  = 64 << 20 // bytes; see weigh
)

// Error is why a text is no document, and where.
type Error struct {
	Line int // from 1
	Why  any // a string of the parser, or an *i18n.Error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Why) }

// Parse parses a text. What is broken, too long or too deep, and what the parser
// gives up on, is an *Error.
func Parse(data []byte, options ...parser.Option) (file *ast.File, err error) {
	if len(data) > MaxBytes {
		return nil, &Error{1, i18n.E("document.too_large", MaxBytes>>10)}
	}
	defer func() {
		if r := recover(); r != nil { // a broken text must not end the program
			file, err = nil, &Error{1, fmt.Sprintf("the parser gave up: %v", r)}
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if line := weigh(tokens); line > 0 {
		return nil, &Error{line, i18n.E("document.too_deep")}
	}
	if file, err = parser.Parse(tokens, 0, options...); err != nil {
		return nil, Explain(err)
	}
	return file, nil
}

// Explain is an error of the parser, or of what decodes its nodes, as an *Error.
func Explain(err error) *Error {
	var at yaml.Error
	if !errors.As(err, &at) {
		return &Error{1, firstLine(err.Error())}
	}
	// Its Error prints the text around, which of some texts takes gigabytes.
	e := &Error{1, firstLine(at.GetMessage())}
	if t := at.GetToken(); t != nil && t.Position != nil {
		e.Line = t.Position.Line
	}
	return e
}

// Line is the line that a node stands on, from 1; 1 where it does not tell.
func Line(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// frame is something that others lie within.
type frame struct {
	kind   token.Type // of its first token; a key's is MappingValueType
	column int        // of a block
	path   int        // bytes that it adds to the path of what lies in it
	keys   int        // of a flow, or of the block that a key is of, so far
}

func (f frame) flow() bool {
	return f.kind == token.MappingStartType || f.kind == token.SequenceStartType
}

// weigh returns the first line on which a text is deeper than maxDepth, or would
// have cost the parser more than maxWork, or 0. The parser keeps with each node the
// path to it, and looks for each key through those before it.
func weigh(tokens token.Tokens) int {
	var stack []frame
	path, work := 0, 0
	pop := func() frame {
		top := stack[len(stack)-1]
		stack, path = stack[:len(stack)-1], path-top.path
		return top
	}
	// next ends what ends where a part of a block begins, as far as what has the same
	// column is of these kinds; flow ends what ends at a bracket or a comma.
	next := func(column int, same ...token.Type) (last frame) {
		for n := len(stack); n > 0 && !stack[n-1].flow(); n = len(stack) {
			top := stack[n-1]
			if top.column < column || top.column == column && !slices.Contains(same, top.kind) {
				break
			}
			last = pop()
		}
		return last
	}
	inFlow := func() bool { return slices.ContainsFunc(stack, frame.flow) }
	flow := func() {
		for !stack[len(stack)-1].flow() {
			pop()
		}
	}
	push := func(f frame) { stack, path = append(stack, f), path+f.path }
	var before *token.Token
	for _, t := range tokens {
		switch t.Type {
		case token.DocumentHeaderType, token.DocumentEndType:
			stack, path = nil, 0
		case token.MappingStartType, token.SequenceStartType:
			push(frame{kind: t.Type, path: 8})
		case token.MappingEndType, token.SequenceEndType:
			if inFlow() {
				flow()
				pop()
			}
		case token.CollectEntryType:
			if inFlow() {
				flow()
			}
		case token.SequenceEntryType:
			next(t.Position.Column, t.Type)
			push(frame{kind: t.Type, column: t.Position.Column, path: 8})
		case token.MappingKeyType:
			next(t.Position.Column, t.Type, token.MappingValueType, token.SequenceEntryType)
			push(frame{kind: t.Type, column: t.Position.Column, path: 8})
		case token.MappingValueType:
			key := frame{kind: t.Type, column: t.Position.Column, path: 4}
			if before != nil {
				key.path += len(before.Value)
				if before.Position.Line == t.Position.Line {
					key.column = before.Position.Column
				}
			}
			if inFlow() {
				flow() // a pair ends at a comma, which may be missing
				stack[len(stack)-1].keys++
				work += 8 * stack[len(stack)-1].keys
			} else if last := next(key.column, token.MappingValueType, token.MappingKeyType, token.SequenceEntryType); last.column == key.column {
				key.keys = last.keys + 1
				work += 8 * key.keys
			}
			push(key)
		}
		if work += path; len(stack) > maxDepth || work > maxWork {
			return t.Position.Line
		}
		if t.Type != token.CommentType {
			before = t
		}
	}
	return 0
}
