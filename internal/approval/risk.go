package approval

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"toritsugi/internal/lazyregexp"
	"toritsugi/internal/redact"
	"toritsugi/internal/tool/policy"
	"toritsugi/internal/workspace"
)

// RiskKind names what the program finds in a proposal, whatever a model says of it. They
// are the words of approval.hard_require_approval and deny_operations.
type RiskKind string

// The kinds.
const (
	Delete        RiskKind = "delete"
	Rename        RiskKind = "rename"
	ModeChange    RiskKind = "mode"
	Symlink       RiskKind = "symlink"
	Binary        RiskKind = "binary"
	CIFile        RiskKind = "ci"
	BuildFile     RiskKind = "build"
	LockFile      RiskKind = "lock"
	Migration     RiskKind = "migration"
	WideOverwrite RiskKind = "wide_overwrite"
	Commands      RiskKind = "commands"
	SendSensitive RiskKind = "send_sensitive"
	PushPublic    RiskKind = "push_public"
	CostOverLimit RiskKind = "cost_over_limit"
)

// RiskKinds lists them in the order in which people are told.
func RiskKinds() []RiskKind {
	return []RiskKind{Delete, Rename, WideOverwrite, SendSensitive, PushPublic, CostOverLimit, Commands, Symlink, ModeChange, CIFile, Migration, BuildFile, LockFile, Binary}
}

// Risk is one finding. Details are paths, rules or numbers, at most maxDetails of Count.
type Risk struct {
	Kind    RiskKind `json:"kind"`
	Details []string `json:"details,omitempty"`
	Count   int      `json:"count,omitempty"`
}

const maxDetails = 5

// Wide says from where on a patch overwrites widely (approval.wide_overwrite).
type Wide struct {
	Files, Lines int
	Share        float64 // of the lines of one file
}

// assessment is all that risk is computed from.
type assessment struct {
	patch      *workspace.Patch // nil for a review
	trial      workspace.Trial
	commands   []judged
	texts      []string // what else is sent: title, summary, commands
	wide       Wide
	costLimit  int64
	cost       Cost
	visibility Visibility
	deliver    Deliver
	personal   *redact.Sanitizer
}

// judged is a command of a proposal and what the policy says of it, the rules by which
// somebody should be asked.
type judged struct {
	script string
	policy.Verdict
}

// risks are what the patch, the commands and the target show.
func (a assessment) risks() []Risk {
	found := map[RiskKind][]string{}
	add := func(k RiskKind, detail string) { found[k] = append(found[k], detail) }
	if a.patch != nil {
		lines := 0
		for _, f := range a.patch.Files {
			lines += f.Added + f.Removed
			a.file(f, add)
		}
		if n := len(a.patch.Files); n > a.wide.Files {
			add(WideOverwrite, strconv.Itoa(n)+" files")
		}
		if lines > a.wide.Lines {
			add(WideOverwrite, strconv.Itoa(lines)+" lines")
		}
	}
	for _, text := range a.texts {
		if a.personal.String(text) != text {
			add(SendSensitive, "text")
		}
	}
	for _, c := range a.commands {
		rules := ""
		for _, f := range c.Findings {
			rules += " (" + f.Rule + ")"
		}
		add(Commands, c.script+rules)
	}
	if a.deliver == PullRequest && a.visibility != Private {
		add(PushPublic, string(a.visibility))
	}
	if total := a.cost.Tokens + a.cost.Hint; a.costLimit > 0 && total > a.costLimit {
		add(CostOverLimit, strconv.Itoa(int(total)))
	}
	var all []Risk
	for _, k := range RiskKinds() {
		if d := found[k]; len(d) > 0 {
			all = append(all, Risk{Kind: k, Details: d[:min(len(d), maxDetails)], Count: len(d)})
		}
	}
	return all
}

// file is what one file of a patch shows.
func (a assessment) file(f workspace.PatchFile, add func(RiskKind, string)) {
	switch f.Action {
	case workspace.PatchDelete:
		add(Delete, f.Path)
	case workspace.PatchRename:
		add(Rename, f.From+" → "+f.Path)
	case workspace.PatchCreate, workspace.PatchModify, workspace.PatchCopy, workspace.PatchMode:
	}
	if f.Link() {
		add(Symlink, f.Path)
	}
	if f.Action != workspace.PatchDelete && f.NewMode != "" && (f.OldMode != "" && f.OldMode != f.NewMode || f.Action == workspace.PatchCreate && f.NewMode == workspace.ModeProgram) {
		add(ModeChange, f.Path)
	}
	if f.Binary {
		add(Binary, f.Path)
	}
	if n := a.trial.Lines[f.Path]; n > 0 && float64(f.Removed) > a.wide.Share*float64(n) {
		add(WideOverwrite, f.Path)
	}
	for _, name := range []string{f.Path, f.From} {
		for _, k := range pathKinds(name) {
			add(k, name)
		}
	}
	if a.personal.String(f.NewText) != f.NewText {
		add(SendSensitive, f.Path)
	}
}

// Paths that build, deploy or pin a project, by their names in lower case.
var (
	ciPath        = lazyregexp.New(`^(\.github/(workflows|actions)/|\.gitlab-ci|\.circleci/|\.buildkite/|\.travis\.ya?ml$|azure-pipelines|bitbucket-pipelines|jenkinsfile|\.drone\.ya?ml$|\.woodpecker|appveyor\.yml$|\.gitea/workflows/|\.forgejo/workflows/)`)
	migrationPath = lazyregexp.New(`(^|/)(migrations?|migrate|alembic/versions|db/migrate|flyway|liquibase)/`)
	lockNames     = []string{"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "go.sum", "cargo.lock", "poetry.lock", "pipfile.lock", "uv.lock", "pdm.lock", "gemfile.lock", "composer.lock", "mix.lock", "pubspec.lock", "packages.lock.json", "gradle.lockfile", "flake.lock", "deno.lock", "podfile.lock"}
	buildNames    = []string{"makefile", "gnumakefile", "cmakelists.txt", "dockerfile", "containerfile", "package.json", "go.mod", "go.work", "cargo.toml", "build.rs", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pipfile", "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gemfile", "rakefile", "composer.json", "meson.build", "build.bazel", "workspace.bazel", "module.bazel", "justfile", "taskfile.yml", ".gitmodules", ".gitattributes", ".npmrc", ".yarnrc.yml", ".pre-commit-config.yaml", "tox.ini", "noxfile.py", "conftest.py"}
	buildPath     = lazyregexp.New(`(^|/)(docker-compose[^/]*|compose)\.ya?ml$|\.(mk|cmake|gradle|csproj|sln|bazel)$|(^|/)(dockerfile|containerfile)[.-][^/]+$|(^|/)(\.husky|\.githooks)/|(^|/)(webpack|vite|rollup|babel|jest|vitest|eslint|next|gulpfile|gruntfile)[^/]*\.(c|m)?[jt]s$`)
)

// pathKinds are what a path says of a file.
func pathKinds(name string) (kinds []RiskKind) {
	name = strings.ToLower(name)
	base := path.Base(name)
	if name == "" {
		return nil
	}
	if ciPath().MatchString(name) || base == "jenkinsfile" {
		kinds = append(kinds, CIFile)
	}
	if slices.Contains(lockNames, base) {
		kinds = append(kinds, LockFile)
	} else if slices.Contains(buildNames, base) || buildPath().MatchString(name) {
		kinds = append(kinds, BuildFile)
	}
	if migrationPath().MatchString(name) {
		kinds = append(kinds, Migration)
	}
	return kinds
}
