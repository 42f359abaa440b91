package policy

import (
	"slices"
	"strings"
)

// wrapper describes the command line of a program that runs another one. A
// flag that it does not name makes the line opaque: its value could be the
// command as well as the word after it.
type wrapper struct {
	flags   string   // short flags without a value
	values  string   // short flags with one, in the same word or the next
	long    []string // long flags without a value
	longs   []string // long flags with one, after "=" or in the next word
	numbers bool     // -10 is a flag
	verbs   []string // the word that must come first to run something: poetry run
	skip    int      // words before the command
	assigns bool     // NAME=value words before the command
	kept    bool     // judged itself as well
	joined  bool     // its words are joined and given to a shell
	fed     bool     // words from its input are added at the end
	replace string   // flag whose value stands for those words
	chdir   []string // flags whose value is the directory of the command
	nothing string   // flags with which nothing is run: command -v
	here    bool     // the command runs in the shell's own process
	script  []string // flags whose value is a script: script -c
	idle    bool     // without a command it does something of its own
	split   []string // flags whose value is taken apart into words that stand before the others
}

// wrappers are the programs that run their arguments.
var wrappers = map[string]*wrapper{
	"command":          {flags: "p", nothing: "vV", here: true},
	"builtin":          {here: true},
	"exec":             {flags: "cl", values: "a", here: true},
	"env":              {flags: "i0v", values: "uC", long: []string{"--ignore-environment", "--null", "--debug", "--block-signal", "--default-signal", "--ignore-signal", "--list-signal-handling"}, longs: []string{"--unset", "--chdir"}, assigns: true, chdir: []string{"-C", "--chdir"}, idle: true, split: []string{"-S", "--split-string"}},
	"timeout":          {flags: "vpf", values: "sk", long: []string{"--foreground", "--preserve-status", "--verbose"}, longs: []string{"--signal", "--kill-after"}, skip: 1},
	"gtimeout":         {flags: "vpf", values: "sk", long: []string{"--foreground", "--preserve-status", "--verbose"}, longs: []string{"--signal", "--kill-after"}, skip: 1},
	"nice":             {values: "n", longs: []string{"--adjustment"}, numbers: true, idle: true},
	"ionice":           {flags: "t", values: "cnpPu", long: []string{"--ignore"}, longs: []string{"--class", "--classdata", "--pid"}, idle: true},
	"chrt":             {flags: "abdfiorRv", values: "TPD", long: []string{"--batch", "--deadline", "--fifo", "--idle", "--other", "--rr"}, skip: 1},
	"taskset":          {flags: "ac", long: []string{"--cpu-list", "--all-tasks"}, skip: 1},
	"numactl":          {values: "NmCilp", longs: []string{"--cpunodebind", "--membind", "--physcpubind", "--interleave", "--preferred"}, long: []string{"--localalloc"}},
	"prlimit":          {longs: []string{"--cpu", "--as", "--nofile", "--nproc", "--fsize", "--data", "--stack", "--core"}, kept: true},
	"nohup":            {},
	"setsid":           {flags: "cfw", long: []string{"--ctty", "--fork", "--wait"}},
	"setarch":          {flags: "RFLBSTZ3v", skip: 1, long: []string{"--addr-no-randomize"}},
	"stdbuf":           {values: "ioe", longs: []string{"--input", "--output", "--error"}},
	"unbuffer":         {flags: "p"},
	"time":             {flags: "pvaq", values: "fo", long: []string{"--portability", "--verbose", "--append", "--quiet"}, longs: []string{"--format", "--output"}},
	"strace":           {flags: "fFcCqtTyiknrvxyzZwD", values: "aeEIoOpPsSuXb", long: []string{"--follow-forks"}, longs: []string{"--trace", "--output"}, kept: true},
	"ltrace":           {flags: "fcCiLrStTV", values: "aADeElnopsuwx", kept: true},
	"catchsegv":        {},
	"fakeroot":         {flags: "hv", values: "lisb", long: []string{"--unknown-is-real"}},
	"eatmydata":        {},
	"faketime":         {flags: "fm", skip: 1},
	"xvfb-run":         {flags: "al", values: "efnpsw", long: []string{"--auto-servernum", "--auto-display"}, longs: []string{"--server-args", "--server-num", "--error-file", "--wait"}},
	"dbus-run-session": {},
	"flock":            {flags: "esnuFxo", values: "wE", long: []string{"--exclusive", "--shared", "--nonblock", "--unlock", "--close", "--no-fork"}, longs: []string{"--timeout", "--wait", "--conflict-exit-code"}, skip: 1, script: []string{"-c", "--command"}, kept: true},
	"xargs":            {flags: "0oprtx", values: "adEIiLnPsl", long: []string{"--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit", "--open-tty"}, longs: []string{"--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-lines", "--replace", "--max-chars", "--process-slot-var", "--eof"}, fed: true, replace: "-I"},
	"parallel":         {flags: "0kquvtX", values: "jnNLIaS", long: []string{"--keep-order", "--verbose", "--null", "--will-cite", "--bar", "--dry-run", "--quote", "--group", "--ungroup", "--line-buffer", "--lb", "--tag"}, longs: []string{"--jobs", "--halt", "--delay", "--timeout", "--joblog", "--results", "--retries", "--max-args", "--colsep", "--arg-file"}, fed: true, joined: true},
	"watch":            {flags: "bcdegtwx", values: "nq", long: []string{"--beep", "--color", "--differences", "--errexit", "--chgexit", "--no-title", "--exec"}, longs: []string{"--interval"}, joined: true},
	"entr":             {flags: "acdnprsz", kept: true},
	"script":           {flags: "aefq", values: "EIoOmtTB", long: []string{"--quiet", "--flush", "--return", "--append"}, longs: []string{"--log-out", "--log-in", "--log-io", "--log-timing"}, script: []string{"-c", "--command"}, kept: true, skip: 1, idle: true},
	"sudo":             {flags: "AbEHnPSikKsBv", values: "aCcDghprRTtuU", long: []string{"--non-interactive", "--login", "--shell", "--preserve-env", "--set-home", "--stdin", "--background"}, longs: []string{"--user", "--group", "--host", "--chdir", "--prompt", "--chroot"}, assigns: true, kept: true},
	"doas":             {flags: "Lns", values: "aCu", kept: true},
	"su":               {flags: "lmpP", values: "gGsw", long: []string{"--login"}, longs: []string{"--shell", "--group"}, script: []string{"-c", "--command"}, skip: 1, kept: true, idle: true},
	"runuser":          {flags: "lmpP", values: "ugGsw", script: []string{"-c", "--command"}, kept: true, idle: true},
	"pkexec":           {longs: []string{"--user"}, long: []string{"--disable-internal-agent", "--keep-cwd"}, kept: true},
	"chroot":           {longs: []string{"--userspec", "--groups"}, long: []string{"--skip-chdir"}, skip: 1, kept: true, idle: true},
	"unshare":          {flags: "muinpUfrcCT", values: "SGRw", long: []string{"--mount", "--uts", "--ipc", "--net", "--pid", "--user", "--cgroup", "--fork", "--map-root-user", "--mount-proc", "--map-current-user"}, longs: []string{"--root", "--wd"}, kept: true, idle: true},
	"nsenter":          {flags: "amuinpUCTFZr", values: "tSGw", long: []string{"--all", "--mount", "--uts", "--ipc", "--net", "--pid", "--user"}, longs: []string{"--target"}, kept: true, idle: true},
	"setpriv":          {long: []string{"--no-new-privs", "--clear-groups", "--init-groups", "--keep-groups"}, longs: []string{"--reuid", "--regid", "--inh-caps", "--bounding-set", "--groups"}, kept: true},
	"systemd-run":      {flags: "GdtPqS", values: "upEHM", long: []string{"--user", "--scope", "--pty", "--pipe", "--wait", "--quiet"}, longs: []string{"--unit", "--property", "--setenv", "--slice"}, kept: true},
	"busybox":          {idle: true},
	"toybox":           {idle: true},
	"poetry":           {verbs: []string{"run"}, flags: "nqvC", long: []string{"--no-interaction", "--quiet", "--verbose", "--no-ansi"}, longs: []string{"--directory", "--project"}, idle: true},
	"pipenv":           {verbs: []string{"run"}, flags: "qv", idle: true},
	"pdm":              {verbs: []string{"run"}, flags: "qv", values: "p", longs: []string{"--project"}, idle: true},
	"hatch":            {verbs: []string{"run"}, flags: "qv", values: "e", longs: []string{"--env"}, idle: true},
	"rye":              {verbs: []string{"run"}, idle: true},
	"uv":               {verbs: []string{"run"}, flags: "qvn", values: "p", long: []string{"--frozen", "--locked", "--offline", "--no-sync", "--no-project", "--isolated", "--quiet", "--all-extras", "--dev", "--no-dev"}, longs: []string{"--python", "--extra", "--group", "--directory", "--project", "--env-file", "--package"}, idle: true},
	"conda":            {verbs: []string{"run"}, values: "np", long: []string{"--no-capture-output", "--live-stream"}, longs: []string{"--name", "--prefix", "--cwd"}, idle: true},
	"bundle":           {verbs: []string{"exec"}, long: []string{"--keep-file-descriptors"}, longs: []string{"--gemfile"}, idle: true},
	"pnpm":             {verbs: []string{"exec"}, flags: "rsw", values: "CF", long: []string{"--recursive", "--silent"}, longs: []string{"--dir", "--filter"}, idle: true},
	"yarn":             {verbs: []string{"exec"}, flags: "s", long: []string{"--silent"}, longs: []string{"--cwd"}, idle: true},
	"direnv":           {verbs: []string{"exec"}, skip: 1, kept: true, idle: true},
	"asdf":             {verbs: []string{"exec"}, idle: true},
	"mise":             {verbs: []string{"exec", "x"}, idle: true, kept: true},
	"rbenv":            {verbs: []string{"exec"}, idle: true},
	"pyenv":            {verbs: []string{"exec"}, idle: true},
	"opam":             {verbs: []string{"exec"}, idle: true},
	"dotenv":           {values: "f", flags: "o", idle: true},
	"cross-env":        {assigns: true},
}

// unwrap records the command that a wrapper runs.
func (w *walker) unwrap(i invocation, wr *wrapper) []string {
	inner, problem := w.strip(&i, wr)
	switch {
	case problem:
		if wr.kept {
			w.add(i.cmd, i.dirs)
		}
		return w.opaque(i, OpaqueName)
	case inner == nil: // it runs nothing
		w.sink.doubt()
		w.add(i.cmd, i.dirs)
		return w.dirs
	}
	next := invocation{argv: inner, cmd: i.cmd, in: i.in, from: i.from, said: i.said, dirs: i.dirs, here: i.here && wr.here}
	next.cmd.Via = append(slices.Clone(i.cmd.Via), i.cmd.Name)
	next.cmd.function = false
	if wr.kept {
		w.add(i.cmd, i.dirs)
		next.cmd.Writes, next.cmd.Reads = nil, nil
	}
	if i.cmd.Name == "builtin" || i.cmd.Name == "command" || i.cmd.Name == "exec" {
		// Functions are passed over.
		if s, ok := inner[0].Text(); ok && w.funcs[s] {
			next.here = next.here && s == "cd"
		}
	}
	if wr.joined {
		return w.joined(next, i.cmd.Name)
	}
	if i.cmd.Name == "exec" && i.here && w.certain {
		defer func() { w.dirs = []string{} }()
	}
	for _, argv := range i.single {
		one := next
		one.argv, one.here = argv, false
		w.exec(one)
	}
	return w.exec(next)
}

// joined runs words as a script, as watch and parallel do.
func (w *walker) joined(i invocation, via string) []string {
	words := i.argv
	at := slices.IndexFunc(words, func(a Word) bool { s, ok := a.Text(); return ok && strings.HasPrefix(s, ":::") })
	fed := via == "parallel"
	if at >= 0 {
		words = words[:at]
	}
	all, ok := texts(slices.DeleteFunc(slices.Clone(words), func(a Word) bool { return fed && a.Many && len(a.Alts) == 0 }))
	if !ok || len(all) == 0 {
		rough := make([]string, len(words))
		for k, a := range words {
			rough[k] = a.raw()
		}
		w.unseen(i, OpaqueScript, strings.Join(rough, " "))
		all = leading(words)
	}
	script := strings.Join(all, " ")
	if fed {
		if strings.Contains(script, "{") {
			w.opaque(i, OpaqueScript)
		}
		script += ` "$@"`
	}
	i.in = input{}
	return w.runScript(i, script, true, via)
}

// strip returns the words that a wrapper runs, nil where it runs nothing;
// problem says that nobody can tell.
func (w *walker) strip(i *invocation, wr *wrapper) (inner []Word, problem bool) {
	p := stripper{w: w, i: i, wr: wr, args: i.argv[1:], plain: true}
	if len(wr.verbs) > 0 {
		if stop, problem := p.flags(); stop {
			return nil, problem
		}
		if len(p.args) == 0 {
			return nil, false
		}
		verb, ok := p.args[0].Text()
		if !ok {
			return nil, true
		}
		if !slices.Contains(wr.verbs, verb) {
			return nil, false
		}
		p.args = p.args[1:]
	}
	if stop, problem := p.flags(); stop {
		return nil, problem
	}
	for range wr.skip {
		if len(p.args) == 0 {
			return nil, !wr.idle
		}
		if p.args[0].Many {
			return nil, true
		}
		p.args = p.args[1:]
		if stop, problem := p.flags(); stop { // flock file -c script
			return nil, problem
		}
	}
	if wr.assigns {
		for len(p.args) > 0 {
			a := p.args[0]
			switch a.is(func(s string) bool { return strings.Contains(s, "=") }) {
			case maybe:
				return nil, true
			case yes:
				i.cmd.Env = append(slices.Clone(i.cmd.Env), assignment(a))
				p.args = p.args[1:]
				continue
			}
			break
		}
	}
	if len(p.args) == 0 {
		return nil, false
	}
	if wr.fed {
		inner, i.single = p.feed()
		return inner, false
	}
	return p.args, false
}

// stripper takes the flags of a wrapper off its command line.
type stripper struct {
	w                       *walker
	i                       *invocation
	wr                      *wrapper
	args                    []Word
	token                   string // of xargs -I
	nul, batches, elsewhere bool   // xargs -0; -n, -L, -l; -a
	plain                   bool   // nothing else says how the input is read
}

// flags takes leading flags off; stop says that there is no command after
// them, or that nobody can tell (problem).
func (p *stripper) flags() (stop, problem bool) {
	for len(p.args) > 0 {
		s, ok := p.args[0].Text()
		if !ok {
			if p.args[0].Exact && !p.args[0].Many && p.args[0].is(func(s string) bool { return strings.HasPrefix(s, "-") }) == no {
				return false, false
			}
			return true, true
		}
		if s == "--" {
			p.args = p.args[1:]
			return false, false
		}
		if len(s) < 2 || s[0] != '-' {
			if s == "-" && p.i.cmd.Name == "env" {
				p.args = p.args[1:]
				continue
			}
			return false, false
		}
		p.args = p.args[1:]
		if strings.HasPrefix(s, "--") {
			stop, problem = p.longFlag(s)
		} else {
			stop, problem = p.shortFlags(s)
		}
		if stop {
			return true, problem
		}
	}
	return false, false
}

func (p *stripper) longFlag(s string) (stop, problem bool) {
	name, value, attached := strings.Cut(s, "=")
	switch {
	case slices.Contains(p.wr.script, name) && (attached || len(p.args) > 0):
		v := lit(value)
		if !attached {
			v, p.args = p.args[0], p.args[1:]
		}
		return p.runValue(v)
	case slices.Contains(p.wr.split, name) && (attached || len(p.args) > 0):
		v := lit(value)
		if !attached {
			v, p.args = p.args[0], p.args[1:]
		}
		return p.splitText(v)
	case slices.Contains(p.wr.longs, name):
		v := lit(value)
		if !attached {
			if len(p.args) == 0 {
				return true, true
			}
			v, p.args = p.args[0], p.args[1:]
		}
		return p.value(name, v)
	case slices.Contains(p.wr.long, name):
		p.reads(name)
		return false, false
	case name == "--help" || name == "--version":
		return true, false
	}
	return true, true
}

func (p *stripper) shortFlags(s string) (stop, problem bool) {
	if p.wr.numbers && strings.Trim(s[1:], "0123456789") == "" {
		return false, false
	}
	for k := 1; k < len(s); k++ {
		letter := s[k : k+1]
		flag := "-" + letter
		takes := strings.Contains(p.wr.values, letter) || slices.Contains(p.wr.script, flag) || slices.Contains(p.wr.split, flag)
		switch {
		case strings.Contains(p.wr.nothing, letter):
			return true, false
		case takes:
			v := lit(s[k+1:])
			if k+1 == len(s) {
				if len(p.args) == 0 {
					return true, true
				}
				v, p.args = p.args[0], p.args[1:]
			}
			if slices.Contains(p.wr.script, flag) {
				return p.runValue(v)
			}
			if slices.Contains(p.wr.split, flag) {
				return p.splitText(v)
			}
			return p.value(flag, v)
		case strings.Contains(p.wr.flags, letter):
			p.reads(flag)
		default:
			return true, true
		}
	}
	return false, false
}

// runValue walks the script that is a flag's value.
func (p *stripper) runValue(v Word) (stop, problem bool) {
	text, ok := v.Text()
	if !ok {
		p.w.fragments(*p.i, v.raw())
		return true, true
	}
	p.w.runScript(*p.i, text, true, p.i.cmd.Name)
	return true, false
}

// value looks at a flag's value.
func (p *stripper) value(flag string, v Word) (stop, problem bool) {
	if v.Many {
		return true, true
	}
	p.reads(flag)
	if flag == p.wr.replace || flag == "--replace" && p.wr.replace != "" {
		s, ok := v.Text()
		if !ok || s == "" {
			return true, true
		}
		p.token = s
	}
	if slices.Contains(p.wr.chdir, flag) {
		dirs := p.i.dirs
		p.i.dirs = nil
		if s, ok := v.Text(); ok && dirs != nil {
			p.i.dirs = under(dirs, s)
		}
	}
	return false, false
}

// reads notes what a flag of xargs or parallel says of the input.
func (p *stripper) reads(flag string) {
	if !p.wr.fed {
		return
	}
	switch flag {
	case "-0", "--null":
		p.nul = true
	case "-n", "--max-args", "-N", "-s", "--max-chars":
		p.batches = true
	case "-L", "-l", "--max-lines":
		p.batches = true
	case "-a", "--arg-file":
		p.elsewhere = true
	case "-d", "-E", "-e", "--delimiter", "--eof", "--colsep":
		p.plain = false
	}
}

// without returns a with every mention of token replaced by what is not known,
// or by paths within dirs where the whole word is the token.
func without(a Word, token string, dirs []string) Word {
	switch a.is(func(s string) bool { return strings.Contains(s, token) }) {
	case no:
		return a
	case yes:
		if s, _ := a.Text(); s == token && dirs != nil {
			return Word{Alts: dirs}
		}
	}
	return Word{}
}
