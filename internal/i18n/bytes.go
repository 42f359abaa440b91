package i18n

import "fmt"

// Bytes is a number of bytes as people read it, in units of a thousand, as disks and the settings in GB have.
func Bytes(n int64) string {
	f, unit := float64(n), "B"
	for _, u := range []string{"KB", "MB", "GB", "TB"} {
		if f < 1000 {
			break
		}
		f, unit = f/1000, u
	}
	if unit == "B" || f >= 100 {
		return fmt.Sprintf("%.0f %s", f, unit)
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}
