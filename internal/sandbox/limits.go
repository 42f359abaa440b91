package sandbox

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits are of one command with all that it starts, Memory and Disk of all
// commands of Spec.Usage. A zero takes the default, which lets ordinary
// builds run; where there is none, there is no limit.
//
// CPU, Memory, Processes, Disk and NewFiles are watched from outside and end
// the command some hundredths of a second after they are passed; Exit.Limit
// says which. OpenFiles, FileSize and Memory are limits of each process as
// well, which the kernel keeps at once: what passes those fails in the
// command's own hands.
type Limits struct {
	CPU       time.Duration // processor time of all processes together; none by default
	Memory    int64         // bytes of memory of all processes together, files in memory (/tmp, /dev/shm) among it; MemoryMB, if that is set, by default
	Processes int           // at once; 1024 by default
	FileSize  int64         // bytes of one file; 4 GiB by default
	OpenFiles int           // descriptors of each process; by default 1024, which a program may raise to 4096
	Disk      int64         // bytes written to disks: by one command, and in files since the first; 16 GiB by default
	NewFiles  int64         // files made: by one command, and since they were first counted for all; 1,000,000 by default
	Output    int64         // bytes of stdout and stderr; 1 GiB by default
}

// DefaultDisk is the default of Limits.Disk.
const DefaultDisk = 16 << 30

// maxOpenFiles is to how many descriptors a process may raise its limit.
const maxOpenFiles = 4096

// What the kernel counts for each user, all of whose processes share it: instances
// of inotify, and signals that wait.
const (
	maxInotify = 64
	maxPending = 1024
)

// What ends a command that passes a limit, as Exit.Limit names it.
const (
	limitCPU       = "cpu"
	limitMemory    = "memory"
	limitProcesses = "processes"
	limitDisk      = "disk"
	limitFiles     = "files"
	limitOutput    = "output"
	limitFileSize  = "file_size"
	limitSpace     = "space"   // of the disk, which is nearly full
	limitMachine   = "machine" // its memory is nearly all taken
)

// bound says how much a limit allows.
func (l Limits) bound(limit string) string {
	switch limit {
	case limitCPU:
		return l.CPU.String()
	case limitMemory:
		return bytesText(l.Memory)
	case limitProcesses:
		return itoa(l.Processes)
	case limitDisk:
		return bytesText(l.Disk)
	case limitFiles:
		return strconv.FormatInt(l.NewFiles, 10)
	case limitOutput:
		return bytesText(l.Output)
	case limitFileSize:
		return bytesText(l.FileSize)
	}
	return ""
}

// bytesText is a size as people say it.
func bytesText(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.size {
			return strconv.FormatFloat(math.Round(10*float64(n)/float64(u.size))/10, 'f', -1, 64) + " " + u.name
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// bySignal is the limit that the kernel itself keeps with a signal, "" where
// that is not what ended the command.
func (l Limits) bySignal(signal string) string {
	switch {
	case signal == "SIGXCPU" && l.CPU > 0:
		return limitCPU
	case signal == "SIGXFSZ":
		return limitFileSize
	}
	return ""
}

// check validates l and fills in the defaults.
func (l Limits) check(memoryMB int) (Limits, error) {
	if l.CPU < 0 || l.Memory < 0 || l.Processes < 0 || l.FileSize < 0 || l.OpenFiles < 0 || l.Disk < 0 || l.NewFiles < 0 || l.Output < 0 {
		return l, fmt.Errorf("sandbox: negative limit in %+v", l)
	}
	l.Memory = cmp.Or(l.Memory, int64(memoryMB)<<20)
	l.FileSize = cmp.Or(l.FileSize, 4<<30)
	l.Disk = cmp.Or(l.Disk, DefaultDisk)
	l.NewFiles = cmp.Or(l.NewFiles, 1_000_000)
	l.Output = cmp.Or(l.Output, 1<<30)
	l.Processes = cmp.Or(l.Processes, 1024)
	return l, nil
}

// kernel is what the kernel keeps of each process. Core dumps are off and a
// single file has an end, so that a runaway loop does not fill the disk unseen.
// Memory is RLIMIT_DATA and not RLIMIT_AS: since Linux 4.7 it counts private
// writable pages, which bounds a process without counting the address space that
// Go, the JVM and V8 only reserve. Processes are counted, threads with them, for
// the user within their user namespace (Linux 5.14), and for root not at all:
// the watcher is what counts in every case. others is how many there are besides
// the command's, -1 for no limit.
func (l Limits) kernel(memoryMB, others int) []rlimits {
	same := func(what int, n int64) rlimits { return rlimits{what, uint64(n), uint64(n)} }
	all := []rlimits{same(unix.RLIMIT_CORE, 0), same(unix.RLIMIT_FSIZE, l.FileSize), same(unix.RLIMIT_SIGPENDING, maxPending)}
	if most := cmp.Or(int64(memoryMB)<<20, l.Memory); most > 0 {
		all = append(all, same(unix.RLIMIT_DATA, most))
	}
	// Programs that know of no more look at all of their descriptors. All commands
	// together must leave the machine some, of which it has a number.
	soft, hard := uint64(1024), uint64(maxOpenFiles)
	if l.OpenFiles > 0 {
		soft, hard = uint64(l.OpenFiles), uint64(l.OpenFiles)
	}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		hard = min(hard, files.Max/2) // so many may a user have in messages on their way: a command's leave the daemon as many
	}
	all = append(all, rlimits{unix.RLIMIT_NOFILE, min(soft, hard), hard})
	if n := uint64((l.CPU + time.Second - 1) / time.Second); n > 0 {
		// A second between the two, so that the end is by the signal that says why
		// and not by SIGKILL.
		all = append(all, rlimits{unix.RLIMIT_CPU, n, n + 1})
	}
	if others >= 0 {
		all = append(all, same(unix.RLIMIT_NPROC, int64(others+threadsPerProcess*l.Processes)))
	}
	return all
}

// script has sh set these limits, and have the kernel choose the command and not
// the daemon when memory is short. sh counts files in half KiB, or in KiB, which
// doubles them.
func script(limits []rlimits) string {
	var s strings.Builder
	for _, r := range limits {
		opt := map[int]struct {
			letter string
			unit   uint64
		}{unix.RLIMIT_CORE: {"c", 512}, unix.RLIMIT_FSIZE: {"f", 512}, unix.RLIMIT_DATA: {"d", 1024}, unix.RLIMIT_NOFILE: {"n", 1},
			unix.RLIMIT_CPU: {"t", 1}, unix.RLIMIT_NPROC: {"u", 1}}[r.What]
		if opt.letter == "" { // the helper sets it, and an engine
			continue
		}
		for _, one := range []struct {
			which string
			n     uint64
		}{{"-S", r.Soft}, {"-H", r.Hard}} {
			set := fmt.Sprintf("ulimit %s -%s %d", one.which, opt.letter, (one.n+opt.unit-1)/opt.unit)
			if r.What == unix.RLIMIT_NPROC { // dash has another letter for it
				set = "{ " + set + " || " + strings.Replace(set, "-u", "-p", 1) + "; }"
			}
			s.WriteString(set + " 2>&-; ")
		}
	}
	return s.String() + "{ echo " + oomScore + " >/proc/self/oom_score_adj; } 2>&-; "
}
