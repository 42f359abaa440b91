package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fileAttempts try to reach files that are not the command's.
func fileAttempts() []attempt {
	in := func(name string, f func(t *target) error) attempt {
		return attempt{name: name, wall: "files", inside: f}
	}
	outside := func(a attempt, path func(s *stage) string) attempt {
		a.check = func(s *stage, p *Probe) {
			if _, err := os.Lstat(path(s)); err == nil {
				p.Outcome, p.Detail = OutcomeEscaped, path(s)+" was written"
				_ = os.Remove(path(s))
			}
		}
		return a
	}
	all := []attempt{
		in("read-data", func(t *target) error { return t.read(filepath.Join(t.Data, "canary")) }),
		in("list-data", func(t *target) error { return listed(t.Data, "canary") }),
		in("read-home", readHome),
		in("symlink-to-file", func(t *target) error { return t.linked("file", filepath.Join(t.Data, "canary"), "") }),
		in("symlink-to-directory", func(t *target) error { return t.linked("dir", t.Data, "canary") }),
		in("symlink-chain", func(t *target) error {
			if err := os.Symlink("/", t.temporary("chain")); err != nil {
				return err
			}
			return t.linked("chain2", t.temporary("chain")+t.Data, "canary")
		}),
		in("dot-dot", func(t *target) error {
			return t.read(t.Workspace + "/../" + filepath.Base(t.Data) + "/canary")
		}),
		in("proc-root", func(t *target) error { return t.read(fmt.Sprintf("/proc/%d/root%s/canary", t.Victim, t.Data)) }),
		in("proc-cwd", func(t *target) error { return t.read(fmt.Sprintf("/proc/%d/cwd/canary", t.Victim)) }),
		in("proc-init-root", func(t *target) error { return t.read("/proc/1/root" + t.Data + "/canary") }),
		in("proc-fd", func(t *target) error { return t.read(fmt.Sprintf("/proc/%d/fd/%d", t.Victim, t.VictimFD)) }),
		in("read-tmp", func(t *target) error { return t.read(t.Tmp) }),
		in("stat-data", func(t *target) error {
			if _, err := os.Stat(filepath.Join(t.Data, "canary")); err != nil {
				return err
			}
			return contained("names and sizes of files can be asked after, contents and lists cannot")
		}),
		in("run-tool", func(t *target) error { return exec.Command(filepath.Join(t.Data, "tool")).Run() }),
		in("hard-link", func(t *target) error {
			if err := os.Link(filepath.Join(t.Data, "canary"), t.temporary("hard")); err != nil {
				return err
			}
			return t.read(t.temporary("hard"))
		}),
		in("move-in", func(t *target) error {
			from := filepath.Join(t.Data, "moved")
			if err := os.Rename(from, t.temporary("moved")); err != nil {
				return err
			}
			return os.Rename(t.temporary("moved"), from)
		}),
		in("handle", openHandle),
		in("watch-data", func(t *target) error {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err != nil {
				return err
			}
			defer func() { _ = unix.Close(fd) }()
			_, err = unix.InotifyAddWatch(fd, t.Data, unix.IN_CREATE)
			return err
		}),
		in("truncate-data", func(t *target) error { return os.Truncate(filepath.Join(t.Data, "mode"), 0) }),
		in("remove-data", func(t *target) error { return os.Remove(filepath.Join(t.Data, "removed")) }),
		in("chmod-data", func(t *target) error { return os.Chmod(filepath.Join(t.Data, "mode"), 0o666) }),
		in("chmod-by-link", func(t *target) error {
			if err := os.Symlink(filepath.Join(t.Data, "mode"), t.temporary("mode")); err != nil {
				return err
			}
			return os.Chmod(t.temporary("mode"), 0o666)
		}),
		in("touch-data", func(t *target) error {
			return os.Chtimes(filepath.Join(t.Data, "mode"), time.Unix(1, 0), time.Unix(1, 0))
		}),
		in("attribute-data", func(t *target) error {
			return unix.Setxattr(filepath.Join(t.Data, "mode"), "user.tori", []byte("x"), 0)
		}),
		in("attribute-names", func(t *target) error {
			_, err := unix.Listxattr(filepath.Join(t.Data, "mode"), nil)
			return err
		}),
		in("flags-of-given", func(t *target) error { return t.ioctl(unix.FS_IOC_GETFLAGS, unix.FS_IOC_SETFLAGS) }),
		in("version-of-given", func(t *target) error { return t.ioctl(fsGetVersion, fsSetVersion) }),
		in("project-of-given", func(t *target) error { return t.ioctl(fsGetXattr, fsSetXattr) }),
		in("seal-given", func(t *target) error {
			return t.ioctl(0, unix.FS_IOC_ENABLE_VERITY, 1, 1, 4096) // version, SHA-256, block size
		}),
		in("own-data", func(t *target) error { return os.Chown(filepath.Join(t.Data, "mode"), 1, 1) }),
		in("mode-of-program", func(*target) error { return remode("/usr/bin/env") }),
		in("write-passwd", func(*target) error { return opened("/etc/passwd", os.O_WRONLY|os.O_APPEND) }),
		in("read-shadow", func(*target) error {
			return each([]string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers"}, func(p string) error { return opened(p, os.O_RDONLY) })
		}),
		in("private-keys", func(*target) error { return names("/etc/ssl/private", "/etc/ssh") }),
		in("raw-disk", func(t *target) error {
			return each(t.Disks, func(p string) error { return opened(p, os.O_RDONLY) })
		}),
		in("device-memory", func(*target) error {
			return each([]string{"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kvm", "/dev/fuse"}, func(p string) error { return opened(p, os.O_RDWR) })
		}),
		in("kernel-log", func(*target) error { return opened("/dev/kmsg", os.O_RDONLY|unix.O_NONBLOCK) }),
		in("make-device", func(t *target) error {
			return unix.Mknod(t.temporary("null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
		}),
		in("own-program", func(t *target) error {
			if err := write(t.temporary("suid")); err != nil {
				return err
			}
			return setuid(t.temporary("suid"), unix.Chmod(t.temporary("suid"), 0o4755))
		}),
		in("own-program-made", func(t *target) error {
			fd, err := unix.Open(t.temporary("suid2"), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o4755)
			if err == nil {
				_ = unix.Close(fd)
			}
			return setuid(t.temporary("suid2"), err)
		}),
		in("group-program", func(t *target) error {
			if err := write(t.temporary("sgid")); err != nil {
				return err
			}
			return setuid(t.temporary("sgid"), unix.Chmod(t.temporary("sgid"), 0o2755))
		}),
		in("own-program-nameless", func(t *target) error {
			fd, err := unix.Open(filepath.Dir(t.temporary("x")), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o4755)
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		}),
		in("mode-of-device", func(*target) error {
			return each([]string{"/dev/full", "/dev/null"}, func(p string) error {
				st, err := os.Stat(p)
				if err != nil {
					return err
				}
				return os.Chmod(p, st.Mode().Perm())
			})
		}),
		in("core-pattern", func(*target) error { return opened("/proc/sys/kernel/core_pattern", os.O_WRONLY) }),
		in("kernel-settings", func(*target) error {
			return each([]string{"/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/proc/sys/fs/suid_dumpable"}, func(p string) error { return opened(p, os.O_WRONLY) })
		}),
		in("sysrq", func(*target) error { return opened("/proc/sysrq-trigger", os.O_WRONLY) }),
		in("kernel-memory", func(*target) error { return opened("/proc/kcore", os.O_RDONLY) }),
		in("kernel-tables", func(*target) error {
			return each([]string{"/proc/kpageflags", "/proc/kpagecount", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/pagetypeinfo", "/proc/timer_list", "/proc/kallsyms", "/proc/iomem", "/proc/keys", "/proc/bus/input/devices"},
				func(p string) error {
					b := make([]byte, 64)
					f, err := os.Open(p)
					if err != nil {
						return err
					}
					defer func() { _ = f.Close() }()
					if n, err := f.Read(b); n == 0 {
						return errors.Join(errors.New("nothing in it"), err)
					}
					return nil
				})
		}),
		in("sys-write", func(*target) error {
			return each([]string{"/sys/kernel/uevent_helper", "/sys/kernel/mm/ksm/run", "/sys/kernel/profiling", "/sys/module/kernel/parameters/panic"},
				func(p string) error { return opened(p, os.O_WRONLY) })
		}),
		in("cgroup-write", func(*target) error {
			return each([]string{"/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs"},
				func(p string) error { return opened(p, os.O_WRONLY) })
		}),
		outside(in("write-data", func(t *target) error { return write(filepath.Join(t.Data, "written")) }), func(s *stage) string { return filepath.Join(s.target.Data, "written") }),
		outside(in("write-by-link", func(t *target) error {
			if err := os.Symlink(t.Data, t.temporary("out")); err != nil {
				return err
			}
			return write(t.temporary("out") + "/linked")
		}), func(s *stage) string { return filepath.Join(s.target.Data, "linked") }),
		outside(in("write-beside", func(t *target) error {
			return within0(write(filepath.Join(filepath.Dir(t.Workspace), "beside")))
		}), func(s *stage) string { return filepath.Join(s.root, "beside") }),
		outside(in("preload-file", func(t *target) error { return write("/etc/ld.so.preload." + t.ID) }), func(s *stage) string { return "/etc/ld.so.preload." + s.target.ID }),
		outside(in("write-programs", func(t *target) error { return write("/usr/bin/" + t.ID) }), func(s *stage) string { return "/usr/bin/" + s.target.ID }),
		outside(in("write-root", func(t *target) error { return write("/" + t.ID) }), func(s *stage) string { return "/" + s.target.ID }),
		outside(in("write-tmp", func(t *target) error { return within0(write("/tmp/" + t.ID)) }), func(s *stage) string { return "/tmp/" + s.target.ID }),
		outside(in("write-shm", func(t *target) error { return within0(write("/dev/shm/" + t.ID)) }), func(s *stage) string { return "/dev/shm/" + s.target.ID }),
	}
	return append(all, gitAttempts()...)
}

// within0 says of a write that worked that it went into the command's own
// files; what is outside is looked at from there.
func within0(err error) error {
	if err == nil {
		return contained("written into a file system of the command's own")
	}
	return err
}

// gitAttempts try to have git, or whoever runs it later, do something.
func gitAttempts() []attempt {
	at := func(name, path, text string) attempt {
		return attempt{name: name, wall: "git", inside: func(t *target) error {
			f, err := os.OpenFile(filepath.Join(t.GitDir, path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o700)
			if err != nil {
				return err
			}
			_, err = f.WriteString(text)
			return errors.Join(err, f.Close())
		}}
	}
	file := func(name string, f func(path string) error) attempt {
		return attempt{name: name, wall: "git", alone: true,
			inside: func(t *target) error {
				if err := f(filepath.Join(t.Workspace, ".git")); err != nil {
					return err
				}
				return contained("changed: Landlock gives a directory with all that is in it. It was put back; the daemon's git does not read it, but a person's would until then")
			},
			check: func(s *stage, p *Probe) {
				if b, err := os.ReadFile(filepath.Join(s.spec.Workspace, ".git")); err != nil || string(b) != s.gitFile {
					p.Outcome, p.Detail = OutcomeEscaped, "the workspace's .git is no longer what it was"
					_ = os.RemoveAll(filepath.Join(s.spec.Workspace, ".git"))
					_ = os.WriteFile(filepath.Join(s.spec.Workspace, ".git"), []byte(s.gitFile), 0o600)
				}
			}}
	}
	return []attempt{
		at("git-hook", "hooks/pre-commit", "#!/bin/sh\ntrue\n"),
		at("git-fsmonitor", "config", "[core]\n\tfsmonitor = true\n"),
		at("git-attributes", "info/attributes", "* filter=x\n"),
		at("git-objects", "objects/alternates", "/\n"),
		at("git-head", "HEAD", "x"),
		file("git-file-written", func(p string) error { return os.WriteFile(p, []byte("gitdir: /tmp/evil\n"), 0o600) }),
		file("git-file-replaced", func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return os.Symlink("/tmp/evil", p)
		}),
		file("git-file-moved", func(p string) error { return os.Rename(p, p+".old") }),
		{name: "git-file-in-background", wall: "git", outside: gitFileBeside},
	}
}

// gitFileBeside has a command change the way to the git directory and stay.
func gitFileBeside(s *stage) (string, string) {
	spec := s.spec
	spec.Workspace = filepath.Join(s.root, "another")
	path := filepath.Join(spec.Workspace, ".git")
	if err := errors.Join(os.Mkdir(spec.Workspace, 0o700), os.WriteFile(path, []byte(s.gitFile), 0o600)); err != nil {
		return OutcomeEscaped, err.Error()
	}
	r, err := s.make(spec)
	if err != nil {
		return OutcomeEscaped, err.Error()
	}
	defer func() { _ = r.Close() }()
	ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
	defer cancel()
	p, err := r.Start(ctx, Command{Script: `{ echo "gitdir: /tmp/evil" >.git; } 2>/dev/null && echo changed || echo refused; exec sleep 30`})
	if err != nil {
		return OutcomeEscaped, err.Error()
	}
	defer func() {
		p.Kill()
		_, _ = io.Copy(io.Discard, p.Stdout)
		_, _ = p.Wait()
	}()
	if line, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil || line != "changed\n" {
		return OutcomeBlocked, "it cannot be written: " + strings.TrimSpace(line)
	}
	for ctx.Err() == nil {
		if b, err := os.ReadFile(path); err == nil && string(b) == s.gitFile {
			return OutcomeContained, "changed, and put back while the command went on; the daemon's git does not read it, but a person's would until then"
		}
		time.Sleep(10 * time.Millisecond)
	}
	return OutcomeEscaped, "the workspace's .git stays changed while a command runs"
}

// linked is an attempt to read the canary by way of a symbolic link.
func (t *target) linked(name, to, below string) error {
	link := t.temporary("link-" + name)
	if err := os.Symlink(to, link); err != nil {
		return err
	}
	return t.read(filepath.Join(link, below))
}

// listed is an attempt to see a name in a directory.
func listed(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name }) {
		return nil
	}
	return errors.New("listed, but what was there is not the daemon's")
}

// names is an attempt to see anything in one of these directories.
func names(dirs ...string) error {
	return each(dirs, func(d string) error {
		entries, err := os.ReadDir(d)
		if err == nil && len(entries) == 0 {
			err = errors.New("nothing in it")
		}
		return err
	})
}

func readHome(t *target) error {
	if len(t.HomeNames) == 0 {
		return unavailable("the home directory is empty")
	}
	entries, err := os.ReadDir(t.Home)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(t.HomeNames, e.Name()) {
			return nil
		}
	}
	return errors.New("listed, but what is seen are the directories that were given")
}

func openHandle(t *target) error {
	if len(t.Handle) == 0 {
		return unavailable("the file system has no handles")
	}
	dir, err := unix.Open(t.Workspace, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(dir) }()
	fd, err := unix.OpenByHandleAt(dir, unix.NewFileHandle(t.HandleKin, t.Handle), unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "handle")
	defer func() { _ = f.Close() }()
	b := make([]byte, 100)
	n, err := f.Read(b)
	if t.canary(b[:n]) {
		return nil
	}
	return errors.Join(err, errNoCanary)
}

// setuid looks whether a file was made one that runs as its owner or group.
func setuid(path string, err error) error {
	defer func() { _ = os.Remove(path) }()
	st, e := os.Stat(path)
	if e == nil && st.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return nil
	}
	if err == nil {
		err = errors.New("made, without the bit")
	}
	return err
}

// remode gives a file the mode that it has.
func remode(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return f.Chmod(st.Mode())
}

// ioctl asks for what a file that can only be read has, unless get is 0, and
// gives it that.
func (t *target) ioctl(get, set uintptr, with ...uint32) error {
	f, err := os.Open(t.Given)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var arg [32]uint32
	copy(arg[:], with)
	for _, request := range []uintptr{get, set} {
		if request == 0 {
			continue
		}
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(&arg))); e != 0 {
			return e
		}
	}
	return nil
}
