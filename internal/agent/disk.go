package agent

import (
	"errors"
	"syscall"

	"toritsugi/internal/contextstore"
	"toritsugi/internal/disk"
)

// diskTrouble reports an error that more room or another disk would mend.
func diskTrouble(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EFBIG, disk.ErrPoisoned} {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.As(err, new(*contextstore.NoSpaceError))
}
