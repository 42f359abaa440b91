-- What tasks.db has of its own in SQLite: the version, and the counters' triggers.

CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);

CREATE INDEX idx_tasks_completed ON tasks(status, completed_at, started_at, total_tokens)
    WHERE status = 'completed';

CREATE TRIGGER task_days_insert AFTER INSERT ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(NEW.day, 1, 7), NEW.user, NEW.status,
        NEW.tasks, NEW.llm_calls, NEW.tool_calls, NEW.tokens, NEW.compressions, NEW.compression_failures, NEW.messages, NEW.bytes,
        NEW.timed, NEW.duration_ms, NEW.prompt_tokens, NEW.cached_tokens, NEW.cache_write_tokens, NEW.completion_tokens,
        NEW.reasoning_tokens, NEW.cost_micro_usd, NEW.unpriced_calls)
    {add};
END;

CREATE TRIGGER task_days_update AFTER UPDATE ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(OLD.day, 1, 7), OLD.user, OLD.status,
        -OLD.tasks, -OLD.llm_calls, -OLD.tool_calls, -OLD.tokens, -OLD.compressions, -OLD.compression_failures, -OLD.messages,
        -OLD.bytes, -OLD.timed, -OLD.duration_ms, -OLD.prompt_tokens, -OLD.cached_tokens, -OLD.cache_write_tokens,
        -OLD.completion_tokens, -OLD.reasoning_tokens, -OLD.cost_micro_usd, -OLD.unpriced_calls)
    {add};
    INSERT INTO task_months VALUES (substr(NEW.day, 1, 7), NEW.user, NEW.status,
        NEW.tasks, NEW.llm_calls, NEW.tool_calls, NEW.tokens, NEW.compressions, NEW.compression_failures, NEW.messages, NEW.bytes,
        NEW.timed, NEW.duration_ms, NEW.prompt_tokens, NEW.cached_tokens, NEW.cache_write_tokens, NEW.completion_tokens,
        NEW.reasoning_tokens, NEW.cost_micro_usd, NEW.unpriced_calls)
    {add};
    DELETE FROM task_months WHERE tasks = 0 AND month = substr(OLD.day, 1, 7) AND user = OLD.user AND status = OLD.status;
END;

CREATE TRIGGER task_days_delete AFTER DELETE ON task_days BEGIN
    INSERT INTO task_months VALUES (substr(OLD.day, 1, 7), OLD.user, OLD.status,
        -OLD.tasks, -OLD.llm_calls, -OLD.tool_calls, -OLD.tokens, -OLD.compressions, -OLD.compression_failures, -OLD.messages,
        -OLD.bytes, -OLD.timed, -OLD.duration_ms, -OLD.prompt_tokens, -OLD.cached_tokens, -OLD.cache_write_tokens,
        -OLD.completion_tokens, -OLD.reasoning_tokens, -OLD.cost_micro_usd, -OLD.unpriced_calls)
    {add};
    DELETE FROM task_months WHERE tasks = 0 AND month = substr(OLD.day, 1, 7) AND user = OLD.user AND status = OLD.status;
END;

CREATE VIEW task_counting AS SELECT 0 AS sign, status, user, owner, repo, model, started_at, completed_at,
    llm_call_count, tool_call_count, total_tokens, compression_count, compression_failures, message_count, bytes, prompt_tokens,
    cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens, cost_micro_usd, unpriced_calls
FROM tasks WHERE 0;

CREATE TRIGGER task_counting_insert INSTEAD OF INSERT ON task_counting BEGIN
    INSERT INTO task_days VALUES (coalesce(substr(NEW.completed_at, 1, 10), ''), coalesce(NEW.user, ''), NEW.status, {values})
    {add};
    INSERT INTO task_repo_days VALUES (coalesce(substr(NEW.completed_at, 1, 10), ''), {repo}, coalesce(NEW.model, ''), NEW.status, {values})
    {add};
    INSERT INTO task_repo_months VALUES (coalesce(substr(NEW.completed_at, 1, 7), ''), {repo}, coalesce(NEW.model, ''), NEW.status, {values})
    {add};
    INSERT INTO task_sums VALUES (coalesce(NEW.user, ''), NEW.status, {repo}, coalesce(NEW.model, ''), {values})
    {add};
    INSERT INTO task_repos VALUES ({repo}, coalesce(NEW.model, ''), NEW.status, {values})
    {add};
    DELETE FROM task_days WHERE NEW.sign < 0 AND tasks = 0 AND day = coalesce(substr(NEW.completed_at, 1, 10), '') AND user = coalesce(NEW.user, '') AND status = NEW.status;
    DELETE FROM task_repo_days WHERE NEW.sign < 0 AND tasks = 0 AND day = coalesce(substr(NEW.completed_at, 1, 10), '') AND repo = {repo} AND model = coalesce(NEW.model, '') AND status = NEW.status;
    DELETE FROM task_repo_months WHERE NEW.sign < 0 AND tasks = 0 AND month = coalesce(substr(NEW.completed_at, 1, 7), '') AND repo = {repo} AND model = coalesce(NEW.model, '') AND status = NEW.status;
    DELETE FROM task_sums WHERE NEW.sign < 0 AND tasks = 0 AND user = coalesce(NEW.user, '') AND repo = {repo} AND model = coalesce(NEW.model, '') AND status = NEW.status;
    DELETE FROM task_repos WHERE NEW.sign < 0 AND tasks = 0 AND repo = {repo} AND model = coalesce(NEW.model, '') AND status = NEW.status;
END;

CREATE TRIGGER tasks_insert AFTER INSERT ON tasks WHEN NEW.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (1, NEW.status, NEW.user, NEW.owner, NEW.repo, NEW.model, NEW.started_at, NEW.completed_at, NEW.llm_call_count, NEW.tool_call_count, NEW.total_tokens,
        NEW.compression_count, NEW.compression_failures, NEW.message_count, NEW.bytes, NEW.prompt_tokens, NEW.cached_tokens,
        NEW.cache_write_tokens, NEW.completion_tokens, NEW.reasoning_tokens, NEW.cost_micro_usd, NEW.unpriced_calls);
END;

CREATE TRIGGER tasks_update_old AFTER UPDATE OF status, user, owner, repo, model, started_at, completed_at, llm_call_count, tool_call_count, total_tokens, compression_count,
    compression_failures, message_count, bytes, prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens,
    reasoning_tokens, cost_micro_usd, unpriced_calls
    ON tasks WHEN OLD.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (-1, OLD.status, OLD.user, OLD.owner, OLD.repo, OLD.model, OLD.started_at, OLD.completed_at, OLD.llm_call_count, OLD.tool_call_count, OLD.total_tokens,
        OLD.compression_count, OLD.compression_failures, OLD.message_count, OLD.bytes, OLD.prompt_tokens, OLD.cached_tokens,
        OLD.cache_write_tokens, OLD.completion_tokens, OLD.reasoning_tokens, OLD.cost_micro_usd, OLD.unpriced_calls);
END;

CREATE TRIGGER tasks_update_new AFTER UPDATE OF status, user, owner, repo, model, started_at, completed_at, llm_call_count, tool_call_count, total_tokens, compression_count,
    compression_failures, message_count, bytes, prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens,
    reasoning_tokens, cost_micro_usd, unpriced_calls
    ON tasks WHEN NEW.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (1, NEW.status, NEW.user, NEW.owner, NEW.repo, NEW.model, NEW.started_at, NEW.completed_at, NEW.llm_call_count, NEW.tool_call_count, NEW.total_tokens,
        NEW.compression_count, NEW.compression_failures, NEW.message_count, NEW.bytes, NEW.prompt_tokens, NEW.cached_tokens,
        NEW.cache_write_tokens, NEW.completion_tokens, NEW.reasoning_tokens, NEW.cost_micro_usd, NEW.unpriced_calls);
END;

CREATE TRIGGER tasks_delete AFTER DELETE ON tasks WHEN OLD.status IN ('completed', 'stopped', 'failed') BEGIN
    INSERT INTO task_counting VALUES (-1, OLD.status, OLD.user, OLD.owner, OLD.repo, OLD.model, OLD.started_at, OLD.completed_at, OLD.llm_call_count, OLD.tool_call_count, OLD.total_tokens,
        OLD.compression_count, OLD.compression_failures, OLD.message_count, OLD.bytes, OLD.prompt_tokens, OLD.cached_tokens,
        OLD.cache_write_tokens, OLD.completion_tokens, OLD.reasoning_tokens, OLD.cost_micro_usd, OLD.unpriced_calls);
END;

INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1), (1, 1), (2, 1), (3, 1), (4, 1);
