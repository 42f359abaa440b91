package config

// Approval is the section approval (route §10.2, spec/chat §7): who decides about what
// coders propose, and what is never applied without being asked about.
type Approval struct {
	RequiredByDefault   bool     `yaml:"required_by_default" default:"true" doc:"Ask about every proposal; false asks about those only that hard_require_approval is about, or that overwrite widely."`
	HardRequireApproval []string `yaml:"hard_require_approval" default:"delete|rename|send_sensitive|push_public|cost_over_limit" check:"enum=delete|rename|wide_overwrite|send_sensitive|push_public|cost_over_limit|commands|symlink|mode|ci|migration|build|lock|binary" doc:"What is always asked about, automatic approval or not: delete, rename, wide_overwrite, send_sensitive, push_public, cost_over_limit, commands, symlink, mode, ci, migration, build, lock, binary. A run on a forge asks about what its label does not cover: all of these but delete, rename, send_sensitive, cost_over_limit, and push_public where who asked may write there."`
	Approvers           []string `yaml:"approvers" check:"nonempty" doc:"Who may decide besides the person who asked, as CHANNEL:ID: slack:U123, github:123, terminal:hanako."`
	FourEyes            bool     `yaml:"four_eyes" default:"false" doc:"Who asked for the work may not grant it."`
	ExpiresHours        int      `yaml:"expires_hours" default:"72" check:"min=0,max=8760" doc:"Hours after which a request that nobody answered is denied; 0 for never."`
	CostLimitTokens     int      `yaml:"cost_limit_tokens" default:"16000" check:"min=0" doc:"Tokens of a job above which it counts as cost_over_limit; 0 for no limit."`

	WideOverwrite WideOverwrite `yaml:"wide_overwrite" doc:"From where on a patch counts as wide_overwrite: more than any of these."`
	AutoApprove   AutoApprove   `yaml:"auto_approve" doc:"What /auto-approve may allow for a session."`
}

// WideOverwrite is the section approval.wide_overwrite.
type WideOverwrite struct {
	Files int     `yaml:"files" default:"20" check:"min=1" doc:"Files that a patch touches."`
	Lines int     `yaml:"lines" default:"500" check:"min=1" doc:"Lines that it adds and removes."`
	Share float64 `yaml:"share" default:"0.5" check:"gt=0,le=1" doc:"Share of the lines of one file that it removes."`
}

// AutoApprove is the section approval.auto_approve.
type AutoApprove struct {
	Enabled    bool             `yaml:"enabled" default:"false" doc:"Let approvers and administrators switch it on for a session."`
	TTLMinutes int              `yaml:"ttl_minutes" default:"60" check:"min=1,max=10080" doc:"For how long at most, in minutes."`
	Scope      AutoApproveScope `yaml:"scope" doc:"For what at most."`
}

// AutoApproveScope is the section approval.auto_approve.scope.
type AutoApproveScope struct {
	AllowedTaskTypes   []string `yaml:"allowed_task_types" default:"design|review" check:"enum=design|codegen|refactor|review" doc:"Task types: design, codegen, refactor, review."`
	AllowedPathsPrefix []string `yaml:"allowed_paths_prefix" default:"docs/" check:"nonempty" doc:"Directories below which all files of a proposal must lie; . is the whole repository."`
	AllowedTools       []string `yaml:"allowed_tools" default:"apply_patch" check:"enum=apply_patch|shell" doc:"apply_patch applies patches, shell runs commands of a proposal."`
	DenyOperations     []string `yaml:"deny_operations" default:"delete|rename|push_public" check:"enum=delete|rename|wide_overwrite|send_sensitive|push_public|cost_over_limit|commands|symlink|mode|ci|migration|build|lock|binary" doc:"What it never covers, in the words of hard_require_approval."`
}
