package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// instance is a running sandbox of namespaces: its init starts the commands of one
// Runner. It ends with its control socket, and so with this process.
type instance struct {
	mu      sync.Mutex // held while control and init are used or closed
	control *os.File
	init    *os.File   // pidfd, nil once it has ended
	memory  []*os.File // the commands' file systems in memory
	opened  []*os.File
	group   *group        // of all processes, nil for none
	gone    chan struct{} // closed when it has ended
	cleanup []func()      // then
}

// fileMemory is what a file in memory counts beside its content, in bytes. The
// kernel counts attributes as files of 1 KiB (Linux 6.6), and takes up to twice that.
const fileMemory = 2 << 10

// memoryDirs are a command's file systems in memory.
func memoryDirs() []string { return []string{"/tmp", "/dev/shm"} }

// helloTime is how long a sandbox may take to stand.
const helloTime = 30 * time.Second

// instances make the instance of a Runner when it is first needed, and anew where one
// has ended.
type instances struct {
	open func(*instance) (*exec.Cmd, error) // prepares the init; its descriptors from 3 on are the instance's

	groups   *cgroups // where the control group is made, nil for none
	limits   Limits
	together *SharedUsage

	mu     sync.Mutex
	now    *instance
	closed bool
}

// get returns the instance that runs. One whose files in memory take more than
// three quarters of what commands may, where their content has half, is of no use:
// each would be ended before it removed any.
func (b *instances) get() (*instance, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errors.New("sandbox: closed")
	}
	if b.now != nil {
		select {
		case <-b.now.gone:
		default:
			if b.limits.Memory <= 0 || b.now.inMemory(b.together).bytes <= b.limits.Memory/4*3 {
				return b.now, nil
			}
			_ = b.now.close()
		}
	}
	x, err := b.start()
	if err == nil {
		b.now = x
	}
	return x, err
}

// running returns the instance if there is one.
func (b *instances) running() *instance {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil {
		return nil
	}
	select {
	case <-b.now.gone:
		return nil
	default:
		return b.now
	}
}

func (b *instances) close() error {
	b.mu.Lock()
	b.closed = true
	x := b.now
	b.mu.Unlock()
	if x == nil {
		return nil
	}
	return x.close()
}

func (b *instances) start() (_ *instance, err error) {
	closeOnExec()
	x := &instance{gone: make(chan struct{})}
	defer func() {
		if err != nil {
			x.release()
		}
	}()
	here, there, err := socketpair()
	if err != nil {
		return nil, err
	}
	x.control = here
	defer func() { _ = there.Close() }()
	cmd, err := b.open(x)
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles[fdControl-3] = there
	if b.groups != nil {
		if x.group, err = b.groups.group(b.limits, false); err != nil {
			return nil, err
		}
		x.cleanup = append(x.cleanup, x.group.remove)
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(x.group.dir.Fd())
	}
	complaint := &tail{}
	cmd.Stderr, cmd.WaitDelay = complaint, grace
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("sandbox: start: %w", err)
	}
	_ = there.Close()
	_ = unix.SetsockoptTimeval(int(here.Fd()), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(helloTime / time.Second)})
	said, fds, err := receive(here)
	if err == nil && (len(fds) != 1+len(memoryDirs()) || len(said) == 0 || said[0] != saidStarted) {
		err = errors.New("it says nothing")
	}
	if err != nil {
		closeAll(fds)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("sandbox: it does not start: %w: %s", err, bytes.TrimSpace(complaint.b))
	}
	x.init = os.NewFile(uintptr(fds[0]), "init")
	if pid, err := pidOf(fds[0]); err == nil && pid > 0 { // as root's word, no command takes it back
		_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(oomScore), 0)
	}
	x.opened = append(x.opened, x.init)
	for i, fd := range fds[1:] {
		x.memory = append(x.memory, os.NewFile(uintptr(fd), memoryDirs()[i]))
	}
	x.opened = append(x.opened, x.memory...)
	go func() {
		_ = cmd.Wait()
		x.release()
		b.together.drop(x) // inMemory counts nothing from now on
		close(x.gone)
	}()
	return x, nil
}

// release lets go what belongs to an instance that has ended.
func (x *instance) release() {
	if x.group != nil {
		x.group.kill()
	}
	x.mu.Lock()
	if x.control != nil {
		_ = x.control.Close()
	}
	for _, f := range x.opened {
		_ = f.Close()
	}
	x.init, x.memory = nil, nil
	x.mu.Unlock()
	for _, f := range x.cleanup {
		f()
	}
}

// inMemory counts what lies in the commands' file systems in memory among what
// they take together, and returns how much that is. x may be nil.
func (x *instance) inMemory(sum *SharedUsage) (u usage) {
	if x == nil {
		return u
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.memory {
		var st unix.Statfs_t
		if unix.Fstatfs(int(f.Fd()), &st) == nil && st.Type == unix.TMPFS_MAGIC { // and not the disk, where a wall is left out
			one := usageOf(&st)
			u.bytes, u.files = u.bytes+one.bytes, u.files+one.files
		}
	}
	if x.memory != nil {
		u.bytes += u.files * fileMemory
		sum.put(x, u.bytes)
	}
	return u
}

// close ends the instance and all in it, and waits for that.
func (x *instance) close() error {
	x.mu.Lock()
	_ = x.control.Close()
	x.mu.Unlock()
	select {
	case <-x.gone:
		return nil
	case <-time.After(grace):
	}
	_ = x.kill()
	select {
	case <-x.gone:
		return nil
	case <-time.After(killWait):
		return fmt.Errorf("sandbox: processes of the sandbox are still alive %s after SIGKILL", killWait)
	}
}

func (x *instance) kill() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.init == nil {
		return os.ErrProcessDone
	}
	return unix.PidfdSendSignal(int(x.init.Fd()), unix.SIGKILL, nil, 0)
}

// ask sends the init a message, and returns the socket on which it answers.
func (x *instance) ask(what byte, files ...*os.File) (line *os.File, err error) {
	here, there, err := socketpair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = there.Close() }()
	fds := make([]int, 0, len(files)+1)
	for _, f := range append(files, there) {
		fds = append(fds, int(f.Fd()))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := unix.Sendmsg(int(x.control.Fd()), []byte{what}, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: ask its init: %w", err), here.Close())
	}
	return here, nil
}

// ending reports that the instance has ended, or is about to.
func (x *instance) ending() bool {
	select {
	case <-x.gone:
		return true
	case <-time.After(grace):
		return false
	}
}

// suspend stops all processes in the instance until resume is called.
func (x *instance) suspend() (resume func(), err error) {
	if err := x.tell(saySuspend); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { _ = x.tell(sayResume) }), nil
}

func (x *instance) tell(what byte) error {
	line, err := x.ask(what)
	if err != nil {
		return err
	}
	defer func() { _ = line.Close() }()
	said, fds, err := receive(line)
	closeAll(fds)
	if err == nil && (len(said) == 0 || said[0] != saidDone) {
		err = fmt.Errorf("sandbox: its init refuses: %s", said)
	}
	return err
}

// remoteChild is a command in an instance.
type remoteChild struct {
	p     *process
	inst  *instance
	order order
	hold  *os.File // kept open by the init until the command is gone; may be nil
	line  *os.File
	pidfd int
	code  int
	ended bool
}

func (c *remoteChild) start(stdin, stdout, stderr *os.File) error {
	raw, err := json.Marshal(c.order)
	if err != nil {
		return err
	}
	body, err := memfd(raw)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	files := []*os.File{body, stdin, stdout, stderr}
	if c.hold != nil {
		files = append(files, c.hold)
	}
	if c.line, err = c.inst.ask(sayRun, files...); err != nil {
		return err
	}
	c.p.after(func() { _ = c.line.Close() })
	said, fds, err := receive(c.line)
	switch {
	case err != nil:
	case len(said) > 0 && said[0] == saidExit && len(said) == 2:
		c.code, c.ended = int(said[1]), true
		c.p.watch = -1 // nothing of it is left to be watched
		return nil
	case len(said) > 0 && said[0] == saidStarted && len(fds) == 1:
		c.pidfd = fds[0]
		c.p.after(func() { _ = unix.Close(c.pidfd) })
		return c.follow()
	default:
		err = fmt.Errorf("%s", bytes.TrimPrefix(said, []byte{saidRefused}))
	}
	closeAll(fds)
	return err
}

// follow learns the command's first process and sets how it is ended.
func (c *remoteChild) follow() error {
	pid, err := pidOf(c.pidfd)
	if err != nil {
		return err
	}
	if pid <= 0 { // it has ended already
		pid = -1
	}
	c.p.watch, c.p.inst = pid, c.inst
	// It leads the command's session, and does not die of SIGTERM itself, being
	// the first of its namespace without a handler.
	c.p.terminate = func() error {
		if pid < 0 || gone(c.pidfd, 0) {
			return os.ErrProcessDone
		}
		return unix.Kill(-pid, unix.SIGTERM)
	}
	c.p.end = func() error {
		_ = unix.PidfdSendSignal(c.pidfd, unix.SIGKILL, nil, 0)
		if !gone(c.pidfd, killWait) {
			return fmt.Errorf("sandbox: processes of the command are still alive %s after SIGKILL", killWait)
		}
		return nil
	}
	if g := c.inst.group; g != nil {
		before := g.starved()
		c.p.starved = func() bool { return c.code == 128+int(unix.SIGKILL) && g.starved() > before }
	}
	return nil
}

func (c *remoteChild) await() error {
	if c.ended {
		return nil
	}
	said, fds, err := receive(c.line)
	closeAll(fds)
	if err == nil && (len(said) != 2 || said[0] != saidExit) {
		err = errors.New("it says something else")
	}
	if err != nil {
		c.code = 128 + int(unix.SIGKILL)
		return fmt.Errorf("sandbox: it ended before the command: %w", err)
	}
	c.code = int(said[1])
	return nil
}

func (c *remoteChild) exit() Exit { return exitCode(c.code) }

func (c *remoteChild) kill() error { return c.inst.kill() }

// pidOf is the process of a pidfd, -1 where it has ended.
func pidOf(pidfd int) (int, error) {
	b, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(pidfd))
	if err != nil {
		return 0, fmt.Errorf("sandbox: %w", err)
	}
	pid, ok := field(b, "Pid:")
	if !ok {
		return 0, errors.New("sandbox: the kernel does not tell whose a pidfd is")
	}
	return int(pid), nil
}

// socketpair is a pair whose messages keep their bounds.
func socketpair() (here, there *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: socketpair: %w", err)
	}
	return os.NewFile(uintptr(pair[0]), "sandbox"), os.NewFile(uintptr(pair[1]), "sandbox"), nil
}

// receive reads one message; the caller closes the descriptors.
func receive(f *os.File) (said []byte, fds []int, err error) {
	buf, oob := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(8*4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(int(f.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if n == 0 {
			return nil, nil, errors.New("its end")
		}
		fds, err = rights(oob[:oobn])
		return buf[:n], fds, err
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
