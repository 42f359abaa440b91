package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"toritsugi/internal/disk/disktest"
	"toritsugi/internal/i18n"
)

// vars is an environment.
type vars map[string]string

func (v vars) get(name string) string { return v[name] }

func (v vars) list() []string {
	var all []string
	for k, x := range v {
		all = append(all, k+"="+x)
	}
	slices.Sort(all)
	return all
}

func parse(t testing.TB, text string, env vars) *Config {
	t.Helper()
	c, err := Parse("c.yaml", []byte(text), env.get, env.list())
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return c
}

func warnings(c *Config) string {
	var all []string
	for _, w := range c.Warnings() {
		all = append(all, w.Error())
	}
	return strings.Join(all, "\n")
}

var ignoreMeta = cmpopts.IgnoreUnexported(Config{})

func defaults() *Config {
	watching := Watching{BotLabel: "coding agent", ReviewLabel: "coding agent review", ProcessingLabel: "coding agent processing", DoneLabel: "coding agent done",
		PausedLabel: "coding agent paused", StoppedLabel: "coding agent stopped", FailedLabel: "coding agent failed", WaitingLabel: "coding agent waiting",
		CreateLabels: true, Assignment: true, MinPermission: "write", UntrustedComments: "mark", FollowUp: true, MaxRunsPerHour: 5}
	return &Config{
		ContextStorage: ContextStorage{true, "logs/contexts", "jsonl", Postgres{}, "", 20, 0.7, 10, 5, "fsync", 30, 60, 5, 0.7, Retention{GzipDays: 7, SlimDays: 30}, Masking{true, 10, 0.1}},
		LLM: LLM{
			Provider: "openai", FunctionCalling: "auto", TimeoutSeconds: 300, ConnectTimeoutSeconds: 10, MaxRetries: 5,
			OpenAI:    Server{"gpt-4o", 128000, "", "https://api.openai.com/v1", 0},
			Anthropic: Anthropic{Server: Server{Model: "claude-sonnet-4.5", ContextLength: 200000, BaseURL: "https://api.anthropic.com"}},
			DeepSeek:  Server{Model: "deepseek-flash", ContextLength: 128000, BaseURL: "https://api.deepseek.com"},
			Ollama:    Ollama{"qwen3:30b", 32768, "http://127.0.0.1:11434", "", "auto", 1},
			LMStudio:  Server{ContextLength: 8192, BaseURL: "http://127.0.0.1:1234/v1", MaxParallel: 1},
			VLLM:      Server{ContextLength: 32768, BaseURL: "http://127.0.0.1:8000/v1"},
		},
		Routing: Routing{Roles{
			Chat: role("Mio", "ollama", "ollama/chat-v1:latest"), Worker: role("Shiro", "ollama", "ollama/worker-v1:latest"),
			Coder: role("Aka", "deepseek", ""), Coder2: role("Ao", "openai", ""), Coder3: role("Claude", "anthropic", "claude-sonnet-4.5"),
			Task: role("", "", ""), Summarizer: role("", "", ""),
		}, Classifier{true, 0.6, 0.8}, "", "CHAT"},
		Loop:                 Loop{3, 90000, true, true, 0.6},
		Channels:             Channels{Channel{"router"}, LINE{BaseURL: "https://api.line.me"}, Slack{Channel: Channel{"router"}, BaseURL: "https://slack.com/api"}, HTTP{Channel: Channel{"router"}}},
		Sessions:             Sessions{"04:00", 5, 90},
		Maintenance:          Maintenance{"03:00", ""},
		UserConfigAPI:        UserConfigAPI{TimeoutSeconds: 10},
		UserConfig:           UserConfig{OnFailure: "defaults"},
		Backup:               Backup{Schedule: "daily", Generations: 7, S3: S3{Region: "us-east-1"}},
		Coder3:               Coder3{"anthropic", "claude-sonnet-4.5", 16000, 2, 60},
		Providers:            Providers{Ollama: OllamaRoles{8192, "-1", 8192, 0}},
		Security:             Security{CloudAllowedRoutes: []string{"CODE", "CODE1", "CODE2", "CODE3"}, MaskPIIOnCode: true},
		ChecksTimeoutSeconds: 600,
		Commands:             Commands{OnAsk: "run"},
		Sandbox:              Sandbox{Mode: "auto", ShellTimeoutSeconds: 120, MemoryMB: 4096, MaxOutputBytes: 30000},
		Budget:               Budget{MaxTurns: 500},
		Workspace:            Workspace{"tori/issue-{id}-{slug}", "tori", "tori@localhost", 1800, "registries", registries, 256, 7, 20},
		Language:             "ja",
		Tokens:               Tokens{"chars4"},
		Broker:               Broker{Trifecta: "ask", Mentions: "all", MaxTextBytes: 60000, MaxPatchMB: 64, MaxComments: 20, MaxPushes: 20, MaxPullRequests: 3},
		GitHub:               GitHub{URL: "https://github.com", WriteSpacingMS: 1000, Watching: watching},
		GitLab:               GitLab{URL: "https://gitlab.com", Watching: watching},
		Gitea:                Gitea{Watching: watching},
		Folder:               Folder{BotLabel: "coding agent"},
		Scheduling:           Scheduling{300, 30},
		Queue:                Queue{"local"},
		Workers:              Workers{4, 2, 0},
		Logging:              Logging{"info", "text", "", 50, 5},
		Monitor:              Monitor{5, Alerts{10, 50, 2, 100, 6, 0.10, 7, 20, 2, 60, 36, 0.9}, AlertNotify{Mail: Mail{SMTPPort: 587, SMTPTLS: "starttls"}}},
		Recovery:             Recovery{"resume", 3},
		PauseResume:          PauseResume{true, "contexts/pause_signal"},
		TaskStop:             TaskStop{true},
		Serve:                Serve{Listen: "127.0.0.1:8420"},
		Planning:             planningDefaults(),
		Approval: Approval{true, []string{"delete", "rename", "send_sensitive", "push_public", "cost_over_limit"}, nil, false, 72, 16000, WideOverwrite{20, 500, 0.5},
			AutoApprove{false, 60, AutoApproveScope{[]string{"design", "review"}, []string{"docs/"}, []string{"apply_patch"}, []string{"delete", "rename", "push_public"}}}},

		ProjectAgentRules: ProjectAgentRules{true, 102400, 512000}, FileListContext: FileListContext{true, -1},
		ContextInheritance: ContextInheritance{true, 90, 8000, false, InheritedPlanning{true, true, true, 3, true}},
	}
}

// planningDefaults are the settings of planning where none is given (plan §4).
func planningDefaults() Planning {
	p := Planning{Enabled: true, Strategy: "chain_of_thought", MaxSubtasks: 100, DecompositionLevel: "moderate", Reflection: Reflection{true, true, 3}, Revision: Revision{3},
		History: History{StorageType: "jsonl"}, Verification: Verification{true, 2, "fail"}, ProgressComment: ProgressComment{true, 30, 100}}
	b := &p.PrePlanning
	b.Notification = Notification{true, true, true, false}
	b.Enabled, b.Collection.Enabled, b.Assumption.Enabled = true, true, true
	b.Understanding.ConfidenceThreshold, b.Collection.MaxRetriesPerTool, b.Assumption.ConfidenceThreshold = 0.7, 2, 0.5
	r := &p.Replanning
	r.TaskDecomposition.MaxRedecompositionAttempts, r.ActionSequence.MaxRegenerationAttempts = 3, 3
	r.Execution.MaxActionRetries, r.Execution.MaxPartialReplans, r.Reflection.MaxPlanRevisions = 3, 2, 2
	r.Global.MaxTotalReplans, r.Global.InfiniteLoopDetection, r.Global.SameTriggerMaxCount = 10, true, 2
	r.LLMDecision.MinConfidenceThreshold = 0.5
	r.GoalUnderstanding.MaxClarificationRequests, r.GoalUnderstanding.AutoAssumeOnNoResponse, r.GoalUnderstanding.AutoAssumeTimeoutMinutes = 2, true, 30
	r.LLMDecision.RequireUserConfirmationOnLowConfidence, r.LLMDecision.UserConfirmationThreshold = true, 0.3
	return p
}

// planningFull is what full sets.
func planningFull() Planning {
	p := Planning{false, "direct", 9, "fine", PrePlanning{}, Reflection{false, false, 7}, Revision{6}, History{"jsonl", "planning_history"}, Verification{false, 5, "complete"}, Replanning{}, ProgressComment{false, 5, 6}}
	b := &p.PrePlanning
	b.Notification = Notification{false, false, false, true}
	b.Understanding.ConfidenceThreshold, b.Collection.MaxRetriesPerTool, b.Assumption.ConfidenceThreshold = 0.75, 4, 0.25
	r := &p.Replanning
	r.TaskDecomposition.MaxRedecompositionAttempts, r.ActionSequence.MaxRegenerationAttempts = 4, 5
	r.Execution.MaxActionRetries, r.Execution.MaxPartialReplans, r.Reflection.MaxPlanRevisions = 6, 7, 8
	r.Global.MaxTotalReplans, r.Global.SameTriggerMaxCount = 9, 1
	r.LLMDecision.MinConfidenceThreshold = 0.25
	r.GoalUnderstanding.MaxClarificationRequests, r.GoalUnderstanding.AutoAssumeTimeoutMinutes = 3, 11
	r.LLMDecision.UserConfirmationThreshold = 0.125
	return p
}

// role is the settings of a role that differs from the others in its names only.
func role(alias, provider, model string) Role {
	return Role{Alias: alias, Provider: provider, Model: model, Temperature: -1, FunctionCalling: "auto"}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no file": "", "comment": "# nothing\n", "document": "---\n", "null": "~\n", "example": string(Example()), "bom": "\ufeff# x\n",
		"empty sections": "llm:\nsandbox: {}\nchecks:\nsecurity:\n  redact_patterns:\n",
	} {
		c := parse(t, text, nil)
		if diff := cmp.Diff(defaults(), c, ignoreMeta); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if c.IsSet("llm") || len(c.Warnings()) > 0 {
			t.Errorf("%s: something counts as set, or warns: %s", name, warnings(c))
		}
	}
}

// The example with its comment signs removed sets every key to its default.
func TestExampleUncommented(t *testing.T) {
	t.Parallel()
	text := regexp.MustCompile(`(?m)^(\s*)#(\S)`).ReplaceAllString(string(Example()), "$1$2")
	c := parse(t, text, vars{"OPENAI_API_KEY": "k"})
	want := defaults()
	want.LLM.OpenAI.APIKey = "k"
	if diff := cmp.Diff(want, c, ignoreMeta, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	for _, k := range newSchema().fields {
		if !c.IsSet(k.path) {
			t.Errorf("%s is not in the example", k.path)
		}
	}
}

const full = `
context_storage: {enabled: false, base_dir: /var/tori, backend: postgres, postgres: {url: "postgres://tori:pass-of-db@db/tori", password_file: /run/pw}, blobs: "s3://runs/p?region=eu-west-2", max_memory_messages: 12, compression_threshold: 1, min_messages_to_summarize: 8, keep_recent_messages: 3, durability: os, heartbeat_seconds: 15, stale_seconds: 45, state_lock_timeout_seconds: 2, window_ratio: 0.5, retention: {gzip_days: 3, slim_days: 20, delete_days: 400, max_gb: 1.5, rules: [{status: failed, repository: acme/widgets, gzip_days: 1, slim_days: 2, delete_days: 3}, {repository: law, keep: true}]}, masking: {enabled: false, keep_turns: 4, min_share: 0.25}}
llm:
  provider: script
  timeout_seconds: 10
  fallbacks: [openai/m, ollama/library/q:7b]
  function_calling: false
  connect_timeout_seconds: 3
  first_token_timeout_seconds: 4
  max_retries: 0
  prices_file: p.yaml
  state_dir: "${DIR}/s"
  openai: {model: m, context_length: 1000, api_key: "${KEY}", base_url: "http://u:pa55word@h:1/v1", max_parallel: 2}
  anthropic: {model: c, context_length: 3000, api_key: key-of-a, base_url: "https://a", thinking_tokens: -1, max_parallel: 3}
  deepseek: {model: d, context_length: 3001, api_key: key-of-d, base_url: "https://d", max_parallel: 4}
  lmstudio: {model: l, context_length: 3002, api_key: key-of-l, base_url: "https://l", max_parallel: 5}
  vllm: {model: v, context_length: 3003, api_key: key-of-v, base_url: "https://v", max_parallel: 6}
  ollama:
    model: "q"
    context_length: 2_000
    endpoint: https://o
    api_key: key-of-o
    think: false
    max_parallel: 7
  script: {file: "${DIR}/$${x}.yaml"}
checks:
  - go test ./... ${NOT}
  - name: lint
    run: |
      a
      b
    timeout_seconds: 5
    junit: build/**/TEST-*.xml
checks_timeout_seconds: 60
mcp_servers:
  - mcp_server_name: files
    command: [npx, "${DIR}"]
    env: {A_TOKEN: "${KEY}", B: c}
    state: /srv/files
    allow: [read_*]
    deny: [write_*]
    allow_hosts: [api.example.com]
    timeout_seconds: 5
    trusted: true
  - mcp_server_name: web
    url: https://w/mcp?api_key=key-in-address
    headers: {Authorization: "Bearer key-of-web"}
    oauth: {client_id: tori, client_secret: "client-secret-of-web", scopes: [read], redirect_port: 8123}
tools:
  allow: [read_*, shell, files__*]
  deny: [git_log]
  roles:
    chat: {allow: [grep], deny: [glob]}
    worker: {allow: [grep], deny: [glob]}
    coder: {allow: [grep], deny: [glob]}
    coder2: {allow: [grep], deny: [glob]}
    coder3:
      allow: [grep]
      deny: [glob]
    task: {allow: [grep], deny: [glob]}
    summarizer: {allow: [grep], deny: [glob]}
  projects: [{project: "acme/*", deny: [shell, "web__[a-z]*"]}, {project: tori, allow: [read_file]}]
commands: {rules_file: r.yaml, on_ask: refuse}
sandbox:
  mode: bwrap
  engine: podman
  read_only_paths: [/opt, "${DIR}"]
  env: {CI: "true", A_TOKEN: "${KEY}"}
  allow_hosts: ["*.example.org", "nexus.corp:443", "10.0.0.5:8080"]
  ca_file: /etc/corp.pem
  shell_timeout_seconds: 1
  memory_mb: 0
  max_output_bytes: 2048
coder3: {max_tokens: 9, retry_max: 8, timeout_sec: 7}
providers:
  ollama_restart_command: restart it
  ollama: {num_ctx: 4096, keep_alive: 300, max_context: 5000, min_context: 1}
budget: {max_turns: 1, max_tokens: 2, max_minutes: 3, max_cost_usd: 0.5, user_day: {max_turns: 4, max_tokens: 5, max_minutes: 6, max_cost_usd: 0.7}, day: {max_turns: 8, max_tokens: 9, max_minutes: 10, max_cost_usd: 1.1}}
setup: [npm ci, {name: deps, run: "go mod download", timeout_seconds: 900}]
workspace: {branch_pattern: "b/{id}", author_name: 鳥, author_email: a@b.c, setup_timeout_seconds: 60, setup_network: none, registries: [r.example.org], max_file_mb: 5, keep_days: 3, max_gb: 1.5}
language: en
tokens: {estimator: o200k}
security: {redact_patterns: ["corp-[0-9]+${"], local_only: true, cloud_allowed_routes: [CHAT], mask_pii_on_code: false, local_hosts: [gpu.example.com]}
broker: {trifecta: refuse, repository_untrusted: true, allowed_hosts: [docs.example.com, "*.example.org"], mentions: groups, max_text_bytes: 1000, max_patch_mb: 2, max_comments: 3, max_pushes: 5, max_pull_requests: 6}
access: {admins: [ken, hanako], people: {'slack:U1': 'github:hanako', 'terminal:ken': 'github:ken-at-work'}}
user_config_api: {enabled: false, url: "https://users.example.com", api_key: key-of-users, timeout_seconds: 7}
user_config: {directory: /users, on_failure: wait}
github:
  {url: "https://ghe.example.com", token: tok-of-git, token_file: t.txt, ca_file: /etc/h.pem, app_id: 1, app_private_key_file: k.pem, app_installation_id: 2, repositories: [a/b, c/*], webhook_secret: secret-of-hooks, webhook_secret_file: h.txt, write_spacing_ms: 10,
  bot_label: l1, review_label: lr, processing_label: l2, done_label: l3, paused_label: l4, stopped_label: l5, failed_label: l6, waiting_label: l7, create_labels: false,
  assignment: false, min_permission: admin, untrusted_comments: omit, follow_up: false, max_runs_per_hour: 9}
gitlab:
  {url: "https://lab.example.com/git", token: tok-of-lab, token_file: u.txt, ca_file: /etc/l.pem, repositories: [g/sub/b, g/*], webhook_secret: secret-of-lab-hooks, webhook_secret_file: i.txt,
  bot_label: m1, review_label: mr, processing_label: m2, done_label: m3, paused_label: m4, stopped_label: m5, failed_label: m6, waiting_label: m7, create_labels: false,
  assignment: false, min_permission: triage, untrusted_comments: omit, follow_up: false, max_runs_per_hour: 8}
gitea:
  {url: "https://tea.example.com", token: tok-of-tea, token_file: v.txt, ca_file: /etc/t.pem, repositories: [e/f], webhook_secret: secret-of-tea-hooks, webhook_secret_file: j.txt,
  bot_label: n1, review_label: nr, processing_label: n2, done_label: n3, paused_label: n4, stopped_label: n5, failed_label: n6, waiting_label: n7, create_labels: false,
  assignment: false, min_permission: maintain, untrusted_comments: omit, follow_up: false, max_runs_per_hour: 7}
folder: {path: /issues, repository: /src, bot_label: l8}
scheduling: {interval: 60, comments_interval: 6}
queue: {driver: postgres}
workers: {max: 7, per_repository: 8, per_user: 9}
monitor:
  interval_minutes: 3
  alerts: {disk_warn_gb: 1.5, disk_critical_gb: 2.5, disk_free_gb: 3.5, running_tasks: 4, long_running_hours: 5.5, failure_rate: 0.25, failure_days: 6, failure_runs: 7, duration_factor: 8.5, undelivered_minutes: 9, backup_hours: 10.5, budget_share: 0.5}
  notify: {webhook_url: "https://hooks.example/services/key-of-hook", mail: {to: [ops@example.com], from: tori@example.com, sendmail: "", smtp_host: mail.example.com, smtp_port: 465, smtp_tls: tls, smtp_user: tori, smtp_password: password-of-mail}}
recovery: {mode: fail, max_attempts: 4}
pause_resume: {enabled: false, signal_file: /run/stop}
issue_to_mr: {enabled: true}
task_stop: {enabled: false}
serve: {listen: ":1", hosts: [tori.example], public_url: "https://bot.example/tori"}
planning:
  {enabled: false, strategy: direct, max_subtasks: 9, decomposition_level: fine, reflection: {enabled: false, trigger_on_error: false, trigger_interval: 7}, revision: {max_revisions: 6},
  pre_planning: {enabled: false, understanding: {confidence_threshold: 0.75}, collection: {enabled: false, max_retries_per_tool: 4}, assumption: {enabled: false, confidence_threshold: 0.25},
    notification: {notify_on_start: false, notify_on_understanding_complete: false, notify_on_collection_complete: false, notify_on_assumption: true}},
  history: {storage_type: jsonl, directory: planning_history},
  verification: {enabled: false, max_rounds: 5, on_open_points: complete}, replanning: {goal_understanding: {max_clarification_requests: 3, auto_assume_on_no_response: false, auto_assume_timeout_minutes: 11}, task_decomposition: {max_redecomposition_attempts: 4}, action_sequence: {max_regeneration_attempts: 5}, execution: {max_action_retries: 6, max_partial_replans: 7}, reflection: {max_plan_revisions: 8},
  global: {max_total_replans: 9, infinite_loop_detection: false, same_trigger_max_count: 1}, llm_decision: {min_confidence_threshold: 0.25, require_user_confirmation_on_low_confidence: false, user_confirmation_threshold: 0.125}},
  progress_comment: {enabled: false, interval_seconds: 5, max_history_entries: 6}}
context_inheritance: {enabled: false, context_expiry_days: 30, max_inherited_tokens: 500, follow_links: true,
  planning: {inherit_plans: false, inherit_verifications: false, inherit_reflections: false, max_previous_plans: 7, reuse_successful_patterns: false}}
project_agent_rules: {enabled: false, max_file_size: 1000, max_total_size: 2000}
file_list_context: {enabled: false, max_depth: 3}
logging: {level: debug, format: json, file: /var/log/tori.log, max_mb: 6, keep: 7}
telemetry: {traces: {enabled: true, endpoint: 'http://otel:4318', headers: 'authorization=Bearer%20key-of-traces', content: true}}
approval: {required_by_default: false, hard_require_approval: [binary], approvers: ["slack:U1"], four_eyes: true, expires_hours: 1, cost_limit_tokens: 2, wide_overwrite: {files: 3, lines: 4, share: 0.25},
  auto_approve: {enabled: true, ttl_minutes: 5, scope: {allowed_task_types: [codegen], allowed_paths_prefix: [src], allowed_tools: [shell], deny_operations: [ci]}}}
`

func TestEveryKey(t *testing.T) {
	t.Parallel()
	roles, text := Roles{CodeProvider: "vllm", CodeModel: "m-coder"}, strings.Replace(full, "coder3: {", "coder3: {provider: vllm, model: m-coder3, ", 1)+"loop: {max_loops: 4, max_millis: 5000, allow_auto_reroute_once: false, allow_chat_propose_reroute_once: false, confirm_below: 0.25}\nchat: {deliver: branch, prompts_dir: /srv/prompts, repositories: [{name: widgets, path: /srv/widgets, users: ['slack:U1'], channels: ['slack:T1:C1']}, {name: tools, url: 'github:acme/tools', base: develop}]}\nchannels: {terminal: {entry: chat}, line: {channel_secret: secret-of-line, access_token: token-of-line, allow_from: [U1], notify: ['line:user:U1'], quiet: '22:00-07:00', digest_at: '09:00', base_url: 'https://line'}, slack: {bot_token: bot-of-slack, app_token: app-of-slack, signing_secret: signing-of-slack, refresh_token: refresh-of-slack, client_id: '1.2', client_secret: client-of-slack, allow_from: [U2, W3], notify: ['slack:T1:C1'], quiet: '12:00-13:30', digest_at: '09:15', entry: chat, base_url: 'https://slack'}, http: {secret: secret-of-http, url: 'http://127.0.0.1:9000/', allow_from: [U3], notify: ['http:ROOM'], quiet: '01:00-02:00', digest_at: '23:59', entry: chat}}\nsessions: {cutover: '03:30', recent_turns: 4, retention_days: 30}\nmaintenance: {at: '02:15', report_to: mail}\nsearch: {similar: {enabled: true, embeddings: ollama/e}}\nbackup: {dir: 's3://b/p', schedule: never, generations: 3, recipients: [age1x], identity_file: /srv/key, s3: {endpoint: 'https://s3:9000', region: eu-west-1, access_key: id-of-s3, secret_key: secret-of-s3, session_token: token-of-s3}, azure: {endpoint: 'https://azure', account: anaccount, key: a2V5LW9mLWF6dXJl}}\nweb: {search_url: 'http://u:pass-of-search@127.0.0.1:8888'}\nrouting:\n  classifier: {enabled: false, min_confidence: 0.5, min_confidence_for_code: 1}\n  rules_file: d.yaml\n  fallback_route: PLAN\n  llm:\n    code_provider: vllm\n    code_model: m-coder\n"
	for i, name := range RoleNames() {
		r, _ := roles.Role(name)
		*r = Role{"a-" + name, "vllm", "m-" + name, 100 + i, 200 + i, 0.5, 300 + i, "true", []string{"vllm/f-" + name}}
		text += strings.ReplaceAll(fmt.Sprintf("    R_alias: a-R\n    R_provider: vllm\n    R_model: m-R\n    R_context_length: %d\n    R_max_tokens: %d\n    R_temperature: 0.5\n"+
			"    R_timeout_seconds: %d\n    R_function_calling: \"true\"\n    R_fallbacks: [vllm/f-R]\n", 100+i, 200+i, 300+i), "R_", name+"_")
		text = strings.ReplaceAll(text, "-R", "-"+name)
	}
	some := ToolRules{[]string{"grep"}, []string{"glob"}}
	c := parse(t, text, vars{"KEY": "s3cret-value", "DIR": "/d"})
	want := &Config{
		ContextStorage: ContextStorage{false, "/var/tori", "postgres", Postgres{"postgres://tori:pass-of-db@db/tori", "/run/pw"}, "s3://runs/p?region=eu-west-2", 12, 1, 8, 3, "os", 15, 45, 2, 0.5, Retention{3, 20, 400, 1.5, []RetentionRule{{"failed", "acme/widgets", 1, 2, 3, false}, {Repository: "law", Keep: true}}}, Masking{false, 4, 0.25}}, Search: RunSearch{SimilarRuns{true, "ollama/e"}}, ContextInheritance: ContextInheritance{false, 30, 500, true, InheritedPlanning{false, false, false, 7, false}}, ProjectAgentRules: ProjectAgentRules{false, 1000, 2000}, FileListContext: FileListContext{false, 3},
		LLM: LLM{
			Provider: "script", Fallbacks: []string{"openai/m", "ollama/library/q:7b"}, FunctionCalling: "false", TimeoutSeconds: 10,
			ConnectTimeoutSeconds: 3, FirstTokenTimeoutSeconds: 4, PricesFile: "p.yaml", StateDir: "/d/s",
			OpenAI: Server{"m", 1000, "s3cret-value", "http://u:pa55word@h:1/v1", 2}, Anthropic: Anthropic{Server{"c", 3000, "key-of-a", "https://a", 3}, -1},
			DeepSeek: Server{"d", 3001, "key-of-d", "https://d", 4}, LMStudio: Server{"l", 3002, "key-of-l", "https://l", 5}, VLLM: Server{"v", 3003, "key-of-v", "https://v", 6},
			Ollama: Ollama{"q", 2000, "https://o", "key-of-o", "false", 7}, Script: Script{"/d/${x}.yaml"},
		},
		Routing: Routing{roles, Classifier{false, 0.5, 1}, "d.yaml", "PLAN"},
		Loop:    Loop{4, 5000, false, false, 0.25},
		Chat:    Chat{"branch", "/srv/prompts", []ChatRepository{{"widgets", "/srv/widgets", "", "", []string{"slack:U1"}, []string{"slack:T1:C1"}}, {Name: "tools", URL: "github:acme/tools", Base: "develop"}}},
		Channels: Channels{Channel{"chat"}, LINE{"secret-of-line", "token-of-line", People{[]string{"U1"}, []string{"line:user:U1"}, "22:00-07:00", "09:00"}, "https://line"},
			Slack{"bot-of-slack", "app-of-slack", "signing-of-slack", "refresh-of-slack", "1.2", "client-of-slack", People{[]string{"U2", "W3"}, []string{"slack:T1:C1"}, "12:00-13:30", "09:15"}, Channel{"chat"}, "https://slack"}, HTTP{"secret-of-http", "http://127.0.0.1:9000/", People{[]string{"U3"}, []string{"http:ROOM"}, "01:00-02:00", "23:59"}, Channel{"chat"}}},
		Sessions:             Sessions{"03:30", 4, 30},
		Maintenance:          Maintenance{"02:15", "mail"},
		Backup:               Backup{"s3://b/p", "never", 3, []string{"age1x"}, "/srv/key", S3{"https://s3:9000", "eu-west-1", "id-of-s3", "secret-of-s3", "token-of-s3"}, Azure{"https://azure", "anaccount", "a2V5LW9mLWF6dXJl"}},
		Web:                  Web{"http://u:pass-of-search@127.0.0.1:8888"},
		Coder3:               Coder3{"vllm", "m-coder3", 9, 8, 7},
		Providers:            Providers{"restart it", OllamaRoles{4096, "300", 5000, 1}},
		Checks:               []Check{{"go test ./... ${NOT}", "go test ./... ${NOT}", 60, ""}, {"lint", "a\nb\n", 5, "build/**/TEST-*.xml"}},
		ChecksTimeoutSeconds: 60,
		MCPServers: []MCPServer{
			{Name: "files", Command: []string{"npx", "/d"}, Env: map[string]string{"A_TOKEN": "s3cret-value", "B": "c"}, State: "/srv/files", Allow: []string{"read_*"}, Deny: []string{"write_*"}, AllowHosts: []string{"api.example.com"}, TimeoutSeconds: 5, Trusted: true},
			{Name: "web", URL: "https://w/mcp?api_key=key-in-address", Headers: map[string]string{"Authorization": "Bearer key-of-web"}, TimeoutSeconds: 120,
				OAuth: MCPLogin{ClientID: "tori", ClientSecret: "client-secret-of-web", Scopes: []string{"read"}, RedirectPort: 8123}},
		},
		Tools: Tools{ToolRules{[]string{"read_*", "shell", "files__*"}, []string{"git_log"}}, ToolRoles{some, some, some, some, some, some, some},
			[]ToolProject{{Project: "acme/*", Deny: []string{"shell", "web__[a-z]*"}}, {Project: "tori", Allow: []string{"read_file"}}}},
		Commands:  Commands{"r.yaml", "refuse"},
		Sandbox:   Sandbox{"bwrap", "podman", []string{"/opt", "/d"}, map[string]string{"CI": "true", "A_TOKEN": "s3cret-value"}, []string{"*.example.org", "nexus.corp:443", "10.0.0.5:8080"}, "/etc/corp.pem", 1, 0, 2048},
		Budget:    Budget{1, 2, 3, 0.5, DayBudget{4, 5, 6, 0.7}, DayBudget{8, 9, 10, 1.1}},
		Workspace: Workspace{"b/{id}", "鳥", "a@b.c", 60, "none", []string{"r.example.org"}, 5, 3, 1.5},
		Setup:     []Check{{"npm ci", "npm ci", 0, ""}, {"deps", "go mod download", 900, ""}},
		Language:  "en", Tokens: Tokens{"o200k"}, Security: Security{[]string{"corp-[0-9]+${"}, true, []string{"CHAT"}, false, []string{"gpu.example.com"}},
		Broker: Broker{"refuse", true, []string{"docs.example.com", "*.example.org"}, "groups", 1000, 2, 3, 5, 6}, Access: Access{[]string{"ken", "hanako"}, map[string]string{"slack:U1": "github:hanako", "terminal:ken": "github:ken-at-work"}},
		UserConfigAPI: UserConfigAPI{false, "https://users.example.com", "key-of-users", 7}, UserConfig: UserConfig{"/users", "wait"},
		GitHub:     GitHub{"https://ghe.example.com", "tok-of-git", "t.txt", "/etc/h.pem", 1, "k.pem", 2, 10, Watching{[]string{"a/b", "c/*"}, "secret-of-hooks", "h.txt", "l1", "lr", "l2", "l3", "l4", "l5", "l6", "l7", false, false, "admin", "omit", false, 9}},
		GitLab:     GitLab{"https://lab.example.com/git", "tok-of-lab", "u.txt", "/etc/l.pem", Watching{[]string{"g/sub/b", "g/*"}, "secret-of-lab-hooks", "i.txt", "m1", "mr", "m2", "m3", "m4", "m5", "m6", "m7", false, false, "triage", "omit", false, 8}},
		Gitea:      Gitea{"https://tea.example.com", "tok-of-tea", "v.txt", "/etc/t.pem", Watching{[]string{"e/f"}, "secret-of-tea-hooks", "j.txt", "n1", "nr", "n2", "n3", "n4", "n5", "n6", "n7", false, false, "maintain", "omit", false, 7}},
		Folder:     Folder{"/issues", "/src", "l8"},
		Scheduling: Scheduling{60, 6}, Queue: Queue{"postgres"}, Workers: Workers{7, 8, 9}, Logging: Logging{"debug", "json", "/var/log/tori.log", 6, 7}, Telemetry: Telemetry{Traces{true, "http://otel:4318", "authorization=Bearer%20key-of-traces", true}}, Recovery: Recovery{"fail", 4}, PauseResume: PauseResume{false, "/run/stop"}, IssueToMR: IssueToMR{true},
		Monitor: Monitor{3, Alerts{1.5, 2.5, 3.5, 4, 5.5, 0.25, 6, 7, 8.5, 9, 10.5, 0.5}, AlertNotify{"https://hooks.example/services/key-of-hook",
			Mail{[]string{"ops@example.com"}, "tori@example.com", "", "mail.example.com", 465, "tls", "tori", "password-of-mail"}}},
		TaskStop: TaskStop{false}, Serve: Serve{":1", []string{"tori.example"}, "https://bot.example/tori"}, Planning: planningFull(),
		Approval: Approval{false, []string{"binary"}, []string{"slack:U1"}, true, 1, 2, WideOverwrite{3, 4, 0.25},
			AutoApprove{true, 5, AutoApproveScope{[]string{"codegen"}, []string{"src"}, []string{"shell"}, []string{"ci"}}}},
	}
	if diff := cmp.Diff(want, c, ignoreMeta); diff != "" {
		t.Error(diff)
	}
	for _, k := range newSchema().fields {
		if !c.IsSet(k.path) {
			t.Errorf("IsSet(%s) is false", k.path)
		}
	}
	if w := warnings(c); w != "" {
		t.Errorf("warnings: %s", w)
	}
	if got := c.Secrets(); !slices.Equal(got, []string{"Bearer key-of-traces", "Bearer key-of-web", "Bearer%20key-of-traces", "a2V5LW9mLWF6dXJl", "app-of-slack", "authorization=Bearer%20key-of-traces", "bot-of-slack", "client-of-slack", "client-secret-of-web", "https://hooks.example/services/key-of-hook", "key-in-address", "key-of-a", "key-of-d", "key-of-l", "key-of-o", "key-of-traces", "key-of-users", "key-of-v", "key-of-web", "pa55word", "pass-of-db", "pass-of-search", "password-of-mail", "postgres://tori:pass-of-db@db/tori", "refresh-of-slack", "s3cret-value", "secret-of-hooks", "secret-of-http", "secret-of-lab-hooks", "secret-of-line", "secret-of-s3", "secret-of-tea-hooks", "signing-of-slack", "tok-of-git", "tok-of-lab", "tok-of-tea", "token-of-line", "token-of-s3"}) {
		t.Errorf("Secrets() = %q", got)
	}
	if len(c.Security.Regexps()) != 1 || c.LLM.Timeout().Seconds() != 10 || c.Checks[1].Timeout().Seconds() != 5 || c.Sandbox.ShellTimeout().Seconds() != 1 {
		t.Error("derived values")
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"int as text", "llm:\n  timeout_seconds: \"20\"\n", `c.yaml:2: llm.timeout_seconds: expected a whole number, found the text "20"`},
		{"float for int", "budget: {max_turns: 1.5}", `c.yaml:1: budget.max_turns: expected a whole number, found 1.5`},
		{"bool for text", "\nlanguage: true", `c.yaml:2: language: expected text, found true, which YAML does not read as text; put it in quotes`},
		{"text for bool", "context_storage:\n  enabled: yes\n", `c.yaml:2: context_storage.enabled: expected true or false, found the text "yes"`},
		{"list for text", "language: [ja]", `c.yaml:1: language: expected text, found a list`},
		{"text for section", "llm: gpt", `c.yaml:1: llm: expected a section with keys of its own, found the text "gpt"`},
		{"section for text", "language: {a: b}", `c.yaml:1: language: expected text, found a section`},
		{"nothing", "language:\nllm:\n", `c.yaml:1: language: expected text, found nothing (leave the key out to get the default)`},
		{"zero threshold", "context_storage: {compression_threshold: 0}", `c.yaml:1: context_storage.compression_threshold: expected more than 0 and at most 1, found 0`},
		{"big threshold", "context_storage: {compression_threshold: 1.01}", `c.yaml:1: context_storage.compression_threshold: expected more than 0 and at most 1, found 1.01`},
		{"nan", "context_storage: {window_ratio: .nan}", `c.yaml:1: context_storage.window_ratio: expected a number, found .nan`},
		{"negative", "budget: {max_tokens: -1}", `c.yaml:1: budget.max_tokens: expected 0 or more, found -1`},
		{"too much", "llm: {max_retries: 101}", `c.yaml:1: llm.max_retries: expected 100 or less, found 101`},
		{"huge", "budget: {max_tokens: 18446744073709551615}", `c.yaml:1: budget.max_tokens: expected a whole number, found 18446744073709551615`},
		{"enum", "llm:\n  # the one\n  provider: openia\n", `c.yaml:3: llm.provider: expected one of openai, anthropic, deepseek, ollama, lmstudio, vllm, script, found the text "openia"`},
		{"url", "llm: {ollama: {endpoint: 'a b'}}", `c.yaml:1: llm.ollama.endpoint: expected an address such as https://host/path, found the text "a b"`},
		{"url with password", "llm: {ollama: {endpoint: 'ftp://u:p@h'}}", `c.yaml:1: llm.ollama.endpoint: expected an address such as https://host/path, found a value that is not shown`},
		{"secret", "llm: {openai: {api_key: 12345678}}", `c.yaml:1: llm.openai.api_key: expected text, found a value that is not shown`},
		{"regexp", "security:\n  redact_patterns:\n    - ok\n    - a(b\n", "c.yaml:4: security.redact_patterns[1]: expected a regular expression (error parsing regexp: missing closing ): `a(b`), found the text \"a(b\""},
		{"address for a host", "broker: {allowed_hosts: ['https://x.example/']}", `c.yaml:1: broker.allowed_hosts[0]: expected the name of a host such as docs.example.com, or *.example.com, without a scheme and a port, found the text "https://x.example/"`},
		{"trifecta by another word", "broker: {trifecta: maybe}", `c.yaml:1: broker.trifecta: expected one of ask, refuse, allow, found the text "maybe"`},
		{"admin without a name", "access: {admins: [ken, '']}", `c.yaml:1: access.admins[1]: expected text that is not empty, found the text ""`},
		{"empty regexp", "security: {redact_patterns: ['x*']}", `c.yaml:1: security.redact_patterns[0]: expected a regular expression that does not match the empty text, found the text "x*"`},
		{"path", "sandbox: {read_only_paths: [opt]}", `c.yaml:1: sandbox.read_only_paths[0]: expected an absolute path, found the text "opt"`},
		{"path list", "sandbox: {read_only_paths: /opt}", `c.yaml:1: sandbox.read_only_paths: expected a list, found the text "/opt"`},
		{"env name", "sandbox:\n  env:\n    A-B: x\n", `c.yaml:3: sandbox.env.A-B: expected variable names of letters, digits and _, found the text "A-B"`},
		{"env value", "sandbox:\n  env:\n    A: 1\n", `c.yaml:3: sandbox.env.A: expected text, found 1, which YAML does not read as text; put it in quotes`},
		{"env duplicate", "sandbox:\n  env:\n    A: x\n    A: y\n", `c.yaml:4: sandbox.env.A: the key stands twice; it was first set in line 3`},
		{"branch without id", "workspace: {branch_pattern: tori/x}", `c.yaml:1: workspace.branch_pattern: expected a branch name that git accepts, with {id} and, if you like, {slug}, found the text "tori/x"`},
		{"branch placeholder", "workspace: {branch_pattern: 'a{id}{title}'}", `c.yaml:1: workspace.branch_pattern: expected a branch name that git accepts, with {id} and, if you like, {slug}, found the text "a{id}{title}"`},
		{"author", "workspace: {author_name: 'a <b>'}", `c.yaml:1: workspace.author_name: expected text of one line without < and >, found the text "a <b>"`},
		{"unknown near", "llm:\n  openai:\n    modle: x\n", `c.yaml:3: llm.openai.modle: unknown key; did you mean llm.openai.model?`},
		{"unknown section", "sandbx: {}", `c.yaml:1: sandbx: unknown key; did you mean sandbox?`},
		{"wrong level", "provider: openai", `c.yaml:1: provider: unknown key; did you mean llm.provider?`},
		{"unknown far", "tokens: {wholly_different: 1}", `c.yaml:1: tokens.wholly_different: unknown key. Known here: estimator`},
		{"dotted", "llm.provider: openai", `c.yaml:1: llm.provider: dotted keys are not supported; write one level per line, indented`},
		{"duplicate", "language: ja\nllm: {}\nlanguage: en\n", `c.yaml:3: language: the key stands twice; it was first set in line 1`},
		{"number as key", "1: x", `c.yaml:1: 1: expected a name as key, found 1`},
		{"anchor", "llm: &a\n  provider: openai\n", `c.yaml:1: llm: anchors, aliases, merge keys and tags are not supported; write the value out`},
		{"alias", "language: *a", `c.yaml:1: language: anchors, aliases, merge keys and tags are not supported; write the value out`},
		{"merge", "llm:\n  <<: {provider: openai}\n", `c.yaml:2: llm.<<: anchors, aliases, merge keys and tags are not supported; write the value out`},
		{"tag", "language: !!str ja", `c.yaml:1: language: anchors, aliases, merge keys and tags are not supported; write the value out`},
		{"top list", "- a", `c.yaml:1: expected settings as "key: value", found a list`},
		{"top text", "\nhello", `c.yaml:2: expected settings as "key: value", found the text "hello"`},
		{"documents", "language: ja\n---\nlanguage: en\n", `c.yaml:3: a second YAML document begins here; a configuration is one document`},
		{"encoding", "# \n# \xff\n", `c.yaml:2: the text is not UTF-8; save the file as UTF-8`},
		{"size", strings.Repeat("#", maxFile+1), `c.yaml: the file is larger than 128 KiB; this is not a configuration`},
		{"nesting", "a: " + strings.Repeat("[", 1000), `c.yaml:1: not valid YAML: what stands here is nested too deeply or has too many keys`},
		{"check type", "checks: [1]", `c.yaml:1: checks[0]: expected a command, or {name, run, timeout_seconds, junit}, found 1, which YAML does not read as text; put it in quotes`},
		{"checks type", "checks: make", `c.yaml:1: checks: expected a list, found the text "make"`},
		{"check empty", "checks:\n  - ''\n", `c.yaml:2: checks[0]: expected text that is not empty, found the text ""`},
		{"check run", "checks:\n  - name: x\n", `c.yaml:2: checks[0].run: expected text that is not empty, found nothing (leave the key out to get the default)`},
		{"check key", "checks:\n  - run: x\n    timeout: 5\n", `c.yaml:3: checks[0].timeout: unknown key; did you mean checks[0].timeout_seconds?`},
		{"check timeout", "checks:\n  - run: x\n    timeout_seconds: 0\n", `c.yaml:3: checks[0].timeout_seconds: expected 1 or more, found 0`},
		{"setup type", "setup: [1]", `c.yaml:1: setup[0]: expected a command, or {name, run, timeout_seconds}, found 1, which YAML does not read as text; put it in quotes`},
		{"registry", "workspace: {registries: ['https://x/']}", `c.yaml:1: workspace.registries[0]: expected a host (registry.npmjs.org, *.example.org), with a port for one of your own network (nexus.corp:443), or an address with a port (10.0.0.5:8080), found the text "https://x/"`},
		{"keep days", "workspace: {keep_days: -1}", `c.yaml:1: workspace.keep_days: expected 0 or more, found -1`},
		{"check junit", "checks:\n  - run: x\n    junit: ../r.xml\n", `c.yaml:3: checks[0].junit: expected a path within the repository, with * and ** as wildcards, such as build/**/TEST-*.xml, found the text "../r.xml"`},
		{"setup word", "setup: automatic", `c.yaml:1: setup: expected a list, found the text "automatic"`},
		{"setup junit", "setup:\n  - run: x\n    junit: r.xml\n", `c.yaml:2: setup[0].junit: only checks have reports; leave the key out`},
		{"check name", "checks: [a, b, {name: a, run: c}]", `c.yaml:1: checks[2]: expected a name of its own, found "a", which checks[0] has already`},
		{"script", "\nllm: {provider: script}", `c.yaml:2: llm.script.file: expected a file, found nothing; it is needed because llm.provider is script`},
		{"fallback", "llm: {fallbacks: [gpt-4o]}", `c.yaml:1: llm.fallbacks[0]: expected PROVIDER/MODEL, e.g. openai/gpt-4o, with provider openai, anthropic, deepseek, ollama, lmstudio or vllm, found the text "gpt-4o"`},
		{"route", "security: {cloud_allowed_routes: [CODE9]}", `c.yaml:1: security.cloud_allowed_routes[0]: expected one of CHAT, PLAN, ANALYZE, OPS, RESEARCH, CODE, CODE1, CODE2, CODE3, CLASSIFY, SUMMARY, found the text "CODE9"`},
		{"temperature", "routing: {llm: {chat_temperature: 3}}", `c.yaml:1: routing.llm.chat_temperature: expected 2 or less, found 3`},
		{"keep alive", "providers: {ollama: {keep_alive: soon}}", `c.yaml:1: providers.ollama.keep_alive: expected seconds, a duration such as 30m, or -1, found the text "soon"`},
		{"nothing is asked about", "planning:\n  replanning:\n    llm_decision:\n      user_confirmation_threshold: 0.6\n", `c.yaml:4: planning.replanning.llm_decision.user_confirmation_threshold is 0.6 and must not be above planning.replanning.llm_decision.min_confidence_threshold, which is 0.5: people are asked between the two`},
		{"nothing is asked about, by the other", "planning: {replanning: {llm_decision: {min_confidence_threshold: 0.2}}}\n", `c.yaml:1: planning.replanning.llm_decision.user_confirmation_threshold is 0.3 and must not be above planning.replanning.llm_decision.min_confidence_threshold, which is 0.2: people are asked between the two`},
		{"num_ctx", "providers:\n  ollama: {num_ctx: 16384}\n", `c.yaml:2: providers.ollama.num_ctx (16384) must lie between providers.ollama.min_context (0) and providers.ollama.max_context (8192, 0 for no limit)`},
		{"coder3", "coder3: {model: x}", `c.yaml:1: coder3.model is "x", but routing.llm.coder3_model is "claude-sonnet-4.5"; they name the same, so set one of them, or both alike`},
		{"old name", "routing:\n  llm:\n    code_model: x\n    coder_model: y\n", `c.yaml:3: routing.llm.code_model is "x", but routing.llm.coder_model is "y"; they name the same, so set one of them, or both alike`},
		{"no such role", "routing: {llm: {coder4_model: x}}", `c.yaml:1: routing.llm.coder4_model: unknown key; did you mean routing.llm.coder_model?`},
		{"mcp name", "mcp_servers:\n  - command: [x]\n", `c.yaml:2: mcp_servers[0].mcp_server_name: expected text that is not empty, found nothing (leave the key out to get the default)`},
		{"mcp how", "mcp_servers: [{mcp_server_name: a}]", `c.yaml:1: mcp_servers[0]: the server "a" needs either a command or a url`},
		{"mcp both", "mcp_servers: [{mcp_server_name: a, command: [x], url: 'http://h'}]", `c.yaml:1: mcp_servers[0]: the server "a" needs either a command or a url`},
		{"mcp twice", "mcp_servers: [{mcp_server_name: a, command: [x]}, {mcp_server_name: a, command: [y]}]", `c.yaml:1: mcp_servers[1]: expected a name of its own, found "a", which mcp_servers[0] has already`},
		{"mcp key", "mcp_servers: [{name: a}]", `c.yaml:1: mcp_servers[0].name: unknown key; did you mean mcp_servers[0].mcp_server_name?`},
		{"mcp header", "mcp_servers: [{mcp_server_name: a, url: 'http://h', headers: {'A B': c}}]", `c.yaml:1: mcp_servers[0].headers.A B: expected names of HTTP headers, found the text "A B"`},
		{"chat nowhere", "chat: {repositories: [{name: a}]}", `c.yaml:1: chat.repositories[0]: expected either path (a repository of this machine) or url (one of a forge) for "a"`},
		{"chat twofold", "chat: {repositories: [{name: a, path: /x, url: 'github:a/b'}]}", `c.yaml:1: chat.repositories[0]: expected either path (a repository of this machine) or url (one of a forge) for "a"`},
		{"chat url", "chat: {repositories: [{name: a, url: 'github:acme/*'}]}", `c.yaml:1: chat.repositories[0].url: expected a repository of a forge such as github:owner/name or gitlab:group/sub/name, found the text "github:acme/*"`},
		{"account", "access: {people: {'slack:U1': hanako}}", `c.yaml:1: access.people.slack:U1: expected an account as github:NAME, gitlab:NAME or gitea:NAME, found "hanako"`},
		{"gitea url", "gitea: {repositories: [a/b]}", `c.yaml:1: gitea.url: expected the address of the server, which gitea.repositories and gitea.token_file need; found nothing`},
		{"same label of gitlab", "gitlab: {done_label: coding agent}", `c.yaml:1: gitlab.done_label: expected a label of its own, found "coding agent", which gitlab.bot_label has already`},
		{"person", "access: {people: {hanako: 'github:hanako'}}", `c.yaml:1: access.people.hanako: expected a person as CHANNEL:ID, such as slack:U123 or terminal:hanako, found the text "hanako"`},
		{"chat twice", "chat: {repositories: [{name: a, path: /x}, {name: a, path: /y}]}", `c.yaml:1: chat.repositories[1]: expected a name of its own, found "a", which chat.repositories[0] has already`},
		{"users of nowhere", "user_config_api: {enabled: true}", `c.yaml:1: user_config_api.enabled asks for settings of users at user_config_api.url, which is not set`},
		{"users of two places", "user_config_api: {enabled: true, url: 'http://x'}\nuser_config: {directory: /u}", `c.yaml:2: settings of users come from user_config_api or from user_config.directory, not from both: take one away`},
		{"retention", "context_storage: {retention: {delete_days: 30}}", `c.yaml:1: context_storage.retention.delete_days is 30: runs may be inherited from for 90 days (context_inheritance.context_expiry_days); keep them as long, or inherit for fewer days`},
		{"retention rule", "context_storage: {retention: {rules: [{status: completed, delete_days: 30}, {status: failed, delete_days: 30}]}}", `c.yaml:1: context_storage.retention.rules[0].delete_days is 30: runs may be inherited from for 90 days (context_inheritance.context_expiry_days); keep them as long, or inherit for fewer days`},
		{"retention rule for nothing", "context_storage: {retention: {rules: [{gzip_days: 3}]}}", `c.yaml:1: context_storage.retention.rules[0]: expected status (completed, stopped or failed), repository (owner/name), or both`},
		{"retention rule of nothing", "context_storage: {retention: {rules: [{status: failed}]}}", `c.yaml:1: context_storage.retention.rules[0]: expected either keep: true, or gzip_days, slim_days or delete_days`},
		{"retention rule twice", "context_storage: {retention: {rules: [{status: failed, keep: true}, {status: failed, gzip_days: 3}]}}", `c.yaml:1: context_storage.retention.rules[1]: expected a name of its own, found "failed", which context_storage.retention.rules[0] has already`},
		{"mail without a way", "monitor: {notify: {mail: {to: [a@b.example]}}}", `c.yaml:1: monitor.notify.mail needs either sendmail (a program) or smtp_host (a server) to send to its addresses`},
		{"mail by two ways", "monitor: {notify: {mail: {to: [a@b.example], sendmail: /bin/x, smtp_host: h}}}", `c.yaml:1: monitor.notify.mail needs either sendmail (a program) or smtp_host (a server) to send to its addresses`},
		{"half a mail login", "monitor: {notify: {mail: {smtp_user: u}}}", `c.yaml:1: monitor.notify.mail needs both smtp_user and smtp_password, or neither; a variable in ${…} that is not set counts as empty`},
		{"mail login in the clear", "monitor: {notify: {mail: {smtp_user: u, smtp_password: p, smtp_tls: none}}}", `c.yaml:1: monitor.notify.mail.smtp_tls: expected starttls or tls, without which smtp_password would be sent unencrypted; found none`},
		{"mail address", "monitor: {notify: {mail: {to: ['Ops <a@b.example>']}}}", `c.yaml:1: monitor.notify.mail.to[0]: expected an address of mail such as ops@example.com, found the text "Ops <a@b.example>"`},
		{"report to nobody", "maintenance: {report_to: webhook}", `c.yaml:1: maintenance.report_to: webhook is not set up in monitor.notify`},
		{"report to somebody", "maintenance: {report_to: ken}", `c.yaml:1: maintenance.report_to: expected mail, webhook, the id of a conversation such as slack:T1:C1, or nothing, found the text "ken"`},
		{"blobs of another kind", "context_storage: {blobs: 'gs://b/p'}", `c.yaml:1: context_storage.blobs: expected file:///DIR, s3://BUCKET/PREFIX with ?endpoint=https://HOST&region=REGION or azure://CONTAINER/PREFIX with ?endpoint=https://HOST where it needs them, and no login in it (that is in backup.s3 or backup.azure), found the text "gs://b/p"`},
		{"blobs with a login", "context_storage: {blobs: 's3://id:pass@b/p'}", `c.yaml:1: context_storage.blobs: expected file:///DIR, s3://BUCKET/PREFIX with ?endpoint=https://HOST&region=REGION or azure://CONTAINER/PREFIX with ?endpoint=https://HOST where it needs them, and no login in it (that is in backup.s3 or backup.azure), found a value that is not shown`},
		{"blobs with a wrong word", "context_storage: {blobs: 's3://b/p?endpiont=https://x'}", `c.yaml:1: context_storage.blobs: expected file:///DIR, s3://BUCKET/PREFIX with ?endpoint=https://HOST&region=REGION or azure://CONTAINER/PREFIX with ?endpoint=https://HOST where it needs them, and no login in it (that is in backup.s3 or backup.azure), found the text "s3://b/p?endpiont=https://x"`},
		{"blobs of Azure with a region", "context_storage: {blobs: 'azure://b/p?region=x'}", `c.yaml:1: context_storage.blobs: expected file:///DIR, s3://BUCKET/PREFIX with ?endpoint=https://HOST&region=REGION or azure://CONTAINER/PREFIX with ?endpoint=https://HOST where it needs them, and no login in it (that is in backup.s3 or backup.azure), found the text "azure://b/p?region=x"`},
		{"blobs of no kind", "context_storage: {blobs: 'b/p'}", `c.yaml:1: context_storage.blobs: expected file:///DIR, s3://BUCKET/PREFIX with ?endpoint=https://HOST&region=REGION or azure://CONTAINER/PREFIX with ?endpoint=https://HOST where it needs them, and no login in it (that is in backup.s3 or backup.azure), found the text "b/p"`},
		{"backups of another kind", "backup: {dir: 'gs://b/p'}", `c.yaml:1: backup.dir: expected a directory, s3://BUCKET/PREFIX or azure://CONTAINER/PREFIX, found the text "gs://b/p"`},
		{"backups of no container", "backup: {dir: 'azure:///p'}", `c.yaml:1: backup.dir: expected a directory, s3://BUCKET/PREFIX or azure://CONTAINER/PREFIX, found the text "azure:///p"`},
		{"blobs of no bucket", "context_storage: {blobs: 's3:///p'}", `c.yaml:1: context_storage.blobs: expected file:///DIR, s3://BUCKET/PREFIX with ?endpoint=https://HOST&region=REGION or azure://CONTAINER/PREFIX with ?endpoint=https://HOST where it needs them, and no login in it (that is in backup.s3 or backup.azure), found the text "s3:///p"`},
		{"blobs anywhere", "context_storage: {blobs: 'file:///'}", `c.yaml:1: context_storage.blobs: expected file:///DIR, s3://BUCKET/PREFIX with ?endpoint=https://HOST&region=REGION or azure://CONTAINER/PREFIX with ?endpoint=https://HOST where it needs them, and no login in it (that is in backup.s3 or backup.azure), found the text "file:///"`},
		{"blobs beside", "context_storage: {blobs: 'file://host/p'}", `c.yaml:1: context_storage.blobs: expected file:///DIR, s3://BUCKET/PREFIX with ?endpoint=https://HOST&region=REGION or azure://CONTAINER/PREFIX with ?endpoint=https://HOST where it needs them, and no login in it (that is in backup.s3 or backup.azure), found the text "file://host/p"`},
		{"maintenance", "maintenance: {at: noon}", `c.yaml:1: maintenance.at: expected a time of the day as HH:MM, such as 04:00, found the text "noon"`},
		{"cutover", "sessions: {cutover: '25:00'}", `c.yaml:1: sessions.cutover: expected a time of the day as HH:MM, such as 04:00, found the text "25:00"`},
		{"half of line", "channels: {line: {channel_secret: abcdefgh}}", `c.yaml:1: channels.line needs both channel_secret and access_token, or neither`},
		{"half of slack", "channels: {slack: {app_token: abcdefgh}}", `c.yaml:1: channels.slack needs bot_token, and app_token (Socket Mode) or signing_secret (webhooks), or none of them`},
		{"half of http", "channels: {http: {url: 'http://127.0.0.1:9000/'}}", "c.yaml:1: channels.http needs both secret and url, or neither; a variable in ${…} that is not set counts as empty"},
		{"quiet", "channels: {line: {quiet: '22:00'}}", `c.yaml:1: channels.line.quiet: expected two times of the day as HH:MM-HH:MM, such as 22:00-07:00, or nothing, found the text "22:00"`},
		{"notify", "channels: {slack: {notify: [C1]}}", `c.yaml:1: channels.slack.notify[0]: expected the id of a conversation as /show channel tells it, such as slack:T1:C1 or line:user:U1, found the text "C1"`},
		{"digest", "channels: {http: {digest_at: '9:00'}}", `c.yaml:1: channels.http.digest_at: expected a time of the day as HH:MM, such as 04:00, found the text "9:00"`},
		{"half a rotation", "channels: {slack: {bot_token: xoxe.xoxb-1, app_token: xapp-1, refresh_token: xoxe-1, client_id: '1.2'}}", `c.yaml:1: channels.slack needs refresh_token, client_id and client_secret together, or none of them`},
		{"notify elsewhere", "channels: {slack: {notify: ['line:user:U1']}}", `c.yaml:1: channels.slack.notify: expected ids that begin with slack:, found "line:user:U1"`},
		{"mcp item", "mcp_servers: [npx]", `c.yaml:1: mcp_servers[0]: expected a section with keys of its own, found the text "npx"`},
		{"keep recent", "context_storage:\n  min_messages_to_summarize: 4\n", `c.yaml:2: context_storage.keep_recent_messages: expected less than context_storage.min_messages_to_summarize (4), found 5; nothing would be left to summarise`},
		{"label twice", "github:\n  done_label: Coding Agent\n", `c.yaml:2: github.done_label: expected a label of its own, found "Coding Agent", which github.bot_label has already`},
		{"label", "github: {bot_label: 'a,b'}", `c.yaml:1: github.bot_label: expected the name of a label: one line of at most 50 characters without a comma, found the text "a,b"`},
		{"app key", "github: {app_id: 7}", `c.yaml:1: github.app_private_key_file: expected the file with the private key of the app, which github.app_id needs; found nothing`},
		{"repository", "github: {repositories: [a/b, a/*, a]}", `c.yaml:1: github.repositories[2]: expected a repository as owner/name, or owner/* for all of an owner, found the text "a"`},
		{"listen", "serve: {listen: 'x'}", `c.yaml:1: serve.listen: expected an address such as 127.0.0.1:8420, or nothing, found the text "x"`},
		{"expansion", "language: '${a b}'", `c.yaml:1: language: expected ${NAME} or $${ for a literal ${, found the text "${a b}"`},
		{"a queue in PostgreSQL of contexts in files", "queue: {driver: postgres}", "c.yaml:1: queue.driver is postgres and context_storage.backend is jsonl: a worker of another machine could not reach the contexts, so set that to postgres, too"},
		{"crlf", "language: ja\r\nllm:\r\n  max_retries: x\r\n", `c.yaml:3: llm.max_retries: expected a whole number, found the text "x"`},
		{"all", "a: 1\nllm: {provider: x, max_retries: -1}\nlanguage: 3", "c.yaml:1: a: unknown key. Known here: " +
			"context_storage, llm, routing, loop, chat, channels, sessions, web, coder3, providers, checks, checks_timeout_seconds, mcp_servers, tools, setup, commands, sandbox, budget, workspace, language, tokens, security, broker, access, user_config_api, user_config, github, gitlab, gitea, folder, scheduling, queue, workers, logging, telemetry, monitor, recovery, pause_resume, issue_to_mr, task_stop, serve, planning, approval, project_agent_rules, file_list_context, maintenance, backup, search, context_inheritance\n" +
			`c.yaml:2: llm.provider: expected one of openai, anthropic, deepseek, ollama, lmstudio, vllm, script, found the text "x"` + "\n" +
			"c.yaml:2: llm.max_retries: expected 0 or more, found -1\n" +
			"c.yaml:3: language: expected text, found 3, which YAML does not read as text; put it in quotes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("c.yaml", []byte(tc.text), vars{}.get, nil)
			if err == nil {
				t.Fatalf("accepted %q", tc.text)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if ja := i18n.Japanese.Error(err); ja == err.Error() || strings.Contains(ja, "%!") || strings.Contains(err.Error(), "%!") {
				t.Errorf("Japanese: %s", ja)
			}
		})
	}
}

func TestSyntaxErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for text, line := range map[string]string{
		"llm:\n  provider: [a\n":           "c.yaml:",
		"llm:\n\tprovider: a\n":            "c.yaml:2: ",
		"a: b\n c: d\n":                    "c.yaml:1: ",
		"language: \"x\nllm: {}\n":         "c.yaml:1: ",
		"language: ja\nllm: {provider: }}": "c.yaml:2: ",
	} {
		_, err := Parse("c.yaml", []byte(text), vars{}.get, nil)
		if err == nil || !strings.HasPrefix(err.Error(), line) || !strings.Contains(err.Error(), "not valid YAML") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	t.Parallel()
	_, err := Parse("c.yaml", []byte("checks:\n"+strings.Repeat("  - 1\n", 60)), vars{}.get, nil)
	if err == nil || strings.Count(err.Error(), "\n") != maxProblems || !strings.HasSuffix(err.Error(), "and 10 more") {
		t.Error(err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	const text = "context_storage:\n  max_memory_messages: 11\n  compression_threshold: 0.1\nllm:\n  max_retries: 1\n"
	c := parse(t, text, vars{
		"CONTEXT_STORAGE_ENABLED": "FALSE", "CONTEXT_STORAGE_MAX_MEMORY": "12", "COMPRESSION_THRESHOLD": "0.2",
		"TORI_CONTEXT_STORAGE_COMPRESSION_THRESHOLD": "0.3", "TORI_LLM_OPENAI_BASE_URL": "http://h/${x}", "TORI_LANGUAGE": "",
		"TORI_LLM_OPENAI_API_KEY": "abc",
	})
	s := c.ContextStorage
	if s.Enabled || s.MaxMemoryMessages != 12 || s.CompressionThreshold != 0.3 || c.LLM.MaxRetries != 1 || c.Language != "ja" {
		t.Errorf("%+v", c)
	}
	if c.LLM.OpenAI.BaseURL != "http://h/${x}" || c.LLM.OpenAI.APIKey != "abc" {
		t.Errorf("a variable's value was expanded: %+v", c.LLM.OpenAI)
	}
	for path, want := range map[string]bool{
		"context_storage.enabled": true, "llm.max_retries": true, "llm": true, "llm.openai": true,
		"llm.provider": false, "language": false, "llm.open": false,
	} {
		if c.IsSet(path) != want {
			t.Errorf("IsSet(%s) = %v", path, !want)
		}
	}
}

func TestEnvironmentErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ value, want string }{
		"CONTEXT_STORAGE_MAX_MEMORY": {"many", `environment variable CONTEXT_STORAGE_MAX_MEMORY: context_storage.max_memory_messages: expected a whole number, found the text "many"`},
		"COMPRESSION_THRESHOLD":      {"70", `environment variable COMPRESSION_THRESHOLD: context_storage.compression_threshold: expected more than 0 and at most 1, found the text "70"`},
		"CONTEXT_STORAGE_ENABLED":    {"1", `environment variable CONTEXT_STORAGE_ENABLED: context_storage.enabled: expected true or false, found the text "1"`},
		"TORI_LLM_PROVIDER":          {"x", `environment variable TORI_LLM_PROVIDER: llm.provider: expected one of openai, anthropic, deepseek, ollama, lmstudio, vllm, script, found the text "x"`},
		"TORI_LLM_OPENAI_API_KEY":    {"\xff", `environment variable TORI_LLM_OPENAI_API_KEY: llm.openai.api_key: expected UTF-8 text, found a value that is not shown`},
		"TORI_LLM_OLLAMA_ENDPOINT":   {"x://u:p@h", `environment variable TORI_LLM_OLLAMA_ENDPOINT: llm.ollama.endpoint: expected an address such as https://host/path, found a value that is not shown`},
	} {
		env := vars{name: tc.value}
		_, err := Parse("", nil, env.get, env.list())
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, tc.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	c := parse(t, "context_storage:\n  max_memory_messages: 31\nllm:\n  openai:\n    api_key: ${NOT_SET}\n",
		vars{"TORI_LANG": "x", "TORI_SANDBOX_MOD": "none", "TORI_CHECKS": "make", "TORI_LANGUAGES": "en", "TORI_HOME": "/x", "LANG": "C"})
	got := warnings(c)
	for _, line := range []string{
		"c.yaml:5: llm.openai.api_key: the variable NOT_SET is not set; it was replaced by nothing",
		"c.yaml:2: context_storage.max_memory_messages: 31 is outside the recommended range of 10 to 30",
		"the environment variable TORI_CHECKS sets checks, a list or a map, which only the file can set",
		"the environment variable TORI_HOME sets no key; tori config example names those that do",
		"the environment variable TORI_LANGUAGES sets no key; did you mean TORI_LANGUAGE?",
		"the environment variable TORI_SANDBOX_MOD sets no key; did you mean TORI_SANDBOX_MODE?",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("missing %q in\n%s", line, got)
		}
	}
	if n := len(c.Warnings()); n != 7 {
		t.Errorf("%d warnings:\n%s", n, got)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	c := parse(t, "", vars{"OPENAI_API_KEY": "sk-1", "A_TOKEN": "12345678", "B_TOKEN": "1234567", "c_password": "password-1", "D_SECRET": "=x=secret", "KEYS": "not-a-secret"})
	if diff := cmp.Diff([]string{"12345678", "=x=secret", "password-1", "sk-1"}, c.Secrets()); diff != "" {
		t.Error(diff)
	}
}

// Headers for a collector of traces hold keys.
func TestHeadersAreSecret(t *testing.T) {
	t.Parallel()
	v := vars{"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20abcdefgh, x=true", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=12345678-9"}
	c := parse(t, "", v)
	if diff := cmp.Diff([]string{"12345678-9", "Basic abcdefgh", "Basic%20abcdefgh", "abcdefgh", "authorization=Basic%20abcdefgh, x=true"}, c.Secrets()); diff != "" {
		t.Error(diff)
	}
	if got := c.SecretVariables(); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	c := parse(t, full, vars{"KEY": "s3cret-value", "DIR": "/d", "TORI_BUDGET_MAX_TURNS": "9"})
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "print.yaml")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"s3cret-value", "pa55word", "key-in-address", "client-secret-of-web"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q was printed", secret)
		}
	}
}

// Addresses with logins stand in variables, too.
func TestPrintOfLogins(t *testing.T) {
	t.Parallel()
	c := parse(t, "sandbox: {env: {DATABASE_URL: 'postgres://u:pa55-word@h/d'}}\nmcp_servers: [{mcp_server_name: a, command: [x], env: {DATABASE_URL: 'postgres://u:pa55-word@h/d'}}]", nil)
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "postgres://u:********@h/d"); n != 2 || strings.Contains(out.String(), "pa55-word") {
		t.Errorf("%d are hidden:\n%s", n, out.String())
	}
}

// A key may stand in an address: it is a secret, and not printed.
func TestSecretParameters(t *testing.T) {
	t.Parallel()
	const address = "https://u:pa55-word@h/v1?api-version=2024-10-21&key=abc%2Bdefgh&Sig=ijklmnopq&code=short&subscription-key="
	c := parse(t, "llm: {openai: {base_url: '"+address+"'}}", nil)
	if diff := cmp.Diff([]string{"abc%2Bdefgh", "abc+defgh", "ijklmnopq", "pa55-word"}, c.Secrets()); diff != "" {
		t.Error(diff)
	}
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	if want := "https://u:********@h/v1?api-version=2024-10-21&key=********&Sig=********&code=********&subscription-key="; !strings.Contains(out.String(), want) {
		t.Errorf("not printed: %s", want)
	}
	if c.LLM.OpenAI.BaseURL != address {
		t.Errorf("the address became %s", c.LLM.OpenAI.BaseURL)
	}
}

// What Print writes is read as the same values, secrets aside.
func TestPrintRoundTrip(t *testing.T) {
	t.Parallel()
	word := rapid.String().Filter(func(s string) bool { return strings.TrimSpace(s) != "" })
	rapid.Check(t, func(t *rapid.T) {
		c := defaults()
		c.ContextStorage.BaseDir = word.Draw(t, "dir")
		c.ContextStorage.WindowRatio = rapid.Float64Range(1e-12, 1).Draw(t, "ratio")
		c.LLM.OpenAI.Model = rapid.SampledFrom([]string{"true", "1", "~", "${X}", "a: b", "a #b", "- x", "x\u0085\u2028", "日本"}).Draw(t, "model")
		c.Sandbox.Env = map[string]string{"A": rapid.String().Draw(t, "env")}
		run := word.Draw(t, "run")
		c.Checks = []Check{{Name: "n", Run: run, TimeoutSeconds: 7, JUnit: rapid.SampledFrom([]string{"", "*.xml", "a b/**/[x].xml", "${X}", "#"}).Draw(t, "junit")}}
		var out bytes.Buffer
		if err := c.Print(&out); err != nil {
			t.Fatal(err)
		}
		again, err := Parse("c.yaml", out.Bytes(), vars{}.get, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if diff := cmp.Diff(c, again, ignoreMeta, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s\n%s", diff, out.String())
		}
	})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	if _, err := Load(path, vars{}.get, nil); err == nil || !strings.Contains(err.Error(), "there is no configuration file "+path) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load(dir, vars{}.get, nil); err == nil || !strings.Contains(err.Error(), "cannot read the configuration "+dir) {
		t.Errorf("directory: %v", err)
	}
	if err := os.WriteFile(path, []byte("language: en\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(path, vars{}.get, nil); err != nil || c.Language != "en" {
		t.Errorf("Load: %v", err)
	}
	if c, err := Load("", vars{}.get, nil); err != nil || c.Language != "ja" {
		t.Errorf("Load without file: %v", err)
	}
}

// Every key is documented, has a default that Parse accepts and a variable of
// its own.
func TestBlobs(t *testing.T) {
	t.Parallel()
	login, azure := S3{"https://of-backups", "eu-west-1", "id", "secret", "token"}, Azure{"", "anaccount", "key"}
	for url, want := range map[string]struct {
		place string
		s3    S3
		azure Azure
	}{
		"":                 {"", login, azure},
		"file:///srv/b c/": {"/srv/b c/", login, azure},
		"s3://b":           {"s3://b", login, azure},
		"s3://b/p/q/?endpoint=https%3A%2F%2Fs3.example.org:9000&region=auto": {"s3://b/p/q", S3{"https://s3.example.org:9000", "auto", "id", "secret", "token"}, azure},
		"azure://b/p/":                          {"azure://b/p", login, azure},
		"azure://b?endpoint=http://h:1/account": {"azure://b", login, Azure{"http://h:1/account", "anaccount", "key"}},
	} {
		c := &Config{ContextStorage: ContextStorage{Blobs: url}, Backup: Backup{S3: login, Azure: azure}}
		if place, at := c.Blobs(); place != want.place || at.S3 != want.s3 || at.Azure != want.azure {
			t.Errorf("%s: %s, %+v", url, place, at)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	all := newSchema().fields
	for _, k := range all {
		if k.doc == "" || k.defaultYAML() == "" {
			t.Errorf("%+v", k)
		}
		for _, e := range k.envNames() {
			if seen[e] {
				t.Errorf("%s sets two keys", e)
			}
			seen[e] = true
		}
	}
	for _, e := range []string{"CONTEXT_STORAGE_ENABLED", "CONTEXT_STORAGE_MAX_MEMORY", "COMPRESSION_THRESHOLD", "TORI_LLM_OPENAI_API_KEY"} {
		if !seen[e] {
			t.Errorf("%s sets nothing", e)
		}
	}
	if len(all) != 463 {
		t.Errorf("%d keys", len(all))
	}
}

// What is no plain file is refused and not waited for, and what is no configuration
// is not read to its end.
func TestLoadReadsPlainFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, long := filepath.Join(dir, "pipe"), filepath.Join(dir, "long")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.WriteFile(long, nil, 0o600), os.Truncate(long, 1<<40)); err != nil {
		t.Fatal(err)
	}
	for path, key := range map[string]string{pipe: "config.read", "/dev/zero": "config.read", dir: "config.read", long: "config.too_large", filepath.Join(dir, "none"): "config.missing"} {
		_, err := Load(path, func(string) string { return "" }, nil)
		var e *i18n.Error
		if !errors.As(err, &e) || e.Key != key {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add(Example())
	for _, s := range []string{"a: &a [*a]", "<<: x", "? [a]: b", "- - -", "a: |\n  b", "{", "!!map {}", "%YAML 1.2\n---\n", "llm: {", "checks: [{run: }]", "\"\\x", "a: >-\n", "*a : b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		defer disktest.Bounded(t, len(data))()
		c, err := Parse("c.yaml", data, vars{"A": "b"}.get, nil)
		if err != nil {
			if err.Error() == "" || !bytes.Contains(data, []byte("%")) && strings.Contains(i18n.Japanese.Error(err), "%!") {
				t.Errorf("error %q", err)
			}
			return
		}
		if err := c.Print(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	})
}

func TestEnvSecrets(t *testing.T) {
	t.Parallel()
	got := EnvSecrets([]string{
		"A_PASSPHRASE=12345678", "TOKEN=abcdefgh", "DATABASE_URL=postgres://me:pass/word@h/x", "REDIS_URL=redis://:longpassword@h:1", "GITHUB_PAT=ijklmnop",
		"SECRET_KEY_BASE=qrstuvwx", "MYSQL_PWD=yzabcdef", "PWD=/home/someone/x", "OLDPWD=/home/someone/y", "HOME=/home/someone", "B_TOKEN=short", "HTTPS_PROXY=http://u:p@proxy:1",
	})
	if diff := cmp.Diff([]string{"12345678", "abcdefgh", "longpassword", "ijklmnop", "qrstuvwx", "yzabcdef"}, got); diff != "" {
		t.Error(diff)
	}
}

// Old names, words that YAML reads as something else, and the empty text where
// it means that a role takes what the others take.
func TestRoles(t *testing.T) {
	t.Parallel()
	c := parse(t, "routing:\n  llm:\n    code_provider: openai\n    code_model: gpt-x\n    chat_provider: ''\n    worker_function_calling: true\nsecurity: {cloud_allowed_routes: []}\n", vars{"TORI_ROUTING_LLM_CODER3_TEMPERATURE": "0"})
	r := c.Routing.LLM
	if r.Coder.Provider != "openai" || r.Coder.Model != "gpt-x" || !c.IsSet("routing.llm.coder_model") {
		t.Errorf("old names: %+v", r.Coder)
	}
	if r.Chat.Provider != "" || r.Worker.FunctionCalling != "true" || r.Coder3.Temperature != 0 || r.Coder2.Temperature != -1 {
		t.Errorf("roles: %+v", r)
	}
	if len(c.Security.CloudAllowedRoutes) != 0 {
		t.Errorf("routes: %q", c.Security.CloudAllowedRoutes)
	}
	for _, name := range RoleNames() {
		if _, ok := r.Role(name); !ok {
			t.Errorf("no role %s", name)
		}
	}
	if _, ok := r.Role("coder4"); ok {
		t.Error("a role that is none")
	}
}

// registries are the hosts that setup commands may reach unless the file says
// otherwise.
var registries = []string{
	"proxy.golang.org", "sum.golang.org", "registry.npmjs.org", "registry.yarnpkg.com", "pypi.org", "files.pythonhosted.org", "index.crates.io",
	"static.crates.io", "rubygems.org", "index.rubygems.org", "repo.maven.apache.org", "plugins.gradle.org", "api.nuget.org", "repo.packagist.org", "hex.pm", "repo.hex.pm", "pub.dev",
}

// TestSecretVariables: which variables a daemon takes out of its environment once
// the settings were read, and which it leaves.
func TestSecretVariables(t *testing.T) {
	t.Parallel()
	const text = `
llm: {openai: {api_key: "${MY_OPENAI}"}}
github: {token: "${PIN}"}
context_storage: {base_dir: "${STATE_OF_US}"}
mcp_servers: [{mcp_server_name: db, url: "https://h.example/", headers: {Authorization: "Bearer ${GUARD}"}}, {mcp_server_name: own, command: [x], env: {WHO: "${USER}", PLACE: "sqlite://${HOME}/data"}}]
`
	env := vars{"MY_OPENAI": "sk-of-openai", "PIN": "12345", "GUARD": "guard-of-the-server", "STATE_OF_US": "/srv/tori", "USER": "hanako-yamada", "HOME": "/home/hanako", "OTHERS_TOKEN": "not-ours",
		"TORI_LLM_ANTHROPIC_API_KEY": "sk-of-anthropic", "TORI_LLM_DEEPSEEK_BASE_URL": "https://u:swordfish@h.example/v1", "TORI_BUDGET_MAX_TURNS": "5", "DATABASE": "postgres://u:swordfish@db/x",
		"HTTPS_PROXY": "http://u:swordfish@proxy:3128", "XDG_RUNTIME_DIR": "/run/user/1000", "EMPTY_TOKEN": ""}
	c, err := Parse("c.yaml", []byte(text), env.get, env.list())
	if err != nil {
		t.Fatal(err)
	}
	got := c.SecretVariables()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"DATABASE", "GUARD", "MY_OPENAI", "OTHERS_TOKEN", "PIN", "TORI_LLM_ANTHROPIC_API_KEY", "TORI_LLM_DEEPSEEK_BASE_URL"}, got); diff != "" {
		t.Error(diff)
	}
}

// A secret that is known is hidden wherever in a value it stands, and however it is
// written there; so is what only looks like one.
func TestPrintHidesSecretsWithinValues(t *testing.T) {
	t.Parallel()
	const known, shaped = "tok/5ecret+value", "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	for _, c := range []struct{ name, text string }{
		{"path of an address", "llm: {openai: {base_url: 'https://h/${APP_TOKEN}/v1'}}"},
		{"escaped in an address", "llm: {openai: {base_url: 'https://h/tok%2F5ecret%2Bvalue/v1'}}"},
		{"scalar", "llm: {prices_file: 'https://x:${APP_TOKEN}'}"},
		{"within a scalar", "workspace: {author_name: 'bot ${APP_TOKEN} bot'}"},
		{"command line", "checks: ['curl -H \"X-Key: " + known + "\" http://h', {name: '" + shaped + "', run: make, junit: '" + known + "/*.xml'}]"},
		{"named in a command", "checks: ['DB_PASSWORD=5ecret+value7 make']\nsetup: ['export API_TOKEN=5ecret+value7']"},
		{"setup", "setup: ['npm login --otp " + shaped + "']"},
		{"list", "llm: {fallbacks: ['openai/${APP_TOKEN}']}"},
		{"paths", "sandbox: {read_only_paths: ['/x/${APP_TOKEN}/y']}"},
		{"variable of a plain name", "sandbox: {env: {OPTS: '-Dkey=${APP_TOKEN} -x', LIST: '[\"" + shaped + "\"]'}}"},
		{"variable of a server", "mcp_servers: [{mcp_server_name: a, command: [x], env: {OPTS: '-Dkey=${APP_TOKEN} -x', HOME: /home/" + shaped + "}}]"},
		{"base64", "sandbox: {env: {OPTS: 'Basic dG9rLzVlY3JldCt2YWx1ZQ=='}}"},
		{"server", "mcp_servers: [{mcp_server_name: b, url: 'https://h/${APP_TOKEN}/mcp', allow: ['${APP_TOKEN}'], deny: ['" + shaped + "']}]"},
		{"project", "tools: {projects: [{project: 'o/" + shaped + "', allow: [shell]}]}"},
	} {
		cfg := parse(t, c.text, vars{"APP_TOKEN": known})
		var out bytes.Buffer
		if err := cfg.Print(&out); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{known, shaped, "5ecret", "dG9rLzVl", "0123456789abcdefghij"} {
			if strings.Contains(out.String(), part) {
				t.Errorf("%s: %q is shown", c.name, part)
			}
		}
		if !strings.Contains(out.String(), hidden) {
			t.Errorf("%s: nothing is hidden", c.name)
		}
		if strings.Contains(out.String(), "EMAIL") || !strings.Contains(out.String(), "tori@localhost") {
			t.Errorf("%s: an address is no secret", c.name)
		}
	}
}

// Load reads the configuration at path; with path "" there is no file, only
// defaults and the environment. getenv looks variables up; environ lists all of
// them as os.Environ does, to find misspelt names and secrets. The error is an
// *i18n.Error with one line for each problem.
func Load(path string, getenv func(string) string, environ []string) (*Config, error) {
	if path == "" {
		return Parse("", nil, getenv, environ)
	}
	data, err := contents(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, getenv, environ)
}

func TestHours(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		hours, at string
		within    bool
	}{
		{"22:00-07:00", "21:59:59", false}, {"22:00-07:00", "22:00:00", true}, {"22:00-07:00", "00:30:00", true}, {"22:00-07:00", "06:59:59", true},
		{"22:00-07:00", "07:00:00", false}, {"12:00-13:30", "12:15:00", true}, {"12:00-13:30", "11:00:00", false}, {"", "00:00:00", false},
	} {
		h, ok := ParseHours(tc.hours)
		at, err := time.Parse(time.TimeOnly, tc.at)
		if within := h.Within(at); !ok || err != nil || within != tc.within {
			t.Errorf("%s at %s: %v, %v %v", tc.hours, tc.at, within, ok, err)
		}
	}
	for _, bad := range []string{"22:00-22:00", "22:00", "-", "22-07", "22:00-7:00", "22:00-07:00-08:00"} {
		if _, ok := ParseHours(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestNextDigest(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ at, last, want string }{
		{"09:00", "2026-03-04 08:59", "2026-03-04 09:00"},
		{"09:00", "2026-03-04 09:00", "2026-03-05 09:00"},
		{"09:00", "2026-12-31 23:00", "2027-01-01 09:00"},
		{"00:00", "2026-03-04 00:00", "2026-03-05 00:00"},
		{"09:00", "2026-03-28 09:00", "2026-03-29 09:00"}, // summer time begins
		{"02:30", "2026-03-28 09:00", "2026-03-29 03:30"}, // there is no such time on that day
	} {
		last, err := time.ParseInLocation("2006-01-02 15:04", c.last, berlin)
		if err != nil {
			t.Fatal(err)
		}
		if next, ok := (People{DigestAt: c.at}).NextDigest(last); !ok || next.Format("2006-01-02 15:04") != c.want {
			t.Errorf("%+v: %v %v", c, next, ok)
		}
	}
	if next, ok := (People{}).NextDigest(time.Now()); ok {
		t.Error(next)
	}
}
