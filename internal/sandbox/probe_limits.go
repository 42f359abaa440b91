package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// linger is how long a bomb stays when it has gone too far: what watches looks a few times a
// second, on a busy machine every few seconds.
const linger = 10 * time.Second

// bombs are works that go on until something stops them, each to a bound that
// is no danger to the machine should nothing do so.
func bombs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"survive": survive,
		"comets":  comets,
		"memory":  eat,
		"tables": func([]string) error {
			// A page that is only read is the kernel's one page of zeroes: it is in
			// nobody's memory, but in a table of 4 KiB for every 2 MiB.
			const size, step = 192 << 30, 2 << 20
			b, err := unix.Mmap(-1, 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
			if err != nil {
				return err
			}
			sum := byte(0)
			for i := 0; i < size; i += step {
				sum += b[i]
			}
			time.Sleep(linger)
			_, err = fmt.Println("mapped", sum)
			return err
		},
		"shared": func([]string) error {
			const size, page = 16 << 20, 4 << 10
			for range 32 { // given back, and kept by the mapping
				b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
				if err != nil {
					return err
				}
				for i := 0; i < size; i += page {
					b[i] = 1
				}
				if err := unix.Madvise(b, unix.MADV_DONTNEED); err != nil {
					return err
				}
			}
			time.Sleep(linger)
			_, err := fmt.Println("kept")
			return err
		},
		"threads": func([]string) error {
			for range 400 {
				go func() {
					runtime.LockOSThread()
					select {}
				}()
			}
			time.Sleep(linger)
			return nil
		},
		"descriptors": func([]string) error {
			for i := range 4096 {
				if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
					return fmt.Errorf("after %d: %w", i, err)
				}
			}
			return nil
		},
		"files": func([]string) error {
			for i := range 20000 {
				if i == 8000 {
					time.Sleep(time.Second)
				}
				if err := os.WriteFile(fmt.Sprintf("many-%d", i), nil, 0o600); err != nil {
					return err
				}
			}
			time.Sleep(linger)
			return nil
		},
		"disk": func([]string) error {
			block := bytes.Repeat([]byte("tori"), 1<<18)
			for i := range 24 { // of 8 MiB
				f, err := os.Create(fmt.Sprintf("big-%d", i))
				if err != nil {
					return err
				}
				for range 8 {
					if _, err := f.Write(block); err != nil {
						return errors.Join(err, f.Close())
					}
				}
				if err := f.Close(); err != nil {
					return err
				}
				time.Sleep(20 * time.Millisecond)
			}
			time.Sleep(linger)
			return nil
		},
		// The children of one who ignores their end are waited for by nobody, and a file
		// that was removed lies in no directory.
		"unwaited": func([]string) error {
			signal.Ignore(unix.SIGCHLD)
			for range 4 {
				_ = exec.Command(helperPath, helperArg, "probe", "spin").Run()
			}
			return nil
		},
		"nameless": func([]string) error {
			signal.Ignore(unix.SIGCHLD)
			f, err := os.Create("nameless")
			if err == nil {
				err = os.Remove(f.Name())
			}
			if err != nil {
				return err
			}
			for range 24 {
				cmd := exec.Command("head", "-c", "8388608", "/dev/zero")
				cmd.Stdout = f
				_ = cmd.Run()
			}
			time.Sleep(linger)
			return f.Close()
		},
		"spin": func([]string) error {
			for {
				for range 1 << 20 {
				}
				var u unix.Rusage
				if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil || u.Utime.Sec >= 1 {
					return err
				}
			}
		},
	}
}

// eat takes 96 MiB, and more so in as many processes as args[0] has letters.
func eat(args []string) error {
	if len(args) > 0 && len(args[0]) > 1 {
		cmd := exec.Command(helperPath, helperArg, "probe", "memory", args[0][1:])
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() { _ = cmd.Wait() }()
	}
	b := make([]byte, 96<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	time.Sleep(linger)
	_, err := fmt.Println("ate", len(b))
	return err
}

// limitAttempts go too far, each in commands of its own with small limits.
func limitAttempts() []attempt {
	at := func(name string, f func(s *stage) (string, string)) attempt {
		return attempt{name: name, wall: "limits", outside: f}
	}
	// ended judges a command that must have been ended by a limit, or have
	// failed at one that the kernel keeps, before it came to the word that
	// says that it got through.
	ended := func(name, limit string, l Limits, scripts ...string) attempt {
		return at(name, func(s *stage) (string, string) {
			out, exit, err := s.run(l, 0, scripts...)
			switch {
			case err != nil:
				return OutcomeEscaped, "the command went wrong: " + err.Error()
			case limit != "" && exit.Limit == limit:
				return OutcomeContained, "ended by the limit: " + limit
			case exit.Limit != "":
				return OutcomeContained, "ended by another limit: " + exit.Limit
			case exit.Code == 0 || strings.Contains(out, "through"):
				return OutcomeEscaped, "it went on to its end"
			}
			return OutcomeBlocked, fmt.Sprintf("it failed with %d: %s", exit.Code, lastLine(out))
		})
	}
	self := func(s string) string { return "\"$TORI_SELF\" " + helperArg + " probe " + s }
	// What was there is counted in the first command, or on a slow machine in the second.
	several := func(name, rest string) string {
		return "mkdir several-" + name + "; seq -f several-" + name + "/%.0f 2500 | xargs touch; sleep " + rest
	}
	all := []attempt{
		ended("fork-bomb", limitProcesses, Limits{Processes: 24},
			"i=0; while [ $i -lt 120 ]; do sleep 20 & i=$((i+1)); done; wait; echo through"),
		ended("fork-bomb-sessions", limitProcesses, Limits{Processes: 24},
			"i=0; while [ $i -lt 120 ]; do (setsid sleep 20 &) ; i=$((i+1)); done; sleep 20; echo through"),
		ended("threads", limitProcesses, Limits{Processes: 24}, "exec "+self("threads")),
		ended("memory-of-one", limitMemory, Limits{Memory: 64 << 20}, "exec "+self("memory")),
		ended("memory-of-many", limitMemory, Limits{Memory: 192 << 20}, "exec "+self("memory xxxx")),
		ended("memory-of-tables", limitMemory, Limits{Memory: 256 << 20}, "exec "+self("tables")),
		ended("memory-of-nobody", limitMemory, Limits{Memory: 256 << 20}, "exec "+self("shared")),
		ended("processor", limitCPU, Limits{CPU: 300 * time.Millisecond}, "exec "+self("spin")),
		ended("processor-of-many", limitCPU, Limits{CPU: 1500 * time.Millisecond}, "for i in 1 2 3; do "+self("spin")+" & done; wait"),
		ended("processor-of-nobody", limitCPU, Limits{CPU: 2 * time.Second}, "exec "+self("unwaited")),
		ended("descriptors", "", Limits{OpenFiles: 64}, "exec "+self("descriptors")),
		ended("big-file", "", Limits{FileSize: 1 << 20}, "head -c 8000000 /dev/zero >big-one && echo through"),
		ended("sparse-file", "", Limits{FileSize: 1 << 20}, "dd if=/dev/zero of=sparse bs=1 count=1 seek=1000000000 2>&1 && echo through"),
		ended("disk-filler", limitDisk, Limits{Disk: 48 << 20}, "exec "+self("disk")),
		ended("disk-of-nobody", limitDisk, Limits{Disk: 48 << 20}, "exec "+self("nameless")),
		ended("many-files", limitFiles, Limits{NewFiles: 4000}, "exec "+self("files")),
		ended("files-of-many-commands", limitFiles, Limits{NewFiles: 4000}, "sleep 1", several("a", "2"), several("b", "8"), several("c", "20")),
		ended("output-flood", limitOutput, Limits{Output: 1 << 20}, "head -c 100000000 /dev/zero; sleep 20; echo through"),
		at("control-groups", func(s *stage) (string, string) {
			if s.box.groups == nil {
				return OutcomeUnavailable, "no cgroup v2 with memory and pids is delegated to this process (systemd: Delegate=yes): rlimits of each process, and a watcher of all, keep the limits"
			}
			return OutcomeContained, "the kernel keeps memory and number of all processes together, in groups below " + s.box.groups.dir
		}),
		at("tmp-filler", func(s *stage) (string, string) { return filled(s, "$TMPDIR") }),
		at("shm-filler", func(s *stage) (string, string) { return filled(s, "/dev/shm") }),
		at("wall-time", func(s *stage) (string, string) {
			begin := time.Now()
			_, exit, err := s.run(Limits{}, 200*time.Millisecond, "trap '' TERM INT HUP; while :; do sleep 10; done")
			if took := time.Since(begin); err != nil || !exit.TimedOut || took > time.Minute {
				return OutcomeEscaped, fmt.Sprintf("ended after %s: %v", took.Round(time.Millisecond), err)
			}
			return OutcomeContained, "ended although it ignored the signals that ask"
		}),
		at("startup-files", func(s *stage) (string, string) {
			const plant = `for f in .bashrc .profile .gitconfig .npmrc .config/git/config; do mkdir -p "$HOME/.config/git"; echo x >"$HOME/$f"; done; echo x >"$TMPDIR/left"`
			if _, _, err := s.run(Limits{}, 0, plant); err != nil {
				return OutcomeEscaped, err.Error()
			}
			out, _, err := s.run(Limits{}, 0, `ls -A "$HOME" "$TMPDIR" | grep -e bashrc -e gitconfig -e left`)
			if err != nil || strings.TrimSpace(out) != "" {
				return OutcomeEscaped, "what was left in one sandbox is there in the next: " + lastLine(out)
			}
			return OutcomeContained, "home and temporary files belong to the commands of one sandbox"
		}),
		{name: "environment", wall: "daemon", outside: environmentProbe},
		{name: "preload", wall: "daemon", outside: func(s *stage) (string, string) {
			out, _, err := s.run(Limits{}, 0, `env | grep -E '^(LD_|BASH_ENV=|ENV=|PROMPT_COMMAND=|GIT_(DIR|CONFIG|EXEC)|NODE_OPTIONS=|PYTHON(PATH|STARTUP)=|PERL5)'`)
			if err != nil || out != "" {
				return OutcomeEscaped, "set for every program: " + lastLine(out)
			}
			return OutcomeBlocked, "no variable makes programs load anything"
		}},
		{name: "time-of-check", wall: "files", outside: raceProbe},
	}
	for _, way := range survivors() {
		all = append(all, attempt{name: "survivor-" + way, wall: "processes", outside: func(s *stage) (string, string) { return survived(s, way) }})
	}
	return all
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return strings.ToValidUTF8(s[strings.LastIndexByte(s, '\n')+1:], "?")
}

// filled fills a file system in memory, or what stands for it.
func filled(s *stage, dir string) (string, string) {
	out, exit, err := s.run(Limits{Memory: 64 << 20, FileSize: 1 << 30, Disk: 64 << 20}, 0,
		`head -c 200000000 /dev/zero >"`+dir+`/filler" && sleep 20 && echo through`)
	switch {
	case err != nil:
		return OutcomeEscaped, err.Error()
	case strings.Contains(out, "through"):
		return OutcomeEscaped, "200 MB went in"
	case exit.Limit != "":
		return OutcomeContained, "ended by the limit: " + exit.Limit
	}
	return OutcomeContained, "it has an end: " + lastLine(out)
}

// environmentProbe compares a command's environment with ours.
func environmentProbe(s *stage) (string, string) {
	out, _, err := s.run(Limits{}, 0, "env -0; cat /proc/self/environ 2>/dev/null")
	if err != nil {
		return OutcomeEscaped, err.Error()
	}
	given := map[string]bool{}
	for _, kv := range environment(s.spec, s.box.tools, "/tmp") {
		given[kv] = true
	}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if len(value) > 3 && !given[kv] && name != "PWD" && name != "PATH" && name != "SHLVL" && name != "_" && name != "TMPDIR" && strings.Contains("\x00"+out, "\x00"+kv+"\x00") {
			return OutcomeEscaped, "the variable " + name + " of this program is there"
		}
	}
	return OutcomeBlocked, "only what is made for it"
}

// raceProbe has a command swap a directory for a link to the daemon's data and
// back while other commands are told to begin in it.
func raceProbe(s *stage) (string, string) {
	ws := s.spec.Workspace
	if err := os.MkdirAll(filepath.Join(ws, "race"), 0o700); err != nil {
		return OutcomeEscaped, err.Error()
	}
	ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
	defer cancel()
	p, err := s.runner.Start(ctx, Command{Script: "while :; do mv race was && ln -s '" + s.target.Data + "' race; rm race && mv was race; done 2>/dev/null", Output: io.Discard})
	if err != nil {
		return OutcomeEscaped, err.Error()
	}
	outcome, detail := OutcomeBlocked, "no command began outside"
	for range 12 {
		var out bytes.Buffer
		_, err := s.runner.Run(ctx, Command{Script: "cat canary; echo x >raced", Dir: "race", Output: &out})
		if s.target.canary(out.Bytes()) {
			outcome, detail = OutcomeEscaped, "a command began in the daemon's data"
		}
		if err != nil && ctx.Err() != nil {
			break
		}
	}
	p.Kill()
	_, _ = p.Wait()
	if _, err := os.Stat(filepath.Join(s.target.Data, "raced")); err == nil {
		outcome, detail = OutcomeEscaped, "a command wrote to the daemon's data"
	}
	return outcome, detail
}

// survived looks whether a process is alive after its command.
func survived(s *stage, way string) (string, string) {
	out, _, err := s.run(Limits{}, 10*time.Second, `"$TORI_SELF" `+helperArg+" probe survive "+way)
	if err != nil || !strings.Contains(out, "started") {
		return OutcomeEscaped, fmt.Sprintf("it was not started: %v %s", err, lastLine(out))
	}
	f, err := os.OpenFile(filepath.Join(s.spec.Workspace, "alive-"+way), os.O_RDWR, 0)
	if err != nil {
		return OutcomeEscaped, err.Error()
	}
	defer func() { _ = f.Close() }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return OutcomeEscaped, "a process is alive after its command"
	}
	return OutcomeContained, "ended with its command"
}
