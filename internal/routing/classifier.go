package routing

// Classified is what became of the one call of the classifier.
type Classified struct {
	// Route and Confidence are what the model said, "" and 0 where that could not be
	// read. They need not be the decision's.
	Route      Route
	Confidence float64
	// Error is why the answer was not followed, "" where it was.
	Error ClassifierError
	// Raw is the answer, or the error of the call; at most 2,000 bytes, unmasked.
	Raw string
}

// ClassifierError is why what the classifier said is not followed: the reason of a
// classifier.error, and of the first two kinds of the fallback alone.
type ClassifierError string

// The reasons (spec/chat §3). LowConfidence and NoEvidence are decisions, no errors: no
// classifier.error is written for them.
const (
	InvalidOutput ClassifierError = "invalid_output"
	MissingField  ClassifierError = "missing_field"
	UnknownRoute  ClassifierError = "unknown_route"
	OutOfRange    ClassifierError = "out_of_range"
	CallFailed    ClassifierError = "call_failed"
	LowConfidence ClassifierError = "low_confidence"
	NoEvidence    ClassifierError = "code_without_evidence"
)
