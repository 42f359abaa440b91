package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A watcher looks first after watchFirst and then twice as late each time
	// up to watchLast: short commands are not looked at, long ones cost little.
	watchFirst = 10 * time.Millisecond
	watchLast  = 200 * time.Millisecond
	// clockTick is USER_HZ, in which /proc counts; it is 100 on every Linux
	// that Go knows.
	clockTick = 10 * time.Millisecond
	// lowDisk is what of a disk's space is kept from the commands, in bytes:
	// the ledger lies there as well.
	lowDisk = 256 << 20
	// lowMemory is what of the machine's memory is kept from the commands, in
	// bytes, where it has plenty.
	lowMemory = 512 << 20
	// lowFiles is which part of the files that a disk can hold is kept from the
	// commands.
	lowFiles = 32
	// threadsPerProcess is how many threads count as a process.
	threadsPerProcess = 4
)

// watcher keeps an eye on all processes below one. Where the kernel keeps a
// limit itself (cgroups), it is the watcher that says which one it was.
type watcher struct {
	proc   string // /proc
	root   int    // the process that all of them descend from, itself not counted
	limits Limits
	disks  []string // writable directories
	begin  []usage
	sum    *SharedUsage
	since  time.Time     // see Together
	first  []usage       // of each disk, when since was
	last   map[life]seen // processes of the last look
	gone   time.Duration // processor time of those that are gone
	low    bool          // a disk is nearly full, as of the last look
	mend   func() error  // called at each look, nil for nothing
	inst   *instance     // in which the command runs, nil for none
}

// usage is what is taken of a file system.
type usage struct {
	bytes, files, free int64
	spare              int64 // files that may be made beyond the reserve
	reserve            int64 // of files, 0 where the file system does not count them
}

func newWatcher(root int, l Limits, disks []string, sum *SharedUsage) *watcher {
	w := &watcher{proc: "/proc", root: root, limits: l, disks: disks, sum: sum}
	for _, d := range disks {
		w.begin = append(w.begin, diskUsage(d))
	}
	w.since, w.first = sum.begin(disks, w.begin)
	return w
}

// scarce reports that the machine has next to no memory left. What commands take
// may be in no process: the kernel's tables, buffers of sockets, shared pages. All
// of them end then, before the kernel ends something else.
func scarce(proc string) bool {
	b, err := os.ReadFile(proc + "/meminfo")
	total, ok := field(b, "MemTotal:")
	left, known := field(b, "MemAvailable:")
	return err == nil && ok && known && left < min(lowMemory>>10, total/32)
}

// crowded reports that all commands together take more memory than they may, also
// without those that take more than this one. Pages that processes share are counted once where
// the plain sum is too much.
func (w *watcher) crowded(all []seen, resident int64) bool {
	if w.limits.Memory <= 0 {
		return false
	}
	apart := w.apart(all)
	if w.sum.put(w, resident+apart) <= w.limits.Memory || w.sum.put(w, w.exact(all)+apart) <= w.limits.Memory {
		return false
	}
	w.sum.drop(w) // it ends, and nobody else for what it takes
	return true
}

// apart is memory that these processes share and that is in none of them: the pages
// of an anonymous shared mapping stay when those who have it give them back
// (madvise(2)). The machine's figure says that there is so much, the sizes of their
// mappings whose it is. It is looked for where the machine has more of it than the
// commands may take, so that it costs nothing else.
func (w *watcher) apart(all []seen) int64 {
	b, _ := os.ReadFile(w.proc + "/meminfo")
	kib, _ := field(b, "Shmem:")
	machine := kib << 10
	if machine <= w.limits.Memory {
		return 0
	}
	sizes := map[string]int64{} // by inode
	for _, p := range all {
		b, _ := os.ReadFile(w.figures(p) + "/maps")
		for line := range bytes.Lines(b) { // from-to perms offset device inode path
			f := bytes.Fields(line)
			if len(f) < 6 || !bytes.HasSuffix(line, []byte(" /dev/zero (deleted)\n")) {
				continue
			}
			from, to, _ := strings.Cut(string(f[0]), "-")
			begin, _ := strconv.ParseInt(from, 16, 64)
			end, _ := strconv.ParseInt(to, 16, 64)
			offset, _ := strconv.ParseInt(string(f[2]), 16, 64)
			sizes[string(f[4])] = max(sizes[string(f[4])], offset+end-begin)
		}
	}
	var sum int64
	for _, n := range sizes {
		sum += n
	}
	return min(sum, machine)
}

// look measures once, and names the limit that was passed.
func (w *watcher) look() string {
	if w.mend != nil {
		_ = w.mend() // the last time tells what went wrong
	}
	var resident, written int64
	threads := 0
	all := w.tree()
	for i, p := range all {
		all[i].memory, all[i].tables = w.memoryOf(p)
		resident += all[i].memory + all[i].tables
		threads += p.threads
	}
	files := w.inst.inMemory(w.sum)
	switch {
	case len(all)-1 > w.limits.Processes, threads > threadsPerProcess*w.limits.Processes:
		return limitProcesses
	case w.limits.CPU > 0 && w.spent(all) > w.limits.CPU:
		return limitCPU
	case w.crowded(all, resident):
		return limitMemory
	case scarce(w.proc):
		return limitMachine
	case w.limits.NewFiles > 0 && files.files > w.limits.NewFiles:
		return limitFiles
	}
	w.low = false
	for i, d := range w.disks {
		now := diskUsage(d)
		w.low = w.low || now.free < 8*lowDisk
		if w.limits.NewFiles > 0 && now.files-w.begin[i].files > w.limits.NewFiles {
			return limitFiles
		}
		// Who tidies up makes few; and others make files as well.
		if now.spare < 0 && now.files-w.begin[i].files > now.reserve/256 && now.files-w.first[i].files > now.reserve/4 {
			return limitFiles
		}
		grown := now.bytes - w.begin[i].bytes
		if grown <= w.limits.Disk && now.free > lowDisk {
			continue
		}
		// Others write to the disk as well: it was this command only if it
		// wrote as much.
		if written == 0 {
			written = w.written(all)
		}
		// Of the last part it was the commands, whatever their figures say, if that
		// much is gone since the first of them. One that tidies up takes no more.
		took := written
		if w.begin[i].free-now.free > lowDisk/256 {
			took = max(written, w.first[i].free-now.free)
		}
		switch {
		case written > w.limits.Disk:
			return limitDisk
		case now.free <= lowDisk && took > lowDisk/4:
			return limitSpace
		}
	}
	return ""
}

// spent is the processor time of all processes up to now, as far as they were
// seen. What a process took is added to who waits for it, and to nobody where it is
// not waited for: the larger sum counts, that of those who are there with all that
// they waited for, or that of everyone who ever was there. A walk can miss one whose
// parent ends meanwhile, so that only who is missing twice is gone.
func (w *watcher) spent(all []seen) time.Duration {
	now, there, ever := make(map[life]seen, len(all)), time.Duration(0), time.Duration(0)
	for _, p := range all {
		now[p.life] = p
		there += p.own + p.waited
	}
	for who, p := range w.last {
		if _, ok := now[who]; ok {
			continue
		}
		if p.missed {
			w.gone += p.own
		} else {
			p.missed = true
			now[who] = p
		}
	}
	for _, p := range now {
		ever += p.own
	}
	w.last = now
	return max(there, w.gone+ever)
}

// life is one process and no later one of its number.
type life struct {
	pid   int
	begun string
}

// seen is one process as /proc/PID/stat tells of it.
type seen struct {
	life
	state   byte // R, S, D, T …, see proc_pid_stat(5)
	threads int
	own     time.Duration // processor time
	waited  time.Duration // that of children it has waited for
	missed  bool          // by the last look
	memory  int64         // bytes, shared ones and those in swap included; see memoryOf
	tables  int64         // bytes of page tables
}

// tree is the root and everything that descends from it.
func (w *watcher) tree() []seen {
	var all []seen
	known := map[int]bool{}
	for next := []int{w.root}; len(next) > 0; {
		pid := next[len(next)-1]
		next = next[:len(next)-1]
		if known[pid] {
			continue
		}
		known[pid] = true
		if p, ok := w.stat(pid); ok {
			all = append(all, p)
			next = append(next, w.children(pid)...)
		}
	}
	return all
}

// tasks are the directories of all threads of a process.
func (w *watcher) tasks(pid int) []string {
	dir := w.proc + "/" + strconv.Itoa(pid) + "/task/"
	threads, _ := os.ReadDir(dir)
	all := make([]string, len(threads))
	for i, t := range threads {
		all[i] = dir + t.Name()
	}
	return all
}

// open are the directories of what these processes have open; a thread may have a
// table of its own.
func (w *watcher) open() []string {
	var all []string
	for _, p := range w.tree() {
		for _, t := range w.tasks(p.pid) {
			all = append(all, t+"/fd")
		}
	}
	return all
}

// children are the children of all threads of a process.
func (w *watcher) children(pid int) []int {
	var all []int
	for _, t := range w.tasks(pid) {
		b, err := os.ReadFile(t + "/children")
		if err != nil {
			continue
		}
		for f := range bytes.FieldsSeq(b) {
			if n, err := strconv.Atoi(string(f)); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

func (w *watcher) stat(pid int) (seen, bool) {
	b, err := os.ReadFile(w.proc + "/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return seen{}, false
	}
	// The name, in brackets, may hold anything (proc(5)).
	_, rest, ok := strings.Cut(string(b[bytes.LastIndexByte(b, ')')+1:]), " ")
	f := strings.Fields(rest)
	if !ok || len(f) < 20 {
		return seen{}, false
	}
	p := seen{life: life{pid, f[19]}, state: f[0][0]}
	for i, sum := range []*time.Duration{&p.own, &p.own, &p.waited, &p.waited} { // utime stime cutime cstime, fields 14 to 17
		n, _ := strconv.ParseInt(f[11+i], 10, 64)
		*sum += time.Duration(n) * clockTick
	}
	p.threads, _ = strconv.Atoi(f[17])
	return p, true
}

// memoryOf is what a process takes, and what the kernel does to map it: a
// program can have gigabytes of page tables for pages that are nowhere.
func (w *watcher) memoryOf(p seen) (memory, tables int64) {
	b, _ := os.ReadFile(w.figures(p) + "/status")
	var kib [3]int64
	for i, name := range []string{"VmRSS:", "VmSwap:", "VmPTE:"} {
		kib[i], _ = field(b, name)
	}
	return (kib[0] + kib[1]) << 10, kib[2] << 10
}

// figures is where those of a process's memory are: its first thread may have
// ended, and with it what is told in its name.
func (w *watcher) figures(p seen) string {
	dir := w.proc + "/" + strconv.Itoa(p.pid)
	if p.state != 'Z' || p.threads < 2 {
		return dir
	}
	for _, t := range w.tasks(p.pid) {
		if b, err := os.ReadFile(t + "/statm"); err == nil && !bytes.HasPrefix(b, []byte("0 ")) {
			return t
		}
	}
	return dir
}

// exact counts a page that several processes share once, which costs a walk
// through their memory and is done when the plain sum is too much. A process
// that hides its figures is counted in full, unless it is the one above them all.
func (w *watcher) exact(all []seen) int64 {
	var sum, plain int64
	for _, p := range all {
		sum, plain = sum+p.tables, plain+p.tables+p.memory
	}
	if sum > max(1<<20, w.limits.Memory/8) { // some hundred times as many as memory needs: the walk would take seconds
		return plain
	}
	for _, p := range all {
		b, err := os.ReadFile(w.figures(p) + "/smaps_rollup")
		if os.IsPermission(err) && p.pid == w.root {
			continue // ours
		}
		if kib, ok := field(b, "Pss:"); err == nil && ok {
			swapped, _ := field(b, "SwapPss:")
			sum += (kib + swapped) << 10
		} else {
			sum += p.memory
		}
	}
	return sum
}

// written is how much these processes, and those that they waited for, had
// written to disks, in bytes. One that hides its figures counts as one that
// wrote all it may.
func (w *watcher) written(all []seen) int64 {
	var sum int64
	for _, p := range all {
		b, err := os.ReadFile(w.proc + "/" + strconv.Itoa(p.pid) + "/io")
		if os.IsPermission(err) && p.pid == w.root {
			continue // ours
		}
		if os.IsPermission(err) {
			return w.limits.Disk + 1
		}
		n, _ := field(b, "write_bytes:")
		undone, _ := field(b, "cancelled_write_bytes:")
		sum += max(0, n-undone)
	}
	return sum
}

// field is the number after a name at the start of a line.
func field(b []byte, name string) (int64, bool) {
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			f := bytes.Fields(rest)
			if len(f) == 0 {
				return 0, false
			}
			n, err := strconv.ParseInt(string(f[0]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// diskUsage is what is taken of the file system that holds path; zeroes where
// it cannot be learned, and no files where the file system does not count them.
func diskUsage(path string) usage {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return usage{free: 1 << 62}
	}
	return usageOf(&st)
}

func usageOf(st *unix.Statfs_t) usage {
	size := uint64(st.Bsize)
	reserve := int64(st.Files / lowFiles)
	return usage{bytes: int64((st.Blocks - st.Bfree) * size), files: int64(st.Files - st.Ffree), free: int64(st.Bavail * size),
		spare: int64(st.Ffree) - reserve, reserve: reserve}
}
