package tables

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"toritsugi/internal/disk"
)

// engine is a kind of database. Statements are in the words that both kinds know, with ? for
// each argument, {now} for the time in ms since 1970 and {each} for the elements, as value, of an
// argument that is a list of texts in JSON.
type engine interface {
	// run executes statements in one transaction, which with durable survives a power cut
	// when this returns; without, it may need a later one that does.
	run(ctx context.Context, all []stmt, durable bool) error
	// atOnce reports that a transaction that need not be durable costs so little that none waits
	// for another: what was written survives the end of the process, as in files.
	atOnce() bool
	// query calls each for each row.
	query(ctx context.Context, text string, args []any, each func(scan func(...any) error) error) error
	// unreachable reports whether an error may be gone a moment later.
	unreachable(err error) bool
	close() error
}

// stmt is a statement. Where must is not "" it must concern a row, else the transaction is
// undone, and the error is the one of that name. One that is joined does not depend on the one before,
// which demands something: both may be done at once.
type stmt struct {
	sql    string
	args   []any
	must   string
	joined bool
}

// What a statement demands.
const (
	mustOwn   = "own"   // the lease is still ours
	mustSize  = "size"  // the file ends where this writer left it
	mustExist = "exist" // what is named is there
	mustFree  = "free"  // nobody else has the lock
	mustSoon  = "soon"  // it is not too late for it

	mustBeEmpty = "empty" // nothing lies in the directory
)

// errSize is the error of a file that another has written to.
var errSize = errors.New("another writes to the file")

// errLate is the error of what took so long that it may no more be done.
var errLate = errors.New("it took too long")

// demanded is the error of a demand that was not met.
func demanded(must string) error {
	switch must {
	case mustOwn:
		return disk.ErrNotOwner
	case mustSize:
		return errSize
	case mustFree:
		return disk.ErrLocked
	case mustSoon:
		return errLate
	case mustBeEmpty:
		return syscall.ENOTEMPTY
	}
	return fs.ErrNotExist
}
