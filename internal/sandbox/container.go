package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"toritsugi/internal/i18n"
)

// engine is a container engine's command line.
type engine struct {
	path   string
	podman bool
}

// emptyImage holds nothing: what a container sees is mounted from the machine,
// as in every other kind.
const emptyImage = "localhost/tori-empty:1"

// containerTime is how long the engine may take to say something.
const containerTime = 30 * time.Second

// detectEngine proves that an engine is there, is rootless and confines a
// command. One that runs as root would give the command's mistakes root's reach.
func detectEngine(ctx context.Context, name string) (*Sandbox, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, i18n.E("sandbox.no_engine", name, err)
	}
	s := &Sandbox{kind: KindContainer, engine: engine{path: path, podman: strings.Contains(filepath.Base(path), "podman")}}
	if err = s.engine.check(ctx); err == nil {
		err = s.tryHelper(ctx)
	}
	if err != nil {
		return nil, i18n.E("sandbox.no_engine", name, err)
	}
	return s, nil
}

// check asks the engine whether it is rootless, and makes the empty image.
func (e engine) check(ctx context.Context) error {
	format := "{{range .SecurityOptions}}{{println .}}{{end}}"
	if e.podman {
		format = "{{.Host.Security.Rootless}}"
	}
	out, err := e.call(ctx, nil, "info", "--format", format)
	if err != nil {
		return err
	}
	if e.podman && strings.TrimSpace(out) != "true" || !e.podman && !strings.Contains(out, "rootless") {
		return errors.New("it runs as root: only a rootless engine is used")
	}
	if _, err := e.call(ctx, nil, "image", "inspect", emptyImage); err == nil {
		return nil
	}
	// An archive of nothing is two blocks of zeroes.
	_, err = e.call(ctx, bytes.NewReader(make([]byte, 1024)), "import", "-", emptyImage)
	return err
}

// call runs the engine and returns what it prints.
func (e engine) call(ctx context.Context, in *bytes.Reader, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, containerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.path, args...)
	if in != nil {
		cmd.Stdin = in
	}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(string(bytes.ToValidUTF8(complaint.Bytes(), []byte("?"))))
		return "", fmt.Errorf("%s %s: %w: %.300s", filepath.Base(e.path), args[0], err, text)
	}
	return out.String(), nil
}

// contain prepares a command in a container of its own.
func (s *Sandbox) contain(p *process, spec Spec, c Command, dir string) (child, error) {
	state, err := temporary(spec, "tori-container-")
	if err != nil {
		return nil, err
	}
	p.after(func() { _ = os.RemoveAll(state) })
	name := filepath.Base(state)
	envFile := filepath.Join(state, "env")
	if err := os.WriteFile(envFile, s.containerEnv(spec), 0o600); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	gate := filepath.Join(state, "reached")
	if err := p.namedGate(gate); err != nil {
		return nil, err
	}
	args := s.containerArgs(spec, name, envFile, gate, dir)
	run := scriptArgs(spec, c, "exec 3>/run/reached; ", -1)
	cmd := exec.Command(s.engine.path, append(args, run...)...)
	cmd.ExtraFiles = p.files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.started = func(child *os.Process) error {
		p.terminate = func() error { return s.engine.signal(name, "TERM") }
		p.end = func() error {
			// Its exit takes the container with it (--rm); this is for one
			// whose client ended first.
			_ = s.engine.signal(name, "KILL")
			_ = unix.Kill(-child.Pid, unix.SIGKILL)
			return nil
		}
		return nil
	}
	return &program{Cmd: cmd, p: p}, nil
}

func (e engine) signal(name, signal string) error {
	_, err := e.call(context.Background(), nil, "kill", "--signal", signal, name)
	return err
}

// containerEnv is the environment as the engine reads it from a file, not from
// arguments that everybody may see. A value with a line break cannot be said.
func (s *Sandbox) containerEnv(spec Spec) []byte {
	var b []byte
	for _, kv := range environment(spec, s.tools, "/tmp") {
		if !strings.ContainsAny(kv, "\r\n") {
			b = append(append(b, kv...), '\n')
		}
	}
	return b
}

// containerArgs is the call of the engine up to the command.
func (s *Sandbox) containerArgs(spec Spec, name, envFile, gate, dir string) []string {
	user := strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid())
	args := []string{"run", "--rm", "--interactive", "--init", "--name", name, "--network", "none", "--read-only", "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--hostname", "sandbox", "--log-driver", "none",
		"--ulimit", fmt.Sprintf("sigpending=%[1]d:%[1]d", maxPending), "--pids-limit", strconv.Itoa(spec.Limits.Processes), "--env-file", envFile, "--workdir", dir, "--entrypoint", ""}
	if s.engine.podman {
		args = append(args, "--userns", "keep-id", "--user", user)
	} // a rootless docker's root is the user
	if spec.Limits.Memory > 0 {
		m := strconv.FormatInt(spec.Limits.Memory, 10)
		args = append(args, "--memory", m, "--memory-swap", m)
	}
	size := "size=" + strconv.FormatInt(spec.tmpBytes(), 10)
	args = append(args, "--tmpfs", "/tmp:rw,exec,nosuid,nodev,"+size, "--shm-size", strconv.FormatInt(spec.tmpBytes(), 10))
	args = append(args, "--mount", "type=bind,source="+gate+",target=/run/reached")
	all := s.mounts(spec)
	if git := filepath.Join(spec.Workspace, ".git"); spec.GitDir != "" {
		if st, err := os.Lstat(git); err == nil && st.Mode().IsRegular() {
			all = append(all, mount{How: mountRead, From: git, To: git})
		}
	}
	for _, m := range all {
		option := ",readonly"
		switch m.How {
		case mountEmpty:
			args = append(args, "--tmpfs", m.To+":ro,size=4k")
			continue
		case mountLink:
			m.From = m.To
		case mountWrite:
			option = ""
		case mountRead:
		default: // the engine makes them
			continue
		}
		if _, err := os.Stat(m.From); err == nil {
			args = append(args, "--mount", "type=bind,source="+m.From+",target="+m.To+option)
		}
	}
	return append(args, emptyImage)
}
