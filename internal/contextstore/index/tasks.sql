-- The tables of tasks.db, in SQLite and in PostgreSQL. A change of them gets the next number of
-- Schema.Version: an older file is then made anew from the directories. In PostgreSQL it needs
-- a script of its own besides, that changes what is there (schema in index.go).
-- What stands in braces is the same for all counters: see sqlOf in stats.go.

CREATE TABLE tasks (
    uuid TEXT PRIMARY KEY,
    task_source TEXT NOT NULL,
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    task_type TEXT NOT NULL,
    task_id TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    process_id INTEGER,
    hostname TEXT,
    llm_provider TEXT,
    model TEXT,
    context_length INTEGER,
    llm_call_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0,
    total_tokens INTEGER DEFAULT 0,
    compression_count INTEGER DEFAULT 0,
    error_message TEXT,
    user TEXT,
    generation INTEGER NOT NULL DEFAULT 0
, title TEXT NOT NULL DEFAULT '', heartbeat_at TEXT, phase TEXT NOT NULL DEFAULT '', message_count INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0, compression_failures INTEGER NOT NULL DEFAULT 0, outbox_pending INTEGER NOT NULL DEFAULT 0, prompt_tokens INTEGER NOT NULL DEFAULT 0, cached_tokens INTEGER NOT NULL DEFAULT 0, cache_write_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0, reasoning_tokens INTEGER NOT NULL DEFAULT 0, cost_micro_usd INTEGER NOT NULL DEFAULT 0, unpriced_calls INTEGER NOT NULL DEFAULT 0);

CREATE INDEX idx_tasks_status ON tasks(status);

CREATE INDEX idx_tasks_created_at ON tasks(created_at);

CREATE INDEX idx_tasks_user ON tasks(user);

CREATE UNIQUE INDEX idx_tasks_live_key ON tasks(task_source, owner, repo, task_type, task_id)
    WHERE status NOT IN ('completed', 'stopped', 'failed');

CREATE INDEX idx_tasks_status_created ON tasks(status, created_at);

CREATE INDEX idx_tasks_user_created ON tasks(user, created_at);

CREATE INDEX idx_tasks_user_status ON tasks(user, status, created_at);

CREATE INDEX idx_tasks_id_created ON tasks(task_id, created_at);

CREATE INDEX idx_tasks_repo_created ON tasks(repo, created_at);

CREATE INDEX idx_tasks_owner_created ON tasks(owner, created_at);

CREATE INDEX idx_tasks_owner_repo ON tasks(owner, repo, created_at);

CREATE INDEX idx_tasks_source_created ON tasks(task_source, created_at);

CREATE INDEX idx_tasks_open ON tasks(uuid)
    WHERE status NOT IN ('completed', 'stopped', 'failed') OR phase <> '';

CREATE INDEX idx_tasks_outbox ON tasks(uuid) WHERE outbox_pending > 0;

CREATE TABLE index_meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE task_days (
    day TEXT NOT NULL,
    user TEXT NOT NULL,
    status TEXT NOT NULL,
    {sums},
    PRIMARY KEY (day, user, status)
) WITHOUT ROWID;

CREATE TABLE task_months (
    month TEXT NOT NULL,
    user TEXT NOT NULL,
    status TEXT NOT NULL,
    {sums},
    PRIMARY KEY (month, user, status)
) WITHOUT ROWID;

CREATE TABLE task_repo_days (
    day TEXT NOT NULL,
    repo TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    {sums},
    PRIMARY KEY (day, repo, model, status)
) WITHOUT ROWID;

CREATE TABLE task_repo_months (
    month TEXT NOT NULL,
    repo TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    {sums},
    PRIMARY KEY (month, repo, model, status)
) WITHOUT ROWID;

CREATE TABLE task_sums (
    user TEXT NOT NULL,
    status TEXT NOT NULL,
    repo TEXT NOT NULL,
    model TEXT NOT NULL,
    {sums},
    PRIMARY KEY (user, status, repo, model)
) WITHOUT ROWID;

CREATE TABLE task_repos (
    repo TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    {sums},
    PRIMARY KEY (repo, model, status)
) WITHOUT ROWID;

INSERT INTO index_meta VALUES ('complete', '0');
