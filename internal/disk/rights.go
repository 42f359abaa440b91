package disk

import (
	"os"
	"syscall"
)

// OwnerOf is the user that a file belongs to, -1 where that cannot be told.
func OwnerOf(st os.FileInfo) int {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

// TooOpen reports whether others than the owner may use a file or directory.
func TooOpen(st os.FileInfo) bool { return st.Mode().Perm()&0o077 != 0 }

// RestrictToOwner takes the rights of everybody but the owner from path.
func RestrictToOwner(path string, st os.FileInfo) error {
	mode := FileMode
	if st.IsDir() {
		mode = DirMode
	}
	return os.Chmod(path, mode)
}
