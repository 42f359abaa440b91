package routing

// Coder chooses the coder of a text by content: Code3 by its words, else Code1 by its,
// else Code2 (spec/facts §2.7).
func Coder(text string) Route { return Code2 }

// CoderRole returns the role (of routing.llm) that a coding route is served by: Code1 by
// "coder", Code2 by "coder2" or, where that is not set, by "coder", Code3 by "coder3".
// Code is to be resolved by Coder before. The error is an *i18n.Error that names the
// setting that is missing.
func CoderRole(route Route, set func(role string) bool) (string, error) { return "", nil }
