package routing

// StrongEvidence reports whether a message shows by itself that code is to be changed: a
// code-made kind of the dictionary, or an identifier in the form of code with a verb of
// change (spec/chat §3). It is the test of a classifier's or Chat's CODE.
func StrongEvidence(text string) bool { return false }
