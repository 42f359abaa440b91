package channel

import (
	"time"

	"toritsugi/internal/i18n"
)

// Approval is a proposal as its approvers see it (spec/chat §7, route §6.3). Every text is
// in the language of the session.
type Approval struct {
	Job, Hash string // the job id, and the first twelve digits of the bound hash
	Title     string
	Summary   []string // one to three lines
	Files     []File
	Commands  []string
	// Checks are run on the patch before it is delivered, where their programs are installed.
	Checks []string `json:",omitempty"`
	// Risks is what the program found in the patch; CoderRisk, Notes and Tests are what the
	// coder said of it.
	Risks        []string
	CoderRisk    string
	Notes, Tests []string `json:",omitempty"`
	// Judged says what plan led the coder, and what is open by its own judgement.
	Judged []string `json:",omitempty"`
	// Reversible says whether tori rollback can take it back; Why the reason.
	Reversible bool
	Why        string
	// Cost is an estimate, or "".
	Cost string
	// Diff is the unified diff, as proposed.
	Diff string
	// Status is pending, granted, denied or auto_approved (route §7.3).
	Status  string
	Expires time.Time
	// Approver is who decided ("slack:U1", "system"), and DecidedAt when; zero while
	// nobody has.
	Approver  string    `json:",omitempty"`
	DecidedAt time.Time `json:",omitzero"`
}

// File is what a proposal does to one file.
type File struct {
	Path           string
	From           string // where a renamed file came from, else ""
	Action         string // create, modify, delete, rename, mode
	Added, Removed int    // lines
}

// Name is the path, behind the one that it had.
func (f File) Name() string {
	if f.From == "" {
		return f.Path
	}
	return f.From + " → " + f.Path
}

// Risky reports whether something is taken away, which is shown first.
func (f File) Risky() bool {
	return f.Action == "delete" || f.Action == "rename" || f.Action == "mode"
}

// RowKind says what a Row is.
type RowKind int

const (
	TextRow    RowKind = iota
	TitleRow           // the first one
	SmallRow           // an id or a time
	HeadRow            // begins a list
	ItemRow            // of the list above
	CommandRow         // an item: a shell command
	FileRow            // an item: File
)

// Row is one line of an Approval.
type Row struct {
	Kind RowKind
	Text string
	// Risky rows take something away, or are what somebody should not overlook.
	Risky bool
	File  *File // of a FileRow, whose Text is what happens to it
}

// Rows is what approvers read of a, in the order of spec/chat §7; the diff not. at is how a
// time is written.
func (a *Approval) Rows(l i18n.Lang, at func(time.Time) string) (rows []Row) {
	add := func(kind RowKind, risky bool, text string) {
		rows = append(rows, Row{Kind: kind, Text: text, Risky: risky})
	}
	said := func(key string, args ...any) { add(TextRow, false, l.T(key, args...)) }
	list := func(key string, kind RowKind, risky bool, all []string) {
		if len(all) > 0 {
			add(HeadRow, false, l.T(key))
		}
		for _, s := range all {
			add(kind, risky, s)
		}
	}
	add(TitleRow, false, l.T("approval.title", a.Title))
	add(SmallRow, false, l.T("approval.job", a.Job))
	for _, s := range a.Summary {
		add(TextRow, false, s)
	}
	if len(a.Files) > 0 {
		add(HeadRow, false, l.T("approval.files", len(a.Files)))
	}
	for _, risky := range []bool{true, false} { // those first that take something away
		for i, f := range a.Files {
			if f.Risky() == risky {
				rows = append(rows, Row{Kind: FileRow, Text: l.T("approval.action_" + f.Action), Risky: risky, File: &a.Files[i]})
			}
		}
	}
	if list("approval.environment", CommandRow, false, a.Commands); len(a.Commands) == 0 {
		said("approval.no_commands")
	}
	list("approval.checks", CommandRow, false, a.Checks)
	if list("approval.risks", ItemRow, true, a.Risks); len(a.Risks) == 0 {
		said("approval.no_risks")
	}
	if a.CoderRisk != "" {
		said("approval.coder_risk", a.CoderRisk)
	}
	list("approval.notes", ItemRow, false, a.Notes)
	list("approval.tests", ItemRow, false, a.Tests)
	for _, s := range a.Judged {
		add(TextRow, false, s)
	}
	if a.Reversible {
		said("approval.reversible", a.Why)
	} else {
		add(TextRow, true, l.T("approval.not_reversible", a.Why))
	}
	if a.Cost != "" {
		said("approval.cost_estimate", a.Cost)
	}
	if a.DecidedAt.IsZero() && !a.Expires.IsZero() {
		add(SmallRow, false, l.T("approval.until", at(a.Expires)))
	}
	return rows
}
