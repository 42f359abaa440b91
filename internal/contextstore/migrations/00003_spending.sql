-- +goose Up
-- What the calls of a run took, and what they cost in millionths of a US dollar.
-- The calls whose price was not known are counted beside it.
-- The sums over what has ended know them too; they are made anew, which is
-- quicker than to add one column after the other.
DROP TRIGGER task_days_insert;
DROP TRIGGER task_days_update;
DROP TRIGGER task_days_delete;
DROP TRIGGER tasks_insert;
DROP TRIGGER tasks_update_old;
DROP TRIGGER tasks_update_new;
DROP TRIGGER tasks_delete;
DROP TABLE task_days;
DROP TABLE task_months;

ALTER TABLE tasks ADD COLUMN prompt_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN completion_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN reasoning_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN cost_micro_usd INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tasks ADD COLUMN unpriced_calls INTEGER NOT NULL DEFAULT 0;

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
    prompt_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost_micro_usd INTEGER NOT NULL,
    unpriced_calls INTEGER NOT NULL,
    PRIMARY KEY (day, user, status)
) WITHOUT ROWID;

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
    prompt_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost_micro_usd INTEGER NOT NULL,
    unpriced_calls INTEGER NOT NULL,
    PRIMARY KEY (month, user, status)
) WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER task_days_insert AFTER INSERT ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(NEW.day, 1, 7), NEW.user, NEW.status,
        NEW.tasks, NEW.llm_calls, NEW.tool_calls, NEW.tokens, NEW.compressions, NEW.compression_failures, NEW.messages, NEW.bytes,
        NEW.timed, NEW.duration_ms, NEW.prompt_tokens, NEW.cached_tokens, NEW.cache_write_tokens, NEW.completion_tokens,
        NEW.reasoning_tokens, NEW.cost_micro_usd, NEW.unpriced_calls)
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions,
        compression_failures = compression_failures + excluded.compression_failures, messages = messages + excluded.messages,
        bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms,
        prompt_tokens = prompt_tokens + excluded.prompt_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
        completion_tokens = completion_tokens + excluded.completion_tokens,
        reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
        cost_micro_usd = cost_micro_usd + excluded.cost_micro_usd, unpriced_calls = unpriced_calls + excluded.unpriced_calls;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER task_days_update AFTER UPDATE ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(OLD.day, 1, 7), OLD.user, OLD.status,
        -OLD.tasks, -OLD.llm_calls, -OLD.tool_calls, -OLD.tokens, -OLD.compressions, -OLD.compression_failures, -OLD.messages,
        -OLD.bytes, -OLD.timed, -OLD.duration_ms, -OLD.prompt_tokens, -OLD.cached_tokens, -OLD.cache_write_tokens,
        -OLD.completion_tokens, -OLD.reasoning_tokens, -OLD.cost_micro_usd, -OLD.unpriced_calls)
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions,
        compression_failures = compression_failures + excluded.compression_failures, messages = messages + excluded.messages,
        bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms,
        prompt_tokens = prompt_tokens + excluded.prompt_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
        completion_tokens = completion_tokens + excluded.completion_tokens,
        reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
        cost_micro_usd = cost_micro_usd + excluded.cost_micro_usd, unpriced_calls = unpriced_calls + excluded.unpriced_calls;
    INSERT INTO task_months VALUES (substr(NEW.day, 1, 7), NEW.user, NEW.status,
        NEW.tasks, NEW.llm_calls, NEW.tool_calls, NEW.tokens, NEW.compressions, NEW.compression_failures, NEW.messages, NEW.bytes,
        NEW.timed, NEW.duration_ms, NEW.prompt_tokens, NEW.cached_tokens, NEW.cache_write_tokens, NEW.completion_tokens,
        NEW.reasoning_tokens, NEW.cost_micro_usd, NEW.unpriced_calls)
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions,
        compression_failures = compression_failures + excluded.compression_failures, messages = messages + excluded.messages,
        bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms,
        prompt_tokens = prompt_tokens + excluded.prompt_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
        completion_tokens = completion_tokens + excluded.completion_tokens,
        reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
        cost_micro_usd = cost_micro_usd + excluded.cost_micro_usd, unpriced_calls = unpriced_calls + excluded.unpriced_calls;
    DELETE FROM task_months WHERE tasks = 0 AND month = substr(OLD.day, 1, 7) AND user = OLD.user AND status = OLD.status;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER task_days_delete AFTER DELETE ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(OLD.day, 1, 7), OLD.user, OLD.status,
        -OLD.tasks, -OLD.llm_calls, -OLD.tool_calls, -OLD.tokens, -OLD.compressions, -OLD.compression_failures, -OLD.messages,
        -OLD.bytes, -OLD.timed, -OLD.duration_ms, -OLD.prompt_tokens, -OLD.cached_tokens, -OLD.cache_write_tokens,
        -OLD.completion_tokens, -OLD.reasoning_tokens, -OLD.cost_micro_usd, -OLD.unpriced_calls)
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions,
        compression_failures = compression_failures + excluded.compression_failures, messages = messages + excluded.messages,
        bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms,
        prompt_tokens = prompt_tokens + excluded.prompt_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
        completion_tokens = completion_tokens + excluded.completion_tokens,
        reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
        cost_micro_usd = cost_micro_usd + excluded.cost_micro_usd, unpriced_calls = unpriced_calls + excluded.unpriced_calls;
    DELETE FROM task_months WHERE tasks = 0 AND month = substr(OLD.day, 1, 7) AND user = OLD.user AND status = OLD.status;
END;
-- +goose StatementEnd

-- A row that is added to the sums (sign 1) or taken out of them (-1) is put into
-- this view. SQLite makes room for all that a trigger may do whenever it fires,
-- also on the row of a run that goes on, for which it does nothing: so little is
-- in the triggers of tasks themselves.
CREATE VIEW task_counting AS SELECT 0 AS sign, status, user, started_at, completed_at,
    llm_call_count, tool_call_count, total_tokens, compression_count, compression_failures, message_count, bytes, prompt_tokens,
    cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens, cost_micro_usd, unpriced_calls
FROM tasks WHERE 0;

-- +goose StatementBegin
CREATE TRIGGER task_counting_insert INSTEAD OF INSERT ON task_counting BEGIN
    INSERT INTO task_days VALUES (coalesce(substr(NEW.completed_at, 1, 10), ''), coalesce(NEW.user, ''), NEW.status, NEW.sign,
        NEW.sign * coalesce(NEW.llm_call_count, 0),
        NEW.sign * coalesce(NEW.tool_call_count, 0),
        NEW.sign * coalesce(NEW.total_tokens, 0),
        NEW.sign * coalesce(NEW.compression_count, 0),
        NEW.sign * NEW.compression_failures,
        NEW.sign * NEW.message_count,
        NEW.sign * NEW.bytes,
        NEW.sign * (strftime('%s', substr(NEW.started_at, 1, 19)) IS NOT NULL AND strftime('%s', substr(NEW.completed_at, 1, 19)) IS NOT NULL),
        NEW.sign * coalesce((strftime('%s', substr(NEW.completed_at, 1, 19)) - strftime('%s', substr(NEW.started_at, 1, 19))) * 1000
            + substr(NEW.completed_at, 21, 3) - substr(NEW.started_at, 21, 3), 0),
        NEW.sign * NEW.prompt_tokens, NEW.sign * NEW.cached_tokens, NEW.sign * NEW.cache_write_tokens,
        NEW.sign * NEW.completion_tokens, NEW.sign * NEW.reasoning_tokens, NEW.sign * NEW.cost_micro_usd,
        NEW.sign * NEW.unpriced_calls)
    ON CONFLICT DO UPDATE SET
        tasks = tasks + excluded.tasks, llm_calls = llm_calls + excluded.llm_calls, tool_calls = tool_calls + excluded.tool_calls,
        tokens = tokens + excluded.tokens, compressions = compressions + excluded.compressions,
        compression_failures = compression_failures + excluded.compression_failures, messages = messages + excluded.messages,
        bytes = bytes + excluded.bytes, timed = timed + excluded.timed, duration_ms = duration_ms + excluded.duration_ms,
        prompt_tokens = prompt_tokens + excluded.prompt_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
        cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
        completion_tokens = completion_tokens + excluded.completion_tokens,
        reasoning_tokens = reasoning_tokens + excluded.reasoning_tokens,
        cost_micro_usd = cost_micro_usd + excluded.cost_micro_usd, unpriced_calls = unpriced_calls + excluded.unpriced_calls;
    DELETE FROM task_days WHERE tasks = 0 AND day = coalesce(substr(NEW.completed_at, 1, 10), '') AND user = coalesce(NEW.user, '') AND status = NEW.status;
END;
-- +goose StatementEnd

INSERT INTO task_days
SELECT coalesce(substr(completed_at, 1, 10), ''), coalesce(user, ''), status, count(*),
    sum(coalesce(llm_call_count, 0)), sum(coalesce(tool_call_count, 0)), sum(coalesce(total_tokens, 0)), sum(coalesce(compression_count, 0)),
    sum(compression_failures), sum(message_count), sum(bytes),
    sum(strftime('%s', substr(tasks.started_at, 1, 19)) IS NOT NULL AND strftime('%s', substr(tasks.completed_at, 1, 19)) IS NOT NULL),
    sum(coalesce((strftime('%s', substr(tasks.completed_at, 1, 19)) - strftime('%s', substr(tasks.started_at, 1, 19))) * 1000 + substr(tasks.completed_at, 21, 3) - substr(tasks.started_at, 21, 3), 0)),
    sum(prompt_tokens), sum(cached_tokens), sum(cache_write_tokens), sum(completion_tokens), sum(reasoning_tokens),
    sum(cost_micro_usd), sum(unpriced_calls)
FROM tasks WHERE status IN ('completed', 'stopped', 'failed') GROUP BY 1, 2, 3;

-- +goose StatementBegin
CREATE TRIGGER tasks_insert AFTER INSERT ON tasks WHEN NEW.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (1, NEW.status, NEW.user, NEW.started_at, NEW.completed_at, NEW.llm_call_count, NEW.tool_call_count, NEW.total_tokens,
        NEW.compression_count, NEW.compression_failures, NEW.message_count, NEW.bytes, NEW.prompt_tokens, NEW.cached_tokens,
        NEW.cache_write_tokens, NEW.completion_tokens, NEW.reasoning_tokens, NEW.cost_micro_usd, NEW.unpriced_calls);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER tasks_update_old AFTER UPDATE OF status, user, started_at, completed_at, llm_call_count, tool_call_count, total_tokens, compression_count,
    compression_failures, message_count, bytes, prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens,
    reasoning_tokens, cost_micro_usd, unpriced_calls
    ON tasks WHEN OLD.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (-1, OLD.status, OLD.user, OLD.started_at, OLD.completed_at, OLD.llm_call_count, OLD.tool_call_count, OLD.total_tokens,
        OLD.compression_count, OLD.compression_failures, OLD.message_count, OLD.bytes, OLD.prompt_tokens, OLD.cached_tokens,
        OLD.cache_write_tokens, OLD.completion_tokens, OLD.reasoning_tokens, OLD.cost_micro_usd, OLD.unpriced_calls);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER tasks_update_new AFTER UPDATE OF status, user, started_at, completed_at, llm_call_count, tool_call_count, total_tokens, compression_count,
    compression_failures, message_count, bytes, prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens,
    reasoning_tokens, cost_micro_usd, unpriced_calls
    ON tasks WHEN NEW.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (1, NEW.status, NEW.user, NEW.started_at, NEW.completed_at, NEW.llm_call_count, NEW.tool_call_count, NEW.total_tokens,
        NEW.compression_count, NEW.compression_failures, NEW.message_count, NEW.bytes, NEW.prompt_tokens, NEW.cached_tokens,
        NEW.cache_write_tokens, NEW.completion_tokens, NEW.reasoning_tokens, NEW.cost_micro_usd, NEW.unpriced_calls);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER tasks_delete AFTER DELETE ON tasks WHEN OLD.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (-1, OLD.status, OLD.user, OLD.started_at, OLD.completed_at, OLD.llm_call_count, OLD.tool_call_count, OLD.total_tokens,
        OLD.compression_count, OLD.compression_failures, OLD.message_count, OLD.bytes, OLD.prompt_tokens, OLD.cached_tokens,
        OLD.cache_write_tokens, OLD.completion_tokens, OLD.reasoning_tokens, OLD.cost_micro_usd, OLD.unpriced_calls);
END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER task_days_insert;
DROP TRIGGER task_days_update;
DROP TRIGGER task_days_delete;
DROP TRIGGER task_counting_insert;
DROP TRIGGER tasks_insert;
DROP TRIGGER tasks_update_old;
DROP TRIGGER tasks_update_new;
DROP TRIGGER tasks_delete;
DROP VIEW task_counting;
DROP TABLE task_days;
DROP TABLE task_months;

ALTER TABLE tasks DROP COLUMN prompt_tokens;
ALTER TABLE tasks DROP COLUMN cached_tokens;
ALTER TABLE tasks DROP COLUMN cache_write_tokens;
ALTER TABLE tasks DROP COLUMN completion_tokens;
ALTER TABLE tasks DROP COLUMN reasoning_tokens;
ALTER TABLE tasks DROP COLUMN cost_micro_usd;
ALTER TABLE tasks DROP COLUMN unpriced_calls;

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
