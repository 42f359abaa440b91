package approval

import (
	"encoding/hex"
	"fmt"
	"io"
	"time"

	"toritsugi/internal/lazyregexp"
)

// jobLayout is the time in a job id.
const jobLayout = "20060102-150405"

var jobForm = lazyregexp.New(`^\d{8}-\d{6}-[0-9a-f]{8}$`)

// NewJob is a new job_id, YYYYMMDD-HHMMSS- and 8 hex digits of random, at a time in the
// zone of the house (spec/chat §7).
func NewJob(now time.Time, zone *time.Location, random io.Reader) (string, error) {
	var b [4]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("new job id: %w", err)
	}
	return now.In(zone).Format(jobLayout) + "-" + hex.EncodeToString(b[:]), nil
}

// IsJob reports whether a text is a job id.
func IsJob(s string) bool { return jobForm().MatchString(s) }
