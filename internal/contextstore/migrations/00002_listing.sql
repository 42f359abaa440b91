-- +goose Up
ALTER TABLE tasks ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN heartbeat_at TEXT;
ALTER TABLE tasks ADD COLUMN phase TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN message_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN compression_failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN outbox_pending INTEGER NOT NULL DEFAULT 0;

-- Listings are newest first, by (created_at, rowid): an index ends with
-- created_at, behind which SQLite itself puts the rowid.
CREATE INDEX idx_tasks_status_created ON tasks(status, created_at);
CREATE INDEX idx_tasks_user_created ON tasks(user, created_at);
CREATE INDEX idx_tasks_user_status ON tasks(user, status, created_at);
CREATE INDEX idx_tasks_id_created ON tasks(task_id, created_at);
CREATE INDEX idx_tasks_repo_created ON tasks(repo, created_at);
CREATE INDEX idx_tasks_owner_created ON tasks(owner, created_at);
CREATE INDEX idx_tasks_owner_repo ON tasks(owner, repo, created_at);
CREATE INDEX idx_tasks_source_created ON tasks(task_source, created_at);

-- The averages of store-v3 10.2 and the clean-up of 8.3 read no more than this.
CREATE INDEX idx_tasks_completed ON tasks(status, completed_at, started_at, total_tokens)
    WHERE status = 'completed';

-- The few rows that are looked for all the time.
CREATE INDEX idx_tasks_open ON tasks(uuid)
    WHERE status NOT IN ('completed', 'stopped', 'failed') OR phase <> '';
CREATE INDEX idx_tasks_outbox ON tasks(uuid) WHERE outbox_pending > 0;

-- What is known of the index itself: complete, whether it holds every directory.
CREATE TABLE index_meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO index_meta VALUES ('complete', '0');

-- Sums over the rows that are final, by the day (UTC) they ended on. Triggers keep
-- them, so that they are true whoever writes; a live row never touches them.
-- timed counts the rows that duration_ms is the sum of.
CREATE TABLE task_days (
    day TEXT NOT NULL,
    user TEXT NOT NULL,
    status TEXT NOT NULL,
    tasks INTEGER NOT NULL,
    llm_calls INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    compressions INTEGER NOT NULL,
    compression_failures INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    PRIMARY KEY (day, user, status)
) WITHOUT ROWID;

-- The same by month: long ranges are read from here.
CREATE TABLE task_months (
    month TEXT NOT NULL,
    user TEXT NOT NULL,
    status TEXT NOT NULL,
    tasks INTEGER NOT NULL,
    llm_calls INTEGER NOT NULL,
    tool_calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    compressions INTEGER NOT NULL,
    compression_failures INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    PRIMARY KEY (month, user, status)
) WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER task_days_insert AFTER INSERT ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(NEW.day, 1, 7), NEW.user, NEW.status, NEW.tasks, NEW.llm_calls, NEW.tool_calls, NEW.tokens, NEW.compressions, NEW.compression_failures, NEW.messages, NEW.bytes, NEW.timed, NEW.duration_ms)
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions, compression_failures = compression_failures + excluded.compression_failures,
        messages = messages + excluded.messages, bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER task_days_update AFTER UPDATE ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(OLD.day, 1, 7), OLD.user, OLD.status, -OLD.tasks, -OLD.llm_calls, -OLD.tool_calls, -OLD.tokens, -OLD.compressions, -OLD.compression_failures, -OLD.messages, -OLD.bytes, -OLD.timed, -OLD.duration_ms)
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions, compression_failures = compression_failures + excluded.compression_failures,
        messages = messages + excluded.messages, bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms;
    INSERT INTO task_months VALUES (substr(NEW.day, 1, 7), NEW.user, NEW.status, NEW.tasks, NEW.llm_calls, NEW.tool_calls, NEW.tokens, NEW.compressions, NEW.compression_failures, NEW.messages, NEW.bytes, NEW.timed, NEW.duration_ms)
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions, compression_failures = compression_failures + excluded.compression_failures,
        messages = messages + excluded.messages, bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms;
    DELETE FROM task_months WHERE tasks = 0 AND month = substr(OLD.day, 1, 7) AND user = OLD.user AND status = OLD.status;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER task_days_delete AFTER DELETE ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(OLD.day, 1, 7), OLD.user, OLD.status, -OLD.tasks, -OLD.llm_calls, -OLD.tool_calls, -OLD.tokens, -OLD.compressions, -OLD.compression_failures, -OLD.messages, -OLD.bytes, -OLD.timed, -OLD.duration_ms)
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions, compression_failures = compression_failures + excluded.compression_failures,
        messages = messages + excluded.messages, bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms;
    DELETE FROM task_months WHERE tasks = 0 AND month = substr(OLD.day, 1, 7) AND user = OLD.user AND status = OLD.status;
END;
-- +goose StatementEnd

INSERT INTO task_days
SELECT coalesce(substr(completed_at, 1, 10), ''), coalesce(user, ''), status, count(*),
    sum(coalesce(llm_call_count, 0)), sum(coalesce(tool_call_count, 0)), sum(coalesce(total_tokens, 0)), sum(coalesce(compression_count, 0)),
    sum(compression_failures), sum(message_count), sum(bytes),
    sum(strftime('%s', substr(tasks.started_at, 1, 19)) IS NOT NULL AND strftime('%s', substr(tasks.completed_at, 1, 19)) IS NOT NULL),
    sum(coalesce((strftime('%s', substr(tasks.completed_at, 1, 19)) - strftime('%s', substr(tasks.started_at, 1, 19))) * 1000 + substr(tasks.completed_at, 21, 3) - substr(tasks.started_at, 21, 3), 0))
FROM tasks WHERE status IN ('completed', 'stopped', 'failed') GROUP BY 1, 2, 3;

-- +goose StatementBegin
CREATE TRIGGER tasks_insert AFTER INSERT ON tasks WHEN NEW.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_days VALUES (coalesce(substr(NEW.completed_at, 1, 10), ''), coalesce(NEW.user, ''), NEW.status,
        1,
        coalesce(NEW.llm_call_count, 0),
        coalesce(NEW.tool_call_count, 0),
        coalesce(NEW.total_tokens, 0),
        coalesce(NEW.compression_count, 0),
        NEW.compression_failures,
        NEW.message_count,
        NEW.bytes,
        (strftime('%s', substr(NEW.started_at, 1, 19)) IS NOT NULL AND strftime('%s', substr(NEW.completed_at, 1, 19)) IS NOT NULL),
        coalesce((strftime('%s', substr(NEW.completed_at, 1, 19)) - strftime('%s', substr(NEW.started_at, 1, 19))) * 1000 + substr(NEW.completed_at, 21, 3) - substr(NEW.started_at, 21, 3), 0))
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions, compression_failures = compression_failures + excluded.compression_failures,
        messages = messages + excluded.messages, bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER tasks_update_old AFTER UPDATE OF status, user, started_at, completed_at, llm_call_count, tool_call_count,
    total_tokens, compression_count, compression_failures, message_count, bytes ON tasks WHEN OLD.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_days VALUES (coalesce(substr(OLD.completed_at, 1, 10), ''), coalesce(OLD.user, ''), OLD.status,
        -1,
        -coalesce(OLD.llm_call_count, 0),
        -coalesce(OLD.tool_call_count, 0),
        -coalesce(OLD.total_tokens, 0),
        -coalesce(OLD.compression_count, 0),
        -OLD.compression_failures,
        -OLD.message_count,
        -OLD.bytes,
        -(strftime('%s', substr(OLD.started_at, 1, 19)) IS NOT NULL AND strftime('%s', substr(OLD.completed_at, 1, 19)) IS NOT NULL),
        -coalesce((strftime('%s', substr(OLD.completed_at, 1, 19)) - strftime('%s', substr(OLD.started_at, 1, 19))) * 1000 + substr(OLD.completed_at, 21, 3) - substr(OLD.started_at, 21, 3), 0))
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions, compression_failures = compression_failures + excluded.compression_failures,
        messages = messages + excluded.messages, bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms;
    DELETE FROM task_days WHERE tasks = 0 AND day = coalesce(substr(OLD.completed_at, 1, 10), '') AND user = coalesce(OLD.user, '') AND status = OLD.status;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER tasks_update_new AFTER UPDATE OF status, user, started_at, completed_at, llm_call_count, tool_call_count,
    total_tokens, compression_count, compression_failures, message_count, bytes ON tasks WHEN NEW.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_days VALUES (coalesce(substr(NEW.completed_at, 1, 10), ''), coalesce(NEW.user, ''), NEW.status,
        1,
        coalesce(NEW.llm_call_count, 0),
        coalesce(NEW.tool_call_count, 0),
        coalesce(NEW.total_tokens, 0),
        coalesce(NEW.compression_count, 0),
        NEW.compression_failures,
        NEW.message_count,
        NEW.bytes,
        (strftime('%s', substr(NEW.started_at, 1, 19)) IS NOT NULL AND strftime('%s', substr(NEW.completed_at, 1, 19)) IS NOT NULL),
        coalesce((strftime('%s', substr(NEW.completed_at, 1, 19)) - strftime('%s', substr(NEW.started_at, 1, 19))) * 1000 + substr(NEW.completed_at, 21, 3) - substr(NEW.started_at, 21, 3), 0))
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions, compression_failures = compression_failures + excluded.compression_failures,
        messages = messages + excluded.messages, bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER tasks_delete AFTER DELETE ON tasks WHEN OLD.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_days VALUES (coalesce(substr(OLD.completed_at, 1, 10), ''), coalesce(OLD.user, ''), OLD.status,
        -1,
        -coalesce(OLD.llm_call_count, 0),
        -coalesce(OLD.tool_call_count, 0),
        -coalesce(OLD.total_tokens, 0),
        -coalesce(OLD.compression_count, 0),
        -OLD.compression_failures,
        -OLD.message_count,
        -OLD.bytes,
        -(strftime('%s', substr(OLD.started_at, 1, 19)) IS NOT NULL AND strftime('%s', substr(OLD.completed_at, 1, 19)) IS NOT NULL),
        -coalesce((strftime('%s', substr(OLD.completed_at, 1, 19)) - strftime('%s', substr(OLD.started_at, 1, 19))) * 1000 + substr(OLD.completed_at, 21, 3) - substr(OLD.started_at, 21, 3), 0))
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions, compression_failures = compression_failures + excluded.compression_failures,
        messages = messages + excluded.messages, bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms;
    DELETE FROM task_days WHERE tasks = 0 AND day = coalesce(substr(OLD.completed_at, 1, 10), '') AND user = coalesce(OLD.user, '') AND status = OLD.status;
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER tasks_insert;
DROP TRIGGER tasks_update_old;
DROP TRIGGER tasks_update_new;
DROP TRIGGER tasks_delete;
DROP TABLE task_days;
DROP TABLE task_months;
DROP TABLE index_meta;
DROP INDEX idx_tasks_status_created;
DROP INDEX idx_tasks_user_created;
DROP INDEX idx_tasks_user_status;
DROP INDEX idx_tasks_id_created;
DROP INDEX idx_tasks_repo_created;
DROP INDEX idx_tasks_owner_created;
DROP INDEX idx_tasks_owner_repo;
DROP INDEX idx_tasks_source_created;
DROP INDEX idx_tasks_completed;
DROP INDEX idx_tasks_open;
DROP INDEX idx_tasks_outbox;
ALTER TABLE tasks DROP COLUMN title;
ALTER TABLE tasks DROP COLUMN heartbeat_at;
ALTER TABLE tasks DROP COLUMN phase;
ALTER TABLE tasks DROP COLUMN message_count;
ALTER TABLE tasks DROP COLUMN bytes;
ALTER TABLE tasks DROP COLUMN compression_failures;
ALTER TABLE tasks DROP COLUMN outbox_pending;
